"""Kernels that add rows up by number: into slices of an array, or scaled by the elements of a sparse matrix.

Each sum has one thread, which adds in the order of the positions: results are the same in every run.
"""

from __future__ import annotations

from .elementwise import functions
from .types import TYPES

THREADS = 256


def _head(name: str) -> str:
    kind = TYPES[name]
    return f"""{functions()}
typedef {kind.compute} A;
typedef {kind.memory} T;
FN A load(const T* p) {{ return {kind.loaded("*p")}; }}
FN void save(T* p, A x) {{ *p = {kind.stored("x")}; }}
"""


def add_slices_source(name: str) -> str:
    """Slices added to those of another array at positions along a dimension, which `order` sorts.

    The thread of the first position of a row adds all slices of this row.
    """
    return f"""{_head(name)}
struct Arguments {{
  i64 count; i64 width; i64 inner; i64 rows; i64 blocks; const T* value; const i64* row; const i64* order; T* out;
}};
KERNEL kernel(const __grid_constant__ Arguments a) {{
  const i64 column = (i64)(blockIdx.x % a.blocks) * blockDim.x + threadIdx.x;
  const i64 first = blockIdx.x / a.blocks;
  const i64 row = a.row[a.order[first]];
  if (row < 0 || row >= a.rows || column >= a.width) return;  // wrong positions have been noted
  if (first > 0 && a.row[a.order[first - 1]] == row) return;
  const i64 outer = column / a.inner, inside = column % a.inner;
  T* at = a.out + (outer * a.rows + row) * a.inner + inside;
  A sum = load(at);
  for (i64 i = first; i < a.count && a.row[a.order[i]] == row; i++)
    sum = f_add(sum, load(a.value + (outer * a.count + a.order[i]) * a.inner + inside));
  save(at, sum);
}}
"""


def sparse_product_source(name: str) -> str:
    """A sparse matrix times a dense one: `start` says for each row where it begins among the elements in `order`."""
    return f"""{_head(name)}
struct Arguments {{
  i64 size; i64 width; i64 down; i64 across; const i64* start; const i64* order; const i64* column; const T* value;
  const T* dense; T* out;
}};
KERNEL kernel(const __grid_constant__ Arguments a) {{
  const i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= a.size) return;
  const i64 row = i / a.width;
  const T* dense = a.dense + i % a.width * a.across;
  A sum{{}};
  for (i64 k = a.start[row]; k < a.start[row + 1]; k++) {{
    const i64 element = a.order[k];
    sum = f_add(sum, f_multiply(load(a.value + element), load(dense + a.column[element] * a.down)));
  }}
  save(a.out + i, sum);
}}
"""


def sampled_product_source(name: str) -> str:
    """The elements of the product of two dense matrices at given rows and columns."""
    return f"""{_head(name)}
struct Arguments {{
  i64 count; i64 length; i64 left_down; i64 left_across; i64 right_down; i64 right_across; const i64* row;
  const i64* column; const T* left; const T* right; T* out;
}};
KERNEL kernel(const __grid_constant__ Arguments a) {{
  const i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= a.count) return;
  const T* left = a.left + a.row[i] * a.left_down;
  const T* right = a.right + a.column[i] * a.right_across;
  A sum{{}};
  for (i64 k = 0; k < a.length; k++)
    sum = f_add(sum, f_multiply(load(left + k * a.left_across), load(right + k * a.right_down)));
  save(a.out + i, sum);
}}
"""
