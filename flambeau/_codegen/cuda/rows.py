"""Row programs in CUDA C: a row is shared by some threads of a block, which keep it in registers if it fits.

A thread reads 16 bytes at a time. Up to 32 threads of a row pass their sums to each other, more meet in shared memory.
Rows that are not neighbours in memory (`strided`) are those of columns: neighbouring threads have neighbouring rows.
What is added up over all rows is kept by each thread for its own columns, while its block goes from row to row.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ..row_program import COLUMN, ELEMENT, ROW, Pass, RowProgram, costly, passes
from .elementwise import functions, step_of
from .types import TYPES, CType

WARP = 32
LONGEST = 1 << 30
"""Positions within a row are numbers of 32 bits."""
_BLOCKS = 2
"""So many blocks of long rows are on a multiprocessor at a time, if they have as many threads as a block can have."""
_KEPT = 16
"""Costly values are kept in registers if a thread has at most so many, else they are computed again."""


class Layout(NamedTuple):
    """How rows are divided among threads."""

    width: int
    """How many neighbours a thread reads at a time."""
    packs: int
    """How often it reads so many; 0: the row is too long for registers, and is read again in each pass."""
    along: int
    """How many threads share a row: a power of 2 up to 32, or a multiple of 32."""
    across: int
    """How many rows a block has at a time."""
    strided: bool = False
    """Whether the elements of a row are apart from each other by the number of rows that lie side by side."""
    shifted: bool = False
    """Whether rows begin anywhere: then whole packs begin at the next address that they fit."""


_HEAD = """
enum { V = %(width)d, N = %(packs)d, ALONG = %(along)d, ACROSS = %(across)d };
template <class T> struct alignas(sizeof(T) * V) Pack { T at[V]; };
template <class T> FN Pack<T> fetch_apart(const T* row, i32 i, i32 length) {
  Pack<T> pack;
  for (int k = 0; k < V; k++) pack.at[k] = i + k >= 0 && i + k < length ? row[i + k] : (T)0;
  return pack;
}
template <class T> FN Pack<T> fetch(const T* row, i32 i) { return *(const Pack<T>*)(row + i); }
template <class T> FN void put_apart(T* row, i32 i, i32 length, Pack<T> pack) {
  for (int k = 0; k < V; k++) if (i + k >= 0 && i + k < length) row[i + k] = pack.at[k];
}
template <class T> FN void put(T* row, i32 i, Pack<T> pack) { *(Pack<T>*)(row + i) = pack; }
"""
_WHOLE = "i >= 0 && i + V <= length"
"""Where rows begin anywhere: whether a pack is within its row, and needs no look at each of its elements."""

_JOINS = {"sum": ("0", "({x} + {y})"), "largest": ("-({type})__uint_as_float(0x7f800000u)", "f_larger({x}, {y})")}


def rows_source(program: RowProgram, layout: Layout) -> str:
    """The kernel of a program. Its fields: rows, length, how many rows lie side by side, places, numbers.

    What is added up over rows is written for each block, in the type of the sums: the places have a row for each.
    """
    return _Writer(program, layout).source()


class _Writer:
    def __init__(self, program: RowProgram, layout: Layout) -> None:
        self.program = program
        self.layout = layout
        self.of_elements = program.is_of_elements()
        self.columns = program.stores_to(COLUMN)
        self.short = all(TYPES[place.dtype].is_half for place in program.places)
        keeps = 0 < layout.packs * layout.width <= _KEPT
        self.kept = costly(program) if keeps else ()
        self.passes = passes(program, self.kept)
        loaded = [step[2] for step in program.steps if step[0] == "load"]
        self.element_loads = [n for n in loaded if program.places[n].has == ELEMENT]
        self.column_loads = [n for n in loaded if program.places[n].has == COLUMN]

    def memory(self, place: int) -> CType:
        """The type of an array; sums over rows are handed on as they were computed."""
        added = dict(self.columns).get(place)
        return TYPES[self.program.places[place].dtype if added is None else self.program.steps[added][1]]

    def type_of(self, step: int) -> str:
        return TYPES[self.program.steps[step][1]].compute

    def source(self) -> str:
        program, layout = self.program, self.layout
        stored = {place for place, _ in program.stores}
        fields = ["i64 rows;", "i64 length;", "i64 side;"]
        for number in range(len(program.places)):
            constant = "" if number in stored else "const "
            fields += [f"{constant}{self.memory(number).memory}* p{number};"]
        fields += [f"double n{number};" for number in range(program.numbers())]
        sizes = {key: int(value) for key, value in layout._asdict().items()}
        # Where a row is read again and again, one block computes while the other one reads.
        bounds = "ALONG * ACROSS" if layout.packs or self.columns else f"ALONG * ACROSS, {_BLOCKS}"
        return f"""{functions()}{_HEAD % sizes}
struct Arguments {{ {" ".join(fields)} }};
KERNEL_OF({bounds}) kernel(const __grid_constant__ Arguments a) {{
  {_lines(self.body())}
}}
"""

    # ----- the threads and their rows -------------------------------------------------------------------------------

    def body(self) -> list[str]:
        """The statements of the kernel."""
        where = "threadIdx.x / ACROSS, beside = threadIdx.x % ACROSS" if self.layout.strided else (
            "threadIdx.x % ALONG, beside = threadIdx.x / ALONG"
        )  # fmt: skip
        lines = [f"const u32 at = {where};", "const i32 length = (i32)a.length;", *self.meeting_places()]
        if self.layout.packs:
            lines += [f"Pack<{self.memory(n).memory}> q{n}[N];" for n in self.column_loads]
            if self.column_loads and not self.layout.shifted:
                lines += self.through(self.loads(self.column_loads, whole=True))
        if not self.columns:
            return [*lines, "const i64 first = (i64)blockIdx.x * ACROSS;", *self.row()]
        if self.layout.packs:
            lines += [f"{self.type_of(step)} c{place}[N][V] = {{}};" for place, step in self.columns]
        return [
            *lines,
            "for (i64 first = (i64)blockIdx.x * ACROSS; first < a.rows; first += (i64)gridDim.x * ACROSS) {",
            *["  " + line for line in self.row()],
            *(["  __syncthreads();"] if self.layout.along > WARP else []),
            "}",
            *self.column_stores(),
        ]

    def row(self) -> list[str]:
        """The statements for one row: threads beyond the last row do as those of the last one, and store nothing."""
        lines = [
            "const bool active = first + beside < a.rows;",
            "const i64 row = active ? first + beside : a.rows - 1;",
            "const i64 base = row / a.side * length * a.side + row % a.side;"
            if self.layout.strided
            else "const i64 base = row * length;",
            f"const i32 shift = {'(i32)(base % V)' if self.layout.shifted else '0'};",
        ]
        if self.layout.packs:
            names = self.element_loads
            lines += [f"Pack<{self.memory(n).memory}> q{n}[N];" for n in names]
            if self.layout.shifted:
                names = names + self.column_loads
            lines += self.through(self.either(lambda whole: self.loads(names, whole)))
            lines += [f"{self.type_of(step)} kept{step}[N][V];" for step in self.kept]
        for one in self.passes:
            lines += self.one_pass(one, last=one is self.passes[-1])
        return lines

    def through(self, body: list[str]) -> list[str]:
        """A loop over the packs of a row that a thread has; `j` is the number of a pack, `i` of its first element."""
        shift = "- shift " if self.layout.shifted else ""
        inner = ["  " + line for line in body]
        if self.layout.packs:
            return [
                "#pragma unroll",
                "for (int j = 0; j < N; j++) {",
                f"  const i32 i = (i32)(at + j * ALONG) * V {shift};",
                "  if (i < length) {",
                *["  " + line for line in inner],
                "  }",
                "}",
            ]
        return [f"for (i32 i = (i32)at * V {shift}; i < length; i += ALONG * V) {{", *inner, "}"]

    def either(self, lines_of: Callable[[bool], list[str]]) -> list[str]:
        """Statements about a pack, and others for packs at the ends of a row that are not whole, if there are any."""
        if not self.layout.shifted:
            return lines_of(True)
        whole, apart = (["  " + line for line in lines_of(each)] for each in (True, False))
        return [f"if ({_WHOLE}) {{", *whole, "} else {", *apart, "}"]

    def loads(self, places: list[int], whole: bool) -> list[str]:
        """Statements that keep a pack of each of these arrays."""
        return [f"q{n}[j] = {self.fetched(n, whole)};" for n in places]

    def fetched(self, place: int, whole: bool) -> str:
        """The pack of an array that begins at element `i`."""
        if self.layout.strided:
            return f"Pack<{self.memory(place).memory}>{{a.p{place}[base + i * a.side]}}"
        of_columns = self.program.places[place].has == COLUMN  # these begin anew with each row
        row = f"a.p{place}" if of_columns else f"a.p{place} + base"
        return f"fetch({row}, i)" if whole and not (of_columns and self.layout.shifted) else (
            f"fetch_apart({row}, i, length)"
        )  # fmt: skip

    # ----- passes ---------------------------------------------------------------------------------------------------

    def one_pass(self, one: Pass, last: bool) -> list[str]:
        lines = [f"const {self.type_of(n)} v{n} = {self.value(n)};" for n in one.before if not self.is_reduction(n)]
        if last:
            lines += self.row_stores()
        for number in one.reductions:
            start = _JOINS[self.program.steps[number][0]][0].format(type=self.type_of(number))
            lines.append(f"{self.type_of(number)} v{number} = {start};")
        stores = self.program.stores_to(ELEMENT) if last else []
        if one.reductions or stores or (last and self.columns):
            if self.layout.packs:  # unrolled as they are, packs have their statements once
                lines += self.through(self.elements(one, stores, last, whole=not self.layout.shifted))
            else:
                lines += self.through(self.either(lambda whole: self.elements(one, stores, last, whole)))
        return lines + self.meet(one.reductions)

    def elements(self, one: Pass, stores: list[tuple[int, int]], last: bool, whole: bool) -> list[str]:
        """What a pass does with a pack, of which all elements are those of the row if it is `whole`."""
        steps = [self.program.steps[number] for number in one.each]
        places = sorted({step[2] for step in steps if step[0] == "load"})
        index = "[j]" if self.layout.packs else ""
        lines = [] if self.layout.packs else [
            f"const Pack<{self.memory(n).memory}> q{n} = {self.fetched(n, whole)};" for n in places
        ]  # fmt: skip
        lines += [f"Pack<{self.memory(place).memory}> s{place};" for place, _ in stores]
        inner: list[str] = []
        for number in (*one.found, *one.each):
            name, _, *operands = self.program.steps[number]
            value = self.value(number)
            if number in one.found:
                value = f"kept{number}[j][k]"
            elif name == "load":
                value = self.memory(operands[0]).loaded(f"q{operands[0]}{index}.at[k]")
            inner.append(f"const {self.type_of(number)} v{number} = {value};")
        inner += [f"kept{number}[j][k] = v{number};" for number in one.keeps]
        for number in one.reductions:
            name, _, operand = self.program.steps[number]
            value = f"({self.type_of(number)})v{operand}"
            inner.append(f"v{number} = {_JOINS[name][1].format(x=f'v{number}', y=value)};")
        inner += [f"s{place}.at[k] = {self.stored(place, step)};" for place, step in stores]
        if last:
            inner += [self.added(place, step) for place, step in self.columns]
        guard = [] if whole else ["  if (i + k >= 0 && i + k < length) {"]
        lines += ["#pragma unroll", "for (int k = 0; k < V; k++) {", *guard, *["  " + line for line in inner]]
        lines += ["  }"] * len(guard) + ["}"]
        if stores:
            keep = self.either if self.layout.packs else lambda lines_of: lines_of(whole)
            lines += ["if (active) {", *keep(lambda whole: [self.put(place, whole) for place, _ in stores]), "}"]
        return lines

    def put(self, place: int, whole: bool) -> str:
        """The statement that writes a pack."""
        if self.layout.strided:
            return f"a.p{place}[base + i * a.side] = s{place}.at[0];"
        return f"put{'' if whole else '_apart'}(a.p{place} + base, i{'' if whole else ', length'}, s{place});"

    def is_reduction(self, number: int) -> bool:
        return self.program.steps[number][0] in _JOINS

    def value(self, number: int) -> str:
        """The text of a step about the row, or of a step that computes."""
        name, type_name, *operands = self.program.steps[number]
        if name == "load":
            return self.memory(operands[0]).loaded(f"a.p{operands[0]}[row]")
        if name == "number":
            return f"a.n{operands[0]}"
        if name == "length":
            return f"({TYPES[type_name].compute})length"
        value = step_of(self.program.steps, number)
        return value.replace("f_exp(", "f_exp_for_half(") if self.short else value

    def stored(self, place: int, step: int) -> str:
        """What stands in memory for the value of a step."""
        kind = self.memory(place)
        return kind.stored(f"({kind.compute})v{step}")

    def row_stores(self) -> list[str]:
        """The stores of numbers of the row, by its first thread."""
        stores = [f"a.p{place}[row] = {self.stored(place, step)};" for place, step in self.program.stores_to(ROW)]
        return [f"if (active && at == 0) {{ {' '.join(stores)} }}"] if stores else []

    # ----- sums that several threads share --------------------------------------------------------------------------

    def meeting_places(self) -> list[str]:
        """Declarations of shared memory: a number for each group of 32 threads, or for each thread."""
        if not self.layout.strided and self.layout.along <= WARP:
            return []
        count = self.layout.along * self.layout.across
        room = f"[{count}]" if self.layout.strided else f"[ACROSS][{self.layout.along // WARP}]"
        reductions = [number for one in self.passes for number in one.reductions]
        lines = [f"__shared__ {self.type_of(number)} meet{number}{room};" for number in reductions]
        if self.columns and self.layout.across > 1 and self.layout.packs:
            lines.append(f"__shared__ {self.type_of(self.columns[0][1])} all[{count}];")
        return lines

    def meet(self, reductions: tuple[int, ...]) -> list[str]:
        """Give all threads of a row what their values come to."""
        if not reductions or self.layout.along == 1:
            return []
        joined = [_JOINS[self.program.steps[number][0]][1] for number in reductions]
        if self.layout.strided:
            return self.meet_in_memory(list(zip(reductions, joined, strict=True)))
        lines = []
        within = min(self.layout.along, WARP)
        for number, join in zip(reductions, joined, strict=True):
            lines += _shuffled(f"v{number}", join, within)
        if self.layout.along > WARP:
            groups = self.layout.along // WARP
            lines += [f"if (at % {WARP} == 0) meet{number}[beside][at / {WARP}] = v{number};" for number in reductions]
            lines.append("__syncthreads();")
            for number, join in zip(reductions, joined, strict=True):
                lines.append(f"v{number} = meet{number}[beside][0];")
                lines.append("#pragma unroll")
                text = join.format(x=f"v{number}", y=f"meet{number}[beside][g]")
                lines.append(f"for (int g = 1; g < {groups}; g++) v{number} = {text};")
        return lines

    def meet_in_memory(self, reductions: list[tuple[int, str]]) -> list[str]:
        lines = [f"meet{number}[threadIdx.x] = v{number};" for number, _ in reductions]
        lines += ["__syncthreads();", "for (u32 s = ALONG / 2; s > 0; s /= 2) {", "  if (at < s) {"]
        for number, join in reductions:
            one, other = f"meet{number}[threadIdx.x]", f"meet{number}[threadIdx.x + s * ACROSS]"
            lines.append(f"    {one} = {join.format(x=one, y=other)};")
        lines += ["  }", "  __syncthreads();", "}"]
        return lines + [f"v{number} = meet{number}[beside];" for number, _ in reductions]

    # ----- sums over rows -------------------------------------------------------------------------------------------

    def added(self, place: int, step: int) -> str:
        """An element is added to what its column comes to: in a register, or else in the block's row of the place."""
        if self.layout.packs:
            return f"if (active) c{place}[j][k] += v{step};"
        target = f"a.p{place}[((i64)blockIdx.x * ACROSS + beside) * length + i + k]"
        begins = "first == (i64)blockIdx.x * ACROSS"
        return f"{{ const auto v = active ? v{step} : 0; {target} = {begins} ? v : {target} + v; }}"

    def column_stores(self) -> list[str]:
        """The rows of a block are added up, and the first of them writes."""
        if not self.layout.packs:
            return []
        shared = self.layout.along > WARP
        lines: list[str] = []
        for place, _ in self.columns if shared and self.layout.across > 1 else ():
            lines += _each_value(
                f"all[threadIdx.x] = c{place}[j][k];",
                "__syncthreads();",
                f"if (beside == 0) for (int o = 1; o < ACROSS; o++) c{place}[j][k] += all[at + o * ALONG];",
                "__syncthreads();",
            )
        slot = "(i64)blockIdx.x" if shared else "((i64)blockIdx.x * ACROSS + beside)"
        body = []
        for place, _ in self.columns:
            value = self.memory(place).stored(f"c{place}[j][k]")
            body.append(f"for (int k = 0; k < V; k++) a.p{place}[{slot} * length + i + k] = {value};")
        writes = self.through(body)
        return lines + (["if (beside == 0) {", *writes, "}"] if shared else writes)


def column_slots(layout: Layout, blocks: int) -> int:
    """How many rows the places have to which sums over rows go."""
    return blocks if layout.packs and layout.along > WARP else blocks * layout.across


def _shuffled(value: str, join: str, threads: int) -> list[str]:
    other = f"__shfl_xor_sync(0xffffffffu, {value}, s)"
    return ["#pragma unroll", f"for (int s = {threads // 2}; s > 0; s /= 2) {value} = {join.format(x=value, y=other)};"]


def _each_value(*body: str) -> list[str]:
    """A loop over all values that a thread has of a row."""
    loops = ["#pragma unroll", "for (int j = 0; j < N; j++) {", "#pragma unroll", "  for (int k = 0; k < V; k++) {"]
    return [*loops, *["    " + line for line in body], "  }", "}"]


def _lines(lines: list[str]) -> str:
    return "\n  ".join(lines)
