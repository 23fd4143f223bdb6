"""Where the first NaN comes from: `with flambeau.utils.nan_finder():` around a forward pass, or a whole step.

PyTorch's anomaly detection (`torch.autograd.detect_anomaly`) looks at gradients alone. This looks at every op.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._core.modes import THREAD
from .._core.process.caller import calling_place, describe_place
from .._core.tensor import Tensor
from .._dispatch.factory import Factory
from .._dispatch.interpreter import Interpreter
from .._dispatch.op import Op


class nan_finder(Interpreter):
    """A context in which the first op that makes a NaN out of arguments that have none raises a RuntimeError.

    The error says the op, the shapes of its arguments, the line of the program and, in a module, its path. Data that
    has NaN in it from the start is let through, and what is computed from it.

    >>> with flambeau.utils.nan_finder():  # doctest: +ELLIPSIS
    ...     flambeau.tensor([1.0, -1.0]).sqrt()
    Traceback (most recent call last):
    ...
    RuntimeError: sqrt made nan out of arguments without any: 1 of 2 elements of its result, ...
    """

    def run(self, op: Op, args: Sequence[Any]) -> Any:
        written = [args[position] for position in op.writes]
        had = [_count(each) for each in written]
        result = op(*args)
        if isinstance(op, Factory):  # data from outside, and memory that nobody wrote yet
            return result
        made = result if op.writes == () else [each for each, before in zip(written, had, strict=True) if not before]
        for tensor in _tensors(made):
            found = _count(tensor)
            if found and not any(_count(each) for each in _read(op, args)):
                raise RuntimeError(_report(op, args, tensor, found))
        return result


def _count(value: Any) -> int:
    """How many elements of a tensor, or of a list of them, are NaN."""
    total = 0
    for tensor in _tensors(value):
        kind = tensor._kind
        if not tensor._kind.dataless and (kind.dtype.is_floating_point or kind.dtype.is_complex):
            total += int(tensor.detach().isnan().sum())
    return total


def _read(op: Op, args: Sequence[Any]) -> list[Any]:
    return [each for position, each in enumerate(args) if position not in op.writes]


def _tensors(value: Any) -> list[Tensor]:
    if isinstance(value, Tensor):
        return [value]
    return [each for item in value for each in _tensors(item)] if type(value) in (list, tuple) else []


def _report(op: Op, args: Sequence[Any], result: Tensor, count: int) -> str:
    shapes = ", ".join(str(list(each.shape)) for each in _tensors(list(args))) or "none"
    during = " in a backward pass" if THREAD.modes.backward_pass is not None else ""
    return (
        f"{op.name} made nan out of arguments without any: {count} of {result.numel()} elements of its result, of "
        f"shape {list(result.shape)} from {shapes}{during}, at {describe_place(calling_place())}"
    )
