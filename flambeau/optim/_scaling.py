"""What a `GradScaler` tells an optimizer with `fused=True`: its scale, and whether a gradient was not finite.

On a device nobody waits for the answer. The kernels of an update know it, and keep parameters and states as they were.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._core.tensor import Tensor
from ._update import Rule, advance, update_all


def skipped(
    grads: Sequence[Tensor], steps: Sequence[Tensor], fused: bool | None, grad_scale: Tensor | None,
    found_inf: Tensor | None,
) -> bool | Tensor:  # fmt: skip
    """Divide gradients by the scale, unless the update is to be skipped, and say whether it is.

    The answer is a number on the device, 0 or not, if gradients and steps are there.
    """
    if grad_scale is None and found_inf is None:
        return False
    if not fused:
        raise AssertionError("Expected grad_scale and found_inf to be None: they are for fused=True")
    unseen = found_inf is not None and not any(each._kind.is_cpu for each in (*grads, *steps))
    if found_inf is not None:
        if not unseen and found_inf.item() != 0:
            return True
        if grad_scale is not None and unseen:
            grad_scale = grad_scale.clone()
            update_all(_one_if_found, [found_inf], [grad_scale])
    if grad_scale is not None:
        update_all(_divide, [grad_scale] * len(grads), grads)
    return found_inf if found_inf is not None and unseen else False


def _one_if_found(found: Any, scale: Any) -> None:
    scale.copy_(scale.where(found == 0, 1.0))


def _divide(scale: Any, grad: Any) -> None:
    grad.div_(scale)


def update_unless(skip: bool | Tensor, rule: Rule, number: Any, *lists: Sequence[Tensor]) -> None:
    """`update_all` with the same number for all parameters, unless the answer of `skipped` is not 0."""
    count = len(lists[0])
    if isinstance(skip, Tensor):
        update_all(_unless_found(rule, number), [skip] * count, *lists)
    else:
        update_all(rule, None if number is None else [number] * count, *lists)


def update_with_steps_unless(
    skip: bool | Tensor, rule: Rule, steps: Sequence[Tensor], *lists: Sequence[Tensor]
) -> None:  # fmt: skip
    """`update_all` with steps that are counted on, unless the answer of `skipped` is not 0."""
    if not isinstance(skip, Tensor):
        update_all(rule, advance(steps), *lists)
        return
    counted = list({id(each): each for each in steps}.values())
    update_all(_count_on_or_turn, [skip] * len(counted), counted)
    update_all(_if_positive(rule), steps, *lists)
    update_all(_turn_back, None, counted)


def _count_on_or_turn(found: Any, step: Any) -> None:
    """Steps are negative while they are not taken: so each parameter has one number that says all."""
    step.copy_((step + 1).where(found == 0, -step))


def _turn_back(_: None, step: Any) -> None:
    step.abs_()


def _unless_found(rule: Rule, number: Any) -> Rule:
    def guarded(found: Any, *tensors: Any) -> None:
        _run_where(found == 0, rule, number, *tensors)

    return guarded


def _if_positive(rule: Rule) -> Rule:
    def guarded(step: Any, *tensors: Any) -> None:
        _run_where(step > 0, rule, step, *tensors)

    return guarded


def _run_where(condition: Any, rule: Rule, number: Any, param: Any, grad: Any, *states: Any) -> None:
    """Run a rule, and keep what it did where a condition holds."""
    kept = param, *states
    changed = [each.clone() for each in kept]
    rule(number, changed[0], grad, *changed[1:])
    for each, now in zip(kept, changed, strict=True):
        each.copy_(now.where(condition, each))
