"""Reductions: a block computes some results together, each by several threads that meet in shared memory.

The input is seen as kept and reduced dimensions, each walked through by sizes and strides in bytes. `across` threads
stand for neighbouring results and `along` threads share the elements of one. Where there are few results, their
elements are divided among several blocks, whose partial results a second pass reduces.
"""

from __future__ import annotations

from ..reduction import REDUCTIONS, start_of
from .elementwise import constant, functions
from .types import TYPES, CType

KINDS = frozenset(kind for kind, each in REDUCTIONS.items() if each.summand is None)
"""The reductions of the elements themselves."""

THREADS = 256
BLOCKS, BLOCKS_BY_COLUMNS = 4, 3
"""So many blocks are on a processor at a time, and so many of `columns_source`."""


def reduce_source(
    kind: str, given: str, accumulated: str, result: str, kept: int, reduced: int, fast: bool, width: int
) -> str:
    """The kernel for arrays of `given`; `fast`: neighbouring threads share one result, not neighbouring results.

    `width`: how many neighbours a thread reads at a time.
    """
    source, target, sums = TYPES[given], TYPES[result], TYPES[accumulated]
    begin, body = _joining(kind, sums)
    step = f"all = joined(all, {sums.converted(source.loaded(_place(source)), source)});"
    if width > 1:
        element = sums.converted(source.loaded("several.at[j]"), source)
        step = f"""const Several several = *(const Several*)(a.in + offset);
      for (int j = 0; j < {width}; j++) all = joined(all, {element});"""
        body += f"struct alignas({source.size * width}) Several {{ {source.memory} at[{width}]; }};\n"
    write = f"*({target.memory}*)(a.out + result * {target.size}) = {target.stored(target.converted('all', sums))};"
    return _kernel(body, kept, reduced, fast, f"A all = {begin};", step, write)


def _joining(kind: str, sums: CType) -> tuple[str, str]:
    """Where a reduction begins, and what declares the accumulating type `A` and how two of them become one."""
    return (
        _start(kind, sums),
        f"""typedef {sums.compute} A;
FN A joined(A x, A y) {{ return f_{REDUCTIONS[kind].join}(x, y); }}
""",
    )


def _start(kind: str, sums: CType) -> str:
    """Where a reduction begins, in the accumulating type."""
    start = start_of(kind, sums.name)
    if sums.is_complex:
        return constant(sums, f"{float(start).hex()},{(0.0).hex()}")
    return constant(sums, float(start).hex() if "float" in sums.name else repr(int(start)))


def columns_source(kind: str, given: str, accumulated: str, result: str, width: int) -> str:
    """The kernel that reduces the rows of a matrix whose rows are without gaps; a thread has `width` neighbours."""
    source, target, sums = TYPES[given], TYPES[result], TYPES[accumulated]
    begin, joining = _joining(kind, sums)
    element = sums.converted(source.loaded("several.at[j]"), source)
    return f"""{functions()}
{joining}struct alignas({source.size * width}) Several {{ {source.memory} at[{width}]; }};
struct Arguments {{
  i64 results; i64 length; const char* in; {target.memory}* out; i64 across; i64 blocks; i64 part; i64 step;
}};
KERNEL_OF({THREADS}, {BLOCKS_BY_COLUMNS}) kernel(const __grid_constant__ Arguments a) {{
  __shared__ A shared[{THREADS}][{width}];
  const u32 along = blockDim.x / a.across, at = threadIdx.x / a.across, beside = threadIdx.x % a.across;
  const i64 group = (i64)(blockIdx.x % a.blocks) * a.across + beside, split = blockIdx.x / a.blocks;
  A all[{width}];
  for (int j = 0; j < {width}; j++) all[j] = {begin};
  const i64 end = (split + 1) * a.part < a.length ? (split + 1) * a.part : a.length;
  if (group * {width} < a.results) {{
#pragma unroll 4
    for (i64 row = split * a.part + at; row < end; row += along) {{
      const Several several = *(const Several*)(a.in + row * a.step + group * {source.size * width});
      for (int j = 0; j < {width}; j++) all[j] = joined(all[j], {element});
    }}
  }}
  for (int j = 0; j < {width}; j++) shared[threadIdx.x][j] = all[j];
  __syncthreads();
  for (u32 s = along / 2; s > 0; s /= 2) {{
    if (at < s)
      for (int j = 0; j < {width}; j++)
        shared[threadIdx.x][j] = joined(shared[threadIdx.x][j], shared[threadIdx.x + s * a.across][j]);
    __syncthreads();
  }}
  if (at == 0 && group * {width} < a.results)
    for (int j = 0; j < {width}; j++) {{
      const A value = shared[threadIdx.x][j];
      a.out[split * a.results + group * {width} + j] = {target.stored(target.converted("value", sums))};
    }}
}}
"""


def position_source(kind: str, given: str, kept: int, reduced: int, fast: bool, partial: int) -> str:
    """The kernel that finds where the largest or smallest element is, the first of several; NaN counts as such.

    `partial`: 0 all in one pass, 1 the first of two, 2 the second, which reads what the first has written.
    """
    source = TYPES[given]
    better = ">" if kind == "argmax" else "<"
    begin = _start(f"{kind[3:]}imum", TYPES["float32"] if source.is_half else source)
    body = f"""typedef {source.compute} V;
struct A {{ V value; i64 at; }};
FN A joined(A x, A y) {{
  if (y.at < 0) return x;
  if (x.at < 0) return y;
  const bool nx = is_nan(x.value), ny = is_nan(y.value);
  if (nx || ny) return ny && (!nx || y.at < x.at) ? y : x;
  return y.value {better} x.value || (y.value == x.value && y.at < x.at) ? y : x;
}}
"""
    read = "*(const A*)(a.in + offset)" if partial == 2 else f"A{{{source.loaded(_place(source))}, r}}"
    write = "((A*)a.out)[result] = all;" if partial == 1 else "((i64*)a.out)[result] = all.at;"
    return _kernel(body, kept, reduced, fast, f"A all = {{{begin}, -1}};", f"all = joined(all, {read});", write)


def _place(kind: CType) -> str:
    return f"*(const {kind.memory}*)(a.in + offset)"


def _kernel(body: str, kept: int, reduced: int, fast: bool, begin: str, step: str, write: str) -> str:
    fields = [f"i64 kn{d}, ks{d};" for d in range(kept)] + [f"i64 rn{d}, rs{d};" for d in range(reduced)]
    walk_kept = _walk("result", "base", "k", kept)
    walk_reduced = _walk("r", "offset", "r", reduced)
    thread = "threadIdx.x % along, across_at = threadIdx.x / along" if fast else (
        "threadIdx.x / a.across, across_at = threadIdx.x % a.across"
    )  # fmt: skip
    distance = "s" if fast else "s * a.across"
    return f"""{functions()}
{body}
struct Arguments {{
  i64 results; i64 length; const char* in; char* out; i64 across; i64 blocks; i64 part;
  {" ".join(fields)}
}};
KERNEL_OF({THREADS}, {BLOCKS}) kernel(const __grid_constant__ Arguments a) {{
  __shared__ A shared[{THREADS}];
  const u32 along = blockDim.x / a.across;
  const u32 along_at = {thread};
  const i64 group = blockIdx.x % a.blocks, split = blockIdx.x / a.blocks;
  i64 result = group * a.across + across_at;
  {begin}
  if (result < a.results) {{
    i64 base = 0;
    {walk_kept}
    const i64 end = (split + 1) * a.part < a.length ? (split + 1) * a.part : a.length;
#pragma unroll 4
    for (i64 r = split * a.part + along_at; r < end; r += along) {{
      i64 offset = base;
      {walk_reduced}
      {step}
    }}
  }}
  shared[threadIdx.x] = all;
  __syncthreads();
  for (u32 s = along / 2; s > 0; s /= 2) {{
    if (along_at < s) shared[threadIdx.x] = joined(shared[threadIdx.x], shared[threadIdx.x + {distance}]);
    __syncthreads();
  }}
  if (along_at == 0 && result < a.results) {{
    all = shared[threadIdx.x];
    result += split * a.results;
    {write}
  }}
}}
"""


def _walk(index: str, offset: str, name: str, dimensions: int) -> str:
    """The statements that add to an offset what an index over several dimensions means."""
    if dimensions == 1:
        return f"{offset} += {index} * a.{name}s0;"
    lines = [f"i64 rest_{name} = {index};"]
    lines += [
        f"{offset} += rest_{name} % a.{name}n{d} * a.{name}s{d}; rest_{name} /= a.{name}n{d};"
        for d in reversed(range(1, dimensions))
    ]
    lines.append(f"{offset} += rest_{name} * a.{name}s0;")
    return "\n    ".join(lines)
