"""Elementwise rules on lists of tensors, run by one kernel over all of them.

A rule is a function of a number and of one tensor of each list. It changes tensors in place, by methods such as `mul_`,
`add_`, `addcdiv_`. A kernel is made of it (`tracing.py`). Rules that do not allow it, and tensors that are not
plain, contiguous and apart from each other, are left to the caller.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import repeat
from operator import is_
from typing import Any

import numpy as np

from ..._codegen.expr import Untraceable
from ..._core.backend import LARGE
from ..._core.modes import THREAD
from ..._core.process.caller import calling_place
from ..._core.storage import owner_of
from ..._core.tensor import PLAIN_TYPES, Tensor
from ..._core.version import note_changes
from ..call.results import any_needs_gradient
from .tracing import STEP, traced_rule

Rule = Callable[..., Any]

Lists = Sequence[Sequence[Any]]
"""Lists of the same length: the tensors at one position belong together."""


_MANY = 16
"""One op on fewer small tensors is sooner done by as many calls."""


def kernels_for(tensors: Sequence[Tensor], for_one_op: bool = False) -> Any:
    """The kernels for lists, if there are any, nobody looks on, and there is enough to do for one."""
    size = sum([each._array.size for each in tensors])
    if not tensors or (for_one_op and size < LARGE and len(tensors) < _MANY):
        return None
    kind = tensors[0]._kind
    return kind.backend.functions["multi"] if kind in THREAD.modes.direct else None


def are_apart(changed: Sequence[Tensor], *read: Sequence[Tensor]) -> bool:
    """Whether all are plain tensors and none shares memory with one that is changed, as far as that can be told."""
    if not PLAIN_TYPES.issuperset(map(type, changed)):
        return False
    owners = _owners(changed)
    if len(owners) != len(changed):
        return False
    for each in read:
        if not PLAIN_TYPES.issuperset(map(type, each)) or not owners.isdisjoint(_owners(each)):
            return False
    return True


def _owners(tensors: Sequence[Tensor]) -> set[int]:
    owners = set()
    for tensor in tensors:
        array = tensor._array
        base = array.base
        if base is not None:  # mostly an array that has its memory from elsewhere, and is no view itself
            array = base if type(base) is np.ndarray and base.base is None else owner_of(array)
        owners.add(id(array))
    return owners


def run_at_once(kernels: Any, rule: Rule, number: Any, lists: Lists, counted: bool = True) -> bool:
    """Run a rule on tensors of one kind, of which none is to be recorded; False if no kernel can do it.

    Unless they are not to be `counted`, changes are changes of version.
    """
    return _run(kernels.update, rule, number, lists, counted)


def run_with_steps(kernels: Any, rule: Rule, steps: Sequence[Tensor], lists: Lists) -> bool:
    """Run a rule with a step count for each tensor that stays on the device, as tensors of one element."""
    places = [each._array for each in steps]
    update = getattr(kernels, "update_with_steps", None)
    return update is not None and _run(lambda *args: update(places, *args), rule, STEP, lists)


def _run(update: Callable[..., bool], rule: Rule, number: Any, lists: Lists, counted: bool = True) -> bool:
    kind = lists[0][0]._kind
    if kind.indirect:
        return False
    for tensors in lists:
        kinds = [each._kind for each in tensors]
        if kinds.count(kind) != len(kinds) or not PLAIN_TYPES.issuperset(map(type, tensors)):
            return False
    try:
        program, changed, numbers = traced_rule(rule, number, kind.dtype.name, len(lists))
    except (Untraceable, OverflowError):  # the latter: a number that no float can hold
        return False
    if not update(program, changed, numbers, *[[each._array for each in tensors] for tensors in lists]):
        return False
    if counted:
        place = calling_place()
        for position in changed:
            note_changes(lists[position], place)
    return True


def unscale_at_once(tensors: Sequence[Tensor], factor: Tensor, found: Tensor) -> bool:
    """Multiply tensors of one kind by a number that is on their device, and set `found`, such a number too, to 1 if one
    of their elements is not finite; False: it was not done.
    """
    kernels = kernels_for(tensors)
    unscale = getattr(kernels, "unscale", None)
    if unscale is None or not unrecorded(tensors) or not are_apart(tensors, (factor, found)):
        return False
    kind = tensors[0]._kind
    if kind.indirect or any(each._kind is not kind or each._counter is None for each in tensors):
        return False
    if factor._kind is not found._kind or factor._kind.device is not kind.device:
        return False
    if not unscale([each._array for each in tensors], factor._array, found._array):
        return False
    place = calling_place()
    note_changes(tensors, place)
    note_changes((found,), place)
    return True


def change_at_once(
    op: str,
    tensors: Sequence[Tensor],
    rows: Sequence[tuple[tuple[Any, ...], dict[str, Any]]],
    *,
    are_new: bool = False,
) -> bool:
    """Apply an in-place method to every tensor, with a row of arguments for each; False if no kernel can do it.

    Tensors that `are_new` share no memory with others, and have no history: nobody has seen another version of them.
    """
    kernels = kernels_for(tensors, for_one_op=True)
    if kernels is None:
        return False
    operands = [_common(each, tensors[0]) for each in zip(*[row for row, _ in rows], strict=True)]
    others = [each for each in operands if type(each) is tuple]
    every_options = [each for _, each in rows]
    options = every_options[0]
    if (
        None in operands
        or every_options.count(options) != len(rows)
        or not (unrecorded(*others) if are_new else unrecorded(tensors, *others))
        or not (are_new or (None not in [each._counter for each in tensors] and are_apart(tensors, *others)))
    ):
        return False

    def rule(_: None, target: Any, *given: Any) -> None:
        following = iter(given)
        getattr(target, op)(*[next(following) if type(each) is tuple else each for each in operands], **options)

    return run_at_once(kernels, rule, None, (tensors, *others), counted=not are_new)


def _common(operands: tuple[Any, ...], target: Tensor) -> Any:
    """An argument for all tensors: the number that each of them gets, or a tuple of tensors; None if it is neither."""
    first = operands[0]
    if isinstance(first, Tensor):
        if first._array.ndim == 0 and first._kind is target._kind and all(map(is_, operands, repeat(first))):
            return first.item() if unrecorded((first,)) else None
        return operands
    return first if operands.count(first) == len(operands) else None


def unrecorded(*lists: Sequence[Tensor]) -> bool:
    """Whether no tensor has anything to record."""
    return not (THREAD.modes.grad and any(map(any_needs_gradient, lists)))
