"""Sizes that depend on the sizes of the inputs: integers that remember how they are computed.

A model is run at several sizes of its dynamic axes. An integer that is the same in every run is a constant; any other
has to be a function of the axes, or of the shapes of tensors that are there already. `Fitting` finds that function from
what was observed, and the runs that it was not made from check it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

Observed = tuple[int, ...]
"""The values of one integer in all runs."""


class Axis(NamedTuple):
    """The size of a dynamic axis, by its name."""

    name: str


class Extent(NamedTuple):
    """The size of a dimension of a tensor of the graph."""

    value: int
    """The number of the tensor in the trace."""
    dim: int


class Arithmetic(NamedTuple):
    """An operation of ONNX's on two sizes."""

    operator: str
    left: Any
    right: Any


Term = Axis | Extent | Arithmetic


def identity(term: Term) -> Any:
    """What tells terms apart: sizes that are equal as numbers are not the same."""
    if not isinstance(term, Arithmetic):
        return term
    sides = [identity(each.term) if isinstance(each, Size) else each for each in (term.left, term.right)]
    return (term.operator, *sides)


class Size(int):
    """An integer with the value that it had in the first run, and how it is computed in any other."""

    term: Term
    runs: Observed

    @staticmethod
    def made(term: Term, runs: Sequence[int]) -> Size:
        """A size that was seen to be `runs`."""
        size = Size(runs[0])
        size.term, size.runs = term, tuple(runs)
        return size

    def __add__(self, other: int) -> int:
        return _arithmetic("Add", self, other)

    def __radd__(self, other: int) -> int:
        return _arithmetic("Add", other, self)

    def __sub__(self, other: int) -> int:
        return _arithmetic("Sub", self, other)

    def __rsub__(self, other: int) -> int:
        return _arithmetic("Sub", other, self)

    def __mul__(self, other: int) -> int:
        return _arithmetic("Mul", self, other)

    def __rmul__(self, other: int) -> int:
        return _arithmetic("Mul", other, self)

    def __floordiv__(self, other: int) -> int:
        return _arithmetic("Div", self, other)

    def __rfloordiv__(self, other: int) -> int:
        return _arithmetic("Div", other, self)


class Form(NamedTuple):
    """How Python made a float of a size: of itself or of its root, and of a constant."""

    operator: str
    """`Mul` and `Add` with the constant; `Div` of the constant by the size, `Over` of the size by the constant."""
    constant: float
    size: Size
    power: float
    """Of the size: 1, or a root."""

    def of(self, size: int) -> float:
        """The number where the size is this."""
        base = float(size if self.power == 1 else size**self.power)
        match self.operator:
            case "Mul":
                return base * self.constant
            case "Div":
                return self.constant / base
            case "Over":
                return base / self.constant
            case _:
                return base + self.constant


class Number(float):
    """A float with the value that it had in the first run, and how it is computed of a size."""

    form: Form

    @staticmethod
    def made(form: Form) -> Number:
        """The number of a form."""
        number = Number(form.of(form.size))
        number.form = form
        return number


_MEANINGS: dict[str, Callable[[int, int], int]] = {
    "Add": lambda a, b: a + b, "Sub": lambda a, b: a - b, "Mul": lambda a, b: a * b, "Div": lambda a, b: a // b,
    "Min": min, "Max": max,
}  # fmt: skip


def runs_of(size: int, count: int) -> Observed:
    """What an integer is in each of `count` runs."""
    return size.runs if isinstance(size, Size) else (int(size),) * count


def _arithmetic(operator: str, left: int, right: int) -> int:
    """Two integers combined; the result is a constant if it is the same in all runs."""
    count = len(left.runs if isinstance(left, Size) else right.runs if isinstance(right, Size) else ())
    pairs = zip(runs_of(left, count), runs_of(right, count), strict=True)
    runs = [_MEANINGS[operator](int(a), int(b)) for a, b in pairs]
    if operator in ("Mul", "Div") and not isinstance(right, Size) and right == 1:
        return left
    if operator == "Mul" and not isinstance(left, Size) and left == 1:
        return right
    if operator in ("Add", "Sub") and not isinstance(right, Size) and right == 0:
        return left
    return Size.made(Arithmetic(operator, left, right), runs)


class Fitting:
    """Finds the functions behind observed integers.

    >>> fitting = Fitting({"batch": (2, 4, 5)})
    >>> fitting.size((3, 3, 3)), fitting.size((8, 16, 20)).term
    (3, Arithmetic(operator='Mul', left=2, right=4))
    """

    def __init__(self, axes: dict[str, Observed]) -> None:
        self.count = len(next(iter(axes.values()))) if axes else 1
        self.axes = [Size.made(Axis(name), runs) for name, runs in axes.items()]
        self.extents: dict[Observed, Size] = {}
        """For sizes that are no simple function of the axes: a dimension of an earlier tensor that has them."""
        self.has_guessed = False
        """Whether a function was taken that many others are like at a few sizes."""

    def size(self, runs: Observed, near: Sequence[int] = ()) -> int | None:
        """The integer that was seen to be `runs`, as a function of axes or of the sizes `near` it; None if unknown."""
        if len(set(runs)) == 1:
            return runs[0]
        return next((each for each in self._candidates(runs, near) if each is not None), None)

    def number(
        self, runs: Sequence[float], near: Sequence[int] = (), rounded: Callable[[float], float] = float
    ) -> Number | None:
        """The float that was seen to be `runs`, as a function of axes or of the sizes `near` it; None if unknown.

        One run gives the constant of a form, the others check it. Forms that give every bit are taken first; `rounded`
        is what became of the number before it was seen.
        """
        moving = [each for each in near if isinstance(each, Size)]
        areas = [first * second for first, second in itertools.combinations(self.axes, 2)]
        close: Form | None = None
        for size in (*self.axes, *moving, *self._products(near), *areas, *self.extents.values()):
            if not isinstance(size, Size) or len(set(size.runs)) < len(set(runs)) or 0 in size.runs:
                continue
            for form in _forms(runs[0], size):
                pairs = [(rounded(form.of(x)), y) for x, y in zip(size.runs, runs, strict=True)]
                if all(x == y for x, y in pairs):
                    return Number.made(form)
                if close is None and all(math.isclose(x, y, rel_tol=1e-12) for x, y in pairs):
                    close = form
        return None if close is None else Number.made(close)

    def note_shape(self, number: int, shapes: Sequence[tuple[int, ...]], near: Sequence[int] = ()) -> tuple[int, ...]:
        """The shape of the tensor `number`, whose shapes in the runs were seen to be these."""
        sizes = []
        for dim, runs in enumerate(zip(*shapes, strict=True)):
            size: int | None = runs[0] if len(set(runs)) == 1 else self._known(runs, near)
            if size is None:
                size = self.extents.setdefault(runs, Size.made(Extent(number, dim), runs))
            sizes.append(size)
        return tuple(sizes)

    def _known(self, runs: Observed, near: Sequence[int]) -> int | None:
        """A size that is a function of axes, or of the sizes of operands: exactly, not up to rounding."""
        found = self._of_axes(runs)
        moving = [each for each in near if isinstance(each, Size)]
        candidates = (_linear(runs, each) for each in (*moving, *self._products(near)))
        return found if found is not None else next((each for each in candidates if each is not None), None)

    def _candidates(self, runs: Observed, near: Sequence[int]) -> Iterator[int | None]:
        yield self._known(runs, near)
        moving = [each for each in near if isinstance(each, Size)]
        yield self.extents.get(runs)
        yield from (_linear(runs, each) for each in self.extents.values())
        self.has_guessed = True
        yield from (_bounded(runs, each) for each in (*self.axes, *moving))
        yield from (_rounded(runs, each) for each in (*self.axes, *moving))

    def _of_axes(self, runs: Observed) -> int | None:
        for each in self.axes:
            found = _linear(runs, each)
            if found is not None:
                return found
        for group in itertools.combinations(self.axes, 2):
            area = group[0] * group[1]
            found = _linear(runs, area) if isinstance(area, Size) else None
            if found is None:
                found = _plane(runs, *group)
            if found is not None:
                return found
        return None

    def _products(self, near: Sequence[int]) -> Iterator[Size]:
        """Products of neighbouring sizes, as flattening makes them."""
        for start in range(len(near)):
            joined: int = near[start]
            for each in near[start + 1 :]:
                joined = each * joined
                if isinstance(joined, Size):
                    yield joined


def _forms(value: float, size: Size) -> Iterator[Form]:
    """What may have made `value` of a size: each form with constants of few digits, then with all digits."""
    for power in (1.0, 0.5, -0.5):
        base = float(size.runs[0]) ** power
        constants = {"Mul": value / base, "Div": value * base, "Add": value - base}
        if value:
            constants["Over"] = base / value
        for digits in (6, 12, None):
            for operator, constant in constants.items():
                each = constant if digits is None else round(constant, digits)
                if each or operator == "Add":
                    yield Form(operator, each, size, power)


def _linear(runs: Observed, size: Size) -> int | None:
    """`factor * size + constant`, or None."""
    found = _line(runs, size.runs)
    return None if found is None else size * found[0] + found[1]


def _line(values: Observed, sizes: Observed) -> tuple[int, int] | None:
    """The factor and the constant of a line through values at sizes: two of them give it, the others check it."""
    for x, y in zip(sizes[1:], values[1:], strict=True):
        if x != sizes[0]:
            factor, rest = divmod(y - values[0], x - sizes[0])
            break
    else:
        return None
    constant = values[0] - factor * sizes[0]
    if rest or not factor or any(factor * x + constant != y for x, y in zip(sizes, values, strict=True)):
        return None
    return factor, constant


def _plane(runs: Observed, first: Size, second: Size) -> int | None:
    """`a * first + b * second + constant`, or None."""
    slopes = []
    for moving, resting in ((first, second), (second, first)):
        for x, fixed, y in zip(moving.runs, resting.runs, runs, strict=True):
            if x != moving.runs[0] and fixed == resting.runs[0]:
                slopes.append(divmod(y - runs[0], x - moving.runs[0]))
                break
    if len(slopes) < 2 or slopes[0][1] or slopes[1][1]:
        return None
    (a, _), (b, _) = slopes
    constant = runs[0] - a * first.runs[0] - b * second.runs[0]
    points = zip(first.runs, second.runs, runs, strict=True)
    if not a or not b or any(a * x + b * y + constant != z for x, y, z in points):
        return None
    return first * a + second * b + constant


def _bounded(runs: Observed, size: Size) -> int | None:
    """`min(factor * size + constant, bound)`, or the larger of both, or None; a single value is the size itself."""
    for operator, bound in (("Min", max(runs)), ("Max", min(runs))):
        free = [(x, y) for x, y in zip(size.runs, runs, strict=True) if y != bound]
        sizes, values = tuple([x for x, _ in free]), tuple([y for _, y in free])
        line = _line(values, sizes) or ((1, 0) if sizes == values else None)
        if line is not None:
            made = _arithmetic(operator, size * line[0] + line[1], bound)
            if runs_of(made, len(runs)) == runs:
                return made
    return None


_LARGEST_DIVISOR = 16


def _rounded(runs: Observed, size: Size) -> int | None:
    """`(size + shift) // divisor + constant`, as strides and patches make it, or None."""
    if len(set(size.runs)) < 3:  # two points lie on many stairs
        return None
    for divisor in range(2, _LARGEST_DIVISOR + 1):
        for shift in range(divisor):
            steps = [(x + shift) // divisor for x in size.runs]
            if len({y - step for y, step in zip(runs, steps, strict=True)}) == 1:
                return (size + shift) // divisor + (runs[0] - steps[0])
    return None


def product(sizes: Sequence[int]) -> int:
    """The product of sizes: an integer that remembers how it is computed, if one of them does."""
    result = 1
    for each in sizes:
        result = each * result
    return result
