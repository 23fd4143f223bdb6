"""Tensors from what a pickle says of them: the counterparts of the functions that files of PyTorch name.

Nothing here trusts its arguments. Sizes, strides and offsets are checked against the storage before any memory is
looked at, and the same functions serve the safe machine and Python's own pickle.
"""

from __future__ import annotations

import contextlib
import math
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .._core.arrays.lazy_signs import marked
from .._core.device import CPU, LAYOUTS, META, device, layout
from .._core.dtype import dtype, int32, int64
from .._core.pickling import rebuild_subclass
from .._core.pickling import rebuild_tensor as tensor_over
from .._core.storage import UntypedStorage, needed_bytes
from .._core.tensor import Tensor
from .._core.typed_storage import TypedStorage
from .byteorder import swap_if_pending

_MOST_DIMENSIONS = 64
_MOST_ELEMENTS = 2**63


def _sizes(value: Any, what: str) -> tuple[int, ...]:
    if not isinstance(value, (tuple, list)) or not all(type(each) is int for each in value):
        raise RuntimeError(f"the {what} of a saved tensor must be a tuple of ints: the file is corrupt")
    if len(value) > _MOST_DIMENSIONS or any(not 0 <= each < _MOST_ELEMENTS for each in value):
        raise RuntimeError(f"the {what} of a saved tensor is out of range: the file is corrupt")
    return tuple(value)


def _element(value: Any) -> dtype:
    if not isinstance(value, dtype):
        raise RuntimeError(f"a saved tensor has a {type(value).__name__} for a dtype: the file is corrupt")
    return value


def window_on(
    storage: UntypedStorage, element: dtype, offset: Any, size: Any, stride: Any, requires_grad: Any = False
) -> Tensor:
    """A tensor over part of a storage, after every check."""
    shape, strides = _sizes(size, "size"), _sizes(stride, "stride")
    (start,) = _sizes((offset,), "storage offset")
    if len(shape) != len(strides):
        raise RuntimeError(f"mismatch in length of strides and shape: {list(strides)} and {list(shape)}")
    if math.prod(each or 1 for each in shape) >= _MOST_ELEMENTS:
        raise RuntimeError(f"a saved tensor of size {list(shape)} has too many elements: the file is corrupt")
    item = element.itemsize
    needed = needed_bytes(shape, tuple(step * item for step in strides), start * item, item)
    if needed > storage.nbytes():
        raise RuntimeError(
            f"setStorage: sizes {list(shape)}, strides {list(strides)}, storage offset {start}, and itemsize {item} "
            f"requiring a storage size of {needed} are out of bounds for storage of size {storage.nbytes()}"
        )
    if requires_grad and not (element.is_floating_point or element.is_complex):
        raise RuntimeError(f"a saved tensor of {element} cannot require gradients: the file is corrupt")
    return tensor_over(storage, element, (start, shape, strides), bool(requires_grad))


def _untyped(storage: Any) -> UntypedStorage:
    if isinstance(storage, TypedStorage):
        return storage._untyped()
    if isinstance(storage, UntypedStorage):
        return storage
    raise RuntimeError(f"a saved tensor has a {type(storage).__name__} for a storage: the file is corrupt")


def rebuild_tensor(storage: Any, storage_offset: Any, size: Any, stride: Any) -> Tensor:
    """The form of PyTorch 0.1 to 0.3."""
    if not isinstance(storage, TypedStorage):
        raise RuntimeError(f"a saved tensor needs a typed storage, not {type(storage).__name__}: the file is corrupt")
    return window_on(_untyped(storage), storage.dtype, storage_offset, size, stride)


def rebuild_tensor_v2(
    storage: Any,
    storage_offset: Any,
    size: Any,
    stride: Any,
    requires_grad: Any,
    backward_hooks: Any,
    metadata: Any = None,
) -> Tensor:
    """The form of all PyTorch since 0.4, for dtypes that have a storage class."""
    tensor = rebuild_tensor(storage, storage_offset, size, stride)
    return _finished(tensor, requires_grad, metadata)


def rebuild_tensor_v3(
    storage: Any,
    storage_offset: Any,
    size: Any,
    stride: Any,
    requires_grad: Any,
    backward_hooks: Any,
    element: Any,
    metadata: Any = None,
) -> Tensor:
    """The form for dtypes without a storage class: the tensor says its dtype itself."""
    memory = _untyped(storage)
    swap_if_pending(memory, _element(element))
    tensor = window_on(memory, element, storage_offset, size, stride)
    return _finished(tensor, requires_grad, metadata)


def _finished(tensor: Tensor, requires_grad: Any, metadata: Any) -> Tensor:
    """Apply what PyTorch keeps beside the data: signs that are still to be taken."""
    if isinstance(metadata, dict):
        conj, neg = metadata.get("conj") is True, metadata.get("neg") is True
        if conj and not tensor._kind.dtype.is_complex:
            raise RuntimeError(f"a saved tensor of {tensor.dtype} cannot be a conjugate: the file is corrupt")
        tensor._kind = marked(tensor._kind, conj, neg)
    if requires_grad:
        tensor.requires_grad_(True)
    return tensor


class _Later(threading.local):
    actions: list[Callable[[], None]] | None = None


_LATER = _Later()


@contextlib.contextmanager
def data_comes_later() -> Iterator[None]:
    """In this block storages are still empty: what is computed from their contents is computed when it ends."""
    before, actions = _LATER.actions, list[Callable[[], None]]()
    _LATER.actions = actions
    try:
        yield
        for action in actions:
            action()
    finally:
        _LATER.actions = before


def rebuild_meta_tensor(element: Any, size: Any, stride: Any, requires_grad: Any) -> Tensor:
    """A tensor without data."""
    shape, strides = _sizes(size, "size"), _sizes(stride, "stride")
    item = _element(element).itemsize
    if len(shape) != len(strides) or math.prod(each or 1 for each in shape) >= _MOST_ELEMENTS // 16:
        raise RuntimeError(f"a saved meta tensor of size {list(shape)} is impossible: the file is corrupt")
    extent = needed_bytes(shape, tuple(step * item for step in strides), 0, item)
    return window_on(UntypedStorage(extent, device=META), element, 0, shape, strides, requires_grad)


def rebuild_parameter(data: Any, requires_grad: Any, backward_hooks: Any) -> Tensor:
    """A parameter over `data`."""
    from ..nn.parameter import Parameter

    if not isinstance(data, Tensor):
        raise RuntimeError(f"a saved parameter holds a {type(data).__name__}, not a tensor: the file is corrupt")
    if requires_grad and not data._kind.differentiable:
        raise RuntimeError(f"a saved parameter of {data.dtype} cannot require gradients: the file is corrupt")
    return Parameter(data.detach() if data.requires_grad else data, bool(requires_grad))


def rebuild_parameter_with_state(data: Any, requires_grad: Any, backward_hooks: Any, state: Any) -> Tensor:
    """A parameter with the attributes that users hung on it."""
    parameter = rebuild_parameter(data, requires_grad, backward_hooks)
    give_attributes(parameter, state)
    return parameter


def rebuild_from_type_v2(function: Any, cls: Any, arguments: Any, state: Any) -> Any:
    """A tensor of a subclass, or one with attributes."""
    if not (isinstance(cls, type) and issubclass(cls, Tensor)):
        raise RuntimeError("a saved tensor's class is no class of tensors: the file is corrupt")
    tensor = function(*arguments)
    if cls is not Tensor and type(tensor) is not cls:
        tensor = rebuild_subclass(cls, tensor, {})
    restore = getattr(cls, "__setstate__", None)
    if restore is not None and restore is not getattr(Tensor, "__setstate__", None):
        restore(tensor, state)
    elif state:
        give_attributes(tensor, state[0] if isinstance(state, tuple) and state else state)
    return tensor


def rebuild_from_type(function: Any, cls: Any, arguments: Any, state: Any) -> Any:
    """The form of PyTorch 1.7 to 1.10."""
    return rebuild_from_type_v2(function, cls, arguments, state)


def rebuild_quantized(
    storage: Any, storage_offset: Any, size: Any, stride: Any, meaning: Any, requires_grad: Any, backward_hooks: Any
) -> Tensor:
    """A quantized tensor: codes in a typed storage, and what they mean."""
    from .._core import quantized
    from .._core.qscheme import qscheme

    plain = rebuild_tensor(storage, storage_offset, size, stride)
    if plain.dtype not in quantized.FROM_CODES.values() or not isinstance(meaning, tuple) or len(meaning) not in (3, 4):
        raise RuntimeError(f"a saved quantized tensor of {plain.dtype} lacks its scale: the file is corrupt")
    scheme, scale, zero_point, *axis = meaning
    if len(meaning) == 3 and type(scale) is float and type(zero_point) is int:
        own = quantized.per_tensor(scale, zero_point)
    elif len(meaning) == 4 and type(scale) is type(zero_point) is Tensor and axis[0] in range(plain.dim()):
        if scale.shape != zero_point.shape or scale.numel() != plain.shape[axis[0]]:
            raise RuntimeError("a saved quantized tensor has too few scales: the file is corrupt")
        own = quantized.per_channel(scale._array, zero_point._array, axis[0])
    else:
        raise RuntimeError("a saved quantized tensor has no scale of a known kind: the file is corrupt")
    if isinstance(scheme, qscheme):
        own = own._replace(scheme=scheme)
    return quantized.quantized_from_parts(plain._parts(), own)


def rebuild_sparse(kept_as: Any, parts: Any) -> Tensor:
    """A sparse tensor from the tensors of its places and values, its size and, by coordinates, whether it is coalesced.

    Places outside of the tensor are refused.
    """
    from .._core.arrays.sparse import COMPRESSED, COO
    from .._core.sparse import rebuild_sparse
    from .._ops.sparse.checks import check_sparse

    if kept_as is not COO and kept_as not in COMPRESSED:
        raise RuntimeError(f"the file has a sparse tensor of layout {kept_as}, which Flambeau does not have")
    count = 2 if kept_as is COO else 3
    if (
        type(parts) is not tuple
        or len(parts) not in (count + 1, count + 2)
        or any(type(each) is not Tensor or each.device is not CPU for each in parts[:count])
        or any(each.dtype not in (int32, int64) for each in parts[: count - 1])
    ):
        raise RuntimeError("a saved sparse tensor lacks some of its parts: the file is corrupt")
    flag = (bool(parts[3:] and parts[3]),) if kept_as is COO else ()
    made = rebuild_sparse(kept_as, (*parts[:count], _sizes(parts[count], "size"), *flag))
    if _LATER.actions is None:
        check_sparse(made)
    else:
        _LATER.actions.append(lambda: check_sparse(made))
    return made


def rebuild_from_numpy(array: Any, element: Any, place: Any, requires_grad: Any) -> Tensor:
    """A tensor of a device that PyTorch saves by way of NumPy."""
    from .._ops.create.constants import from_numpy

    if not isinstance(array, np.ndarray):
        raise RuntimeError("a tensor saved as an array has none: the file is corrupt")
    tensor = from_numpy(array.copy()).to(_element(element))
    return tensor.requires_grad_(bool(requires_grad))


def rebuild_from_cpu_tensor(data: Any, element: Any, place: Any, requires_grad: Any) -> Tensor:
    """A tensor of a device that PyTorch saves by way of the CPU."""
    if not isinstance(data, Tensor):
        raise RuntimeError("a tensor saved by way of the CPU has no data: the file is corrupt")
    return data.to(_element(element)).detach().requires_grad_(bool(requires_grad))


def give_attributes(tensor: Any, state: Any) -> None:
    """Hang attributes on an object."""
    if not isinstance(state, dict) or not all(type(key) is str for key in state):
        raise RuntimeError(f"the state of a saved {type(tensor).__name__} must be a dict of attributes")
    vars(tensor).update(state)


def layout_named(name: Any) -> layout:
    """`torch.strided` and its kin by name."""
    found = LAYOUTS.get(name.removeprefix("torch.")) if isinstance(name, str) else None
    if found is None:
        raise RuntimeError("a saved layout has an unknown name: the file is corrupt")
    return found


def restore_tensor(tensor: Any, state: Any) -> None:
    """Give a tensor its pickled state: attributes, (storage, offset, size, stride), or the flags of a Variable."""
    if isinstance(state, dict):
        give_attributes(tensor, state)
    elif isinstance(state, tuple) and len(state) == 4 and isinstance(state[0], TypedStorage):
        storage, offset, size, stride = state
        tensor.data = rebuild_tensor(storage, offset, size, stride)
    elif isinstance(state, tuple) and len(state) == 3:
        tensor.requires_grad_(bool(state[0]))
    elif isinstance(state, tuple) and len(state) == 5 and isinstance(state[0], Tensor):
        tensor.data = state[0]
        tensor.requires_grad_(bool(state[3]))
    else:
        raise RuntimeError("the state of a saved tensor has no known form: the file is corrupt")


def restore_generator(generator: Any, state: Any) -> None:
    """Give a random generator its pickled state: seed, offset, and the state tensor."""
    if not (isinstance(state, tuple) and len(state) == 3 and isinstance(state[2], Tensor)):
        raise RuntimeError("the state of a saved generator must be (seed, offset, state): the file is corrupt")
    generator.set_state(state[2])


def variable(data: Any = None, requires_grad: Any = False, volatile: Any = False) -> Tensor:
    """`torch.autograd.Variable` of the years when tensors were no variables."""
    if not isinstance(data, Tensor):
        raise RuntimeError("a saved Variable has no tensor: the file is corrupt")
    return data.requires_grad_(bool(requires_grad)) if requires_grad else data


def make_device(*arguments: Any) -> device:
    """A device by its type and ordinal."""
    if not all(type(each) in (str, int) for each in arguments) or not 1 <= len(arguments) <= 2:
        raise RuntimeError("a saved device must be a type and an ordinal: the file is corrupt")
    return device(*arguments)


def old_backend() -> None:
    """What modules of PyTorch 0.1 to 1.1 kept as `_backend`."""
