"""`FloatStorage` and its kin: ways to make and to recognise a `TypedStorage` of one dtype, as PyTorch has them."""

from __future__ import annotations

from typing import Any, NoReturn

from ..device import device as as_device
from ..dtype import LEGACY_NAMES, NAMES, dtype
from ..storage import UntypedStorage
from ..typed_storage import TypedStorage


class _OfOneDtype(type):
    """An instance of `FloatStorage` is a `TypedStorage` of float32."""

    dtype: dtype

    def __instancecheck__(cls, instance: Any) -> bool:
        if cls is _LegacyStorage or not hasattr(cls, "dtype"):
            return isinstance(instance, TypedStorage)
        return isinstance(instance, TypedStorage) and instance.dtype is cls.dtype


class _LegacyStorage(metaclass=_OfOneDtype):
    """The base of the storages of one dtype; making one gives a `TypedStorage`.

    Args:
        *args: a size, or a sequence of numbers.
        wrap_storage (UntypedStorage, optional): a storage whose memory is shared.
        dtype, device: must be None: the class decides them.
    """

    dtype: dtype

    def __new__(
        cls,
        *args: Any,
        wrap_storage: UntypedStorage | None = None,
        dtype: Any = None,
        device: Any = None,
        _internal: bool = False,
    ) -> Any:
        for name, is_other in (("dtype", dtype is not None), ("device", str(as_device(device or "cpu")) != "cpu")):
            if is_other:
                raise RuntimeError(
                    f"{cls.__name__}.__new__: Keyword argument '{name}' cannot be specified: the class decides it"
                )
        return TypedStorage(*args, wrap_storage=wrap_storage, dtype=cls.dtype)

    @classmethod
    def from_buffer(cls, *args: Any, **kwargs: Any) -> Any:
        """A storage with a copy of the bytes of a buffer."""
        for name in ("dtype", "device"):
            if name in kwargs:
                raise RuntimeError(f"from_buffer: '{name}' can only be specified in UntypedStorage and TypedStorage")
        return TypedStorage.from_buffer(*args, dtype=cls.dtype, **kwargs)

    @classmethod
    def from_file(cls, filename: str, shared: bool, size: int) -> Any:
        """A storage with the content of a file."""
        return TypedStorage.from_file(filename, shared, size, dtype=cls.dtype)

    @classmethod
    def _new_shared(cls, size: int) -> Any:
        return TypedStorage(size, dtype=cls.dtype).share_memory_()

    @classmethod
    def _release_ipc_counter(cls, *args: Any, **kwargs: Any) -> NoReturn:
        raise RuntimeError("_release_ipc_counter is about CUDA storages, and there are none")


_WITH_CLASS = (
    "float64", "float32", "float16", "int64", "int32", "int16", "int8", "uint8", "bool", "bfloat16", "complex128",
    "complex64",
)  # fmt: skip
_QUANTIZED = {
    "qint8": "QInt8Storage", "qint32": "QInt32Storage", "quint8": "QUInt8Storage", "quint4x2": "QUInt4x2Storage",
    "quint2x4": "QUInt2x4Storage",
}  # fmt: skip

CLASSES: dict[str, Any] = {
    (name := f"{LEGACY_NAMES[NAMES[each]]}Storage"): _OfOneDtype(
        name, (_LegacyStorage,), {"dtype": NAMES[each], "__module__": "flambeau"}
    )
    for each in _WITH_CLASS
}
for _dtype, _name in _QUANTIZED.items():
    CLASSES[_name] = _OfOneDtype(_name, (_LegacyStorage,), {"dtype": NAMES[_dtype], "__module__": "flambeau"})


def _dtype_to_storage_type_map() -> dict[dtype, str]:
    """The class of storages for each dtype that has one, by name."""
    return {each.dtype: name for name, each in CLASSES.items()}


def _storage_type_to_dtype_map() -> dict[str, dtype]:
    """The dtype of each class of storages, by the class's name."""
    return {name: each.dtype for name, each in CLASSES.items()}


def __getattr__(name: str) -> Any:
    if name in CLASSES:
        return CLASSES[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
