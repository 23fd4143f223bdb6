"""Convolutions in two dimensions in which every channel has a kernel of its own, and their gradients.

Arrays lie in planes. A thread has one element of the result; of a weight's gradient a block has all elements that
belong to one channel, and each of its threads adds up part of the places.
"""

from __future__ import annotations

from .elementwise import functions
from .types import TYPES

THREADS = 256
SIZES = "channels height width rows columns down right above left gap_down gap_right"
"""The numbers of a geometry: sizes of the input and of the result, steps, padding, distance between taps."""


def _head(name: str, tall: int, wide: int, places: str) -> str:
    kind = TYPES[name]
    fields = " ".join(f"i32 {each};" for each in SIZES.split())
    return f"""{functions()}
typedef float A;
typedef {kind.memory} T;
enum {{ TALL = {tall}, WIDE = {wide} }};
FN A load(const T* p) {{ return (A){kind.loaded("*p")}; }}
FN T save(A x) {{ return {kind.stored("x")}; }}
struct Arguments {{ i64 count; {places} {fields} }};
"""


def _place(height: str, width: str) -> str:
    """The statements that say which channel, line and column of the result a thread has."""
    return f"""const i64 at = (i64)blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= a.count) return;
  const i32 column = (i32)(at % a.{width});
  const i64 lines = at / a.{width}, plane = lines / a.{height};
  const i32 row = (i32)(lines % a.{height}), channel = (i32)(plane % a.channels);
  const T* weight = a.weight + (i64)channel * (TALL * WIDE);"""


def forward_source(name: str, tall: int, wide: int, biased: bool) -> str:
    """The convolution, plus a bias if it is `biased`."""
    return f"""{_head(name, tall, wide, "const T* in; const T* weight; const T* bias; T* out;")}
KERNEL kernel(const __grid_constant__ Arguments a) {{
  {_place("rows", "columns")}
  const T* in = a.in + plane * a.height * a.width;
  const i32 top = row * a.down - a.above, side = column * a.right - a.left;
  A sum = {"load(a.bias + channel)" if biased else "0"};
#pragma unroll
  for (int i = 0; i < TALL; i++) {{
    const i32 y = top + i * a.gap_down;
    if (y < 0 || y >= a.height) continue;
#pragma unroll
    for (int j = 0; j < WIDE; j++) {{
      const i32 x = side + j * a.gap_right;
      if (x >= 0 && x < a.width) sum += load(in + (i64)y * a.width + x) * load(weight + i * WIDE + j);
    }}
  }}
  a.out[at] = save(sum);
}}
"""


def input_gradient_source(name: str, tall: int, wide: int, unit: bool) -> str:
    """The gradient of the input; `unit`: the kernel moves by single places."""
    whole = "true" if unit else "y % a.down == 0"
    aside = "true" if unit else "x % a.right == 0"
    by_down, by_right = ("", "") if unit else (" / a.down", " / a.right")
    return f"""{_head(name, tall, wide, "const T* grad; const T* weight; T* out;")}
KERNEL kernel(const __grid_constant__ Arguments a) {{
  {_place("height", "width")}
  const T* grad = a.grad + plane * a.rows * a.columns;
  A sum = 0;
#pragma unroll
  for (int i = 0; i < TALL; i++) {{
    const i32 y = row + a.above - i * a.gap_down;
    if (y < 0 || !({whole}) || y{by_down} >= a.rows) continue;
#pragma unroll
    for (int j = 0; j < WIDE; j++) {{
      const i32 x = column + a.left - j * a.gap_right;
      if (x >= 0 && ({aside}) && x{by_right} < a.columns)
        sum += load(grad + (i64)(y{by_down}) * a.columns + x{by_right}) * load(weight + i * WIDE + j);
    }}
  }}
  a.out[at] = save(sum);
}}
"""


def weight_gradient_source(name: str, tall: int, wide: int, whole: bool) -> str:
    """For each channel sums over part of the samples and lines; `whole`: over all of them, as elements of the result.

    `count` is how many samples and lines there are together, `part` how many of them a block has.
    """
    places = f"const T* in; const T* grad; {'T' if whole else 'A'}* out; i64 part;"
    return f"""{_head(name, tall, wide, places)}
KERNEL kernel(const __grid_constant__ Arguments a) {{
  __shared__ A shared[{THREADS}];
  const i32 channel = (i32)(blockIdx.x % a.channels);
  const i64 split = blockIdx.x / a.channels, begin = split * a.part;
  const i64 end = (begin + a.part < a.count ? begin + a.part : a.count) * a.columns;
  A sums[TALL * WIDE] = {{}};
  for (i64 at = begin * a.columns + threadIdx.x; at < end; at += blockDim.x) {{
    const i32 column = (i32)(at % a.columns);
    const i64 lines = at / a.columns, plane = lines / a.rows * a.channels + channel;
    const i32 row = (i32)(lines % a.rows);
    const A grad = load(a.grad + (plane * a.rows + row) * a.columns + column);
    const T* in = a.in + plane * a.height * a.width;
    const i32 top = row * a.down - a.above, side = column * a.right - a.left;
#pragma unroll
    for (int i = 0; i < TALL; i++) {{
      const i32 y = top + i * a.gap_down;
      if (y < 0 || y >= a.height) continue;
#pragma unroll
      for (int j = 0; j < WIDE; j++) {{
        const i32 x = side + j * a.gap_right;
        if (x >= 0 && x < a.width) sums[i * WIDE + j] += load(in + (i64)y * a.width + x) * grad;
      }}
    }}
  }}
#pragma unroll
  for (int tap = 0; tap < TALL * WIDE; tap++) {{
    shared[threadIdx.x] = sums[tap];
    __syncthreads();
    for (u32 s = blockDim.x / 2; s > 0; s /= 2) {{
      if (threadIdx.x < s) shared[threadIdx.x] += shared[threadIdx.x + s];
      __syncthreads();
    }}
    if (threadIdx.x == 0)
      a.out[(split * a.channels + channel) * (TALL * WIDE) + tap] = {"save(shared[0])" if whole else "shared[0]"};
    __syncthreads();
  }}
}}
"""
