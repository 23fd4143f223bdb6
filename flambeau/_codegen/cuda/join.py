"""Arrays side by side along a dimension: every element, or pack of them, of the result is read where it comes from."""

from __future__ import annotations

from .elementwise import functions

THREADS = 256
_WORDS = {1: "u8", 2: "u16", 4: "u32", 8: "u64"}


def join_source(size: int, arrays: int, dimensions: int, axis: int, wide: bool) -> str:
    """The result, without gaps, from `arrays` with any strides; they meet along `axis`.

    `size` counts the bytes that a thread moves; `wide`: 64 bits count.
    """
    element = f"typedef {_WORDS[size]} E;" if size in _WORDS else "struct alignas(16) E { u64 low, high; };"
    index = "i64" if wide else "u32"
    steps = "".join(
        f"  at[{dim}] = rest % (N)a.sizes[{dim}];\n  rest /= (N)a.sizes[{dim}];\n"
        for dim in range(dimensions - 1, 0, -1)
    )
    offset = " + ".join(f"(i64)at[{dim}] * from.strides[{dim}]" for dim in range(dimensions))
    return f"""{functions()}
typedef {index} N;
{element}
struct Source {{ const char* in; i64 begin; i64 end; i64 strides[{dimensions}]; }};
struct Arguments {{ i64 count; E* out; i64 sizes[{dimensions}]; Source sources[{arrays}]; }};
KERNEL kernel(const __grid_constant__ Arguments a) {{
  const N i = (N)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= (N)a.count) return;
  N at[{dimensions}], rest = i;
{steps}  at[0] = rest;
  int number = 0;
  while ((i64)at[{axis}] >= a.sources[number].end) number++;
  const Source& from = a.sources[number];
  at[{axis}] -= (N)from.begin;
  a.out[i] = *(const E*)(from.in + ({offset}));
}}
"""
