"""Kernels of running results (the largest so far, the smallest so far, and their like) and of segments of rows."""

from __future__ import annotations

from ..reduction import REDUCTIONS
from .elementwise import functions
from .types import TYPES

THREADS = 128


def scan_source(function: str, dtype: str) -> str:
    """The kernel in which a thread goes along a line, from its first element to its last."""
    kind = TYPES[dtype]
    return f"""{functions()}
typedef {kind.memory} T;
struct Arguments {{ i64 lines; i64 length; i64 inner; const T* __restrict__ in; T* __restrict__ out; }};
KERNEL kernel(const __grid_constant__ Arguments a) {{
  const i64 line = (i64)blockIdx.x * blockDim.x + threadIdx.x;
  if (line >= a.lines) return;
  i64 place = line / a.inner * a.length * a.inner + line % a.inner;
  {kind.compute} so_far = a.in[place];
  a.out[place] = so_far;
#pragma unroll 8
  for (i64 i = 1; i < a.length; i++) {{
    place += a.inner;
    so_far = f_{function}(so_far, ({kind.compute})a.in[place]);
    a.out[place] = so_far;
  }}
}}
"""


def segments_source(function: str, dtype: str) -> str:
    """The kernel in which a thread combines one column of the rows of one segment, from the first row to the last.

    A segment goes from its start to the start of the next one, and has at least one row, as for NumPy's `reduceat`.
    """
    kind = TYPES[dtype]
    return f"""{functions()}
typedef {kind.memory} T;
struct Arguments {{ i64 segments; i64 rows; i64 columns; const i64* starts; const T* in; T* out; }};
KERNEL kernel(const __grid_constant__ Arguments a) {{
  const i64 place = (i64)blockIdx.x * blockDim.x + threadIdx.x;
  if (place >= a.segments * a.columns) return;
  const i64 segment = place / a.columns, column = place % a.columns;
  const i64 begin = a.starts[segment], end = segment + 1 < a.segments ? a.starts[segment + 1] : a.rows;
  if (begin < 0 || begin >= a.rows || end > a.rows) return;
  {kind.compute} so_far = a.in[begin * a.columns + column];
  for (i64 row = begin + 1; row < end; row++)
    so_far = f_{REDUCTIONS[function].join}(so_far, ({kind.compute})a.in[row * a.columns + column]);
  a.out[place] = so_far;
}}
"""
