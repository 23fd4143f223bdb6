"""Types for annotations, under the names of `torch.types`."""

from __future__ import annotations

import os
from builtins import bool as _bool
from builtins import bytes as _bytes
from builtins import complex as _complex
from builtins import float as _float
from builtins import int as _int
from builtins import str as _str
from collections.abc import Sequence
from typing import IO, Any, TypeAlias, Union

from ._core.device import device as _device
from ._core.device import layout as _layout
from ._core.dtype import dtype as _dtype
from ._core.names.symbolic import SymBool, SymFloat, SymInt
from ._core.qscheme import qscheme as _qscheme
from ._core.size import Size
from ._core.storage import UntypedStorage
from ._core.tensor import Tensor
from ._core.typed_storage import TypedStorage

__all__ = [
    "Device", "FileLike", "Number", "Storage", "_TensorOrOptionalTensors", "_TensorOrTensors", "_bool", "_bytes",
    "_complex", "_device", "_dtype", "_float", "_int", "_layout", "_qscheme", "_size", "_str",
]  # fmt: skip

Number: TypeAlias = _int | _float | _bool
_Number = (_int, _float, _bool)
Device: TypeAlias = _device | _str | _int | None
FileLike: TypeAlias = Union[_str, "os.PathLike[str]", IO[_bytes]]
_TensorOrTensors: TypeAlias = Tensor | Sequence[Tensor]
_TensorOrOptionalTensors: TypeAlias = Tensor | Sequence[Tensor | None]
_TensorOrTensorsOrGradEdge: TypeAlias = Any
_size: TypeAlias = Size | list[_int] | tuple[_int, ...]
_symsize: TypeAlias = _size
_dispatchkey: TypeAlias = _str
IntLikeType: TypeAlias = _int
FloatLikeType: TypeAlias = _float
BoolLikeType: TypeAlias = _bool
py_sym_types = (SymInt, SymFloat, SymBool)
PySymType: TypeAlias = Any


class _AnyStorage(type):
    def __instancecheck__(cls, instance: Any) -> _bool:
        return isinstance(instance, (UntypedStorage, TypedStorage))


class Storage(metaclass=_AnyStorage):
    """The memory under tensors, of either class: what both have."""

    cpu = UntypedStorage.cpu
    data_ptr = UntypedStorage.data_ptr
    element_size = UntypedStorage.element_size
    is_shared = UntypedStorage.is_shared
    nbytes = UntypedStorage.nbytes
    share_memory_ = UntypedStorage.share_memory_

    def from_file(self, filename: str, shared: bool = False, nbytes: int = 0) -> UntypedStorage:
        """The bytes of a file as memory: see `UntypedStorage.from_file`."""
        return UntypedStorage.from_file(filename, shared, nbytes)
