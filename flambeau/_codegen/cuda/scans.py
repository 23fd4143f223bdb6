"""The kernel of running results: the largest so far, the smallest so far, and their like."""

from __future__ import annotations

from .elementwise import functions
from .types import TYPES

THREADS = 128


def scan_source(function: str, dtype: str) -> str:
    """The kernel in which a thread goes along a line, from its first element to its last."""
    kind = TYPES[dtype]
    return f"""{functions()}
typedef {kind.memory} T;
struct Arguments {{ i64 lines; i64 length; i64 inner; const T* in; T* out; }};
KERNEL kernel(const __grid_constant__ Arguments a) {{
  const i64 line = (i64)blockIdx.x * blockDim.x + threadIdx.x;
  if (line >= a.lines) return;
  i64 place = line / a.inner * a.length * a.inner + line % a.inner;
  {kind.compute} so_far = a.in[place];
  a.out[place] = so_far;
  for (i64 i = 1; i < a.length; i++) {{
    place += a.inner;
    so_far = f_{function}(so_far, ({kind.compute})a.in[place]);
    a.out[place] = so_far;
  }}
}}
"""
