"""Composite ops: ops that are written in other ops, and that a backend may run as one.

    @composite("layer_norm_backward")
    def layer_norm_backward(grads, needed, input, ...):
        ...

The decorated function is the decomposition, on tensors. It runs where the call is recorded, so that derivatives of
every order follow from its parts, and where no backend has a lowering. To interpreters the op is one, whichever runs:
a watched run and a plain one are the same program.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, ParamSpec, TypeVar

from .._core.dtype import float32, float64
from .._core.modes import THREAD
from .._core.tensor import PLAIN_TYPES, Tensor
from .call.results import any_needs_gradient, fresh
from .interpreter import interpret
from .op import Kernel, Op, parameter_names

P = ParamSpec("P")
Result = TypeVar("Result")
"""What a composite returns: a tensor, or several."""


class Composite(Op, Generic[P, Result]):
    """An op with a decomposition; its kernel says by None that it has to be taken apart."""

    decomposition: Callable[P, Result]

    def __init__(self, name: str, decomposition: Callable[P, Result], kernel: Kernel) -> None:
        self.enter(name)
        self.decomposition = self.__wrapped__ = decomposition
        self.kernel = kernel
        self.parameters = parameter_names(decomposition)
        self.__doc__ = decomposition.__doc__

    def __call__(self, *args: P.args, **named: P.kwargs) -> Result:
        if named:
            raise TypeError(f"{self.name}() takes its arguments by position, not {', '.join(named)} by name")
        results: Result
        modes = THREAD.modes
        if modes.grad or not modes.plain:
            tensors = self.tensors_of(args)
            if (modes.grad and any_needs_gradient(tensors)) or modes.forward_level >= 0:
                return self.decomposition(*args, **named)
            if modes.interpreters:
                results = interpret(self, args, modes)
                return results
        made = self.as_one(args)
        return self.decomposition(*args, **named) if made is None else made

    def as_one(self, args: Any) -> Result | None:
        """What a backend makes of arguments; None: the op has to be taken apart."""
        arrays: list[Any] = []
        first = _take_arrays(args, arrays, None)
        if first is None:
            return None
        kind = first._kind
        done = (kind.runs.get(self) or kind.backend.prepare(self))(*arrays)
        if done is None:
            return None
        made: Any
        if type(done) is tuple or type(done) is list:
            made = [None if each is None else fresh(each, first) for each in done]
        else:
            made = fresh(done, first)
        results: Result = made
        return results

    def tensors_of(self, args: Any) -> list[Tensor]:
        found: list[Tensor] = []
        for each in args:
            if isinstance(each, Tensor):
                found.append(each)
            elif type(each) is list:
                found += [item for item in each if isinstance(item, Tensor)]
        return found


def _nothing(*args: Any) -> None:
    """The kernel of an op that has none."""


_SINGLE_AND_DOUBLE = (float32.numpy, float64.numpy)


def _on_single_and_double(formula: Callable[..., Any]) -> Kernel:
    """A joint formula as a kernel: narrower floats are computed in float32, by tensors alone."""

    def kernel(grads: list[Any], needed: tuple[bool, ...], *saved: Any) -> Any:
        if grads[0] is None or any(each is not None for each in grads[1:]):
            return None
        for each in (grads[0], *saved):
            if hasattr(each, "dtype") and each.dtype not in _SINGLE_AND_DOUBLE:
                return None
        return formula(grads, needed, *saved)

    return kernel


_WITHOUT_TENSORS = frozenset((type(None), bool, int, float, tuple))


def _take_arrays(values: Any, arrays: list[Any], first: Tensor | None) -> Tensor | None:
    """Append to `arrays` what a kernel is given for `values`; the first tensor among them, None if no kernel fits."""
    known = None if first is None else first._kind
    for each in values:
        own_type = type(each)
        if own_type in PLAIN_TYPES:
            kind = each._kind
            if kind is not known:
                if kind.indirect:
                    return None
                if first is None:
                    first = each
                elif kind.device is not first._kind.device:
                    return None
                known = kind
            arrays.append(each._array)
        elif own_type in _WITHOUT_TENSORS:
            arrays.append(each)
        elif own_type is list:
            inner: list[Any] = []
            found = _take_arrays(each, inner, first)
            if found is not None:
                first = found
            elif any(isinstance(item, Tensor) for item in each):
                return None
            arrays.append(inner)
        elif isinstance(each, Tensor):
            return None
        else:
            arrays.append(each)
    return first


def composite(name: str, kernel: Kernel | None = None) -> Callable[[Callable[P, Result]], Composite[P, Result]]:
    """Make the decorated decomposition the op `name`; `kernel` is a shorter way on arrays, where that can do it."""
    return lambda decomposition: Composite(name, decomposition, kernel or _nothing)


def derivative(name: str) -> Callable[[Callable[P, Result]], Composite[P, Result]]:
    """Make a joint formula, `(grads, needed, *saved)`, the op `name`.

    It is so written that its steps may be taken on arrays as well as on tensors: that is shorter where nobody has a
    lowering, and the first result alone has a gradient.
    """
    return lambda formula: Composite(name, formula, _on_single_and_double(formula))
