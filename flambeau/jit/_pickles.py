"""Writing the pickles of an archive: the few instructions that PyTorch's reader of TorchScript knows."""

from __future__ import annotations

import pickle
import struct
from typing import Any

from .._core.device import device
from .._core.dtype import dtype
from .._core.tensor import Tensor
from .._core.typed_storage import TypedStorage
from .._serialization.storage_types import StorageType
from .._serialization.writing import SavedStorages
from ..nn.modules.module import Module
from ._language.numbers_of import number_of_dtype
from ._language.program import ClassDefinition, EnumValue, ScriptObject
from ._language.types import Type

_BUILDERS = {
    "int": "build_intlist",
    "float": "build_doublelist",
    "bool": "build_boollist",
    "Tensor": "build_tensorlist",
}
_ANY = Type("Any")


class ScriptPickler:
    """Turns the values of a program into a pickle; `storages` collects the memory of its tensors."""

    def __init__(self) -> None:
        self.storages = SavedStorages()
        self._parts: list[bytes] = [b"\x80\x02"]
        self._memo: dict[int, int] = {}
        self._kept: list[Any] = []
        """Objects that the memo knows by address stay alive."""

    def dumped(self, value: Any, kind: Type = _ANY) -> bytes:
        """The pickle of one value."""
        self._write(value, kind)
        return b"".join([*self._parts, pickle.STOP])

    def _put(self, code: bytes) -> None:
        self._parts.append(code)

    def _text(self, text: str) -> None:
        content = text.encode("utf-8")
        self._put(pickle.BINUNICODE + struct.pack("<I", len(content)) + content)

    def _global(self, module: str, name: str) -> None:
        self._put(pickle.GLOBAL + f"{module}\n{name}\n".encode())

    def _int(self, value: int) -> None:
        if 0 <= value < 256:
            self._put(pickle.BININT1 + bytes([value]))
        elif -(1 << 31) <= value < 1 << 31:
            self._put(pickle.BININT + struct.pack("<i", value))
        else:
            self._put(pickle.LONG1 + b"\x08" + struct.pack("<q", value))

    def _tuple(self, values: Any, kinds: Any = None) -> None:
        self._put(pickle.MARK)
        for place, each in enumerate(values):
            self._write(each, kinds[place] if kinds and len(kinds) > place else _ANY)
        self._put(pickle.TUPLE)

    def _write(self, value: Any, kind: Type) -> None:
        if kind.name == "Optional":
            kind = kind.parameters[0]
        if value is None:
            self._put(pickle.NONE)
        elif isinstance(value, bool):
            self._put(pickle.NEWTRUE if value else pickle.NEWFALSE)
        elif isinstance(value, int):
            self._int(value)
        elif isinstance(value, float):
            self._put(pickle.BINFLOAT + struct.pack(">d", value))
        elif isinstance(value, complex):
            self._called("builtins", "complex", (value.real, value.imag))
        elif isinstance(value, str):
            self._text(value)
        elif isinstance(value, dtype):
            self._int(number_of_dtype(value))
        elif isinstance(value, device):
            self._called("torch", "device", (str(value),))
        elif isinstance(value, StorageType):
            self._global("torch", value.name)
        else:
            self._once(value, kind)

    def _called(self, module: str, name: str, arguments: tuple[Any, ...]) -> None:
        self._global(module, name)
        self._tuple(arguments)
        self._put(pickle.REDUCE)

    def _once(self, value: Any, kind: Type) -> None:
        """Write an object; where it is met again, the pickle refers to the first time."""
        known = self._memo.get(id(value))
        if known is not None:
            self._put(pickle.LONG_BINGET + struct.pack("<I", known))
            return
        self._object(value, kind)
        number = self._memo[id(value)] = len(self._memo)
        self._kept.append(value)
        self._put(pickle.LONG_BINPUT + struct.pack("<I", number))

    def _object(self, value: Any, kind: Type) -> None:
        definition = getattr(value, "_definition", None)
        if isinstance(value, Tensor):
            self._tensor(value)
        elif isinstance(value, EnumValue):
            self._defined(value._definition)
            self._tuple((value.value,))
            self._put(pickle.REDUCE)
        elif isinstance(definition, ClassDefinition):
            self._instance(value, definition)
        elif isinstance(value, tuple):
            if kind.definition is not None and kind.definition.fields is not None:
                self._defined(kind.definition)
                self._tuple(value)
                self._put(pickle.REDUCE)
            else:
                self._tuple(value, kind.parameters)
        elif isinstance(value, list):
            self._list(value, kind)
        elif isinstance(value, dict):
            self._dict(value, kind)
        else:
            raise RuntimeError(f"an object of type {type(value).__name__} cannot be written into a TorchScript archive")

    def _defined(self, definition: ClassDefinition) -> None:
        module, _, name = definition.name.rpartition(".")
        self._global(module, name)

    def _instance(self, value: Any, definition: ClassDefinition) -> None:
        self._defined(definition)
        self._put(pickle.EMPTY_TUPLE + pickle.NEWOBJ)
        if "__getstate__" in definition.methods:
            self._write(definition.methods["__getstate__"].call((value,), {}), _ANY)
        else:
            self._put(pickle.EMPTY_DICT + pickle.MARK)
            for name in definition.annotations:
                self._text(name)
                self._write(_attribute(value, name), definition.type_of(name) or _ANY)
            self._put(pickle.SETITEMS)
        self._put(pickle.BUILD)

    def _list(self, values: list[Any], kind: Type) -> None:
        inner = kind.parameters[0] if kind.name == "List" else _kind_of(values[0]) if values else _ANY
        builder = _BUILDERS.get(inner.name)
        self._global("torch.jit._pickle", builder or "restore_type_tag")
        self._put(pickle.MARK + pickle.EMPTY_LIST + pickle.MARK)
        for each in values:
            self._write(each, inner)
        self._put(pickle.APPENDS)
        if builder is None:
            self._text(str(Type("List", (inner,))))
        self._put(pickle.TUPLE + pickle.REDUCE)

    def _dict(self, values: dict[Any, Any], kind: Type) -> None:
        key, inner = _ANY, _ANY
        if kind.name == "Dict":
            key, inner = kind.parameters
        elif values:
            key, inner = (_kind_of(each) for each in next(iter(values.items())))
        self._global("torch.jit._pickle", "restore_type_tag")
        self._put(pickle.MARK + pickle.EMPTY_DICT + pickle.MARK)
        for name, each in values.items():
            self._write(name, key)
            self._write(each, inner)
        self._put(pickle.SETITEMS)
        self._text(str(Type("Dict", (key, inner))))
        self._put(pickle.TUPLE + pickle.REDUCE)

    def _tensor(self, tensor: Tensor) -> None:
        storage = tensor.untyped_storage()
        if not self.storages.typed(storage, tensor.dtype):
            raise RuntimeError(f"a tensor of {tensor.dtype} over this memory cannot be written into an archive")
        self._global("torch._utils", "_rebuild_tensor_v2")
        self._put(pickle.MARK)
        self._tuple(self.storages.persistent_id(TypedStorage(wrap_storage=storage, dtype=tensor.dtype)))
        self._put(pickle.BINPERSID)
        self._int(int(tensor.storage_offset()))
        self._tuple(tuple(tensor.shape))
        self._tuple(tuple(tensor.stride()))
        self._put(pickle.NEWTRUE if tensor.requires_grad and tensor.is_leaf else pickle.NEWFALSE)
        self._global("collections", "OrderedDict")
        self._put(pickle.EMPTY_TUPLE + pickle.REDUCE + pickle.TUPLE + pickle.REDUCE)


def _attribute(value: Any, name: str) -> Any:
    return value.attributes.get(name) if isinstance(value, ScriptObject) else getattr(value, name)


def _kind_of(value: Any) -> Type:
    """The type of a value for whose place no type is declared."""
    if isinstance(value, Tensor):
        return Type("Tensor")
    if isinstance(value, list) and value:
        return Type("List", (_kind_of(value[0]),))
    if isinstance(value, tuple):
        return Type("Tuple", tuple(map(_kind_of, value)))
    if isinstance(value, Module):
        return _ANY
    name = type(value).__name__
    return Type(name) if name in ("int", "float", "bool", "str", "complex") else _ANY
