"""Copies, and changes that overwrite a whole tensor: clone, contiguous, copy_, fill_, zero_."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._backends.arrays import copy_into, store
from ..._core.arrays.abstract import empty_meta
from ..._core.arrays.lazy_signs import content
from ..._core.arrays.narrow import fill_with
from ..._core.arrays.quick import joint_shape
from ..._core.backend import LARGE, moved
from ..._core.device import contiguous_format
from ..._core.geometry.layout import empty_like, has_format, is_plain, strides_like
from ..._core.kind import kind_of
from ..._core.modes import THREAD
from ..._core.slots import SLOTS
from ..._core.storage import are_apart
from ..._core.tensor import DIRECT_TYPES, PLAIN_TYPES, Tensor, new_counter
from ..._core.version import note_change
from ..._dispatch.arguments.precision import no_gradient
from ..._dispatch.arguments.promotion import is_number
from ..._dispatch.arguments.scalar import fitting
from ..._dispatch.axes import ELEMENTS, ELEMENTS_OF_FIRST
from ..._dispatch.changes.history import end_change
from ..._dispatch.changes.inplace import check_apart, check_no_overlap, check_writable
from ..._dispatch.changes.storing import converts_by_itself, store_elements, store_number, write
from ..._dispatch.dispatch import Array, Primitive, after, note_traceback, primitive
from ..._dispatch.factory import constant, constant_beside
from ..._dispatch.public.overrides import has_override, run_override
from ..._dispatch.public.protocol import FLAGS, as_kind, explain
from ..._dispatch.public.registry import export, export_method, public

_MANY = 2**18
"""From so many elements on several threads copy sooner than one."""


def copied(array: Any, memory_format: Any = None, array_type: Any = None) -> Any:
    """A copy of `array` in memory of its own, in a memory format, as `array_type`."""
    array_type = array_type or array.dtype
    as_is = memory_format is None or memory_format is contiguous_format
    if as_is and array_type is array.dtype and array.size < _MANY and is_plain(array):
        return array.copy()
    if array.size >= (_MANY if array_type is array.dtype else LARGE):
        result = empty_like(array, memory_format, array_type)
        if not copy_into(result, array):
            write(result, array)
        return result
    if array.size and (array_type is array.dtype or converts_by_itself(array.dtype, array_type)):
        flags = array.flags
        if memory_format is None:
            if is_plain(array) or (flags.f_contiguous and 1 not in array.shape):
                return array.astype(array_type)  # dense: NumPy keeps the strides too
        elif memory_format is contiguous_format:
            return array.astype(array_type, "C")
    result = empty_like(array, memory_format, array_type)
    write(result, array)
    return result


@primitive("CloneBackward0", axes=ELEMENTS, self=lambda grad: grad)
def _clone(self: Array, memory_format: Any) -> Array:
    return copied(self, memory_format)


_clone.is_linear = True


def clone(input: Tensor, *, memory_format: Any = None) -> Tensor:
    """A copy with its own memory, connected in the graph."""
    if type(input) not in DIRECT_TYPES:
        if has_override((input,)):
            return run_override(clone, (input,), (input,), {"memory_format": memory_format})
        if not isinstance(input, Tensor):
            raise TypeError(f"clone(): argument 'input' (position 1) must be Tensor, not {type(input).__name__}")
    kind = input._kind
    if kind.dataless and not THREAD.modes.interpreters:
        array = input._array
        strides = tuple([step * array.itemsize for step in strides_like(array, memory_format)])
        return recorded(_clone, (input, memory_format), empty_meta(array.shape, array.dtype, strides), kind.plain)
    try:
        if kind.is_cpu and kind in THREAD.modes.direct and not input.requires_grad:
            return Tensor._from_parts((copied(input._array, memory_format), kind, new_counter()))
        return _clone(input, memory_format)
    except Exception as error:
        explain(error, "clone", {"input": input, "memory_format": memory_format})
        raise


export(clone, "clone")
export_method(clone, "clone")


def recorded(op: Primitive[..., Any], args: tuple[Any, ...], array: Any, kind: Any) -> Tensor:
    """A tensor over `array` as the result of `op`, recorded as such. For kernels that do not run as they are."""
    modes = THREAD.modes
    result = Tensor._from_parts((array, kind, new_counter()))
    if modes.grad and not modes.inference and args[0].requires_grad:
        op.record(args, [result])
    after(op, args, [result], modes)
    return result


@public(function=False)
def is_contiguous(input: Tensor, memory_format: Any = contiguous_format) -> bool:
    """Whether the elements lie in memory one after the other, in row-major order or that of another format."""
    if memory_format is contiguous_format:
        contiguous: bool = input._array.flags.c_contiguous
        return contiguous
    return has_format(input._array, memory_format)


@public(function=False)
def contiguous(input: Tensor, memory_format: Any = contiguous_format) -> Tensor:
    """The tensor itself if it is contiguous, else a contiguous copy."""
    if memory_format is contiguous_format and input._array.flags.c_contiguous:
        return input
    return input if has_format(input._array, memory_format) else clone(input, memory_format=memory_format)


@primitive("CopyBackwards", axes=ELEMENTS_OF_FIRST, self=no_gradient, src=lambda grad: grad)
def _copy(self: Array, src: Array) -> Array:
    result = np.empty_like(self)
    write(result, src)
    return result


@primitive("CopyBackwards", axes=ELEMENTS_OF_FIRST, self=no_gradient, src=lambda grad, source: grad.to(source))
def _copy_across(self: Array, src: Array, source: Any) -> Array:
    result = np.empty_like(self)
    write(result, src)
    return result


for _op in (_copy, _copy_across):
    setattr(_op.node_class, "name", lambda self: "torch::autograd::CopyBackwards")  # noqa: B010


@primitive("FillBackward0", axes=ELEMENTS, self=no_gradient)
def _filled_with_number(self: Array, value: Any) -> Array:
    return np.full_like(self, value)


@primitive("FillBackward1", axes=ELEMENTS_OF_FIRST, self=no_gradient, value=lambda grad: grad.sum())
def _filled_with_tensor(self: Array, value: Array) -> Array:
    return np.full_like(self, value.astype(self.dtype))


@primitive("FillBackward2", axes=ELEMENTS, self=no_gradient)
def _fill_number(self: Array, value: Any) -> Array:
    return np.full_like(self, value)


@primitive("FillBackward3", axes=ELEMENTS_OF_FIRST, self=no_gradient, value=lambda grad: grad.sum())
def _fill_tensor(self: Array, value: Array) -> Array:
    return np.full_like(self, value)


@primitive("ZeroBackward0", axes=ELEMENTS, self=no_gradient)
def _zero(self: Array) -> Array:
    return np.zeros_like(self)


def changed(target: Tensor, op: Primitive[..., Any], *args: Any) -> None:
    """After `target` was overwritten by `op(target, *args)`: count the change and record it."""
    modes = THREAD.modes
    if target._kind in modes.direct and not (
        target.requires_grad or (args and getattr(args[0], "requires_grad", False))
    ):
        end_change(target)
        return
    made_by: Any = None
    needs_grad = target.requires_grad or (len(args) > 0 and isinstance(args[0], Tensor) and args[0].requires_grad)
    if needs_grad and modes.grad and target._kind.differentiable and target._counter is not None:
        stand_in = Tensor._from_parts((target._array, target._kind, target._counter))
        op.record((target, *args), [stand_in])
        made_by = stand_in._grad_fn
    end_change(target, made_by)
    if modes.anomaly:
        note_traceback(target._grad_fn)
    if modes.forward_level >= 0 and op not in _COPIES:  # who copies takes the tangent of the source
        written = Tensor._from_parts((target._array, target._kind, target._counter))
        SLOTS.propagate_tangents(op, (target, *args), [written], modes.forward_level)
        SLOTS.adopt_tangent(target, written)


_COPIES = (_copy, _copy_across)


def quick_counter(target: Tensor) -> Any:
    """The version counter of a tensor that can be changed without more ado: on the CPU, no view, outside any graph."""
    if type(target) in PLAIN_TYPES and target._view is None and not target._requires_grad and target._kind.is_cpu:
        return target._counter if target._kind in THREAD.modes.direct else None
    return None


def copy_(input: Tensor, other: Tensor, non_blocking: bool = False) -> Tensor:
    """Overwrite the elements with those of `other`, which is converted and broadcast."""
    if type(non_blocking) not in FLAGS:
        as_kind("copy_", "non_blocking", non_blocking)
    counter = quick_counter(input)
    if counter is not None and type(other) in PLAIN_TYPES and other._kind is input._kind and not other.requires_grad:
        target = input._array
        source = other._array
        if target.shape == source.shape and 0 not in target.strides and are_apart(target, source):
            if not store(target, source):
                target[...] = source
            note_change(counter)
            return input
    if non_blocking and not input._kind.is_cpu and isinstance(other, Tensor) and other._kind.is_cpu:
        with input._kind.backend.without_waiting():
            return _copy_recorded(input, other)
    return _copy_recorded(input, other)


def _copy_recorded(input: Tensor, src: Any) -> Tensor:
    if not (type(input) in DIRECT_TYPES and type(src) in DIRECT_TYPES) and has_override((input, src)):
        return run_override(copy_, (input, src), (input, src), {})
    if not isinstance(src, Tensor):
        if not is_number(src):
            raise TypeError(f"copy_(): argument 'other' (position 1) must be Tensor, not {type(src).__name__}")
        src = constant_beside(np.asarray(src), input)
    check_writable(input, src.requires_grad)
    if THREAD.modes.grad:
        src._edge()  # a view that cannot be connected to its changed base must fail before anything is written
    target, source = input._array, src._array
    if target.shape != source.shape:
        check_broadcast(target.shape, source.shape)
    if 0 in target.strides and src is not input:
        check_no_overlap(input)
    check_apart(target, source, but_same=True)
    if not input._kind.dataless and src._kind.dataless:
        raise NotImplementedError("Cannot copy out of meta tensor; no data!")
    if not input._kind.dataless or THREAD.modes.interpreters:  # who writes ops down has to see this one
        store_elements(input, src if src._kind.backend is input._kind.backend else _beside(src, input))
    if src._kind.device is input._kind.device:
        changed(input, _copy, src)
    else:
        changed(input, _copy_across, src, src._kind.device)
    if THREAD.modes.forward_level >= 0:
        SLOTS.adopt_tangent(input, src)
    return input


def _beside(src: Tensor, target: Tensor) -> Tensor:
    """A copy of a tensor of another type of device."""
    return constant(moved(content(src), target._kind.backend), kind_of(src._kind.dtype, target._kind.device))


def check_broadcast(target: tuple[int, ...], source: tuple[int, ...]) -> None:
    """Refuse a source that does not broadcast to the shape of the tensor that it is written to."""
    for dim in range(1, min(len(target), len(source)) + 1):
        a, b = target[-dim], source[-dim]
        if a != b and b != 1 and a != 1:
            raise RuntimeError(
                f"The size of tensor a ({a}) must match the size of tensor b ({b}) at non-singleton dimension "
                f"{max(len(target), len(source)) - dim}: copy_ cannot store shape {list(source)} in {list(target)}"
            )
    shape = joint_shape(target, source)
    if shape != target:
        raise RuntimeError(
            f"output with shape {list(target)} doesn't match the broadcast shape {list(shape)}: copy_ cannot change "
            "the shape of the tensor that it writes to"
        )


def _check_fill_tensor(value: Tensor) -> None:
    if value._array.ndim:
        raise RuntimeError(
            f"fill_ only supports 0-dimension value tensor but got tensor with {value._array.ndim} dimensions."
        )


def _fill_elements(target: Tensor, number: Any) -> None:
    if target._kind.plain is not target._kind:
        check_no_overlap(target)  # as in PyTorch, which fills a copy and copies it back
    store_number(target, number)


def _fill_elements_with(target: Tensor, value: Tensor) -> None:
    watched = bool(THREAD.modes.interpreters)
    if not watched and not (target._kind.dataless and value._kind.dataless):
        _fill_elements(target, value.to(target._kind.dtype).item())
        return
    if target._kind.plain is not target._kind:
        check_no_overlap(target)
    if watched:  # a number that is read here would be a constant of the program that is written down
        store_elements(target, value)


@public()
def fill_(input: Tensor, value: Any) -> Tensor:
    """Set every element to `value`, a number or a 0-d tensor."""
    if isinstance(value, Tensor):
        _check_fill_tensor(value)
        check_writable(input, value.requires_grad)
        value._edge()  # as in copy_
        _fill_elements_with(input, value)
        changed(input, _fill_tensor, value)
        return input
    if type(value) is not float and not is_number(value):
        raise TypeError(f"fill_() received an invalid combination of arguments: {type(value).__name__} is no number")
    check_writable(input)
    number = fitting(value, input._kind.dtype)
    _fill_elements(input, number)
    changed(input, _fill_number, value)
    return input


@public(method=False)
def fill(input: Tensor, value: Any) -> Tensor:
    """A tensor like `input` with every element set to `value`."""
    if isinstance(value, Tensor):
        _check_fill_tensor(value)
        return _filled_with_tensor(input, value)
    return _filled_with_number(input, fitting(value, input._kind.dtype))


def zero_(input: Tensor) -> Tensor:
    """Set every element to zero."""
    counter = quick_counter(input)
    if counter is not None and not input._kind.indirect:
        fill_with(input._array, 0)
        note_change(counter)
        return input
    if type(input) not in DIRECT_TYPES and has_override((input,)):
        return run_override(zero_, (input,), (input,), {})
    if not isinstance(input, Tensor):
        raise TypeError(f"zero_(): argument 'input' (position 1) must be Tensor, not {type(input).__name__}")
    check_writable(input)
    _fill_elements(input, 0)
    changed(input, _zero)
    return input


export_method(copy_, "copy_")
export_method(zero_, "zero_")
export(zero_, "zero_")
