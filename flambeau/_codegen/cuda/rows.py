"""Kernels over rows: softmax and normalisations, each row by some threads of a block that meet in shared memory."""

from __future__ import annotations

from .elementwise import functions
from .types import TYPES

THREADS = 256

_MEETING = f"""
#define SUM(x, y) ((x) + (y))
#define MOST(x, y) f_maximum(x, y)
// All threads of a row get what its values come to.
#define MEET(value, JOIN) \\
  shared[threadIdx.x] = value; \\
  __syncthreads(); \\
  for (u32 s = along / 2; s > 0; s /= 2) {{ \\
    if (at < s) shared[threadIdx.x] = JOIN(shared[threadIdx.x], shared[threadIdx.x + s * apart]); \\
    __syncthreads(); \\
  }} \\
  value = shared[first]; \\
  __syncthreads();
#define ROWS \\
  __shared__ A shared[{THREADS}]; \\
  const u32 along = blockDim.x / a.across; \\
  const u32 at = FAST ? threadIdx.x % along : threadIdx.x / a.across; \\
  const u32 beside = FAST ? threadIdx.x / along : threadIdx.x % a.across; \\
  const u32 apart = FAST ? 1 : a.across, first = FAST ? beside * along : beside; \\
  const i64 row = (i64)blockIdx.x * a.across + beside; \\
  const i64 length = row < a.rows ? a.length : 0;
"""


def _head(name: str, fast: bool) -> str:
    kind = TYPES[name]
    return f"""{functions()}
typedef {"double" if name == "float64" else "float"} A;
typedef {kind.memory} T;
enum {{ FAST = {int(fast)} }};
FN A load(const T* p) {{ return {kind.loaded("*p")}; }}
FN void save(T* p, A x) {{ *p = {kind.stored("x")}; }}
{_MEETING}"""


def softmax_source(name: str, logarithm: bool, fast: bool) -> str:
    """softmax, or its logarithm, along the middle one of three dimensions; `fast`: the last one has one element."""
    last = "x - most - f_log(sum)" if logarithm else "f_exp(x - most) / sum"
    return f"""{_head(name, fast)}
struct Arguments {{ i64 rows; i64 length; i64 inner; const T* in; T* out; i64 across; }};
KERNEL kernel(const __grid_constant__ Arguments a) {{
  ROWS
  const i64 base = row / a.inner * a.length * a.inner + row % a.inner;
  A most = -__uint_as_float(0x7f800000u);
  for (i64 i = at; i < length; i += along) most = f_maximum(most, load(a.in + base + i * a.inner));
  MEET(most, MOST)
  A sum = 0;
  for (i64 i = at; i < length; i += along) sum += f_exp(load(a.in + base + i * a.inner) - most);
  MEET(sum, SUM)
  for (i64 i = at; i < length; i += along) {{
    const A x = load(a.in + base + i * a.inner);
    save(a.out + base + i * a.inner, {last});
  }}
}}
"""


def softmax_backward_source(name: str, logarithm: bool, fast: bool) -> str:
    """The gradient of the input of softmax, or of its logarithm, from that of the result and the result."""
    part = "g" if logarithm else "g * y"
    last = "g - f_exp(y) * sum" if logarithm else "y * (g - sum)"
    return f"""{_head(name, fast)}
struct Arguments {{ i64 rows; i64 length; i64 inner; const T* grad; const T* result; T* out; i64 across; }};
KERNEL kernel(const __grid_constant__ Arguments a) {{
  ROWS
  const i64 base = row / a.inner * a.length * a.inner + row % a.inner;
  A sum = 0;
  for (i64 i = at; i < length; i += along) {{
    const A g = load(a.grad + base + i * a.inner), y = load(a.result + base + i * a.inner);
    sum += {part};
  }}
  MEET(sum, SUM)
  for (i64 i = at; i < length; i += along) {{
    const A g = load(a.grad + base + i * a.inner), y = load(a.result + base + i * a.inner);
    save(a.out + base + i * a.inner, {last});
  }}
}}
"""


def norm_source(name: str, parameters: str, kept: str, weighted: bool, biased: bool, centre: bool) -> str:
    """Rows less their means (`centre`), divided by their deviations, with weight and bias; both statistics are kept."""
    given, saved = TYPES[parameters], TYPES[kept]
    value = "(load(a.in + base + i) - mean) * rstd"
    value += f" * (A){given.loaded('a.weight[i]')}" if weighted else ""
    value += f" + (A){given.loaded('a.bias[i]')}" if biased else ""
    mean = """for (i64 i = at; i < length; i += along) mean += load(a.in + base + i);
  MEET(mean, SUM)
  mean /= a.length;"""
    return f"""{_head(name, True)}
struct Arguments {{
  i64 rows; i64 length; const T* in; T* out; {saved.memory}* mean; {saved.memory}* rstd;
  const {given.memory}* weight; const {given.memory}* bias; double eps; i64 across;
}};
KERNEL kernel(const __grid_constant__ Arguments a) {{
  ROWS
  const i64 base = row * a.length;
  A mean = 0;
  {mean if centre else ""}
  A squares = 0;
  for (i64 i = at; i < length; i += along) {{
    const A x = load(a.in + base + i) - mean;
    squares += x * x;
  }}
  MEET(squares, SUM)
  const A rstd = f_rsqrt(squares / a.length + (A)a.eps);
  for (i64 i = at; i < length; i += along) save(a.out + base + i, {value});
  if (at == 0 && row < a.rows) {{
    {f"a.mean[row] = {saved.stored(f'({saved.compute})mean')};" if centre else ""}
    a.rstd[row] = {saved.stored(f"({saved.compute})rstd")};
  }}
}}
"""


def norm_backward_source(name: str, parameters: str, kept: str, weighted: bool, centre: bool) -> str:
    """The gradient of the input of a normalisation of rows."""
    given, saved = TYPES[parameters], TYPES[kept]
    g = "load(a.grad + base + i)" + (f" * (A){given.loaded('a.weight[i]')}" if weighted else "")
    return f"""{_head(name, True)}
struct Arguments {{
  i64 rows; i64 length; const T* grad; const T* in; T* out; const {saved.memory}* mean; const {saved.memory}* rstd;
  const {given.memory}* weight; i64 across;
}};
KERNEL kernel(const __grid_constant__ Arguments a) {{
  ROWS
  const i64 base = row * a.length;
  const A mean = {f"row < a.rows ? (A){saved.loaded('a.mean[row]')} : (A)0" if centre else "0"};
  const A rstd = row < a.rows ? (A){saved.loaded("a.rstd[row]")} : (A)0;
  A sum = 0, product = 0;
  for (i64 i = at; i < length; i += along) {{
    const A g = {g}, x = (load(a.in + base + i) - mean) * rstd;
    sum += g, product += g * x;
  }}
  {"MEET(sum, SUM)" if centre else "sum = 0;"}
  MEET(product, SUM)
  sum /= a.length, product /= a.length;
  for (i64 i = at; i < length; i += along) {{
    const A g = {g}, x = (load(a.in + base + i) - mean) * rstd;
    save(a.out + base + i, rstd * (g - sum - x * product));
  }}
}}
"""


def norm_parameters_source(name: str, kept: str, centre: bool) -> str:
    """Partial sums, over some of the rows each, of the gradients of weight and bias."""
    saved = TYPES[kept]
    return f"""{_head(name, False)}
struct Arguments {{
  i64 rows; i64 length; const T* grad; const T* in; A* weight; A* bias; const {saved.memory}* mean;
  const {saved.memory}* rstd; i64 across; i64 blocks; i64 part;
}};
KERNEL kernel(const __grid_constant__ Arguments a) {{
  __shared__ A shared[{THREADS}];
  const u32 along = blockDim.x / a.across, at = threadIdx.x / a.across, beside = threadIdx.x % a.across;
  const u32 apart = a.across, first = beside;
  const i64 column = (i64)(blockIdx.x % a.blocks) * a.across + beside, split = blockIdx.x / a.blocks;
  const i64 end = (split + 1) * a.part < a.rows ? (split + 1) * a.part : a.rows;
  A weight = 0, bias = 0;
  if (column < a.length) {{
    for (i64 row = split * a.part + at; row < end; row += along) {{
      const A g = load(a.grad + row * a.length + column);
      const A mean = {f"(A){saved.loaded('a.mean[row]')}" if centre else "0"};
      weight += g * (load(a.in + row * a.length + column) - mean) * (A){saved.loaded("a.rstd[row]")};
      bias += g;
    }}
  }}
  MEET(weight, SUM)
  MEET(bias, SUM)
  if (at == 0 && column < a.length) {{
    a.weight[split * a.length + column] = weight;
    a.bias[split * a.length + column] = bias;
  }}
}}
"""
