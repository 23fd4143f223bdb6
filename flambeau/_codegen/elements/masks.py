"""A kernel that writes where a mask says so."""

from __future__ import annotations

from ..arrays import Arguments
from ..build import Builder
from ..kernel import kernel
from ..shares import steps_worth
from ..types import SCALARS


@kernel
def fill_where(b: Builder, arguments: Arguments, bits: str) -> None:
    """(target, mask, value, outer, middle, inner, outer step, middle step): the steps are those of the mask.

    The target has no gaps; along the inner dimension the mask has none either.
    """
    scalar, truth = SCALARS[bits], SCALARS["bool"]
    captured = [arguments.array(number).data for number in range(3)]
    outer, middle, inner, outer_step, middle_step = (arguments.integer(number) for number in range(3, 8))
    captured += [middle, inner, outer_step, middle_step]
    with b.parallel(outer * middle, steps_worth(b, inner), *captured, unlock=True) as (c, begin, end, inside):
        target, mask, value, middle_, inner_, outer_step_, middle_step_ = inside
        filler = c.load(value, scalar)
        with c.loop(begin, end) as line:
            number = line // middle_
            into = c.at(target, scalar, line * inner_)
            chosen = c.at(mask, truth, number * outer_step_ + (line - number * middle_) * middle_step_)
            for column, lanes in c.lanes(0, inner_, 16):
                old = c.load(into, scalar, column, lanes)
                c.store(into, scalar, column, c.select(c.load(chosen, truth, column, lanes), filler, old))
