"""Kernels of the loss of classes, and of the gradient of an embedding's rows."""

from __future__ import annotations

from .elementwise import functions
from .types import TYPES

THREADS = 256
NONE, MEAN, SUM = range(3)


def _head(name: str, index: str) -> str:
    kind = TYPES[name]
    return f"""{functions()}
typedef {"double" if name == "float64" else "float"} A;
typedef {kind.memory} T;
typedef {TYPES[index].memory} I;
FN A load(const T* p) {{ return {kind.loaded("*p")}; }}
FN void save(T* p, A x) {{ *p = {kind.stored("x")}; }}
"""


_FIELDS = "i64 samples; i64 classes; i64 places; const T* in; const I* target; const T* weight; i64 ignored; T* out;"
_OUTSIDE = "{ a.fault[0] = 1; a.fault[1] = t; }"


def nll_source(name: str, index: str, weighted: bool, reduction: int) -> str:
    """The loss of each target (NONE), or by one block that of all of them; targets that are no classes are noted."""
    weight = "load(a.weight + t)" if weighted else "(A)1"
    one = f"""const i64 t = (i64)a.target[i];
    A value = 0, weight = 0;
    if (t != a.ignored) {{
      if (t < 0 || t >= a.classes) {_OUTSIDE}
      else {{
        weight = {weight};
        value = -weight * load(a.in + (i / a.places * a.classes + t) * a.places + i % a.places);
      }}
    }}"""
    if reduction == NONE:
        body = f"""const i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < a.samples * a.places) {{
    {one}
    save(a.out + i, value);
  }}"""
    else:
        body = f"""__shared__ A values[{THREADS}], weights[{THREADS}];
  A values_ = 0, weights_ = 0;
  for (i64 i = threadIdx.x; i < a.samples * a.places; i += blockDim.x) {{
    {one}
    values_ += value, weights_ += weight;
  }}
  values[threadIdx.x] = values_, weights[threadIdx.x] = weights_;
  __syncthreads();
  for (u32 s = blockDim.x / 2; s > 0; s /= 2) {{
    if (threadIdx.x < s) {{
      values[threadIdx.x] += values[threadIdx.x + s];
      weights[threadIdx.x] += weights[threadIdx.x + s];
    }}
    __syncthreads();
  }}
  if (threadIdx.x == 0) {{
    save(a.out, {"values[0] / weights[0]" if reduction == MEAN else "values[0]"});
    *a.total = weights[0];
  }}"""
    return f"""{_head(name, index)}
struct Arguments {{ {_FIELDS} A* total; volatile i64* fault; }};
KERNEL kernel(const __grid_constant__ Arguments a) {{
  {body}
}}
"""


def nll_backward_source(name: str, index: str, weighted: bool, reduction: int) -> str:
    """The gradient of the log-probabilities of the target classes, among zeros; `total` is all targets' weight."""
    weight = "load(a.weight + t)" if weighted else "(A)1"
    grad = "load(a.in + i)" if reduction == NONE else "load(a.in)"
    share = f"{grad} / *a.total" if reduction == MEAN else grad
    return f"""{_head(name, index)}
struct Arguments {{ {_FIELDS} const A* total; }};
KERNEL kernel(const __grid_constant__ Arguments a) {{
  const i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= a.samples * a.places) return;
  const i64 t = (i64)a.target[i];
  if (t == a.ignored || t < 0 || t >= a.classes) return;
  save(a.out + (i / a.places * a.classes + t) * a.places + i % a.places, -({weight}) * {share});
}}
"""


def small_nll_backward_source(name: str, index: str, weighted: bool) -> str:
    """The gradient of a mean nll_loss over few targets: a thread for each element; every block adds up all weights."""
    weight = "load(a.weight + t)" if weighted else "(A)1"
    return f"""{_head(name, index)}
struct Arguments {{ {_FIELDS} const A* total; }};
FN A weight_of(const Arguments& a, i64 t) {{
  return t == a.ignored || t < 0 || t >= a.classes ? (A)0 : {weight};
}}
KERNEL kernel(const __grid_constant__ Arguments a) {{
  __shared__ A weights[{THREADS}];
  A sum = 0;
  for (i64 i = threadIdx.x; i < a.samples * a.places; i += blockDim.x) sum += weight_of(a, (i64)a.target[i]);
  weights[threadIdx.x] = sum;
  __syncthreads();
  for (u32 s = blockDim.x / 2; s > 0; s /= 2) {{
    if (threadIdx.x < s) weights[threadIdx.x] += weights[threadIdx.x + s];
    __syncthreads();
  }}
  for (i64 at = (i64)blockIdx.x * blockDim.x + threadIdx.x; at < a.samples * a.classes * a.places;
       at += (i64)gridDim.x * blockDim.x) {{
    const i64 t = (i64)a.target[at / (a.classes * a.places) * a.places + at % a.places];
    const bool own = t == at / a.places % a.classes;
    save(a.out + at, own ? -weight_of(a, t) * (load(a.in) / weights[0]) : (A)0);
  }}
}}
"""


def order_source(index: str) -> str:
    """Positions sorted by their rows, those of one row in their order: a block counts what comes before its own."""
    return f"""{functions()}
typedef {TYPES[index].memory} I;
struct Arguments {{ i64 count; const I* row; i64* order; }};
KERNEL kernel(const __grid_constant__ Arguments a) {{
  __shared__ i32 before[{THREADS}];
  const i64 own = blockIdx.x;
  const I row = a.row[own];
  i32 sum = 0;
  for (i64 i = threadIdx.x; i < a.count; i += blockDim.x) sum += a.row[i] < row || (a.row[i] == row && i < own);
  before[threadIdx.x] = sum;
  __syncthreads();
  for (u32 s = blockDim.x / 2; s > 0; s /= 2) {{
    if (threadIdx.x < s) before[threadIdx.x] += before[threadIdx.x + s];
    __syncthreads();
  }}
  if (threadIdx.x == 0) a.order[before[0]] = own;
}}
"""


def embedding_backward_source(name: str, index: str) -> str:
    """The gradient of the rows of an embedding: positions are sorted by row, and the first of each row adds up all."""
    return f"""{_head(name, index)}
struct Arguments {{
  i64 count; i64 width; const T* grad; const I* row; const i64* order; i64 padding; T* out; i64 blocks; i64 rows;
}};
KERNEL kernel(const __grid_constant__ Arguments a) {{
  const i64 column = (i64)(blockIdx.x % a.blocks) * blockDim.x + threadIdx.x;
  const i64 first = blockIdx.x / a.blocks;
  const i64 row = (i64)a.row[a.order[first]];
  if (row < 0 || row >= a.rows) return;  // the op that took such a row has noted it
  if (column >= a.width || row == a.padding || (first > 0 && (i64)a.row[a.order[first - 1]] == row)) return;
  A sum = 0;
  for (i64 i = first; i < a.count && (i64)a.row[a.order[i]] == row; i++)
    sum += load(a.grad + a.order[i] * a.width + column);
  save(a.out + row * a.width + column, sum);
}}
"""
