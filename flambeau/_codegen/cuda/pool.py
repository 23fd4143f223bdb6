"""Pooling in two dimensions: the largest element or the mean of windows, and the gradients of the elements.

Strides say where elements are, so that planes and channels innermost are the same kernel; the indices of threads follow
the memory of the result. A thread has one result, or of maxima a pack of neighbouring channels: 16 bytes of elements.
"""

from __future__ import annotations

from .elementwise import functions
from .types import TYPES

THREADS = 256
SIZES = "channels height width rows columns tall wide down right above left gap_down gap_right"
"""The numbers of a window's geometry: sizes of the input and of the result, of the window, its steps, the padding, the
distance between the elements of a window.
"""


def _head(name: str, width: int = 1) -> str:
    kind = TYPES[name]
    wide = "double" if name == "float64" else "float" if kind.compute == "float" else "i64"
    return f"""{functions()}
typedef {wide} A;
typedef {kind.compute} C;
typedef {kind.memory} T;
FN C load(const T* p) {{ return {kind.loaded("*p")}; }}
FN void save(T* p, C x) {{ *p = {kind.stored("x")}; }}
enum {{ W = {width} }};
struct alignas(sizeof(T) * W) Pack {{ T at[W]; }};
struct alignas(W > 1 ? 16 : 8) Places {{ i64 at[W > 1 ? 2 : 1]; }};
FN i32 least(i32 x, i32 y) {{ return x < y ? x : y; }}
FN i32 most(i32 x, i32 y) {{ return x > y ? x : y; }}
"""


def _place(last: bool, height: str, width: str) -> str:
    """The statements that say which sample, channel, line and column a thread has; of a pack the first channel."""
    sizes = f"const u32 {height}_ = a.{height}, {width}_ = a.{width}, channels_ = a.channels / W;"
    if last:
        order = f"""const u32 channel = (u32)(rest % channels_) * W; rest /= channels_;
  const u32 column = (u32)(rest % {width}_); rest /= {width}_;
  const u32 row = (u32)(rest % {height}_); const i64 sample = rest / {height}_;"""
    else:
        order = f"""const u32 column = (u32)(rest % {width}_); rest /= {width}_;
  const u32 row = (u32)(rest % {height}_); rest /= {height}_;
  const u32 channel = (u32)(rest % channels_); const i64 sample = rest / channels_;"""
    return f"""const i64 at = (i64)blockIdx.x * blockDim.x + threadIdx.x;
  if (at * W >= a.count) return;
  {sizes}
  u32 rest = (u32)at;
  {order}"""


def _arguments(first: str) -> str:
    fields = " ".join(f"i32 {name};" for name in SIZES.split())
    return f"struct Arguments {{ i64 count; {first} {fields} i32 more; }};"


def _step(last: bool, channels: str = "a.channels") -> tuple[str, str]:
    """How far the elements of a plane are apart, and where the plane of a thread begins in an array of given size."""
    if last:
        return channels, "(sample * a.{height} * a.{width}) * a.channels + channel"
    return "1", "(sample * a.channels + channel) * a.{height} * a.{width}"


def max_pool_source(name: str, last: bool, indices: bool, width: int) -> str:
    """The largest element of each window: the first of equals, the last NaN; and its place in the flattened plane."""
    step, base = _step(last)
    places = """
  for (int j = 0; j < W; j += sizeof(Places) / 8) {
    Places p;
    for (int k = 0; k < sizeof(Places) / 8; k++) p.at[k] = found[j + k];
    *(Places*)(a.places + at * W + j) = p;
  }"""
    return f"""{_head(name, width)}
{_arguments("const T* in; T* out; i64* places;")}
KERNEL kernel(const __grid_constant__ Arguments a) {{
  {_place(last, "rows", "columns")}
  const T* plane = a.in + {base.format(height="height", width="width")};
  i32 top = (i32)row * a.down - a.above, side = (i32)column * a.right - a.left;
  const i32 bottom = least(top + (a.tall - 1) * a.gap_down + 1, a.height);
  const i32 edge = least(side + (a.wide - 1) * a.gap_right + 1, a.width);
  if (top < 0) top += (-top + a.gap_down - 1) / a.gap_down * a.gap_down;
  if (side < 0) side += (-side + a.gap_right - 1) / a.gap_right * a.gap_right;
  C best[W];
  i32 found[W];
  const Pack first = *(const Pack*)(plane + (i64)(top * a.width + side) * {step});
  #pragma unroll
  for (int j = 0; j < W; j++) best[j] = load(first.at + j), found[j] = top * a.width + side;
  for (i32 y = top; y < bottom; y += a.gap_down)
    for (i32 x = side; x < edge; x += a.gap_right) {{
      const Pack pack = *(const Pack*)(plane + (i64)(y * a.width + x) * {step});
      #pragma unroll
      for (int j = 0; j < W; j++) {{
        const C value = load(pack.at + j);
        if (value > best[j] || is_nan(value)) best[j] = value, found[j] = y * a.width + x;
      }}
    }}
  Pack pack;
  #pragma unroll
  for (int j = 0; j < W; j++) save(pack.at + j, best[j]);
  *(Pack*)(a.out + at * W) = pack;{places if indices else ""}
}}
"""


def max_pool_backward_source(name: str, last: bool, width: int) -> str:
    """For each element the sum of the gradients of those windows over it that found it."""
    step, base = _step(last)
    return f"""{_head(name, width)}
{_arguments("const T* in; T* out; const i64* places;")}
KERNEL kernel(const __grid_constant__ Arguments a) {{
  {_place(last, "height", "width")}
  const i64 base = {base.format(height="rows", width="columns")};
  const i32 own = (i32)row * a.width + (i32)column;
  const i32 y = (i32)row + a.above, x = (i32)column + a.left;
  const i32 reach_y = (a.tall - 1) * a.gap_down + 1, reach_x = (a.wide - 1) * a.gap_right + 1;
  const i32 first_y = y < reach_y ? 0 : (y - reach_y) / a.down + 1, last_y = least(y / a.down, a.rows - 1);
  const i32 first_x = x < reach_x ? 0 : (x - reach_x) / a.right + 1, last_x = least(x / a.right, a.columns - 1);
  A sum[W] = {{}};
  for (i32 i = first_y; i <= last_y; i++)
    for (i32 j = first_x; j <= last_x; j++) {{
      const i64 place = base + (i64)(i * a.columns + j) * {step};
      const Pack pack = *(const Pack*)(a.in + place);
      #pragma unroll
      for (int k = 0; k < W; k += sizeof(Places) / 8) {{
        const Places p = *(const Places*)(a.places + place + k);
        #pragma unroll
        for (int n = 0; n < sizeof(Places) / 8; n++)
          if (p.at[n] == own) sum[k + n] += (A)load(pack.at + k + n);
      }}
    }}
  Pack pack;
  #pragma unroll
  for (int k = 0; k < W; k++) save(pack.at + k, (C)sum[k]);
  *(Pack*)(a.out + at * W) = pack;
}}
"""


_WINDOW = """i32 top = i * a.down - a.above, side = j * a.right - a.left;
      i32 bottom = least(top + a.tall, a.height + a.above), edge = least(side + a.wide, a.width + a.left);
      const i32 whole = (bottom - top) * (edge - side);
      top = most(top, 0), side = most(side, 0), bottom = least(bottom, a.height), edge = least(edge, a.width);"""
_ADAPTED = """const i32 top = i * a.height / a.rows, bottom = ((i + 1) * a.height + a.rows - 1) / a.rows;
      const i32 side = j * a.width / a.columns, edge = ((j + 1) * a.width + a.columns - 1) / a.columns;"""
INSIDE, WITH_PADDING, ADAPTED = range(3)
"""What a mean is divided by: the elements of its window that exist, all of them, or those of windows that share the
input among the results. A number of `more` that is not 0 comes before that.
"""


def _window(counted: int) -> str:
    if counted == ADAPTED:
        return f"{_ADAPTED}\n      const i32 divisor = (bottom - top) * (edge - side);"
    count = "whole" if counted == WITH_PADDING else "(bottom - top) * (edge - side)"
    return f"{_WINDOW}\n      const i32 divisor = a.more ? a.more : {count};"


def mean_pool_source(name: str, last: bool, counted: int) -> str:
    """The mean of each window."""
    step, base = _step(last)
    return f"""{_head(name)}
{_arguments("const T* in; T* out; const i64* places;")}
KERNEL kernel(const __grid_constant__ Arguments a) {{
  {_place(last, "rows", "columns")}
  const T* plane = a.in + {base.format(height="height", width="width")};
  const i32 i = (i32)row, j = (i32)column;
  {_window(counted)}
  A sum = 0;
  for (i32 y = top; y < bottom; y++)
    for (i32 x = side; x < edge; x++) sum += (A)load(plane + (i64)(y * a.width + x) * {step});
  save(a.out + at, (C)(sum / (A)divisor));
}}
"""


def mean_pool_backward_source(name: str, last: bool, counted: int) -> str:
    """For each element its share of the gradients of the windows over it."""
    step, base = _step(last)
    if counted == ADAPTED:
        bounds = """const i32 first_y = y * a.rows / a.height, last_y = ((y + 1) * a.rows - 1) / a.height;
  const i32 first_x = x * a.columns / a.width, last_x = ((x + 1) * a.columns - 1) / a.width;"""
    else:
        bounds = """const i32 high = y + a.above, far = x + a.left;
  const i32 first_y = high < a.tall ? 0 : (high - a.tall) / a.down + 1, last_y = least(high / a.down, a.rows - 1);
  const i32 first_x = far < a.wide ? 0 : (far - a.wide) / a.right + 1, last_x = least(far / a.right, a.columns - 1);"""
    return f"""{_head(name)}
{_arguments("const T* in; T* out; const i64* places;")}
KERNEL kernel(const __grid_constant__ Arguments a) {{
  {_place(last, "height", "width")}
  const i64 base = {base.format(height="rows", width="columns")};
  const i32 y = (i32)row, x = (i32)column;
  {bounds}
  A sum = 0;
  for (i32 i = first_y; i <= last_y; i++)
    for (i32 j = first_x; j <= last_x; j++) {{
      {_window(counted)}
      sum += (A)load(a.in + base + (i64)(i * a.columns + j) * {step}) / (A)divisor;
    }}
  save(a.out + at, (C)sum);
}}
"""
