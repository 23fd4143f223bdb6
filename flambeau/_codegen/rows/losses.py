"""Kernels of nll_loss: of the log-probabilities of all classes (samples, classes, places) the target's is picked.

cross_entropy has a kernel of its own for the loss without a derivative; else it is log_softmax and nll_loss, of which
the first one's result is kept.
"""

from __future__ import annotations

from ..arrays import Arguments
from ..build import Builder, Value
from ..kernel import kernel
from ..shares import ELEMENTS, steps_worth
from ..types import F64, I64, SCALARS, Scalar, float64
from .in_lanes import write_rows_in_lanes
from .one_by_one import write_rows
from .programs import log_total
from .shared import rounded

NONE, MEAN, SUM = range(3)
"""Reductions, by PyTorch's numbers."""
BLOCK = 4096
"""So many losses are added up by one thread before they are added to those of others."""


class _Targets:
    """The targets inside a function, and the weights of their classes."""

    def __init__(self, c: Builder, kind: Scalar, target: Value, ignored: Value, classes: Value) -> None:
        self.c = c
        self.kind = kind
        self.target = target
        self.ignored = ignored
        self.classes = classes

    def of(self, position: Value) -> tuple[Value, Value, Value]:
        """The class, whether it counts, and whether it is a class at all."""
        number = self.c.convert(self.c.load(self.target, self.kind, position), I64)
        counts = number != self.ignored
        exists = (number >= 0) & (number < self.classes)
        return number, counts, exists


@kernel
def nll_loss_forward(b: Builder, arguments: Arguments, dtype: str, index: str, weighted: bool, reduction: int) -> None:
    """(out, x, target, weight, work, samples, classes, places, ignore_index).

    `work`, of float64, has two numbers for each block of losses, and one that becomes 1 if a target is no class.
    """
    scalar = SCALARS[dtype]
    out, x, target, weight, work = (arguments.array(number).data for number in range(5))
    samples, classes, places, ignored = (arguments.integer(number) for number in range(5, 9))
    count = samples * places
    blocks = (count + (BLOCK - 1)) // BLOCK
    wrong = b.at(work, SCALARS["float64"], blocks * 2)
    b.store_raw(0.0, wrong, F64)
    captured = out, x, target, weight, work, wrong, count, classes, places, ignored
    with b.parallel(blocks, steps_worth(b, BLOCK, ELEMENTS // 4), *captured, unlock=True) as (c, begin, end, inside):
        out_, x_, target_, weight_, work_, wrong_, count_, classes_, places_, ignored_ = inside
        targets = _Targets(c, SCALARS[index], target_, ignored_, classes_)
        with c.loop(begin, end) as block:
            total, weights = c.variable(F64, 0.0), c.variable(F64, 0.0)
            with c.loop(block * BLOCK, c.smaller((block + 1) * BLOCK, count_)) as position:
                number, counts, exists = targets.of(position)
                loss = c.variable(scalar.compute, 0.0)
                with c.when(counts & exists):
                    sample = position // places_
                    place = position - sample * places_
                    loss.value = -c.load(x_, scalar, (sample * classes_ + number) * places_ + place)
                    if weighted:
                        factor = c.load(weight_, scalar, number)
                        loss.value = loss.value * factor
                        weights.add(c.convert(factor, F64))
                    else:
                        weights.add(1.0)
                with c.when(counts & ~exists, likely=False):
                    c.store_raw(1.0, wrong_, F64)
                if reduction == NONE:
                    c.store(out_, scalar, position, loss.value)
                else:
                    total.add(c.convert(loss.value, F64))
            c.store_raw(total.value, c.offset(work_, block * 2, F64))
            c.store_raw(weights.value, c.offset(work_, block * 2 + 1, F64))
    if reduction != NONE:
        total, weights = b.variable(F64, 0.0), b.variable(F64, 0.0)
        with b.loop(0, blocks) as block:
            total.add(b.load_raw(b.offset(work, block * 2, F64), F64))
            weights.add(b.load_raw(b.offset(work, block * 2 + 1, F64), F64))
        result = total.value / weights.value if reduction == MEAN else total.value
        b.store(out, scalar, 0, b.convert(result, scalar.compute))


@kernel
def nll_loss_backward(b: Builder, arguments: Arguments, dtype: str, index: str, weighted: bool, reduction: int) -> None:
    """(of_x, grad, target, weight, samples, classes, places, ignore_index); `of_x` holds zeros."""
    scalar = SCALARS[dtype]
    of_x, grad, target, weight = (arguments.array(number).data for number in range(4))
    samples, classes, places, ignored = (arguments.integer(number) for number in range(4, 8))
    count = samples * places
    factor = b.constant(F64, -1.0)
    if reduction == MEAN:
        targets = _Targets(b, SCALARS[index], target, ignored, classes)
        weights = b.variable(F64, 0.0)
        with b.loop(0, count) as position:
            number, counts, exists = targets.of(position)
            with b.when(counts & exists):
                weights.add(b.convert(b.load(weight, scalar, number), F64) if weighted else 1.0)
        factor = -1.0 / weights.value
    if reduction != NONE:
        factor = factor * b.convert(b.load(grad, scalar), F64)
    captured = of_x, grad, target, weight, factor, classes, places, ignored
    with b.parallel(count, ELEMENTS // 4, *captured, unlock=True) as (c, begin, end, inside):
        of_x_, grad_, target_, weight_, factor_, classes_, places_, ignored_ = inside
        targets = _Targets(c, SCALARS[index], target_, ignored_, classes_)
        with c.loop(begin, end) as position:
            number, counts, exists = targets.of(position)
            with c.when(counts & exists):
                sample = position // places_
                place = position - sample * places_
                value = -c.load(grad_, scalar, position) if reduction == NONE else c.convert(factor_, scalar.compute)
                value = value * c.load(weight_, scalar, number) if weighted else value
                c.store(of_x_, scalar, (sample * classes_ + number) * places_ + place, value)


@kernel
def cross_entropy_forward(
    b: Builder, arguments: Arguments, dtype: str, index: str, weighted: bool, reduction: int, short: bool
) -> None:
    """(out, x, target, weight, work, samples, classes, ignore_index): the loss alone, without log-probabilities.

    `work`, of float64, has two numbers for each sample and one that becomes 1 if a target is no class. With `short`
    rows lie in the lanes of vectors.
    """
    scalar = SCALARS[dtype]
    out, x, target, weight, work = (arguments.array(number).data for number in range(5))
    samples, classes, ignored = (arguments.integer(number) for number in range(5, 8))
    shifts = b.offset(work, samples, F64)
    wrong = b.offset(work, samples * 2, F64)
    b.store_raw(0.0, wrong, F64)
    write = write_rows_in_lanes if short else write_rows
    write(b, log_total(dtype, "float64"), [work, shifts, x], [], samples, classes)
    targets = _Targets(b, SCALARS[index], target, ignored, classes)
    losses, weights = b.variable(F64, 0.0), b.variable(F64, 0.0)
    with b.loop(0, samples) as row:
        number, counts, exists = targets.of(row)
        loss = b.variable(F64, 0.0)
        with b.when(counts & exists):
            # The log-probability as `log_softmax` would have kept it, so that both ways give the same loss.
            top, shift = (b.convert(b.load(each, float64, row), scalar.compute) for each in (work, shifts))
            value = rounded(b, b.load(x, scalar, row * classes + number) - top - shift, scalar)
            loss.value = b.convert(-value, F64)
            factor = b.convert(b.load(weight, scalar, number), F64) if weighted else b.constant(F64, 1.0)
            loss.value = loss.value * factor
            weights.add(factor)
        with b.when(counts & ~exists, likely=False):
            b.store_raw(1.0, wrong, F64)
        losses.add(loss.value)
        if reduction == NONE:
            b.store(out, scalar, row, b.convert(loss.value, scalar.compute))
    if reduction != NONE:
        result = losses.value / weights.value if reduction == MEAN else losses.value
        b.store(out, scalar, 0, b.convert(result, scalar.compute))
