"""Kernels of random orders and choices, whose numbers are PyTorch's."""

from __future__ import annotations

from .random import FIND, POSITION, prelude
from .types import TYPES

CHOOSING_THREADS = 128
"""In a block that chooses: by its number a thread draws."""


def shuffle_equal_source(key: str) -> str:
    """The kernel that puts numbers whose keys are equal, and which lie side by side, in random order."""
    return f"""{prelude()}
struct Arguments {{ i64 count; i64* values; const {TYPES[key].memory}* keys; {POSITION} }};
KERNEL kernel(const __grid_constant__ Arguments a) {{
  const i64 first = (i64)blockIdx.x * blockDim.x + threadIdx.x;
  if (first + 1 >= a.count || a.keys[first] != a.keys[first + 1]) return;
  if (first && a.keys[first - 1] == a.keys[first]) return;
  i64 size = 2;
  while (first + size < a.count && a.keys[first + size] == a.keys[first]) size++;
  {FIND}
  Words words;
  for (i64 last = size - 1, drawn = 0; last > 0; last--, drawn++) {{
    if (drawn % 4 == 0) words = philox(seed, first, counter++);
    const i64 other = words.at[drawn % 4] % (last + 1);
    const i64 kept = a.values[first + last];
    a.values[first + last] = a.values[first + other];
    a.values[first + other] = kept;
  }}
}}
"""


def choose_source(dtype: str) -> str:
    """The kernel that chooses categories, `samples` for each row, by the sums of their probabilities up to each."""
    kind = TYPES[dtype].memory
    return f"""{prelude()}
struct Arguments {{
  i64 rows; i64* out; const {kind}* sums; const {kind}* chances; i64 categories; i64 samples; i64 threads; {POSITION}
}};
KERNEL kernel(const __grid_constant__ Arguments a) {{
  const i64 thread = (i64)blockIdx.x * blockDim.x + threadIdx.x;
  const i64 row = thread / a.threads, sample = thread % a.threads;
  if (row >= a.rows || sample >= a.samples) return;
  {FIND}
  const {kind} wanted = unit(philox(seed, thread, counter).at[0]);
  const {kind}* sums = a.sums + row * a.categories;
  const {kind}* chances = a.chances + row * a.categories;
  i64 begin = 0, end = a.categories;
  while (begin < end) {{
    const i64 middle = begin + (end - begin) / 2;
    if (sums[middle] < wanted) begin = middle + 1; else end = middle;
  }}
  if (begin == a.categories) begin--;
  while (begin > 0 && chances[begin] == 0) begin--;  // rounding may have led to what cannot be
  a.out[row * a.samples + sample] = begin;
}}
"""
