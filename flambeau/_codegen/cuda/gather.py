"""Elements and rows by position. Only the bits of elements matter: types stand for their sizes.

A position outside of its dimension is noted where the host will look, and gives zeros.
"""

from __future__ import annotations

from .elementwise import functions
from .types import TYPES

THREADS = 256
_WORDS = {1: "u8", 2: "u16", 4: "u32", 8: "u64"}
_OUTSIDE = "{ a.fault[0] = 1; a.fault[1] = at; }"


def _head(size: int, width: int, index: str) -> str:
    return f"""{functions()}
typedef {_WORDS[size]} T;
typedef {TYPES[index].memory} I;
struct alignas({size * width}) P {{ T at[{width}]; }};
"""


def rows_source(size: int, width: int, index: str, wraps: bool = False) -> str:
    """Slices along one of three dimensions; a thread has `width` neighbours of the last one.

    `wraps`: positions below zero count from the end.
    """
    return f"""{_head(size, width, index)}
struct Arguments {{
  i64 count; const T* in; const I* index; T* out; i64 length; i64 positions; i64 inner; volatile i64* fault;
}};
KERNEL kernel(const __grid_constant__ Arguments a) {{
  const i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= a.count) return;
  const u32 packs = (u32)(a.inner / {width});
  const i64 row = i / packs, column = i % packs * {width};
  const i64 at = (i64)a.index[row % a.positions], place = {"at < 0 ? at + a.length : at" if wraps else "at"};
  P found = {{}};
  if (place < 0 || place >= a.length) {_OUTSIDE}
  else found = *(const P*)(a.in + (row / a.positions * a.length + place) * a.inner + column);
  *(P*)(a.out + row * a.inner + column) = found;
}}
"""


def elements_source(size: int, index: str, dimensions: int) -> str:
    """Elements at positions along one dimension; the others run with the index, whose sizes are `n`."""
    walk = [
        f"offset += rest % a.n{d} * a.s{d}; rest /= a.n{d};" if d else "offset += rest * a.s0;"
        for d in reversed(range(dimensions))
    ]
    fields = " ".join([f"i64 n{d}, s{d};" for d in range(dimensions)])
    return f"""{_head(size, 1, index)}
struct Arguments {{
  i64 count; const char* in; const I* index; T* out; i64 length; i64 step; volatile i64* fault; {fields}
}};
KERNEL kernel(const __grid_constant__ Arguments a) {{
  const i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= a.count) return;
  i64 rest = i, offset = 0;
  {" ".join(walk)}
  const i64 at = (i64)a.index[i];
  T found = 0;
  if (at < 0 || at >= a.length) {_OUTSIDE}
  else found = *(const T*)(a.in + offset + at * a.step);
  a.out[i] = found;
}}
"""
