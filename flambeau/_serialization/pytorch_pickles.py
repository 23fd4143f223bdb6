"""Plain pickles of tensors in PyTorch's own form, which is what they have while Flambeau stands in for torch."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from .._core.tensor import Tensor
from .._core.typed_storage import TypedStorage
from . import rebuild
from .storage_types import has_storage_class

_PLACES: dict[str, dict[str, Any]] = {
    "torch._utils": {
        "_rebuild_tensor_v2": rebuild.rebuild_tensor_v2,
        "_rebuild_parameter": rebuild.rebuild_parameter,
        "_rebuild_parameter_with_state": rebuild.rebuild_parameter_with_state,
    },
    "torch._tensor": {"_rebuild_from_type_v2": rebuild.rebuild_from_type_v2},
}


def name_rebuilders() -> None:
    """Let the functions that make tensors again go by PyTorch's names for them."""
    for module, functions in _PLACES.items():
        for name, function in functions.items():
            function.__module__, function.__qualname__, function.__name__ = module, name, name


def reduced(tensor: Tensor) -> tuple[Any, ...] | None:
    """How PyTorch would make this tensor again; None where Flambeau has a way of its own alone."""
    dense = tensor.layout.name == "strided" and not tensor.is_meta and has_storage_class(tensor.dtype)
    if not dense or tensor.is_conj() or tensor.is_neg():
        return None
    geometry: tuple[Any, ...] = (
        tensor.storage_offset(),
        tuple(tensor.shape),
        tensor.stride(),
        tensor.requires_grad,
        OrderedDict(),
    )
    storage = TypedStorage(wrap_storage=tensor.untyped_storage(), dtype=tensor.dtype)
    plain: tuple[Any, tuple[Any, ...]] = rebuild.rebuild_tensor_v2, (storage, *geometry)
    state = dict(vars(tensor))
    if type(tensor) is Tensor and not state:
        return plain
    get_state = getattr(type(tensor), "__getstate__", None)
    if get_state is not None and get_state is not getattr(object, "__getstate__", None):
        state = get_state(tensor)
    return rebuild.rebuild_from_type_v2, (plain[0], type(tensor), plain[1], state)
