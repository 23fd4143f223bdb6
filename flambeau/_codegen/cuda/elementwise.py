"""Elementwise kernels: a program applied to every element, over arrays without gaps or with any strides.

All arguments of a kernel are fields of eight bytes of one structure: the number of elements, the addresses of the
results and operands (of a number its value), and for arrays with strides the sizes and the strides in bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

from ..expr import Program, Step
from .types import TYPES, CType

FLAT, SINGLE, NUMBER = "c", "1", "n"
"""Forms of operands of a flat kernel: an array like the result, an array of one element, a Python number."""

THREADS = 128
"""How many threads a block has: of long bodies, such as `gelu`, more of them wait for each other."""

_WORDS = {
    "floats": "divide fabs exp exp2 expm1 log log2 log10 log1p sqrt cbrt sin cos tan arcsin arccos arctan sinh cosh "
    "tanh arcsinh arccosh arctanh erf erfc erfinv rsqrt arctan2 hypot copysign nextafter ldexp sigmoid logaddexp "
    "logaddexp2 heaviside deg2rad rad2deg float_power",
    "reals": "add subtract multiply negative positive conjugate square absolute sign maximum minimum fmax fmin "
    "floor_divide remainder fmod power less less_equal greater greater_equal equal not_equal logical_and logical_or "
    "logical_xor logical_not isnan isinf isfinite signbit select floor ceil trunc rint reciprocal",
    "integers": "bitwise_and bitwise_or bitwise_xor invert left_shift right_shift gcd lcm",
    "complex": "add subtract multiply divide negative positive conjugate square reciprocal absolute equal not_equal "
    "isnan isinf isfinite logical_and logical_or logical_xor logical_not select",
}
_OF_FLOATS, _OF_REALS, _OF_INTEGERS, _OF_COMPLEX = (frozenset(names.split()) for names in _WORDS.values())
_ROUNDINGS = frozenset(("round_float16", "round_bfloat16", "round_float32", "round_float64"))
_SETTLED = """
// A number as memory would keep it: what comes after is not joined with the multiplication that it may come from. It is
// added to minus zero, which the compiler does not know to be that, since only a launch says how high a block is.
#ifdef __CUDACC__
FN float f_round_float32(float x) { return __fadd_rn(x, __uint_as_float(blockDim.y << 31)); }
FN double f_round_float64(double x) { return __dadd_rn(x, (double)__uint_as_float(blockDim.y << 31)); }
#else
FN float f_round_float32(float x) { return x; }
FN double f_round_float64(double x) { return x; }
#endif
"""


@cache
def functions() -> str:
    """The text that stands before every kernel: what its steps call."""
    return (Path(__file__).parent / "functions.cuh").read_text(encoding="utf-8")


def settled(program: Program) -> str:
    """What stands before a kernel besides, if its program keeps calls apart."""
    keeps = any(step[0] in ("round_float32", "round_float64") for step in program.steps)
    return _SETTLED if keeps else ""


def can_write(program: Program) -> bool:
    """Whether there is code for every step and the types that it is about."""
    for name, type_name, *operands in program.steps:
        if type_name not in TYPES:
            return False
        if name in ("input", "constant", "cast"):
            continue
        types = {program.steps[number][1] for number in operands}
        if name == "select":
            types = {program.steps[number][1] for number in operands[1:]}
        if not all(_has(name, each) for each in types):
            return False
    return True


def _has(name: str, type_name: str) -> bool:
    if type_name.startswith("complex"):
        return name in _OF_COMPLEX
    if "float" in type_name:
        return name in _OF_REALS or name in _OF_FLOATS or name in _ROUNDINGS
    if name == "ldexp" or (name == "reciprocal" and type_name != "bool"):
        return name == "ldexp"
    return name in _OF_REALS or name in _OF_INTEGERS


def constant(kind: CType, text: str) -> str:
    """A number from the text that a program keeps of it."""
    if kind.is_complex:
        real, imaginary = (each for each in text.split(","))
        part = "float" if kind.name == "complex64" else "double"
        return f"{kind.compute}::make(({part}){_double(real)}, ({part}){_double(imaginary)})"
    if "float" in kind.name:
        value = f"({kind.compute}){_double(text)}"
        return f"round_{kind.name}({value})" if kind.is_half else value
    suffix = "ull" if kind.name == "uint64" else "ll"
    if text == "-9223372036854775808":
        return "(-9223372036854775807ll - 1)"
    return f"({kind.compute}){text}{suffix}"


def _double(text: str) -> str:
    number = float.fromhex(text)
    if number != number:
        return "(double)__uint_as_float(0x7fc00000u)"
    if number in (float("inf"), float("-inf")):
        return f"({'-' if number < 0 else ''}(double)__uint_as_float(0x7f800000u))"
    return f"({number!r})"


def steps_of(program: Program, inputs: Sequence[str], short: bool = False) -> list[str]:
    """The statements that compute a program; the value of step n is called `v<n>`.

    `short`: what is stored are 16-bit floats, for which some functions have a shorter form.
    """
    lines = []
    for number, (name, type_name, *operands) in enumerate(program.steps):
        value = inputs[operands[0]] if name == "input" else step_of(program.steps, number)
        if short and name == "erf" and type_name == "float32" and _is_added_to_one(program, number):
            value = value.replace("f_erf(", "f_erf_beside_one(")
        lines.append(f"{TYPES[type_name].compute} v{number} = {value};")
    return lines


def _is_added_to_one(program: Program, number: int) -> bool:
    """Whether nothing is done with the value of a step but to add 1 to it: then its error may be that of the sum."""
    if number in program.results:
        return False
    for name, _, *operands in program.steps:
        if name in ("input", "constant") or number not in operands:
            continue
        other = program.steps[operands[0] if operands[1:] == [number] else operands[-1]]
        if name != "add" or other[0] != "constant" or float.fromhex(str(other[2])) != 1:
            return False
    return True


def step_of(steps: Sequence[Step], number: int) -> str:
    """The expression of a step that is a constant or computes something of earlier ones."""
    name, type_name, *operands = steps[number]
    kind = TYPES[type_name]
    if name == "constant":
        return constant(kind, operands[0])
    if name == "cast":
        return kind.converted(f"v{operands[0]}", TYPES[steps[operands[0]][1]])
    value = f"({kind.compute})" if not kind.is_complex else ""
    value += f"f_{name}({', '.join(f'v{each}' for each in operands)})"
    return f"round_{kind.name}({value})" if kind.is_half else value


def vector_width(memory: Sequence[str]) -> int:
    """How many elements a thread computes at a time: as many as 16 bytes of the widest type hold."""
    return max(1, 16 // max(TYPES[name].size for name in memory))


def flat_source(program: Program, memory: Sequence[str], forms: str, width: int) -> str:
    """The kernel for arrays without gaps, and numbers. `memory` has the dtypes of results and operands in order."""
    kinds = [TYPES[name] for name in memory]
    results = len(program.results)
    fields, packs, loads, single = ["i64 count;"], [], [], []
    for number, kind in enumerate(kinds[:results]):
        fields.append(f"{kind.memory}* p{number};")
        packs.append(f"struct alignas({kind.size * width}) P{number} {{ {kind.memory} at[{width}]; }};")
    for number, (kind, form) in enumerate(zip(kinds[results:], forms, strict=True), results):
        if form == NUMBER:
            fields += _number_fields(kind, number)
            single.append(f"const {kind.compute} x{number} = {_number(kind, number)};")
            continue
        fields.append(f"const {kind.memory}* p{number};")
        if form == SINGLE:
            single.append(f"const {kind.compute} x{number} = {kind.loaded(f'*a.p{number}')};")
        else:
            packs.append(f"struct alignas({kind.size * width}) P{number} {{ {kind.memory} at[{width}]; }};")
            loads.append((number, kind))
    names = [f"x{number}" for number in range(results, len(kinds))]
    steps = steps_of(program, names, all(kind.is_half for kind in kinds[:results]))
    stores = list(zip(kinds[:results], program.results, strict=True))

    def body(load: str, store: str) -> str:
        lines = [f"const {kind.compute} x{n} = {kind.loaded(load.format(n=n))};" for n, kind in loads]
        lines += steps
        lines += [f"{store.format(n=n)} = {kind.stored(f'v{found}')};" for n, (kind, found) in enumerate(stores)]
        return "\n      ".join(lines)

    whole = "\n    ".join(
        [f"const P{n} q{n} = ((const P{n}*)a.p{n})[chunk];" for n, _ in loads]
        + [f"P{n} q{n};" for n in range(results)]
        + ["#pragma unroll", f"for (int j = 0; j < {width}; j++) {{"]
        + ["  " + body("q{n}.at[j]", "q{n}.at[j]"), "}"]
        + [f"((P{n}*)a.p{n})[chunk] = q{n};" for n in range(results)]
    )
    return _kernel(
        program,
        fields,
        packs,
        f"""const i64 chunk = (i64)blockIdx.x * blockDim.x + threadIdx.x;
  const i64 chunks = a.count / {width};
  {_joined(single)}
  if (chunk < chunks) {{
    {whole}
  }} else if (chunk == chunks) {{
    for (i64 i = chunks * {width}; i < a.count; i++) {{
      {body("a.p{n}[i]", "a.p{n}[i]")}
    }}
  }}""",
    )


def strided_source(
    program: Program, memory: Sequence[str], forms: str, dimensions: int, wide: bool, width: int = 1
) -> str:
    """The kernel for arrays of any strides over `dimensions` common dimensions; `wide`: offsets need 64 bits.

    With a `width` a thread has so many neighbours along the last dimension, of which the sizes and strides count packs:
    they are side by side in all arrays but those of form SINGLE, which have one element for all of them.
    """
    kinds = [TYPES[name] for name in memory]
    results = len(program.results)
    fields, packs, single, arrays = ["i64 count;"], [], [], []
    for number, kind in enumerate(kinds):
        form = FLAT if number < results else forms[number - results]
        if form == NUMBER:
            fields += _number_fields(kind, number)
            single.append(f"const {kind.compute} x{number} = {_number(kind, number)};")
            continue
        fields.append(f"{'' if number < results else 'const '}char* p{number};")
        arrays.append((number, kind, form))
        if form == FLAT:
            packs.append(f"struct alignas({kind.size * width}) P{number} {{ {kind.memory} at[{width}]; }};")
    fields += [f"i64 n{d};" for d in range(dimensions)]
    fields += [f"i64 s{number}_{d};" for number, *_ in arrays for d in range(dimensions)]
    index, offset = ("i64", "i64") if wide else ("u32", "i32")
    walk = [f"{index} rest = ({index})i;"]
    walk += [f"{offset} o{number} = 0;" for number, *_ in arrays]
    for d in reversed(range(dimensions)):
        last = d == 0
        if last:
            walk.append(f"const {index} at{d} = rest;")
        else:
            walk.append(f"const {index} at{d} = rest % ({index})a.n{d}; rest /= ({index})a.n{d};")
        walk += [f"o{number} += ({offset})at{d} * ({offset})a.s{number}_{d};" for number, *_ in arrays]
    inner = []
    for number, kind, form in arrays:
        if number < results:
            walk.append(f"P{number} q{number};")
        elif form == FLAT:
            walk.append(f"const P{number} q{number} = *(const P{number}*)(a.p{number} + o{number});")
            inner.append(f"const {kind.compute} x{number} = {kind.loaded(f'q{number}.at[j]')};")
        else:
            place = f"*(const {kind.memory}*)(a.p{number} + o{number})"
            walk.append(f"const {kind.compute} x{number} = {kind.loaded(place)};")
    names = [f"x{number}" for number in range(results, len(kinds))]
    inner += steps_of(program, names, all(kind.is_half for kind in kinds[:results]))
    inner += [f"q{n}.at[j] = {kinds[n].stored(f'v{found}')};" for n, found in enumerate(program.results)]
    walk += ["#pragma unroll", f"for (int j = 0; j < {width}; j++) {{", *inner, "}"]
    walk += [f"*(P{number}*)(a.p{number} + o{number}) = q{number};" for number in range(results)]
    return _kernel(
        program,
        fields,
        packs,
        f"""{_joined(single)}
  const i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < a.count) {{
    {_joined(walk)}
  }}""",
    )


def _number_fields(kind: CType, number: int) -> list[str]:
    if kind.is_complex:
        return [f"double p{number};", f"double i{number};"]
    return [f"{'double' if 'float' in kind.name else 'u64' if kind.name == 'uint64' else 'i64'} p{number};"]


def _number(kind: CType, number: int) -> str:
    if kind.is_complex:
        part = "float" if kind.name == "complex64" else "double"
        return f"{kind.compute}::make(({part})a.p{number}, ({part})a.i{number})"
    return f"round_{kind.name}((float)a.p{number})" if kind.is_half else f"({kind.compute})a.p{number}"


def _joined(lines: Sequence[str]) -> str:
    return "\n    ".join(lines)


def _kernel(program: Program, fields: Sequence[str], before: Sequence[str], body: str) -> str:
    return f"""{functions()}{settled(program)}
struct Arguments {{
  {_joined(fields)}
}};
{_joined(before)}
KERNEL kernel(const __grid_constant__ Arguments a) {{
  {body}
}}
"""
