"""The types of old of a CUDA device's tensors and storages: `torch.cuda.FloatTensor`, `torch.cuda.FloatStorage`."""

from __future__ import annotations

from functools import cache
from typing import Any

from .._core.device import device, usable_device
from .._core.kind import kind_of
from .._core.names.legacy_storages import CLASSES, _LegacyStorage
from .._core.typed_storage import TypedStorage


@cache
def _tensor_type(name: str) -> Any:
    from .._ops.tensor.legacy import TENSOR_TYPES, LegacyTensor, TensorType

    element = TENSOR_TYPES[name].kind.dtype
    body = {
        "kind": kind_of(element, usable_device("cuda")), "dtype": element, "is_cuda": True,
        "__module__": "torch.cuda", "__doc__": f"Tensors of {element} on a CUDA device.",
    }  # fmt: skip
    return TensorType(f"cuda.{name}", (LegacyTensor,), body)


class _Storage(_LegacyStorage):
    """The base of the storages of a CUDA device."""

    def __new__(cls, *args: Any, wrap_storage: Any = None, **options: Any) -> Any:
        if wrap_storage is not None:
            return TypedStorage(wrap_storage=wrap_storage, dtype=cls.dtype)
        found = TypedStorage(*args, dtype=cls.dtype)
        return found.cuda()


@cache
def _storage_type(name: str) -> Any:
    body = {"dtype": CLASSES[name].dtype, "__module__": "torch.cuda", "device": device("cuda", 0)}
    made: Any = type(_Storage)
    return made(name, (_Storage,), body)


def __getattr__(name: str) -> Any:
    if name.endswith("Tensor"):
        return _tensor_type(name)
    if name.endswith("Storage") and name in CLASSES:
        return _storage_type(name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
