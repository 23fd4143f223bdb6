"""Cross entropy of 16-bit logits in one pass: what a model with many classes has most of is not written down twice.

`log_softmax`, `nll_loss` and their derivatives become a kernel for the loss and one for the gradient of the logits,
computed in float32 and rounded once: no worse than the steps, and not to the bit what these give.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ...program.items import Call, Rewritten, Value, values_in
from .uses import Uses, memory_of, pairs

_NONE = 0
"""The reduction that leaves a loss for each target."""


class _Found(NamedTuple):
    """The positions of the calls that are one loss."""

    softmax: int
    loss: int
    loss_backward: int
    softmax_backward: int


def with_class_losses(calls: Sequence[Call], kept: Sequence[Value], family: Any) -> list[Call]:
    """The calls, with the kernels of `family` for losses of classes."""
    found = list(calls)
    for position, call in enumerate(calls):
        if call.op.name == "log_softmax":
            place = _found(calls, position, Uses(calls, kept))
            if place is not None and family.takes(call.examples[0]._array, calls[place.loss].examples[1]._array):
                found = _rewritten(found, place, family, kept)
    return [each for each in found if each is not _NOTHING]


_NOTHING: Any = object()
"""In the place of a call that is no more."""


def _found(calls: Sequence[Call], position: int, uses: Uses) -> _Found | None:
    softmax = calls[position]
    logits, result = softmax.args[0], softmax.results
    if uses.count(result) != 3 or softmax.args[1] not in (1, -1):
        return None
    users = {call.op.name: at for at, call in enumerate(calls) if result in values_in(call.args)}
    if users.keys() != {"nll_loss", "nll_backward", "log_softmax_backward"}:
        return None
    place = _Found(position, users["nll_loss"], users["nll_backward"], users["log_softmax_backward"])
    loss, backward, last = (calls[at] for at in place[1:])
    between = backward.results
    same = (
        loss.args == (result, *backward.args[2:]) and backward.args[1] == result and last.args[:2] == (between, result)
    )
    if not same or uses.count(between) != 1 or loss.args[2] is not None or loss.args[3] == _NONE:
        return None
    memory = uses.memory[logits]
    for call in calls[position : place.softmax_backward]:
        changed = [pair for at in call.op.writes for pair in pairs([call.args[at]], [call.examples[at]])]
        if any(memory_of(example) == memory for _, example in changed):
            return None
    return place


def _rewritten(calls: list[Call], place: _Found, family: Any, kept: Sequence[Value]) -> list[Call]:
    softmax, loss, backward, last = (calls[at] for at in place)
    logits, given = softmax.args[0], softmax.examples[0]
    target, wanted = loss.args[1], loss.examples[1]
    reduction, ignored = loss.args[3:5]
    levels, share = _new_values(calls, 2)
    made = list(calls)
    made[place.softmax] = made[place.loss_backward] = _NOTHING
    made[place.loss] = Rewritten(
        loss.op, (logits, target, reduction, ignored), [loss.results, levels, share],
        (given, wanted, reduction, ignored), [loss.made, given, given], run=family.class_loss,
    )  # fmt: skip
    made[place.softmax_backward] = Rewritten(
        last.op, (backward.args[0], logits, target, levels, share, ignored), last.results,
        (backward.examples[0], given, wanted, given, given, ignored), last.made, run=family.class_loss_gradient,
    )  # fmt: skip
    made = _with_spaced_product(made, logits, kept, family)
    return _with_products_of_spaced(made, last, family)


def _new_values(calls: Sequence[Call], count: int) -> list[Value]:
    numbers = [value.number for call in calls if call is not _NOTHING for value in values_in((call.args, call.results))]
    return [Value(max(numbers) + 1 + each) for each in range(count)]


def _with_products_of_spaced(calls: list[Call], gradient: Call, family: Any) -> list[Call]:
    """The calls, with products for the zeros behind the rows of the gradient of logits."""
    spaced, classes = {gradient.results}, gradient.made._array.shape[1]
    made = list(calls)
    for position, call in enumerate(calls):
        if call is _NOTHING or not call.args or type(call.args[0]) is not Value or call.args[0] not in spaced:
            continue
        name = call.op.name
        is_turned = name == "t" and call.made._array.ndim == 2
        if is_turned or (name in ("view", "unsafe_view") and call.made._array.shape[-1:] == (classes,)):
            spaced.add(call.results)
        elif name == "mm":
            made[position] = Rewritten(
                call.op, call.args, call.results, call.examples, call.made, run=family.product_of_spaced
            )
    return made


def _with_spaced_product(calls: list[Call], logits: Value, kept: Sequence[Value], family: Any) -> list[Call]:
    """The calls, with logits in rows that begin at even places, if they are a product and nobody else sees it."""
    there = [each for each in calls if each is not _NOTHING]
    makers = {value: position for position, call in enumerate(calls) if call is not _NOTHING
              for value in values_in(call.results)}  # fmt: skip
    uses, value = Uses(there, kept), logits
    most = 2  # the loss and its gradient
    while value in makers and uses.count(value) == most:
        position = makers[value]
        call = calls[position]
        if call.op.name == "mm" and call.made._array.flags.c_contiguous:
            made = list(calls)
            made[position] = Rewritten(
                call.op, call.args, call.results, call.examples, call.made, run=family.spaced_product
            )
            return made
        if call.op.name not in ("view", "unsafe_view"):
            break
        value, most = call.args[0], 1
    return calls
