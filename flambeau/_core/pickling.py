"""Copies and pickles of tensors.

A tensor is pickled as a storage and a window on it, so tensors that share memory share it again when they are loaded.
The graph and the gradient stay behind.
"""

from __future__ import annotations

import copy
import warnings
from typing import Any

from .arrays.abstract import empty_meta
from .arrays.lazy_signs import LazyKind, marked
from .dtype import dtype
from .kind import kind_of
from .slots import SLOTS
from .storage import UntypedStorage, owner_of, window
from .subclasses import retype
from .tensor import Tensor, new_counter

Geometry = tuple[int, tuple[int, ...], tuple[int, ...]]
"""Offset, shape and strides in elements."""


def _geometry(tensor: Tensor) -> Geometry:
    array = tensor._array
    offset = 0 if tensor._kind.dataless or owner_of(array) is array else tensor.storage_offset()
    return offset, tuple(array.shape), tensor.stride()


def rebuild_tensor(
    storage: UntypedStorage,
    element: dtype,
    geometry: Geometry,
    requires_grad: bool,
    conj: bool = False,
    neg: bool = False,
) -> Tensor:
    """A leaf that is a window on `storage`, with signs that are still to be taken."""
    offset, shape, strides = geometry
    item = element.itemsize
    steps = tuple([step * item for step in strides])
    if storage.device.dataless:
        array = empty_meta(shape, element.numpy, steps)
    else:
        array = window(storage.bytes(), shape, element.numpy, offset * item, steps)
    tensor = Tensor._from_parts((array, marked(kind_of(element, storage.device), conj, neg), new_counter()))
    tensor._requires_grad = requires_grad
    return tensor


def rebuild_subclass(cls: type, tensor: Tensor, state: dict[str, Any]) -> Any:
    """`tensor` as an instance of `cls`, with the attributes that users hung on it."""
    if cls is not Tensor:
        tensor = retype(tensor, cls)
    restore = getattr(cls, "__setstate__", None)
    if restore is not None and restore is not Tensor.__setstate__:
        restore(tensor, state)
    else:
        vars(tensor).update(state)
    return tensor


def reduce_tensor(tensor: Tensor, protocol: Any = 2) -> tuple[Any, ...]:
    """How to make this tensor again: pickle's `__reduce_ex__`."""
    warn_of_hooks(tensor)
    if Tensor.__module__ == "torch":  # Flambeau stands in for it
        found: tuple[Any, ...] | None = SLOTS.pytorch_reduced(tensor)
        if found is not None:
            return found
    return as_window(tensor)


def as_window(tensor: Tensor) -> tuple[Any, ...]:
    """How to make this tensor again: a storage, which is pickled in its own way, and a window on it."""
    parts: tuple[Any, ...] = (tensor.untyped_storage(), tensor.dtype, _geometry(tensor), tensor.requires_grad)
    if isinstance(tensor._kind, LazyKind):
        parts += (tensor._kind.conj, tensor._kind.neg)
    state = dict(vars(tensor))
    if type(tensor) is Tensor and not state:
        return rebuild_tensor, parts
    get_state = getattr(type(tensor), "__getstate__", None)
    if get_state is not None and get_state is not getattr(object, "__getstate__", None):
        state = get_state(tensor)
    plain = Tensor._from_parts(tensor._parts())
    plain._requires_grad = tensor.requires_grad
    return rebuild_subclass, (type(tensor), plain, state)


def warn_of_hooks(tensor: Tensor) -> None:
    """Hooks are not pickled; say so, unless a hook is marked as one that need not be."""
    for hook in (tensor._backward_hooks or {}).values():
        if not hasattr(hook, "__torch_unserializable__"):
            warnings.warn(
                f"backward hook {hook!r} on tensor will not be serialized.  If this is expected, you can decorate the "
                "function with @torch.utils.hooks.unserializable_hook to suppress this warning",
                UserWarning,
                stacklevel=3,
            )


def restore_state(tensor: Tensor, state: Any) -> None:
    """Take over a pickled state: the attributes that users hung on the tensor, or the old (storage, window)."""
    if not tensor.is_leaf:
        raise RuntimeError("__setstate__ can be only called on leaf Tensors")
    if isinstance(state, dict):
        vars(tensor).update(state)
        return
    target: Any = tensor
    if len(state) == 4:
        target.set_(*state)
        return
    if len(state) == 5:  # a Variable of PyTorch 0.1: its data, grad, hooks, flag, volatile
        target.data, _, hooks, flag, volatile = state
        state = flag, volatile, hooks
    target.requires_grad_(bool(state[0]))  # one of 0.2 or 0.3


def deep_copy(tensor: Any, memo: dict[int, Any]) -> Any:
    """A copy with memory of its own; tensors that share memory share it again if they are copied together."""
    if id(tensor) in memo:
        return memo[id(tensor)]
    if not tensor.is_leaf:
        raise RuntimeError(
            "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment. "
            "If you were attempting to deepcopy a module, this may be because of a torch.nn.utils.weight_norm usage; "
            f"this tensor is the result of {tensor.grad_fn.name()}. Use .detach().clone() for a copy outside the graph."
        )
    if isinstance(tensor._kind, LazyKind):
        result = tensor.detach().clone()
        result._requires_grad = tensor.requires_grad
    else:
        storage = copy.deepcopy(tensor.untyped_storage(), memo)
        result = rebuild_tensor(storage, tensor.dtype, _geometry(tensor), tensor.requires_grad)
    if type(tensor) is not Tensor:
        result = retype(result, type(tensor))
    memo[id(tensor)] = result
    if tensor._grad is not None:
        result._grad = copy.deepcopy(tensor._grad, memo)
    vars(result).update(copy.deepcopy(vars(tensor), memo))
    return result
