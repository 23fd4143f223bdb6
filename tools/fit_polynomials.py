"""Fit the polynomials of `flambeau/_codegen/functions` and write them into its `coefficients.py`.

    python tools/fit_polynomials.py             # all of them, which takes minutes
    python tools/fit_polynomials.py EXP LOG     # these; the others keep what the file has

Each is the polynomial of smallest largest error on its interval (Remez' exchange, on a dense grid, in high precision).
Coefficients are rounded one after the other, and those that follow are fitted again to what rounding left. The printed
error is that of the numbers as they stand in the file. It does not include the rounding of the evaluation.
"""

from __future__ import annotations

import functools
import pathlib
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.special
from mpmath import mp, mpf

Function = Callable[[mpf], mpf]

FILE = pathlib.Path(__file__).parent.parent / "flambeau/_codegen/functions/coefficients.py"
HEADER = '''"""Coefficients of the polynomials, lowest power first; written by `tools/fit_polynomials.py`.

The number behind each says how far the polynomial is from the function, in units of the largest relative error that the
format's rounding makes (2**-24 and 2**-53), before the evaluation's own rounding.
"""

from __future__ import annotations

from typing import NamedTuple


class Table(NamedTuple):
    """The coefficients for the two formats."""

    single: tuple[float, ...]
    double: tuple[float, ...]
'''


@dataclass(frozen=True)
class Fit:
    """`function` on an interval as a sum of coefficients times the powers `first`, `first + step`, ...

    `unit` is what an error is relative to: usually the value of the function that is computed in the end.
    """

    about: str
    function: Function
    unit: Function
    low: Any
    high: Any
    """The end of the interval; a pair of them if it depends on the format."""
    terms: tuple[int, int]
    """How many coefficients in single and in double precision."""
    first: int = 0
    step: int = 1


def largest_errors(fit: Fit, count: int, digits: int) -> tuple[list[float], float]:
    """Coefficients, rounded to `digits` binary digits, and the largest error relative to the unit."""
    low = mpf(fit.low)
    high = mpf(fit.high[digits == 53] if isinstance(fit.high, tuple) else fit.high)
    points = 24 * count + 9
    grid = [(low + high) / 2 + (high - low) / 2 * mp.cos(mp.pi * (2 * i + 1) / (2 * points)) for i in range(points)]
    target = [fit.function(x) for x in grid]
    unit = [abs(fit.unit(x)) for x in grid]
    powers = [fit.first + fit.step * i for i in range(count)]
    basis = [[x**power for power in powers] for x in grid]
    rounded: list[float] = []
    while len(rounded) < count:
        done = len(rounded)
        coefficients = exchange([row[done:] for row in basis], target, unit)
        # Around zero, higher powers cannot make up for what rounding does to lower ones: all are rounded at once.
        for value in [round_to(each, digits) for each in (coefficients if low < 0 < high else coefficients[:1])]:
            target = [t - mpf(value) * row[len(rounded)] for t, row in zip(target, basis, strict=True)]
            rounded.append(value)
    return rounded, float(max(abs(t) / u for t, u in zip(target, unit, strict=True)))


def exchange(basis: Sequence[Sequence[mpf]], target: Sequence[mpf], unit: Sequence[mpf]) -> list[mpf]:
    """Remez' algorithm on a grid."""
    count, points = len(basis[0]), len(basis)
    chosen = [round((1 - np.cos(np.pi * i / count)) / 2 * (points - 1)) for i in range(count + 1)]
    coefficients: list[mpf] = []
    for _ in range(30):
        system = mp.matrix(count + 1, count + 1)
        right = mp.matrix(count + 1, 1)
        for row, point in enumerate(chosen):
            for column in range(count):
                system[row, column] = basis[point][column]
            system[row, count] = (-1) ** row * unit[point]
            right[row] = target[point]
        solution = mp.lu_solve(system, right)
        coefficients = list(solution)[:count]
        level = abs(solution[count])
        errors = [(t - mp.fdot(coefficients, row)) / u for t, row, u in zip(target, basis, unit, strict=True)]
        if max(map(abs, errors)) <= level * mpf("1.01"):
            break
        chosen = alternation(errors, count + 1)
    return coefficients


def alternation(errors: Sequence[mpf], wanted: int) -> list[int]:
    """The points of largest error between changes of its sign, `wanted` neighbouring ones of them."""
    extremes: list[int] = []
    for i, error in enumerate(errors):
        if extremes and (errors[extremes[-1]] >= 0) == (error >= 0):
            if abs(error) > abs(errors[extremes[-1]]):
                extremes[-1] = i
        else:
            extremes.append(i)
    while len(extremes) > wanted:
        extremes.pop(0 if abs(errors[extremes[0]]) < abs(errors[extremes[-1]]) else -1)
    if len(extremes) < wanted:
        raise ArithmeticError("too few alternations: the grid or the precision does not suffice")
    return extremes


def round_to(value: mpf, digits: int) -> float:
    return float(np.float32(float(value))) if digits == 24 else float(value)


def one(x: mpf) -> mpf:
    return mpf(1)


def erfcx(x: mpf) -> mpf:
    return mp.exp(x * x) * mp.erfc(x)


@functools.cache
def erfinv_ratio(w: mpf) -> mpf:
    """erfinv(x) / x, where w = -log(1 - x**2): Newton's iteration for erfc(y) = 1 - x."""
    x = mp.sqrt(-mp.expm1(-w))
    rest = mp.exp(-w) / (1 + x)
    y = mpf(scipy.special.erfcinv(float(rest)))
    for _ in range(5):
        y += (mp.erfc(y) - rest) * mp.sqrt(mp.pi) / 2 * mp.exp(y * y)
    return y / x


def fits() -> dict[str, Fit]:
    eighth = mp.pi / 4 * mpf("1.0001")
    half_log2 = mp.log(2) / 2 * mpf("1.001")
    return {
        "EXP": Fit(
            "exp(r) - 1 - r, by r**2, for |r| up to log(2) / 2",
            lambda r: mp.exp(r) - 1 - r,
            mp.exp,
            -half_log2,
            half_log2,
            (5, 10),
            first=2,
        ),
        "LOG_SINGLE": Fit(
            "log(1 + f) - f + f**2 / 2, by f**3, for 1 + f from sqrt(1/2) to sqrt(2)",
            lambda f: mp.log1p(f) - f + f * f / 2,
            mp.log1p,
            mp.sqrt(0.5) - 1,
            mp.sqrt(2) - 1,
            (9, 0),
            first=3,
        ),
        "LOG_QUOTIENT": Fit(
            "log((1 + s) / (1 - s)) - 2 * s, by s**3, even, for s up to 0.1716",
            lambda s: 2 * mp.atanh(s) - 2 * s,
            mp.atanh,
            0,
            3 - 2 * mp.sqrt(2),
            (4, 7),
            first=3,
            step=2,
        ),
        "TANH": Fit(
            "tanh(x) - x, by x**3, even, for x up to 1", lambda x: mp.tanh(x) - x, mp.tanh, 0, 1, (7, 15), 3, 2
        ),
        "EXP2": Fit(
            "2**r - 1, by r, for |r| up to 1/2",
            lambda r: mpf(2) ** r - 1,
            lambda r: mpf(2) ** r,
            mpf("-0.5001"),
            mpf("0.5001"),
            (6, 12),
            first=1,
        ),
        "SINH": Fit("sinh(x) - x, by x**3, even, for x up to 1", lambda x: mp.sinh(x) - x, mp.sinh, 0, 1, (4, 7), 3, 2),
        "ATANH": Fit(
            "atanh(x) - x, by x**3, even, for x up to 1/2", lambda x: mp.atanh(x) - x, mp.atanh, 0, 0.5, (6, 13), 3, 2
        ),
        "ASINH": Fit(
            "asinh(x) - x, by x**3, even, for x up to 1/2", lambda x: mp.asinh(x) - x, mp.asinh, 0, 0.5, (5, 11), 3, 2
        ),
        "SIN": Fit(
            "sin(r) - r, by r**3, even, for r up to pi / 4", lambda r: mp.sin(r) - r, mp.sin, 0, eighth, (3, 6), 3, 2
        ),
        "COS": Fit(
            "cos(r) - 1 + r**2 / 2, by r**4, even, for r up to pi / 4",
            lambda r: mp.cos(r) - 1 + r * r / 2,
            mp.cos,
            0,
            eighth,
            (3, 6),
            first=4,
            step=2,
        ),
        "TAN": Fit(
            "tan(r) - r, by r**3, even, for r up to pi / 4", lambda r: mp.tan(r) - r, mp.tan, 0, eighth, (7, 14), 3, 2
        ),
        "ATAN": Fit(
            "atan(x) - x, by x**3, even, for x up to 1", lambda x: mp.atan(x) - x, mp.atan, 0, 1, (10, 19), 3, 2
        ),
        "ASIN": Fit(
            "asin(x) - x, by x**3, even, for x up to 1/2", lambda x: mp.asin(x) - x, mp.asin, 0, 0.5, (5, 12), 3, 2
        ),
        "LOG_TAIL": Fit(
            "log((1 + s) / (1 - s)) / 2 - s - s**3 / 3, by s**5, even, for s up to 0.1716",
            lambda s: mp.atanh(s) - s - s**3 / 3,
            lambda s: mp.atanh(s) / 2**13,
            0,
            3 - 2 * mp.sqrt(2),
            (0, 9),
            first=5,
            step=2,
        ),
        "ERF": Fit("erf(x) - x, by x, even, for x up to 1", lambda x: mp.erf(x) - x, mp.erf, 0, 1, (6, 12), 1, 2),
        "ERF_LOG2": Fit(
            "log2(erfc(x)) for x from 1 to 4 or 6, so that the error of 1 - erfc(x) is small",
            lambda x: mp.log(mp.erfc(x), 2),
            lambda x: 1 / mp.erfc(x),
            1,
            (4, 6),
            (6, 17),
        ),
        "ERF_EXP2": Fit(
            "2**r - 1, by r, for |r| up to 1/2; for 1 - erfc(x), where its error counts less",
            lambda r: mpf(2) ** r - 1,
            lambda r: 6 * mpf(2) ** r,
            mpf("-0.5001"),
            mpf("0.5001"),
            (6, 10),
            first=1,
        ),
        "ERFINV_CENTRE": Fit(
            "erfinv(x) / x - 1 at t = w - 3, w = -log(1 - x**2) up to 6",
            lambda t: erfinv_ratio(t + 3) - 1,
            lambda t: erfinv_ratio(t + 3),
            -3,
            3,
            (0, 25),
        ),
        "ERFINV_SHORT": Fit(
            "the same, as good as single precision needs",
            lambda t: erfinv_ratio(t + 3) - 1,
            lambda t: erfinv_ratio(t + 3),
            -3,
            3,
            (0, 12),
        ),
        "LOG_SHORT": Fit(
            "(log(1 + f) - f + f**2 / 2) / f**3, as good as single precision needs",
            lambda f: (mp.log(1 + f) - f + f * f / 2) / f**3 if f else mpf(1) / 3,
            one,
            mp.sqrt(mpf(1) / 2) - 1,
            mp.sqrt(2) - 1,
            (0, 10),
        ),
        "ERFINV_MIDDLE": Fit(
            "erfinv(x) / x - 1 at t = sqrt(w) - 3.25, for sqrt(w) from 2.44 to 4.06",
            lambda t: erfinv_ratio((t + 3.25) ** 2) - 1,
            lambda t: erfinv_ratio((t + 3.25) ** 2),
            mpf("-0.81"),
            mpf("0.81"),
            (0, 21),
        ),
        "ERFINV_FAR": Fit(
            "erfinv(x) / x - 1 at t = sqrt(w) - 5, for sqrt(w) from 4 to 6.01",
            lambda t: erfinv_ratio((t + 5) ** 2) - 1,
            lambda t: erfinv_ratio((t + 5) ** 2),
            mpf("-1.01"),
            mpf("1.01"),
            (0, 18),
        ),
        "ERFCX": Fit(
            "exp(x * x) * erfc(x) * (1 + 2 * x) - 1.25 at t = (x - 3.75) / (x + 3.75)",
            lambda t: erfcx(3.75 * (1 + t) / (1 - t)) * (1 + 7.5 * (1 + t) / (1 - t)) - 1.25,
            lambda t: erfcx(3.75 * (1 + t) / (1 - t)) * (1 + 7.5 * (1 + t) / (1 - t)),
            -1,
            (28 - mpf(3.75)) / (28 + mpf(3.75)),
            (12, 24),
        ),
    }


def table(fit: Fit) -> str:
    lines = [f"# {fit.about}"]
    parts = []
    for name, count, digits in (("single", fit.terms[0], 24), ("double", fit.terms[1], 53)):
        if count == 0:
            parts.append(f"    {name}=(),\n")
            continue
        coefficients, error = largest_errors(fit, count, digits)
        numbers = "".join(f"        {each!r},\n" for each in coefficients)
        parts.append(f"    {name}=(  # {error * 2.0**digits:.3f}\n{numbers}    ),\n")
    return "\n".join(lines) + "\n{name} = Table(\n" + "".join(parts) + ")\n"


def quoted(digits: str) -> str:
    """A long string in lines."""
    return "".join(f'    "{digits[i : i + 80]}"\n' for i in range(0, len(digits), 80)).removesuffix("\n") + ",\n"


def main() -> None:
    mp.prec = 320
    every = fits()
    wanted = sys.argv[1:] or list(every)
    present: dict[str, str] = {}
    if FILE.exists():
        for block in re.findall(r"^# [^\n]*\n\w+ = Table\(\n.*?^\)\n", FILE.read_text(), re.MULTILINE | re.DOTALL):
            present[block.split("\n")[1].split(" ")[0]] = block
    for name in wanted:
        present[name] = table(every[name]).replace("{name}", name)
        print(name, re.findall(r"# (\d+\.\d+)", present[name]), flush=True)
    with mp.workprec(1400):
        digits = (
            f"TWO_OVER_PI = int(  # times 2**1280\n{quoted(hex(int(mp.floor(2 / mp.pi * mpf(2) ** 1280))))}    16,\n)\n"
        )
    FILE.write_text("\n\n".join([HEADER, *(present[name] for name in every if name in present), digits]))


if __name__ == "__main__":
    main()
