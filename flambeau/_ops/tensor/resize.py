"""Storages from the tensor's side: `storage`, `set_`, `resize_`, shared and pinned memory."""

from __future__ import annotations

from typing import Any

from ..._core.arrays.abstract import empty_meta
from ..._core.arrays.lazy_signs import content
from ..._core.backend import is_installed
from ..._core.device import contiguous_format, preserve_format, usable_device
from ..._core.dtype import LEGACY_NAMES
from ..._core.geometry.layout import channels_last_strides
from ..._core.modes import THREAD
from ..._core.process.caller import warn_user_once
from ..._core.process.determinism import DETERMINISM, fill_unwritten
from ..._core.size import contiguous_strides
from ..._core.slots import SLOTS
from ..._core.storage import UntypedStorage, needed_bytes, owner_of, storage_of, window
from ..._core.tensor import Tensor, new_counter
from ..._core.typed_storage import TypedStorage
from ..._core.version import share_memory
from ..._dispatch.changes.history import end_change
from ..._dispatch.changes.inplace import check_writable
from ..._dispatch.changes.out import has_tangent
from ..._dispatch.public.registry import export_method, public
from ..shape.view import as_shape


def typed_storage(input: Tensor) -> TypedStorage:
    """The memory under the tensor as elements of its dtype."""
    return TypedStorage(wrap_storage=storage_of(input._array, input._kind.device), dtype=input.dtype)


export_method(typed_storage, "_typed_storage")


@public(function=False)
def storage(input: Tensor) -> TypedStorage:
    """The memory under the tensor as elements of its dtype; `untyped_storage` is the newer way."""
    warn_user_once("TypedStorage is deprecated. It will be removed in the future: use tensor.untyped_storage().")
    return typed_storage(input)


def _placed(
    input: Tensor, memory: UntypedStorage, offset: int, shape: tuple[int, ...], strides: tuple[int, ...]
) -> Any:
    """A window on `memory`, which grows if it is too small; offset and strides count elements."""
    array_type = input._kind.dtype.numpy
    item = array_type.itemsize
    steps = tuple([step * item for step in strides])
    needed = needed_bytes(shape, steps, offset * item, item)
    if needed > memory.nbytes():
        memory.resized_for(input, needed)
    if memory.device.dataless:
        return empty_meta(shape, array_type, steps)
    return window(memory.bytes(), shape, array_type, offset * item, steps)


@public(function=False)
def set_(input: Tensor, source: Any = None, storage_offset: int = 0, size: Any = None, stride: Any = None) -> Tensor:
    """Make the tensor a window on other memory: a storage's, or another tensor's."""
    if any(has_tangent(each) for each in (input, source) if isinstance(each, Tensor)):
        raise NotImplementedError(
            "Trying to use forward AD with set_ that does not support it because it has not been implemented yet: a "
            "tangent does not follow its tensor to other memory. Leave the dual level, or use copy_"
        )
    check_writable(input)
    if source is None:
        source = UntypedStorage(0, device=input._kind.device)
        size = (0,)
    if isinstance(source, Tensor):
        if source.dtype is not input.dtype:
            raise RuntimeError(
                f"Could not set tensor of type {LEGACY_NAMES[source.dtype]} to a tensor of type "
                f"{LEGACY_NAMES[input.dtype]}"
            )
        if source.layout is not input.layout:
            raise NotImplementedError(
                f"Could not run 'aten::set_' with a source of layout {source.layout}: the tensor is {input.layout}"
            )
        if size is None:
            input._array = source._array
            share_memory(input._counter, source._counter)
            end_change(input)
            return input
        source = storage_of(source._array, source._kind.device)
    elif not isinstance(source, (UntypedStorage, TypedStorage)):
        raise TypeError(
            f"set_(): argument 'source' (position 1) must be Tensor or storage, not {type(source).__name__}"
        )
    memory: UntypedStorage = source.untyped()
    if size is None:
        size = (memory.nbytes() // input.dtype.itemsize,)
    shape = as_shape((size,))
    strides = contiguous_strides(shape) if stride is None else as_shape((stride,))
    if storage_offset < 0:
        raise RuntimeError(f"Tensor: invalid storage offset {storage_offset}")
    if len(shape) != len(strides):
        raise RuntimeError(f"unequal size length ({len(shape)}) and stride length ({len(strides)})")
    if min(strides, default=0) < 0 or min(shape, default=0) < 0:
        raise RuntimeError(
            f"Storage size calculation overflowed with sizes={list(shape)} and strides={list(strides)}: "
            "neither may be negative"
        )
    input._array = _placed(input, memory, storage_offset, shape, strides)
    end_change(input)
    return input


@public(function=False)
def resize_(input: Tensor, *size: Any, memory_format: Any = None) -> Tensor:
    """Change the size in place; the storage grows if it has to, and elements beyond the old ones are uninitialised."""
    if input.requires_grad and not THREAD.modes.inference:
        raise RuntimeError("cannot resize variables that require grad: detach the tensor first, or make a new one")
    if has_tangent(input):
        raise RuntimeError("cannot resize variables that has a forward grad: use the primal, or make a new tensor")
    check_writable(input)
    if not size:
        raise TypeError('resize_() missing 1 required positional arguments: "size". A tensor without dimensions has ()')
    shape = as_shape(size)
    if min(shape, default=0) < 0:
        raise RuntimeError(f"numel: integer multiplication overflow, or a negative size: {list(shape)}")
    if memory_format is preserve_format:
        raise RuntimeError("Unsupported memory format Preserve: resize_ has nothing to preserve it from")
    if input._is_wrapper:
        input._resize(shape)
        return input
    contiguous = memory_format in (None, contiguous_format)
    if shape != input._array.shape or not contiguous:
        strides = contiguous_strides(shape) if contiguous else channels_last_strides(shape, memory_format)
        memory = storage_of(input._array, input._kind.device)
        before = memory.nbytes()
        input._array = _placed(input, memory, _offset(input), shape, strides)
        if DETERMINISM.fills and memory.nbytes() > before and not memory.device.dataless:
            _fill_from(memory, before, input._array.dtype)
    end_change(input)
    return input


def _fill_from(memory: UntypedStorage, start: int, array_type: Any) -> None:
    """Fill what a storage has from byte `start` on."""
    first = -(-start // array_type.itemsize)
    count = memory.nbytes() // array_type.itemsize - first
    fill_unwritten(window(memory.bytes(), (count,), array_type, first * array_type.itemsize, (array_type.itemsize,)))


def _offset(input: Tensor) -> int:
    if input._kind.dataless or owner_of(input._array) is input._array:
        return 0
    return input.storage_offset()


@public()
def resize_as_(input: Tensor, the_template: Tensor, *, memory_format: Any = None) -> Tensor:
    """`resize_` to the size of another tensor."""
    wanted = contiguous_format if memory_format in (None, preserve_format) else memory_format
    return resize_(input, the_template._array.shape, memory_format=wanted)


@public(function=False)
def share_memory_(input: Tensor) -> Tensor:
    """Move the storage to memory that other processes can see: see `multiprocessing`."""
    memory = storage_of(input._array, input._kind.device)
    if not memory.is_shared():
        offset, shape, strides = _offset(input), tuple(input._array.shape), input._array.strides
        memory.shared_for(input)
        if memory.is_shared():
            array_type = input._kind.dtype.numpy
            input._array = window(memory.bytes(), shape, array_type, offset * array_type.itemsize, strides)
    return input


@public(function=False)
def is_shared(input: Tensor) -> bool:
    """Whether `share_memory_` was called on the tensor's storage."""
    return storage_of(input._array, input._kind.device).is_shared()


@public(function=False)
def is_pinned(input: Tensor, device: Any = None) -> bool:
    """Whether the memory is page-locked for an accelerator."""
    return input._kind.is_cpu and is_installed("cuda") and bool(SLOTS.is_pinned(input._array))


@public(function=False)
def pin_memory(input: Tensor, device: Any = None) -> Tensor:
    """A copy in page-locked memory, from which an accelerator copies by itself; the tensor itself if it is there."""
    if not input._kind.is_cpu:
        raise RuntimeError(f"cannot pin '{input._kind.legacy_name}' only dense CPU tensors can be pinned")
    try:
        usable_device("cuda")
    except AssertionError:
        raise RuntimeError(
            "Cannot access accelerator device when none is available: only an accelerator can pin memory."
        ) from None
    if is_pinned(input):
        return input
    return Tensor._from_parts((SLOTS.pinned_copy(content(input)), input._kind.plain, new_counter()))


@public(function=False)
def is_set_to(input: Tensor, tensor: Tensor) -> bool:
    """Whether both tensors are the same window on the same storage."""
    left, right = input._array, tensor._array
    if input._kind.plain is not input._kind or tensor._kind.plain is not tensor._kind:
        return False  # PyTorch looks at their elements then, which have memory of their own
    same_window = left.shape == right.shape and left.strides == right.strides
    return same_window and owner_of(left) is owner_of(right) and _offset(input) == _offset(tensor)
