"""Products of matrices in which each element is one chain of fused multiplications and additions.

A block computes a tile of the result; both matrices go through shared memory in slices of their common dimension. An
element is summed up in the order of that dimension whatever the tile is: tiles are chosen by sizes alone, and all of
them give the same bits.
"""

from __future__ import annotations

from typing import NamedTuple

from .elementwise import functions
from .types import TYPES

FIELDS = (
    "rows columns inner down across left_row left_inner left_matrix right_inner right_column right_matrix out_row "
    "out_matrix"
)
"""What a kernel is told besides addresses: sizes, how many tiles there are, and strides in elements."""

TINY = "zero", "zero at the end", "kept, no negative zero", "kept"
"""The smallest numbers are taken for zero in each step, or in the result, or not at all.

A sum that ends as negative zero remains it, or not. Libraries do either.
"""
_ARITHMETIC = """
#ifdef __CUDACC__
FN float chained(float x, float y, float sum) {
  asm("fma.rn%(step)s.f32 %%0, %%1, %%2, %%0;" : "+f"(sum) : "f"(x), "f"(y));
  return sum;
}
FN float plus(float x, float y) {
  float sum;
  asm("add.rn%(end)s.f32 %%0, %%1, %%2;" : "=f"(sum) : "f"(x), "f"(y));
  return sum;
}
FN float ended(float x) {
  float y;
  asm("%(last)s %%0, %%1, %%2;" : "=f"(y) : "f"(x), "f"(%(neutral)s));
  return y;
}
#else
FN float chained(float x, float y, float sum) { return f_fma(x, y, sum); }
FN float plus(float x, float y) { return x + y; }
FN float ended(float x) { return x; }
#endif
FN double chained(double x, double y, double sum) { return f_fma(x, y, sum); }
FN double plus(double x, double y) { return x + y; }
FN double ended(double x) { return x; }
"""


class Tile(NamedTuple):
    """How much of a result a block computes, and each of its threads."""

    rows: int
    columns: int
    rows_each: int
    columns_each: int
    slice: int = 16
    """So many elements of the common dimension are in shared memory at a time.

    Zeros fill the last slice, of either sign, so that their products leave a negative zero as it is.
    """

    @property
    def threads(self) -> int:
        """How many threads a block has."""
        return self.rows // self.rows_each * (self.columns // self.columns_each)


class Form(NamedTuple):
    """What a kernel depends on besides its tile."""

    dtype: str
    left_by_rows: bool
    """Whether neighbours in the common dimension are neighbours in memory."""
    right_by_rows: bool
    """Whether neighbours in a row are."""
    added: bool
    """Whether the product is added to what stands in the result."""
    row: bool = False
    """Whether a row is added to each of its rows."""
    tiny: str = "kept"
    """What becomes of numbers too small to have all their bits, in sums of float32: one of `TINY`."""


def product_source(tile: Tile, form: Form) -> str:
    """The kernel.

    Its fields: sizes and strides (`FIELDS`), then the addresses of the result, of both matrices and of a row.
    """
    kind = TYPES[form.dtype]
    wide = kind.size == 8
    own, slice_ = ("double", tile.slice // 2) if wide else ("float", tile.slice)
    vector = min(2 if wide else 4, tile.rows_each, tile.columns_each)
    element = kind.loaded("value")
    total = "ended(sums[i][j])"
    if form.added or form.row:
        addend = kind.loaded("a.row[first_column + column]" if form.row else "*at")
        total = f"plus({total}, {addend})"
    left = _place("left", "ROWS", "SLICE", form.left_by_rows)
    right = _place("right", "COLUMNS", "SLICE", not form.right_by_rows)
    arithmetic = _ARITHMETIC % _instructions(form)
    return f"""{functions()}{arithmetic}
typedef {kind.memory} T;
typedef {own} A;
enum {{
  ROWS = {tile.rows}, COLUMNS = {tile.columns}, SLICE = {slice_}, DOWN = {tile.rows_each}, ACROSS = {tile.columns_each},
  V = {vector}, THREADS = {tile.threads}, WIDTH = COLUMNS / ACROSS, HEIGHT = ROWS / DOWN, APART = {2 if wide else 4},
  LEFTS = (ROWS * SLICE + THREADS - 1) / THREADS, RIGHTS = (COLUMNS * SLICE + THREADS - 1) / THREADS
}};
struct alignas(sizeof(A) * V) Several {{ A at[V]; }};
FN A loaded(T value) {{ return {element}; }}
struct Arguments {{
  {" ".join(f"i64 {name};" for name in FIELDS.split())}
  T* out; const T* left; const T* right; const T* row;
}};
KERNEL_OF(THREADS) kernel(const __grid_constant__ Arguments a) {{
  __shared__ Several lefts[2][SLICE][(ROWS + APART) / V], rights[2][SLICE][(COLUMNS + APART) / V];
  const i64 tiles = a.down * a.across, matrix = blockIdx.x / tiles, tile = blockIdx.x % tiles;
  const i64 first_row = tile % a.down * ROWS, first_column = tile / a.down * COLUMNS;
  const T* left = a.left + matrix * a.left_matrix + first_row * a.left_row;
  const T* right = a.right + matrix * a.right_matrix + first_column * a.right_column;
  const i32 rows = (i32)(a.rows - first_row < ROWS ? a.rows - first_row : ROWS);
  const i32 columns = (i32)(a.columns - first_column < COLUMNS ? a.columns - first_column : COLUMNS);
  const u32 down = threadIdx.x / WIDTH, across = threadIdx.x % WIDTH;
  A sums[DOWN][ACROSS] = {{}};
  A next_left[LEFTS], next_right[RIGHTS];
  i64 begin = 0;
  for (i32 stage = 0; begin < a.inner + SLICE; begin += SLICE, stage ^= 1) {{
    // What comes next is read while what is there is multiplied.
    if (begin < a.inner) {{
#pragma unroll
      for (int n = 0; n < LEFTS; n++) {{
        const i32 i = (i32)threadIdx.x + n * THREADS;
        {left}
        next_left[n] = k + begin < a.inner && m < rows && i < ROWS * SLICE
            ? loaded(left[m * a.left_row + (begin + k) * a.left_inner]) : (A)-0.0;
      }}
#pragma unroll
      for (int n = 0; n < RIGHTS; n++) {{
        const i32 i = (i32)threadIdx.x + n * THREADS;
        {right}
        next_right[n] = k + begin < a.inner && m < columns && i < COLUMNS * SLICE
            ? loaded(right[m * a.right_column + (begin + k) * a.right_inner]) : (A)0;
      }}
    }}
    if (begin) {{
#pragma unroll
      for (int k = 0; k < SLICE; k++) {{
        Several one[DOWN / V], other[ACROSS / V];
#pragma unroll
        for (int i = 0; i < DOWN / V; i++) one[i] = lefts[stage ^ 1][k][i * HEIGHT + down];
#pragma unroll
        for (int j = 0; j < ACROSS / V; j++) other[j] = rights[stage ^ 1][k][j * WIDTH + across];
#pragma unroll
        for (int i = 0; i < DOWN; i++)
#pragma unroll
          for (int j = 0; j < ACROSS; j++)
            sums[i][j] = chained(one[i / V].at[i % V], other[j / V].at[j % V], sums[i][j]);
      }}
    }}
    if (begin < a.inner) {{
#pragma unroll
      for (int n = 0; n < LEFTS; n++) {{
        const i32 i = (i32)threadIdx.x + n * THREADS;
        {left}
        if (i < ROWS * SLICE) lefts[stage][k][m / V].at[m % V] = next_left[n];
      }}
#pragma unroll
      for (int n = 0; n < RIGHTS; n++) {{
        const i32 i = (i32)threadIdx.x + n * THREADS;
        {right}
        if (i < COLUMNS * SLICE) rights[stage][k][m / V].at[m % V] = next_right[n];
      }}
    }}
    __syncthreads();
  }}
#pragma unroll
  for (int i = 0; i < DOWN; i++)
#pragma unroll
    for (int j = 0; j < ACROSS; j++) {{
      const i32 row = i / V * V * HEIGHT + down * V + i % V, column = j / V * V * WIDTH + across * V + j % V;
      if (row < rows && column < columns) {{
        T* at = a.out + matrix * a.out_matrix + (first_row + row) * a.out_row + first_column + column;
        *at = {kind.stored(total)};
      }}
    }}
}}
"""


def _instructions(form: Form) -> dict[str, str]:
    end = ".ftz" if form.tiny.startswith("zero") else ""
    adds = form.tiny == "kept, no negative zero" and not (form.added or form.row)
    last, neutral = ("add.rn.f32", "0.0f") if adds else (f"mul.rn{end}.f32", "1.0f")
    return {"step": ".ftz" if form.tiny == "zero" else "", "end": end, "last": last, "neutral": neutral}


def _place(name: str, size: str, slice_: str, along: bool) -> str:
    """Which element of a slice number `i` is: neighbouring threads read what lies together."""
    if along:
        return f"const i32 k = i % {slice_}, m = i / {slice_};"
    return f"const i32 m = i % {size}, k = i / {size};"
