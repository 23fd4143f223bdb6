"""Measure the errors of the elementary functions of generated code, and write docs/accuracy.md.

    python tools/accuracy_table.py              # all functions, which takes minutes
    python tools/accuracy_table.py exp sin      # print these; nothing is written

Errors are in units in the last place (ulp) of the result's format: the distance of neighbouring numbers at the exact
result. A result that is rounded rightly is off by at most 0.5. Where the exact result is infinite or NaN, anything else
counts as an infinite error, and so does a zero of the wrong sign.
"""

from __future__ import annotations

import pathlib
import platform
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.special
from mpmath import mp, mpf

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))

from flambeau._codegen.arrays import Arguments, without_lock
from flambeau._codegen.build import Builder
from flambeau._codegen.functions import FUNCTIONS
from flambeau._codegen.kernel import kernel
from flambeau._codegen.types import SCALARS

FILE = pathlib.Path(__file__).parent.parent / "docs/accuracy.md"
STEP = 251
"""Of the patterns of float32, every one so far from the last is tried."""
COUNT = 100_000
"""Of float64, more numbers than this are tried."""

Array = np.ndarray[Any, Any]


@kernel
def accuracy_of(b: Builder, arguments: Arguments, name: str, dtype: str, width: int, inputs: int) -> None:
    scalar = SCALARS[dtype]
    arrays = [arguments.array(position).data for position in range(inputs + 1)]
    with (
        without_lock(b),
        b.parallel(arguments.array(0).size(0), 4096, *arrays) as (c, begin, end, (out, *given)),
    ):
        for position, lanes in c.lanes(begin, end, width):
            operands = [c.load(each, scalar, position, lanes) for each in given]
            c.store(out, scalar, position, FUNCTIONS[name](c, *operands))


def computed(name: str, dtype: str, *inputs: Array, width: int = 8) -> Array:
    """What generated code computes; arrays of bfloat16 hold its bits."""
    out = np.empty_like(inputs[0])
    accuracy_of(name, dtype, width, len(inputs))(out, *inputs)
    return out


def by_mpmath(function: Callable[[mpf], mpf]) -> Callable[[Array], Array]:
    """A reference in quadruple precision, one number at a time."""

    def evaluate(x: Array) -> Array:
        if x.dtype == np.float64:
            raise TypeError("a reference for float64 inputs needs longer floats")
        out = np.empty_like(x)
        with mp.workprec(140):
            for i, number in enumerate(x):
                out[i] = parts(function(mpf(float(number)))) if 0 < abs(number) < 1000 else np.nan
        return out

    return evaluate


def parts(value: mpf) -> np.longdouble:
    """A number of mpmath as one of NumPy's longest, by pieces, as there is no conversion."""
    if not mp.isfinite(value):
        return np.longdouble(float(value))
    mantissa, exponent = mp.frexp(value)
    high = float(mantissa)
    return np.longdouble(np.ldexp(np.longdouble(high) + np.longdouble(float(mantissa - mpf(high))), int(exponent)))


@dataclass(frozen=True)
class Case:
    """How a function is measured."""

    reference: Callable[..., Array]
    """For arrays of float64, and of longdouble unless `longer` is there."""
    longer: Callable[..., Array] | None = None
    ends: tuple[float, float] = (-10.0, 10.0)
    """Where most of the function happens: float64 is sampled there and over all magnitudes."""
    inputs: int = 1


def sigmoid(x: Array) -> Array:
    small = np.exp(-np.abs(x))
    return np.asarray(np.where(x < 0, small, 1) / (1 + small))


def erfinv(x: mpf) -> mpf:
    """Newton's iteration from a start that is right to 50 digits."""
    if abs(x) >= 1:
        return mp.nan if abs(x) > 1 else x * mp.inf
    rest = 1 - abs(x)
    y = mpf(scipy.special.erfinv(float(abs(x))))
    for _ in range(2):
        error = mp.erfc(y) - rest if rest < 0.5 else abs(x) - mp.erf(y)
        y += error * mp.sqrt(mp.pi) / 2 * mp.exp(y * y)
    return y * mp.sign(x)


CASES: dict[str, Case] = {
    "exp": Case(np.exp, ends=(-746, 710)),
    "exp2": Case(np.exp2, ends=(-1076, 1025)),
    "expm1": Case(np.expm1, ends=(-40, 710)),
    "sigmoid": Case(sigmoid, ends=(-750, 40)),
    "sinh": Case(np.sinh, ends=(-711, 711)),
    "cosh": Case(np.cosh, ends=(-711, 711)),
    "tanh": Case(np.tanh, ends=(-20, 20)),
    "log": Case(np.log, ends=(0, 3)),
    "log2": Case(np.log2, ends=(0, 3)),
    "log10": Case(np.log10, ends=(0, 3)),
    "log1p": Case(np.log1p, ends=(-1, 2)),
    "arcsinh": Case(np.arcsinh, ends=(-3, 3)),
    "arccosh": Case(np.arccosh, ends=(1, 3)),
    "arctanh": Case(np.arctanh, ends=(-1, 1)),
    "sin": Case(np.sin, ends=(-100, 100)),
    "cos": Case(np.cos, ends=(-100, 100)),
    "tan": Case(np.tan, ends=(-100, 100)),
    "arcsin": Case(np.arcsin, ends=(-1, 1)),
    "arccos": Case(np.arccos, ends=(-1, 1)),
    "arctan": Case(np.arctan, ends=(-3, 3)),
    "arctan2": Case(np.arctan2, inputs=2),
    "power": Case(np.power, ends=(0, 20), inputs=2),
    "rsqrt": Case(lambda x: 1 / np.sqrt(x), ends=(0, 4)),
    "cbrt": Case(np.cbrt, ends=(-8, 8)),
    "hypot": Case(np.hypot, inputs=2),
    "fmod": Case(np.fmod, inputs=2),
    "remainder": Case(np.remainder, inputs=2),
    "floor_divide": Case(np.floor_divide, inputs=2),
    "erf": Case(scipy.special.erf, by_mpmath(mp.erf), ends=(-6, 6)),
    "erfc": Case(scipy.special.erfc, by_mpmath(mp.erfc), ends=(-6, 28)),
    "erfinv": Case(lambda x: np.copysign(scipy.special.erfinv(x), x), by_mpmath(erfinv), ends=(-1, 1)),
}

SPECIAL = np.array(
    [
        *(
            0,
            1,
            2,
            3,
            4,
            6,
            9,
            10,
            11,
            28,
            88,
            89,
            90,
            104,
            128,
            129,
            150,
            151,
            709,
            710,
            711,
            745,
            746,
            1023,
            1024,
            1025,
        ),
        *(
            0.25,
            0.5,
            1.5,
            2.0**17,
            2.0**20,
            2.0**23,
            2.0**24,
            2.0**52,
            2.0**53,
            1e10,
            1e22,
            1e38,
            1e300,
            np.inf,
            np.nan,
        ),
        *(np.pi / 4, np.pi / 2, np.pi, 2 * np.pi, 100 * np.pi, np.sqrt(0.5), np.sqrt(2), np.log(2), 1e-5, 1e-20, 1e-37),
        *(1e-38, 1e-45, 1e-300, 1e-310, 5e-324, 2.0**-126, 2.0**-1022),
    ]
)
SPECIAL = np.concatenate([SPECIAL, -SPECIAL])


def neighbourhoods(dtype: type, reach: int) -> Array:
    """Special numbers and those around them."""
    with np.errstate(over="ignore"):
        special = SPECIAL.astype(dtype)
    bits = special.view(np.uint32 if dtype is np.float32 else np.uint64)
    around = (bits[:, None].astype(object) + np.arange(-reach, reach + 1).astype(object)).ravel()
    width = 32 if dtype is np.float32 else 64
    return np.array([int(each) % 2**width for each in around], dtype=f"uint{width}").view(dtype)


def pairs(dtype: type, count: int, ends: tuple[float, float]) -> tuple[Array, Array]:
    """Operands of functions of two: ordinary ones, all magnitudes, near ones, special ones with each other."""
    generator = np.random.default_rng(7)
    near = [generator.uniform(*ends, count).astype(dtype), generator.uniform(-30, 30, count).astype(dtype)]
    patterns = [any_pattern(dtype, count, generator) for _ in range(2)]
    with np.errstate(over="ignore"):
        special = np.unique(SPECIAL.astype(dtype))
        special = np.concatenate([special, [dtype(-0.0)]])
        scaled = (patterns[0] * generator.uniform(-1000, 1000, count)).astype(dtype)
    first = np.concatenate([near[0], patterns[0], patterns[0], scaled, np.repeat(special, special.size)])
    second = np.concatenate([near[1], patterns[1], scaled, patterns[0], np.tile(special, special.size)])
    return first.astype(dtype), second.astype(dtype)


def any_pattern(dtype: type, count: int, generator: np.random.Generator) -> Array:
    width = 32 if dtype is np.float32 else 64
    return generator.integers(0, 2**width, count, dtype=f"uint{width}").view(dtype)


def samples(case: Case, dtype: type, count: int, step: int) -> tuple[Array, ...]:
    if case.inputs == 2:
        return pairs(dtype, count if dtype is np.float64 else 8 * count, case.ends)
    if dtype is np.float32:
        every = np.arange(0, 2**32, step, dtype=np.uint64).astype(np.uint32).view(np.float32)
        return (np.concatenate([every, neighbourhoods(np.float32, 100_000 // step)]),)
    generator = np.random.default_rng(5)
    low, high = case.ends
    spread = np.concatenate(
        [
            generator.uniform(low, high, count),
            generator.uniform(-1.5, 1.5, count // 2),
            any_pattern(np.float64, count // 2, generator),
            np.exp2(generator.uniform(-40, 40, count // 2)) * generator.choice([-1.0, 1.0], count // 2),
            neighbourhoods(np.float64, count // 1000),
        ]
    )
    return (spread,)


def errors(got: Array, exact: Array, digits: int, lowest: int) -> Array:
    """Errors of results of a format with `digits` after the first and the exponent `lowest` of its smallest normal."""
    with np.errstate(all="ignore"):
        _, exponent = np.frexp(exact)
        unit = np.ldexp(np.ones_like(exact), np.maximum(exponent - 1, lowest) - digits)
        # What is this large rounds to infinity.
        largest = np.ldexp(exact.dtype.type(2 - 2.0 ** (-digits - 1)), -lowest + 1)
        infinite = np.abs(exact) >= largest
        right = (np.isnan(got) & np.isnan(exact)) | (infinite & np.isinf(got) & (np.signbit(got) == np.signbit(exact)))
        wrong = np.isnan(got) | np.isnan(exact) | infinite | np.isinf(got)
        wrong |= (got == 0) & (np.signbit(got) != np.signbit(exact))
        return np.where(right, 0, np.where(wrong, np.inf, np.abs(got.astype(exact.dtype) - exact) / unit)).astype(float)


def widened(bits: Array) -> Array:
    """The values of patterns of bfloat16."""
    return (bits.astype(np.uint32) << 16).view(np.float32)


@dataclass(frozen=True)
class Measured:
    largest: float
    mean: float
    where: str


def measured(name: str, dtype: str, count: int = COUNT, step: int = STEP) -> Measured:
    """The largest and the mean error of a function in a format."""
    case = CASES[name]
    reference = case.reference
    if dtype in ("float16", "bfloat16"):
        bits = np.arange(2**16, dtype=np.uint16)
        raw: tuple[Array, ...] = (bits if dtype == "bfloat16" else bits.view(np.float16),)
        if case.inputs == 2:
            generator = np.random.default_rng(3)
            raw = tuple(generator.permutation(np.tile(raw[0], 8)) for _ in range(2))
        got = computed(name, dtype, *(each.view(np.int16) if dtype == "bfloat16" else each for each in raw))
        inputs = tuple(widened(each) if dtype == "bfloat16" else each for each in raw)
        got = widened(got.view(np.uint16)) if dtype == "bfloat16" else got
        longer = np.float64
        digits, lowest = (7, -126) if dtype == "bfloat16" else (10, -14)
    else:
        inputs = samples(case, np.float32 if dtype == "float32" else np.float64, count, step)
        got = computed(name, dtype, *inputs)
        longer = np.float64 if dtype == "float32" else np.longdouble
        digits, lowest = (23, -126) if dtype == "float32" else (52, -1022)
        if dtype == "float64":
            reference = case.longer or case.reference
    with np.errstate(all="ignore"):
        exact = reference(*(each.astype(longer) for each in inputs))
        if case.longer is not None and dtype == "float64":  # these are for ordinary numbers
            size = np.abs(inputs[0])
            exact = np.where((size > 0) & (size < 1000), exact, case.reference(inputs[0]))
        found = errors(got, exact, digits, lowest)
    worst = int(np.argmax(found))
    where = ", ".join(repr(float(each[worst])) for each in inputs)
    return Measured(float(found[worst]), float(found[np.isfinite(found)].mean()), where)


PAGE = """# Accuracy of generated code

How far are `torch.exp`, `torch.sin` and the other elementary functions from the exact result? The table gives the
largest and the mean error in units in the last place (ulp): the distance between neighbouring numbers at the exact
result. A correctly rounded result has an error of at most 0.5. "At" is the input with the largest error.

The functions are Flambeau's own (`flambeau/_codegen/functions`); generated code uses them for large tensors. The
measurement includes infinities, NaN, signs of zero, denormal numbers, overflow and underflow: a wrong one would show
as an infinite error.

| dtype | inputs | compared with |
|---|---|---|
| float32 | every {step}st pattern of all 2**32, those around special numbers; random pairs for two operands | float64 |
| float64 | {count} random numbers and more: ordinary ones, all patterns, around special numbers | longer floats |
| float16, bfloat16 | all patterns; random pairs for two operands | float64 |

float16 and bfloat16 are computed in float32 and rounded once at the end. "Longer floats" have {digits} digits; they
come from the C library (`numpy.longdouble`) or from mpmath.

{table}

Measured on {machine}. Results are the same on every processor with fused multiply-add. To measure again:

    python tools/accuracy_table.py
"""


def main() -> None:
    if np.finfo(np.longdouble).nmant < 63:
        sys.exit("longdouble is no longer than double here: the errors of float64 cannot be measured")
    names = sys.argv[1:] or list(CASES)
    head = ["function"]
    for dtype in ("float32", "float64"):
        head += [f"{dtype}: max", "at", "mean"]
    head += ["float16: max", "bfloat16: max"]
    rows = [head, ["---"] * len(head)]
    for name in names:
        row = [f"`{name}`"]
        for dtype in ("float32", "float64"):
            result = measured(name, dtype)
            row += [f"{result.largest:.3f}", result.where, f"{result.mean:.3f}"]
        row += [f"{measured(name, dtype).largest:.3f}" for dtype in ("float16", "bfloat16")]
        rows.append(row)
        print(*row, sep=" | ", flush=True)
    table = "\n".join("| " + " | ".join(row) + " |" for row in rows)
    if len(sys.argv) == 1:
        digits = np.finfo(np.longdouble).nmant + 1
        FILE.write_text(PAGE.format(step=STEP, count=COUNT, table=table, machine=platform.machine(), digits=digits))


if __name__ == "__main__":
    main()
