"""Ops that write into a copy of their first argument, such as `index_add`: their in-place forms write directly."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..._core.arrays.lazy_signs import content
from ..._core.backend import is_array, undispatched
from ..._core.device import contiguous_format
from ..._core.modes import THREAD
from ..._core.process.caller import warn_user
from ..._core.tensor import Tensor
from ..._dispatch.axes import Axes
from ..._dispatch.changes.history import end_change
from ..._dispatch.changes.inplace import (
    check_apart,
    check_no_overlap,
    check_partial_overlap,
    check_separate,
    check_writable,
    run_inplace,
    version_before,
)
from ..._dispatch.dispatch import Formula, Primitive, primitive
from ..._dispatch.interpreter import watched
from ..._dispatch.public.registry import public
from ..tensor.copy import copied

Write = Callable[..., None]

_may_share_memory = undispatched(np.may_share_memory)


def writing(
    node: str | None, axes: Axes | None = None, keeps_strides: bool = False, **formulas: Formula
) -> Callable[[Write], Primitive[..., Tensor]]:
    """Make a primitive of the decorated function, which changes the array `self` that it is given.

    The primitive works on a copy, which is contiguous unless it `keeps_strides`. `change` runs it on a tensor's own
    memory.
    """
    memory_format = None if keeps_strides else contiguous_format

    def decorate(write: Write) -> Primitive[..., Tensor]:
        @functools.wraps(write)
        def kernel(self: Any, *rest: Any) -> Any:
            result = copied(self, memory_format)
            write(result, *rest)
            return result

        make: Any = primitive  # its keywords are the names of tensors, beside a few of its own
        op: Primitive[..., Tensor] = make(node, axes=axes, **formulas)(kernel)
        op.write = write
        return op

    return decorate


def change(op: Any, name: str, target: Tensor, *args: Any) -> Tensor:
    """Run the writing primitive `op` on `target` itself."""
    modes = THREAD.modes
    if modes.watcher is not None:
        watched(op, (target, *args), modes, functools.partial(change, op, name))
        return target
    node_type = op.node_class
    reads_old_content = node_type is not None and ("self" in node_type.saved_names or "result" in node_type.saved_names)
    if target._kind not in modes.direct or target._kind.indirect or (modes.grad and reads_old_content):
        check_memory(name, target, args)
        return run_inplace(op, name, target, args, {})
    brings_grad = any([isinstance(each, Tensor) and each.requires_grad for each in args])  # noqa: C419 (few, quicker)
    check_writable(target, brings_grad)
    check_memory(name, target, args)
    recorded: Tensor | None = None
    if modes.grad and not modes.inference and (target.requires_grad or brings_grad):
        before = version_before(target, target._array, target._edge())
        recorded = Tensor._from_parts(target._parts())
        op.record((before, *args), [recorded])
    array = target._array
    op.write(array, *[_apart_from(array, each) for each in args])
    end_change(target, None if recorded is None else recorded._grad_fn)
    return target


_MASKED = ("masked_fill", "masked_scatter")
_WRITES_EXPANDED = ("index_fill", "index_put", "masked_fill")


def check_memory(name: str, target: Tensor, args: Sequence[Any]) -> None:
    """Refuse what would depend on the order of writing, as PyTorch does: of a few ops it only says that it will."""
    if 0 in target._array.strides:
        if name in _WRITES_EXPANDED:
            warn_if_expanded(name, target)
        else:
            check_no_overlap(target)
    if name in _MASKED:  # a mask may be the tensor itself, and what a mask lets through is read in order
        check_partial_overlap(target, args[0])
        return
    for each in args:
        if isinstance(each, Tensor):
            check_separate(target, each)
        elif isinstance(each, (list, tuple)):
            for array in each:
                if is_array(array):
                    check_apart(target._array, array)


def warn_if_expanded(name: str, target: Tensor) -> None:
    """Say that several elements of `target` are one place in memory."""
    array = target._array
    if any(step == 0 and size > 1 for step, size in zip(array.strides, array.shape, strict=True)):
        warn_user(
            f"Use of {name}_ on expanded tensors is deprecated: several elements of a tensor of shape "
            f"{list(array.shape)} and strides {list(target.stride())} are one memory location. Please clone() the "
            "tensor before performing this operation."
        )


def _apart_from(array: Any, value: Any) -> Any:
    """The array in `value`, copied if it lies in the memory that is about to change."""
    if not isinstance(value, Tensor):
        return value
    if value._kind.indirect:
        return content(value)
    given = value._array
    meet = _may_share_memory if type(given) is type(array) is np.ndarray else np.may_share_memory
    return given.copy() if meet(given, array) else given


def publish_change(op: Any, name: str, arguments: Callable[..., tuple[Any, ...]]) -> None:
    """Publish `name_`: `op` in place, with what `arguments` makes of the public function's arguments."""

    @functools.wraps(arguments)
    def inplace(input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        return change(op, name, input, *arguments(input, *args, **kwargs))

    inplace.__doc__ = f"In-place form of `{name}`."
    public(name=f"{name}_")(inplace)
