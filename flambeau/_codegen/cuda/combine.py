"""Values combined with what is at given positions of an array: many may meet at one."""

from __future__ import annotations

from ..reduction import REDUCTIONS
from .elementwise import functions
from .types import TYPES

THREADS = 256
KINDS = frozenset(("maximum", "minimum", "multiply"))
SIZES = {4: "u32", 8: "u64"}
"""For the sizes of elements that can be exchanged at once, the words that are."""


def combine_source(kind: str, name: str) -> str:
    """The kernel: a value that finds another one at its position than it has combined with tries again."""
    own = TYPES[name]
    return f"""{functions()}
typedef {own.memory} T;
typedef {SIZES[own.size]} W;
union Both {{ T value; W word; }};
struct Arguments {{ i64 count; i64 size; const i64* place; const T* value; T* out; }};
KERNEL kernel(const __grid_constant__ Arguments a) {{
  const i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= a.count || a.place[i] < 0 || a.place[i] >= a.size) return;
  W* at = (W*)(a.out + a.place[i]);
  Both expected, now, found;
  found.word = *(volatile W*)at;
  do {{
    expected.word = found.word;
    now.value = f_{REDUCTIONS[kind].join}(expected.value, a.value[i]);
    found.word = atomicCAS(at, expected.word, now.word);
  }} while (found.word != expected.word);
}}
"""
