"""Steps of optimizers with everything decided that does not change from one step to the next.

A step gathers lists of tensors and options, and makes the kernel of its rule from them. A prepared step keeps the lists
and the kernel; of its numbers it knows how they follow from the learning rate and the number of the step. It looks
whether all that it keeps is still what the optimizer has, and else runs the step as it stands.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from operator import attrgetter, is_, itemgetter
from typing import Any

from .._codegen.expr import Untraceable
from .._core.modes import recording
from .._core.process.caller import calling_place
from .._core.tensor import PLAIN_TYPES, Tensor
from .._core.version import note_changes
from .._dispatch.abstract.formulas import Formula, function_of
from .._dispatch.abstract.list_rules import are_apart, kernels_for
from .._dispatch.abstract.tracing import traced_rule
from .._dispatch.interpreter import Interpreter
from .._dispatch.op import Op
from ..compiler._errors import report_fault
from ._update import advance_steps, update_parameters

_GRADIENTS = 1
"""The position of the gradients among the lists of an update."""

_ARRAY_OF = attrgetter("_array")

_PLAIN_OPTIONS = (bool, int, float, str, type(None))


class _Unprepared(Exception):
    """A step does something else than one update of a group."""


class _Seen(Interpreter):
    """Hears what a step would do to a group, and does nothing."""

    def __init__(self) -> None:
        self.advanced: list[Sequence[Any]] = []
        self.updates: list[Sequence[Any]] = []

    def run(self, op: Op, args: Sequence[Any]) -> None:
        if op is advance_steps:
            self.advanced.append(args)
        elif op is update_parameters:
            self.updates.append(args)
        else:
            raise _Unprepared(op.name)


class _Group:
    """The prepared update of one group of parameters."""

    def __init__(self, optimizer: Any, group: dict[str, Any]) -> None:
        self.group = group
        names = [name for name in group if name not in ("params", "lr")]
        self._options = itemgetter(*names)
        self._known = self._options(group)
        if group.get("differentiable") or type(group["lr"]) not in (int, float) or not all(map(_is_plain, self._known)):
            raise _Unprepared("options that are tensors")
        conditions: list[str] = []
        rule, numbers, lists, self._steps = _seen(optimizer, group, conditions)
        self._all = list(group["params"])
        self._params = list(lists[0])
        updated = {id(each) for each in self._params}
        self._others = [each for each in self._all if id(each) not in updated]
        first = self._params[0]
        self._kind = first._kind
        kept = [each for position, each in enumerate(lists) if position != _GRADIENTS]
        fixed = [each for tensors in kept for each in tensors]
        if not PLAIN_TYPES.issuperset(map(type, fixed)) or any(each._kind is not self._kind for each in fixed):
            raise _Unprepared("parameters of several kinds")
        if None in [each._counter for each in fixed] or not are_apart(self._params):
            raise _Unprepared("parameters that share memory")
        if not all(each._kind.is_cpu for each in self._steps):
            raise _Unprepared("steps that are counted on a device")
        if numbers is not None and numbers.count(numbers[0]) != len(numbers):
            raise _Unprepared("parameters at different steps")
        number: Any = None if numbers is None else numbers[0]
        if numbers is not None and self._steps:
            number = Formula("step", number, conditions)
        try:
            program, changed, found = traced_rule(rule, number, self._kind.dtype.name, len(lists))
        except (Untraceable, OverflowError) as error:
            raise _Unprepared(str(error)) from None
        kernels = kernels_for(self._params)
        array_type = first._array.dtype
        kernel = None if kernels is None else kernels.updating(program, changed, len(found), len(lists), array_type)
        if kernel is None:
            raise _Unprepared("no kernel")
        self._kernel: Callable[..., bool] = kernel
        self._numbers = function_of(("step", "lr"), found, conditions)
        self._fixed = [*fixed, *self._steps]
        self._arrays = [each._array for each in self._fixed]
        count = len(self._params)
        self._before, self._after = self._arrays[:count], self._arrays[count : len(fixed)]
        self._owned = frozenset(map(id, self._arrays))
        self._of_steps = [each._array for each in self._steps]
        self._changed = [each for position in changed for each in lists[position]]

    def holds(self, gradients: list[Any]) -> bool:
        """Whether all is as it was; then the arrays of the gradients are added to the list."""
        group = self.group
        params = group["params"]
        if len(params) != len(self._all) or not all(map(is_, params, self._all)):
            return False
        if self._options(group) != self._known or type(group["lr"]) not in (int, float):
            return False
        if not all(map(is_, map(_ARRAY_OF, self._fixed), self._arrays)):
            return False
        if any(each._grad is not None for each in self._others):
            return False
        grads: list[Any] = [each._grad for each in self._params]
        if not PLAIN_TYPES.issuperset(map(type, grads)):  # None, for one
            return False
        kinds = [each._kind for each in grads]
        if kinds.count(self._kind) != len(kinds):
            return False
        arrays = [each._array for each in grads]
        own = all(each.base is None for each in arrays) and self._owned.isdisjoint(map(id, arrays))
        if not own and not are_apart(self._params, grads):
            return False
        gradients.append(arrays)
        return True

    def run(self, gradients: list[Any]) -> bool:
        """Update the parameters; False: nothing was done."""
        step = None
        if self._of_steps:
            reached = [float(each) for each in self._of_steps]
            step = reached[0] + 1
            if reached.count(reached[0]) != len(reached):
                return False
        numbers = self._numbers(step, self.group["lr"])
        if numbers is None or not self._kernel(True, False, *numbers, *self._before, *gradients, *self._after):
            return False
        for each in self._of_steps:
            each.fill(step)
        place = calling_place()
        note_changes(self._changed, place)
        note_changes(self._steps, place)
        return True


def _is_plain(option: Any) -> bool:
    return all(map(_is_plain, option)) if type(option) is tuple else type(option) in _PLAIN_OPTIONS


def _seen(optimizer: Any, group: dict[str, Any], conditions: list[str]) -> tuple[Any, Any, Any, list[Tensor]]:
    """The rule, the numbers and the lists of a group's update, and the tensors that count its steps."""
    seen = _Seen()
    counters = [each._counter for state in optimizer.state.values() for each in state.values() if _counts(each)]
    versions = [list(each) for each in counters]
    try:
        with recording(False), seen:
            optimizer._update({**group, "lr": Formula("lr", group["lr"], conditions)})
    except Exception as error:  # whatever it is, the step itself will say it again
        raise _Unprepared(str(error)) from None
    finally:
        for counter, version in zip(counters, versions, strict=True):
            counter[:] = version  # nothing has changed
    if any(not args[-1][0] for args in seen.updates):
        raise _Unprepared("a group without gradients")
    if len(seen.updates) != 1 or len(seen.advanced) > 1:
        raise _Unprepared("several updates, or none")
    rule, numbers, lists = seen.updates[0]
    if not seen.advanced:
        return rule, numbers, lists, []
    steps, values = seen.advanced[0]
    if numbers is not None and numbers != values:
        raise _Unprepared("a rule that knows more than the number of the step")
    return rule, numbers, lists, list(steps)


def _counts(value: Any) -> bool:
    return isinstance(value, Tensor) and value._counter is not None


class PreparedStep:
    """The next steps of an optimizer, without arguments.

    Which parameters a step updates depends on their gradients. Where there are none yet, as in a program that ends with
    `zero_grad`, the first step that finds some prepares the next ones.
    """

    def __init__(self, optimizer: Any, step: Callable[[Any], Any]) -> None:
        self._optimizer = optimizer
        self._step = step
        self._groups: list[_Group] | None = None
        self._is_plain = False
        """Whether the optimizer's own step has to run every time."""
        if self._has_gradients():
            self._prepare()

    def _has_gradients(self) -> bool:
        return any(each._grad is not None for group in self._optimizer.param_groups for each in group["params"])

    def _prepare(self) -> list[_Group]:
        optimizer = self._optimizer
        made = [_Group(optimizer, group) for group in optimizer.param_groups]
        self._attributes = list(vars(optimizer))
        self._state = optimizer.state
        self._states = list(optimizer.state.values())
        if not all(type(each) is dict for each in self._states):
            raise _Unprepared("states of a class of its own")
        self._lengths = list(map(len, self._states))
        self._contents = list(chain.from_iterable(map(dict.values, self._states)))
        self._groups = made
        return made

    def __call__(self) -> Any:
        found: list[tuple[_Group, Any]] | None = None
        try:
            found = None if self._is_plain else self._ready()
        except _Unprepared:
            self._is_plain = True
        except Exception as error:
            self._failed(error)
        if found is None:
            return self._step(self._optimizer)
        for group, given in found:
            is_done = False
            try:
                is_done = not self._is_plain and group.run(given)
            except Exception as error:  # before the kernel: behind it nothing can fail
                self._failed(error)
            if not is_done:
                with recording(False):
                    self._optimizer._update(group.group)
        return None

    def _ready(self) -> list[tuple[_Group, Any]] | None:
        """The groups with the arrays of their gradients; None: the optimizer's own step has to run."""
        if self._groups is None:
            if self._has_gradients():
                self._prepare()
            return None  # this step may still make what the next ones keep
        gradients: list[Any] = []
        if not self._holds(self._groups) or not all(group.holds(gradients) for group in self._groups):
            return None
        return list(zip(self._groups, gradients, strict=True))

    def _failed(self, error: Exception) -> None:
        """Let the optimizer's own step run from now on."""
        self._is_plain = True
        report_fault(f"a prepared step of {type(self._optimizer).__name__}", error)

    def _holds(self, known: list[_Group]) -> bool:
        """Whether the optimizer has the groups and states that it had, and no hooks."""
        optimizer = self._optimizer
        groups, state = optimizer.param_groups, optimizer.state
        return (
            state is self._state
            and len(groups) == len(known)
            and all(map(is_, groups, [each.group for each in known]))
            and len(state) == len(self._states)
            and all(map(is_, state.values(), self._states))
            and list(map(len, self._states)) == self._lengths
            and all(map(is_, chain.from_iterable(map(dict.values, self._states)), self._contents))
            and list(vars(optimizer)) == self._attributes
            and optimizer._has_no_step_hooks()
        )


def prepared_step(step: Callable[[Any], Any], optimizer: Any, closure: None = None) -> PreparedStep | None:
    """The step of an optimizer prepared; None: it is one of those that have to run as they stand."""
    if not vars(type(optimizer)).get("_can_prepare_step"):  # a subclass may have another rule
        return None
    if closure is not None or optimizer.defaults.get("differentiable") or not optimizer._has_no_step_hooks():
        return None
    try:
        return PreparedStep(optimizer, step)
    except _Unprepared:
        return None
