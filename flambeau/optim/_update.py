"""From an update rule, written for one parameter, to the update of many.

A rule is a function `rule(number, param, grad, *state)` of tensors of one shape, which changes `param` and the state in
place. It is elementwise. So `update_all` may make a kernel of it that goes once over all parameters, however many and
large they are. Where there is none, it may lay small parameters end to end and update them as one, because of a hundred
small tensors the calls cost more than the numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .._core.modes import NONE_DIRECT, THREAD
from .._core.process.caller import Place, calling_place
from .._core.tensor import PLAIN_TYPES, Tensor
from .._core.version import note_changes
from .._dispatch.abstract.list_rules import are_apart, kernels_for, run_at_once, run_with_steps
from .._dispatch.changes.storing import store_number
from .._dispatch.interpreter import interpret
from .._dispatch.op import Op

Rule = Callable[..., None]

_SMALL = 2048
"""Tensors with more elements than this are updated where they are."""

_SMALL_ALIKE = 16384
"""Tensors with more elements are updated where they are by rules that are not elementwise, whose steps are many."""

_JOINED = 65536
"""As many elements are updated together at most: they should stay in the processor's cache."""


class _Update(Op):
    """A step of an optimizer as one op, which writes the parameters and their states."""

    writes = (2,)
    parameters = ("rule", "numbers", "lists")

    def __call__(self, rule: Rule, numbers: Sequence[Any] | None, lists: list[Sequence[Tensor]]) -> None:
        modes = THREAD.modes
        if modes.interpreters and not modes.grad:
            interpret(self, (rule, numbers, lists), modes)
        else:
            _update(rule, numbers, lists)

    def tensors_of(self, args: Any) -> list[Tensor]:
        return [tensor for tensors in args[2] for tensor in tensors]


update_parameters = _Update()
update_parameters.enter("update_parameters")


class _Advance(Op):
    """The steps of many parameters counted on: one op, where a `fill_` for each would take as long as the update."""

    writes = (0,)
    parameters = ("steps", "values")

    def __call__(self, steps: Sequence[Tensor], values: Sequence[float]) -> None:
        modes = THREAD.modes
        if modes.interpreters:
            interpret(self, (steps, values), modes)
            return
        for step, value in zip(steps, values, strict=True):
            if step._kind.is_cpu:
                step._array.fill(value)
            else:
                store_number(step, value)

    def tensors_of(self, args: Any) -> list[Tensor]:
        return list(args[0])


advance_steps = _Advance()
advance_steps.enter("advance_steps")


def update_all(rule: Rule, numbers: Sequence[Any] | None, params: Sequence[Tensor], *others: Sequence[Tensor]) -> None:
    """Run `rule` on every parameter: `others` are the gradients and then the lists of states.

    `numbers` holds what the rule has to know of each parameter beside its tensors, such as the step; the rule gets None
    if there is none.
    """
    lists = [params, *others]
    if any(each._is_wrapper for each in params):  # rules are elementwise: right for parts too
        lists = [[each.value if each._is_wrapper else each for each in tensors] for tensors in lists]
    update_parameters(rule, numbers, lists)


def _update(rule: Rule, numbers: Sequence[Any] | None, lists: Sequence[Sequence[Tensor]]) -> None:
    params = lists[0]
    modes = THREAD.modes
    left: Sequence[int] = range(len(params))
    if params and not modes.grad and params[0]._kind in modes.direct:
        left = _update_at_once(rule, numbers, lists)
        if len(left) == len(params) > 1 and not _on_device(numbers):
            left = _update_joined(rule, numbers, lists)
    for position in left:
        tensors: list[Any] = [each[position] for each in lists]
        if tensors[0]._kind.dtype.is_complex:
            tensors[1] = tensors[1].resolve_conj()  # it is only read
            tensors = as_real(tensors)
        rule(None if numbers is None else numbers[position], *tensors)


def _on_device(numbers: Sequence[Any] | None) -> bool:
    """Whether the numbers of a step are tensors: nobody may look at them."""
    return numbers is not None and len(numbers) > 0 and isinstance(numbers[0], Tensor)


def _update_at_once(rule: Rule, numbers: Sequence[Any] | None, lists: Sequence[Sequence[Tensor]]) -> Sequence[int]:
    """Update by a kernel made of the rule what allows it; returns the positions of the others."""
    params, grads = lists[0], lists[1] if len(lists) > 1 else ()
    every = range(len(params))
    kernels = kernels_for(params)
    if kernels is None or None in [each._counter for each in params] or not are_apart(params, grads):
        return every
    kinds = [each._kind for each in params]
    if numbers is not None and _on_device(numbers):
        return () if run_with_steps(kernels, rule, numbers, lists) else every
    if kinds.count(kinds[0]) == len(kinds) and (numbers is None or numbers.count(numbers[0]) == len(numbers)):
        return () if run_at_once(kernels, rule, numbers and numbers[0], lists) else every
    groups: dict[Any, list[int]] = {}
    for position, key in enumerate(kinds if numbers is None else zip(kinds, numbers, strict=True)):
        groups.setdefault(key, []).append(position)
    left: list[int] = []
    for positions in groups.values():
        chosen = [[each[i] for i in positions] for each in lists]
        if not run_at_once(kernels, rule, numbers and numbers[positions[0]], chosen):
            left += positions
    return sorted(left)


def _update_joined(rule: Rule, numbers: Sequence[Any] | None, lists: Sequence[Sequence[Tensor]]) -> list[int]:
    """Update together what fits together; returns the positions of the others."""
    params = lists[0]
    groups: dict[Any, list[int]] = {}
    left = []
    seen = set()
    for position, param in enumerate(params):
        array = param._array
        if (
            type(param) in PLAIN_TYPES
            and array.size <= _SMALL
            and id(param) not in seen
            and param._counter is not None
            and not param._kind.indirect
            and not (array.base is not None and 0 in array.strides)
        ):
            seen.add(id(param))
            key = param._kind if numbers is None else (param._kind, numbers[position])
            found = groups.get(key)
            if found is None:
                groups[key] = [position]
            else:
                found.append(position)
        else:
            left.append(position)
    place = calling_place(3)
    for positions in groups.values():
        number = None if numbers is None else numbers[positions[0]]
        for part in _parts(positions, params, _SMALL):
            chosen = lists if len(part) == len(params) else [[each[i] for i in part] for each in lists]
            if len(part) == 1 or not _agree(chosen):
                left += part
            else:
                _update_as_one(rule, number, chosen, place)
    return sorted(left)  # the same parameter may be there twice: in its order


def _parts(positions: list[int], params: Sequence[Tensor], largest: int) -> list[list[int]]:
    """`positions` of parameters of up to `largest` elements in parts of no more than `_JOINED`."""
    if len(positions) * largest <= _JOINED:
        return [positions]
    parts: list[list[int]] = []
    room = 0
    for position in positions:
        size = params[position]._array.size
        if size > room:
            parts.append([])
            room = _JOINED
        room -= size
        parts[-1].append(position)
    return parts


def _agree(lists: Sequence[Sequence[Tensor]]) -> bool:
    """Whether all tensors have the kind of the first parameter, and those of one place the same shape."""
    kinds = [lists[0][0]._kind] * len(lists[0])
    shapes = [each._array.shape for each in lists[0]]
    return all(
        [each._kind for each in tensors] == kinds and [each._array.shape for each in tensors] == shapes
        for tensors in lists[1:]
    )


def _update_as_one(rule: Rule, number: Any, lists: Sequence[Sequence[Tensor]], place: Place | None) -> None:
    kind = lists[0][0]._kind
    joined = [
        Tensor._from_parts((np.concatenate([each._array for each in tensors], axis=None), kind, [0, None]))
        for tensors in lists
    ]
    rule(number, *(as_real(joined) if kind.dtype.is_complex else joined))
    ends = np.cumsum([each._array.size for each in lists[0]]).tolist()
    for index, tensors in enumerate(lists):
        if index == 1:  # gradients are read only
            continue
        flat = joined[index]._array
        start = 0
        for tensor, end in zip(tensors, ends, strict=True):
            array = tensor._array
            array[...] = flat[start:end].reshape(array.shape)
            start = end
        note_changes(tensors, place)


def update_alike(rule: Rule, numbers: Sequence[Any] | None, params: Sequence[Tensor], *others: Sequence[Any]) -> None:
    """Run a `rule` that is not elementwise: it gets parameters of one shape, stacked along a new first dimension.

    Lists of states may hold None for all parameters of a shape.
    """
    groups: dict[Any, list[int]] = {}
    joinable = NONE_DIRECT if THREAD.modes.grad else THREAD.modes.direct
    for position, param in enumerate(params):
        alone = param._kind not in joinable or type(param) not in PLAIN_TYPES or param._array.size > _SMALL_ALIKE
        key = (param._kind, param._array.shape, numbers and numbers[position], position if alone else -1)
        groups.setdefault(key, []).append(position)
    place = calling_place(3)
    for positions in groups.values():
        number = None if numbers is None else numbers[positions[0]]
        for part in _parts(positions, params, _SMALL_ALIKE):
            lists = [[each[i] for i in part] for each in (params, *others) if each[part[0]] is not None]
            if len(part) == 1 or not _stackable(lists):
                for tensors in zip(*lists, strict=True):
                    rule(number, *[each.unsqueeze(0) for each in tensors])
            else:
                _update_stacked(rule, number, lists, place)


def _stackable(lists: Sequence[Sequence[Tensor]]) -> bool:
    kinds = [lists[0][0]._kind] * len(lists[0])
    return len({id(each) for each in lists[0]}) == len(kinds) and all(
        [each._kind for each in tensors] == kinds and len({each._array.shape for each in tensors}) == 1
        for tensors in lists
    )


def _update_stacked(rule: Rule, number: Any, lists: Sequence[Sequence[Tensor]], place: Place | None) -> None:
    kind = lists[0][0]._kind
    stacked = [Tensor._from_parts((np.stack([each._array for each in tensors]), kind, [0, None])) for tensors in lists]
    rule(number, *stacked)
    for index, tensors in enumerate(lists):
        if index != 1:  # gradients are read only
            for tensor, array in zip(tensors, stacked[index]._array, strict=True):
                tensor._array[...] = array
            note_changes(tensors, place)


def as_real(tensors: list[Tensor]) -> list[Tensor]:
    """Views of complex tensors as pairs of real numbers; real tensors as they are."""
    from .._ops.shape.complex_view import view_as_real

    return [view_as_real(each) if each._kind.dtype.is_complex else each for each in tensors]


def advance(steps: Sequence[Tensor]) -> Sequence[Any]:
    """Count one further step in each of `steps`; returns the new values: those on a device as they are there."""
    if not PLAIN_TYPES.issuperset(map(type, steps)) and not all(isinstance(step, Tensor) for step in steps):
        raise RuntimeError(
            "API has changed, `state_steps` argument must contain a list of singleton tensors: it holds numbers"
        )
    place = calling_place(3)
    if steps and not steps[0]._kind.is_cpu:
        update_all(_count_on, None, list({id(each): each for each in steps}.values()))
        return steps
    values = [float(step._array) + 1 for step in steps]
    owners = list(map(id, steps))
    if len(set(owners)) != len(owners):  # a parameter that is there twice is updated twice
        values = [value + owners[:position].count(owners[position]) for position, value in enumerate(values)]
    advance_steps(steps, values)
    note_changes(steps, place)
    return values


def _count_on(_: None, step: Any) -> None:
    step.add_(1)


def check_modes(foreach: bool | None, differentiable: bool, capturable: bool, params: Sequence[Tensor]) -> None:
    """Refuse `foreach=True` where gradients are to flow through the step, and `capturable=True` for parameters on
    devices that capture nothing, or False where work is captured."""
    check_foreach(foreach, differentiable)
    if not capturable and params and params[0]._kind.backend.is_recording():
        raise RuntimeError(
            "Attempting CUDA graph capture of step() but capturable is False: the step looks at numbers of the host, "
            "which a replay would not count on. Make the optimizer with capturable=True."
        )
    if capturable and any(each.device.type != "cuda" for each in params):
        raise AssertionError(
            "If capturable=True, params and state_steps must be on supported devices: ['cuda']. "
            f"A parameter is on {next(each.device for each in params if each.device.type != 'cuda')}."
        )


def check_foreach(foreach: bool | None, differentiable: bool) -> None:
    """Refuse `foreach=True` where gradients are to flow through the step."""
    if foreach and differentiable:
        raise AssertionError("_foreach ops don't support autograd: use foreach=False with differentiable=True")


def as_scalar(value: Any) -> Any:
    """A tensor of one element as a 0-dimensional one; numbers as they are."""
    return value.squeeze() if isinstance(value, Tensor) and value.ndim else value


def number(value: Any) -> Any:
    """The value of a number or of a tensor of one element."""
    return value.item() if isinstance(value, Tensor) else value


def with_decay(grad: Any, param: Any, weight_decay: Any) -> Any:
    """`grad + weight_decay * param`."""
    if isinstance(weight_decay, Tensor) and weight_decay.requires_grad:
        return grad + param.clone() * weight_decay  # the parameter is about to change, the product keeps its factors
    return grad.add(param, alpha=number(weight_decay))


def descent(grad: Any, param: Any, maximize: bool, weight_decay: Any) -> Any:
    """The gradient along which a step goes down: turned to climb, and with the decay of the weights."""
    if maximize:
        grad = -grad
    return with_decay(grad, param, weight_decay) if weight_decay != 0 else grad


def add_scaled(param: Any, direction: Any, factor: Any) -> None:
    """`param += factor * direction`; a factor that requires gradients gets them."""
    if isinstance(factor, Tensor) and (factor.requires_grad or not factor._kind.is_cpu):
        param.add_(direction * factor)
    else:
        param.add_(direction, alpha=number(factor))


def add_quotient(param: Any, numerator: Any, denominator: Any, factor: Any) -> None:
    """`param += factor * numerator / denominator`; a factor that requires gradients gets them."""
    # A differentiable step saves it, and the next one changes it in place.
    if isinstance(numerator, Tensor) and numerator._requires_grad:
        numerator = numerator.clone()
    if isinstance(factor, Tensor) and (factor.requires_grad or not factor._kind.is_cpu):
        param.addcdiv_(numerator * factor, denominator)
    else:
        param.addcdiv_(numerator, denominator, value=number(factor))
