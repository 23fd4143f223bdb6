"""Normalisation of groups of channels: a block has one group of one sample, whose elements lie side by side."""

from __future__ import annotations

from .elementwise import functions
from .types import TYPES


def _head(name: str, parameters: str, kept: str, width: int, threads: int) -> str:
    kind, parameter, stored = TYPES[name], TYPES[parameters], TYPES[kept]
    return f"""{functions()}
enum {{ V = {width}, THREADS = {threads} }};
typedef {"double" if name == "float64" else "float"} A;
typedef {kind.memory} T;
typedef {parameter.memory} W;
typedef {stored.memory} K;
struct alignas(sizeof(T) * V) Pack {{ T at[V]; }};
FN A load(T x) {{ return (A){kind.loaded("x")}; }}
FN T save(A x) {{ return {kind.stored("x")}; }}
FN A load_parameter(const W* at) {{ return (A){parameter.loaded("*at")}; }}
FN W save_parameter(A x) {{ return {parameter.stored("x")}; }}
FN A load_kept(const K* at) {{ return (A){stored.loaded("*at")}; }}
FN K save_kept(A x) {{ return {stored.stored("x")}; }}
#define TOTAL(sums, value) \\
  sums[threadIdx.x] = value; \\
  __syncthreads(); \\
  for (u32 s = blockDim.x / 2; s > 0; s /= 2) {{ \\
    if (threadIdx.x < s) sums[threadIdx.x] += sums[threadIdx.x + s]; \\
    __syncthreads(); \\
  }}
#define EACH_PACK for (u32 i = threadIdx.x * V; i < length; i += blockDim.x * V)
"""


def forward_source(
    name: str, parameters: str, kept: str, weighted: bool, biased: bool, width: int, threads: int
) -> str:
    """The result, and the mean and 1 / deviation of each group."""
    factor = "load_parameter(a.weight + c)" if weighted else "(A)1"
    added = "load_parameter(a.bias + c)" if biased else "(A)0"
    return f"""{_head(name, parameters, kept, width, threads)}
struct Arguments {{
  i64 groups; i64 size; i64 places; double eps; const T* x; const W* weight; const W* bias; K* mean; K* rstd; T* out;
}};
KERNEL_OF(THREADS) kernel(const __grid_constant__ Arguments a) {{
  __shared__ A first[THREADS], second[THREADS];
  const u32 length = (u32)(a.size * a.places), places = (u32)a.places;
  const T* x = a.x + blockIdx.x * (i64)length;
  T* out = a.out + blockIdx.x * (i64)length;
  A sum = 0, squares = 0;
  EACH_PACK {{
    const Pack pack = *(const Pack*)(x + i);
    for (int k = 0; k < V; k++) sum += load(pack.at[k]);
  }}
  TOTAL(first, sum)
  const A mean = first[0] / (A)length;
  EACH_PACK {{
    const Pack pack = *(const Pack*)(x + i);
    for (int k = 0; k < V; k++) {{ const A rest = load(pack.at[k]) - mean; squares += rest * rest; }}
  }}
  TOTAL(second, squares)
  const A rstd = (A)1 / sqrt(second[0] / (A)length + (A)a.eps);
  if (threadIdx.x == 0) a.mean[blockIdx.x] = save_kept(mean), a.rstd[blockIdx.x] = save_kept(rstd);
  const i64 begin = blockIdx.x % a.groups * a.size;
  EACH_PACK {{
    const Pack pack = *(const Pack*)(x + i);
    Pack made;
    const i64 c = begin + i / places;
    const A factor = {factor}, added = {added};
    for (int k = 0; k < V; k++) made.at[k] = save((load(pack.at[k]) - mean) * rstd * factor + added);
    *(Pack*)(out + i) = made;
  }}
}}
"""


def input_gradient_source(name: str, parameters: str, kept: str, weighted: bool, width: int, threads: int) -> str:
    """The gradient of the input."""
    factor = "load_parameter(a.weight + begin + i / places)" if weighted else "(A)1"
    return f"""{_head(name, parameters, kept, width, threads)}
struct Arguments {{
  i64 groups; i64 size; i64 places; const T* grad; const T* x; const W* weight; const K* mean; const K* rstd; T* out;
}};
KERNEL_OF(THREADS) kernel(const __grid_constant__ Arguments a) {{
  __shared__ A first[THREADS], second[THREADS];
  const u32 length = (u32)(a.size * a.places), places = (u32)a.places;
  const i64 row = blockIdx.x * (i64)length, begin = blockIdx.x % a.groups * a.size;
  const A mean = load_kept(a.mean + blockIdx.x), rstd = load_kept(a.rstd + blockIdx.x);
  A level = 0, slope = 0;
  EACH_PACK {{
    const Pack grad = *(const Pack*)(a.grad + row + i), x = *(const Pack*)(a.x + row + i);
    const A factor = {factor};
    for (int k = 0; k < V; k++) {{
      const A value = load(grad.at[k]) * factor;
      level += value, slope += value * ((load(x.at[k]) - mean) * rstd);
    }}
  }}
  TOTAL(first, level)
  TOTAL(second, slope)
  level = first[0] / (A)length, slope = second[0] / (A)length;
  EACH_PACK {{
    const Pack grad = *(const Pack*)(a.grad + row + i), x = *(const Pack*)(a.x + row + i);
    const A factor = {factor};
    Pack made;
    for (int k = 0; k < V; k++) {{
      const A standard = (load(x.at[k]) - mean) * rstd;
      made.at[k] = save((load(grad.at[k]) * factor - level - standard * slope) * rstd);
    }}
    *(Pack*)(a.out + row + i) = made;
  }}
}}
"""


def parameter_gradients_source(name: str, parameters: str, kept: str, width: int, threads: int) -> str:
    """The gradients of weight and bias: a block has one channel of all samples."""
    return f"""{_head(name, parameters, kept, width, threads)}
struct Arguments {{
  i64 groups; i64 size; i64 places; i64 samples; const T* grad; const T* x; const K* mean; const K* rstd;
  W* of_weight; W* of_bias;
}};
KERNEL_OF(THREADS) kernel(const __grid_constant__ Arguments a) {{
  __shared__ A first[THREADS], second[THREADS];
  const i64 channels = a.groups * a.size;
  const u32 packs = (u32)(a.places / V), all = (u32)a.samples * packs;
  A level = 0, slope = 0;
  for (u32 i = threadIdx.x; i < all; i += blockDim.x) {{
    const i64 sample = i / packs, at = (sample * channels + blockIdx.x) * a.places + (i64)(i % packs) * V;
    const i64 group = sample * a.groups + blockIdx.x / a.size;
    const A mean = load_kept(a.mean + group), rstd = load_kept(a.rstd + group);
    const Pack grad = *(const Pack*)(a.grad + at), x = *(const Pack*)(a.x + at);
    for (int k = 0; k < V; k++) {{
      const A value = load(grad.at[k]);
      level += value, slope += value * ((load(x.at[k]) - mean) * rstd);
    }}
  }}
  TOTAL(first, level)
  TOTAL(second, slope)
  if (threadIdx.x == 0) {{
    if (a.of_weight) a.of_weight[blockIdx.x] = save_parameter(second[0]);
    if (a.of_bias) a.of_bias[blockIdx.x] = save_parameter(first[0]);
  }}
}}
"""
