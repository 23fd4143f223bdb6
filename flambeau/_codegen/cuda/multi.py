"""One kernel over lists of arrays: the update rule of an optimizer on every parameter, in one launch."""

from __future__ import annotations

from collections.abc import Sequence

from ..expr import Program
from .elementwise import functions, steps_of
from .types import TYPES

THREADS = 256
PER_BLOCK = THREADS * 4
"""Elements of one block."""
_MOST_BYTES = 4000


_FIND = """  const i64 block = blockIdx.x;
  int low = 0, high = (int)a.count - 1;
  while (low < high) {
    const int middle = (low + high + 1) / 2;
    if (a.begin[middle] <= block) low = middle; else high = middle - 1;
  }
  const int array = low;
"""
"""Which array a block has."""
_SHARE = f"""  const i64 start = (block - a.begin[array]) * {PER_BLOCK};
  const i64 end = start + {PER_BLOCK} < a.size[array] ? start + {PER_BLOCK} : a.size[array];
  for (i64 i = start + threadIdx.x; i < end; i += blockDim.x) {{
"""
"""The loop over its elements of that."""


def capacity(lists: int, numbers: int) -> int:
    """How many arrays of each list a launch can have: the arguments of a kernel are limited."""
    return (_MOST_BYTES - 8 * (numbers + 2)) // (8 * (lists + 2))


def list_source(
    program: Program, dtype: str, lists: int, numbers: int, changed: Sequence[int], stepped: bool = False
) -> str:
    """The kernel that runs `program` on an element of each list and writes the lists `changed`.

    `stepped`: a number for each array, on the device, is an input after the lists.
    """
    kind = TYPES[dtype]
    rows = lists + stepped
    most = capacity(rows, numbers)
    computed = TYPES[program.steps[0][1]].compute
    inputs = [f"x{number}" for number in range(rows)]
    inputs += [f"({computed})a.numbers[{number}]" for number in range(numbers)]
    loads = [f"const {computed} x{n} = ({computed}){kind.loaded(f'p{n}[i]')};" for n in range(lists)]
    stores = [
        f"p{target}[i] = {kind.stored(f'v{found}')};" for target, found in zip(changed, program.results, strict=True)
    ]
    pointers = [f"{kind.memory}* p{n} = ({kind.memory}*)a.at[{n}][array];" for n in range(lists)]
    if stepped:
        pointers.append(f"const {computed} x{lists} = ({computed})*(const float*)a.at[{lists}][array];")
    return f"""{functions()}
struct Arguments {{
  i64 count; double numbers[{max(numbers, 1)}]; i64 begin[{most}]; i64 size[{most}]; u64 at[{rows}][{most}];
}};
KERNEL kernel(const __grid_constant__ Arguments a) {{
{_FIND}  {" ".join(pointers)}
{_SHARE}    {" ".join(loads)}
    {" ".join(steps_of(program, inputs))}
    {" ".join(stores)}
  }}
}}
"""


def cast_source(source: str, target: str) -> str:
    """The kernel that writes the arrays of one list as those of another type."""
    given, wanted = TYPES[source], TYPES[target]
    most = capacity(2, 0)
    value = f"({wanted.compute}){given.loaded('p[i]')}"
    return f"""{functions()}
struct Arguments {{ i64 count; i64 begin[{most}]; i64 size[{most}]; u64 at[2][{most}]; }};
KERNEL kernel(const __grid_constant__ Arguments a) {{
{_FIND}  const {given.memory}* p = (const {given.memory}*)a.at[0][array];
  {wanted.memory}* q = ({wanted.memory}*)a.at[1][array];
{_SHARE}    q[i] = {wanted.stored(value)};
  }}
}}
"""


def unscale_source(dtype: str) -> str:
    """The kernel that multiplies the arrays of a list by one number, and writes 1 where an element is not finite."""
    kind = TYPES[dtype]
    most = capacity(1, 2)
    return f"""{functions()}
struct Arguments {{
  i64 count; const float* factor; float* found; i64 begin[{most}]; i64 size[{most}]; u64 at[{most}];
}};
KERNEL kernel(const __grid_constant__ Arguments a) {{
{_FIND}  {kind.memory}* p = ({kind.memory}*)a.at[array];
  const {kind.compute} factor = ({kind.compute})*a.factor;
  bool lost = false;
{_SHARE}    const {kind.compute} x = {kind.loaded("p[i]")};
    lost |= !(x - x == ({kind.compute})0);
    p[i] = {kind.stored("x * factor")};
  }}
  if (lost) *a.found = 1.0f;
}}
"""


def loss_scale_source() -> str:
    """The kernel by which the scale of a loss, and how long it stayed, follow what was found: by one thread."""
    return f"""{functions()}
struct Arguments {{ float* scale; i32* tracker; const float* found; double growth; double backoff; i64 interval; }};
KERNEL kernel(const __grid_constant__ Arguments a) {{
  if (blockIdx.x || threadIdx.x) return;
  if (*a.found != 0) {{
    *a.scale *= (float)a.backoff;
    *a.tracker = 0;
    return;
  }}
  const i32 successes = *a.tracker + 1;
  const bool enough = successes == a.interval;
  const float grown = *a.scale * (float)a.growth;
  if (enough && f_isfinite(grown)) *a.scale = grown;
  *a.tracker = enough ? 0 : successes;
}}
"""
