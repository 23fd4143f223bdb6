"""Kernels of the cross entropy of logits and classes: the probabilities of a row are never written down.

A block has a row. Rows may be apart from each other (`pitch`), so that each begins where whole packs can be read.
"""

from __future__ import annotations

from .elementwise import functions
from .types import TYPES

THREADS = 512


def _head(name: str, index: str, width: int) -> str:
    kind = TYPES[name]
    return f"""{functions()}
enum {{ V = {width}, THREADS = {THREADS} }};
typedef {kind.memory} T;
typedef {TYPES[index].memory} I;
struct alignas(sizeof(T) * V) Pack {{ T at[V]; }};
FN float load(T x) {{ return {kind.loaded("x")}; }}
FN T saved(float x) {{ return {kind.stored("x")}; }}
#define LOWEST (-__uint_as_float(0x7f800000u))
#ifdef __CUDACC__  // one step of the unit for such functions: of exponents near zero, which count, as exact as others
FN float quick_exp(float x) {{ asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(x) : "f"(x * 1.44269504f)); return x; }}
#else
FN float quick_exp(float x) {{ return f_exp(x); }}
#endif
FN void fetch(const T* row, i64 i, i64 classes, float* x) {{
  if (i + V <= classes) {{
    const Pack pack = *(const Pack*)(row + i);
    for (int k = 0; k < V; k++) x[k] = load(pack.at[k]);
  }} else {{
    for (int k = 0; k < V; k++) x[k] = i + k < classes ? load(row[i + k]) : LOWEST;
  }}
}}
"""


def levels_source(name: str, index: str, width: int) -> str:
    """For each row the logarithm of the sum of its exponentials, and the loss; wrong targets are noted."""
    return f"""{_head(name, index, width)}
struct Arguments {{
  i64 classes; i64 pitch; const T* in; const I* target; i64 ignored; float* levels; float* losses; volatile i64* fault;
}};
FN void join(float& top, float& sum, float other, float more) {{
  const float most = other > top ? other : top;
  if (most == LOWEST) {{ sum += more; return; }}
  sum = sum * quick_exp(top - most) + more * quick_exp(other - most);
  top = most;
}}
KERNEL_OF(THREADS) kernel(const __grid_constant__ Arguments a) {{
  __shared__ float tops[THREADS], sums[THREADS];
  const T* row = a.in + (i64)blockIdx.x * a.pitch;
  float top = LOWEST, sum = 0;
#pragma unroll 2
  for (i64 i = (i64)threadIdx.x * V; i < a.classes; i += (i64)blockDim.x * V) {{
    float x[V], most = LOWEST, more = 0;
    fetch(row, i, a.classes, x);
    for (int k = 0; k < V; k++) most = x[k] > most ? x[k] : most;
    const float level = most == LOWEST ? 0 : most;
    for (int k = 0; k < V; k++) more += quick_exp(x[k] - level);
    join(top, sum, most, more);
  }}
  tops[threadIdx.x] = top, sums[threadIdx.x] = sum;
  __syncthreads();
  for (u32 s = blockDim.x / 2; s > 0; s /= 2) {{
    if (threadIdx.x < s) join(tops[threadIdx.x], sums[threadIdx.x], tops[threadIdx.x + s], sums[threadIdx.x + s]);
    __syncthreads();
  }}
  if (threadIdx.x == 0) {{
    const i64 t = (i64)a.target[blockIdx.x];
    const float level = tops[0] + f_log(sums[0]);
    const bool inside = t >= 0 && t < a.classes;
    if (t != a.ignored && !inside) {{ a.fault[0] = 1; a.fault[1] = t; }}
    a.levels[blockIdx.x] = level;
    a.losses[blockIdx.x] = t == a.ignored || !inside ? 0 : level - load(row[t]);
  }}
}}
"""


def total_source(name: str, index: str, mean: bool) -> str:
    """By one block the sum or the mean of the losses of rows, and what each row has as its share of it."""
    return f"""{_head(name, index, 1)}
struct Arguments {{ i64 rows; const float* losses; const I* target; i64 ignored; T* out; float* share; }};
KERNEL_OF(THREADS) kernel(const __grid_constant__ Arguments a) {{
  __shared__ float sums[THREADS], counts[THREADS];
  float sum = 0, count = 0;
  for (i64 i = threadIdx.x; i < a.rows; i += blockDim.x) {{
    sum += a.losses[i];
    count += (i64)a.target[i] != a.ignored;
  }}
  sums[threadIdx.x] = sum, counts[threadIdx.x] = count;
  __syncthreads();
  for (u32 s = blockDim.x / 2; s > 0; s /= 2) {{
    if (threadIdx.x < s) {{
      sums[threadIdx.x] += sums[threadIdx.x + s];
      counts[threadIdx.x] += counts[threadIdx.x + s];
    }}
    __syncthreads();
  }}
  if (threadIdx.x == 0) {{
    *a.out = saved({"sums[0] / counts[0]" if mean else "sums[0]"});
    *a.share = {"1 / counts[0]" if mean else "1"};
  }}
}}
"""


def gradient_source(name: str, index: str, width: int) -> str:
    """The gradient of the logits; what lies between rows is zero."""
    return f"""{_head(name, index, width)}
struct Arguments {{
  i64 classes; i64 pitch; const T* in; const I* target; i64 ignored; const float* levels; const float* share;
  const T* grad; i64 step; T* out;
}};
KERNEL_OF(THREADS) kernel(const __grid_constant__ Arguments a) {{
  const T* row = a.in + (i64)blockIdx.x * a.pitch;
  T* out = a.out + (i64)blockIdx.x * a.step;
  const i64 t = (i64)a.target[blockIdx.x];
  const float level = a.levels[blockIdx.x], factor = t == a.ignored ? 0 : load(*a.grad) * *a.share;
  for (i64 i = (i64)threadIdx.x * V; i < a.step; i += (i64)blockDim.x * V) {{
    float x[V];
    Pack pack;
    fetch(row, i, a.classes, x);
    for (int k = 0; k < V; k++) {{
      const float value = (quick_exp(x[k] - level) - (i + k == t ? 1 : 0)) * factor;
      pack.at[k] = i + k < a.classes && factor != 0 ? saved(value) : saved(0);
    }}
    *(Pack*)(out + i) = pack;
  }}
}}
"""
