"""Rows of 16-bit elements that lie at other distances, or are longer or shorter: read one by one, written in packs."""

from __future__ import annotations

from .elementwise import functions

THREADS = 256
PACK = 8


def resize_source(wide: bool) -> str:
    """A matrix written without gaps in another size, zeros where there is nothing to read; `wide`: 64 bits count."""
    index = "i64" if wide else "u32"
    return f"""{functions()}
typedef {index} N;
struct alignas(16) P {{ u16 at[{PACK}]; }};
struct Arguments {{
  i64 count; const u16* in; u16* out; i64 height; i64 width; i64 step; i64 rows; i64 columns;
}};
KERNEL kernel(const __grid_constant__ Arguments a) {{
  const N first = ((N)blockIdx.x * blockDim.x + threadIdx.x) * {PACK};
  if (first >= (N)a.count) return;
  const N columns = (N)a.columns, height = (N)a.height, width = (N)a.width, step = (N)a.step;
  N row = first / columns, column = first % columns;
  P found;
#pragma unroll
  for (int j = 0; j < {PACK}; j++) {{
    found.at[j] = row < height && column < width ? a.in[row * step + column] : (u16)0;
    if (++column == columns) column = 0, row++;
  }}
  if (first + {PACK} <= (N)a.count) *(P*)(a.out + first) = found;
  else
    for (int j = 0; first + j < (N)a.count; j++) a.out[first + j] = found.at[j];
}}
"""
