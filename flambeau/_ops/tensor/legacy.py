"""The constructors of old: `Tensor(2, 3)`, `FloatTensor([1, 2])`, `tensor.new(...)`, and making subclasses."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from ..._core.arrays.from_data import array_from_data, is_sequence, type_name
from ..._core.device import CPU, layout, strided
from ..._core.dtype import DEFAULTS, LEGACY_NAMES, dtype, set_default_dtype
from ..._core.kind import Kind, kind_of
from ..._core.process.caller import warn_user_once
from ..._core.process.defaults import device_for
from ..._core.size import Size
from ..._core.storage import UntypedStorage
from ..._core.tensor import Tensor
from ..._core.typed_storage import TypedStorage
from ..._dispatch.public.class_dispatch import make_wrapper_subclass
from ..._dispatch.public.overrides import retype
from ..._dispatch.public.registry import export, export_method, public
from ..create.constants import check_shape, filled, made
from ..shape.named_shapes import _alias
from ..shape.view import as_shape
from .convert import kind_named


def construct(cls: type, *args: Any, **kwargs: Any) -> Any:
    """`Tensor(...)`: sizes give uninitialised memory, a sequence is copied, a tensor is shared."""
    if len(args) == 1 and not kwargs and isinstance(args[0], Tensor):
        result = _alias_of(args[0])
    else:
        result = legacy_new(kind_of(DEFAULTS.float, CPU), *args, **kwargs)
    if cls is Tensor:
        return result
    return retype(result, cls)


def legacy_new(
    kind: Kind, *args: Any, device: Any = None, data: Any = None, size: Any = None, other: Tensor | None = None,
    storage: Any = None, **unknown: Any,
) -> Tensor:  # fmt: skip
    """A tensor of a fixed kind from sizes, a sequence, a tensor or a storage."""
    if unknown:
        raise TypeError(
            "new() received an invalid combination of arguments: some of the keywords were incorrect: "
            + ", ".join(sorted(unknown))
        )
    if device is not None and device_for(device).type != kind.device.type:
        raise RuntimeError(
            f"legacy constructor expects device type: {kind.device} but device type: {device} was passed"
        )
    args = (*args, *(each for each in (data, other, storage) if each is not None))
    if size is not None:
        args = (*args, *as_shape((size,)))
    if len(args) == 1:
        return _from_one(kind, args[0])
    if any(not hasattr(each, "__index__") or isinstance(each, (bool, np.ndarray)) for each in args):
        names = ", ".join(type(each).__name__ for each in args)
        raise TypeError(f"new() received an invalid combination of arguments: expected sizes, got ({names})")
    shape = tuple([each.__index__() for each in args]) if args else (0,)
    return filled(check_shape(shape, "new"), kind)


def _from_one(kind: Kind, value: Any) -> Tensor:
    if isinstance(value, Tensor):
        if value._kind.plain is not kind:
            raise TypeError(
                f"expected a {kind.dtype} tensor on {kind.device}, got {value.dtype} on {value.device}: convert it "
                f"with .to({kind.dtype}), or use torch.tensor(...)"
            )
        return _alias_of(value)
    if isinstance(value, (UntypedStorage, TypedStorage)):
        empty_tensor = filled((0,), kind)
        return empty_tensor.set_(value)
    if isinstance(value, Size):
        return filled(value, kind)
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        return filled(check_shape((int(value),), "new"), kind)
    if isinstance(value, str):
        raise TypeError("new(): invalid data type 'str'")
    if not isinstance(value, np.ndarray) and not is_sequence(value):
        raise TypeError(f"new(): data must be a sequence (got {type_name(type(value))})")
    return made(array_from_data(value, kind.dtype.numpy, DEFAULTS.float.numpy), kind)


def _alias_of(value: Any) -> Tensor:
    return _alias(value) if value.requires_grad else value.detach()


class TensorType(type):
    """The metaclass of `FloatTensor` and its kin: a call makes a tensor, `isinstance` asks for dtype and device."""

    kind: Kind

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        return legacy_new(cls.kind, *args, **kwargs)

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor) and instance._kind.plain is cls.kind

    def __repr__(cls) -> str:
        return f"<class 'torch.{cls.__name__}'>"


class LegacyTensor(metaclass=TensorType):
    """What the legacy tensor types tell about the tensors that they make."""

    dtype: ClassVar[dtype]
    layout: ClassVar[layout] = strided
    is_cuda = False
    is_sparse = False


_DOC = """The type of tensors of `{element}`; a call makes one in PyTorch's old way.

New programs write `torch.tensor(..., dtype={element})` or `torch.empty`.

Args:
    *args: sizes, for a tensor whose elements are not set; or a sequence of numbers, an array, a tensor or a storage.
    **kwargs: `device`, which must be the CPU.

Example:
    {prompt} torch.{name}(2, 3).dtype
    {element}
"""


def _legacy_type(element: dtype) -> TensorType:
    name = f"{LEGACY_NAMES[element]}Tensor"
    doc = _DOC.format(element=element, name=name, prompt=">>" + ">")  # in parts: this file has no example itself
    body = {"kind": kind_of(element, CPU), "dtype": element, "__module__": "torch", "__doc__": doc}
    return TensorType(name, (LegacyTensor,), body)


TENSOR_TYPES = {
    f"{name}Tensor": _legacy_type(element)
    for element, name in LEGACY_NAMES.items()
    if not element.is_complex and not name.startswith("UInt")
}
for _name, _type in TENSOR_TYPES.items():
    export(_type, _name)


def set_default_tensor_type(t: Any) -> None:
    """Deprecated: choose the default dtype by a legacy tensor type or its name."""
    kind = kind_named(t) if isinstance(t, str) else getattr(t, "kind", None)
    if ".sparse." in t if isinstance(t, str) else getattr(t, "is_sparse", False):
        raise TypeError("only dense types are supported as the default type")
    if not isinstance(kind, Kind):
        raise TypeError(f"invalid type object: only floating-point types are supported as the default type, got {t!r}")
    warn_user_once(
        "torch.set_default_tensor_type() is deprecated as of PyTorch 2.1: use torch.set_default_dtype() and "
        "torch.set_default_device()."
    )
    set_default_dtype(kind.dtype)


export(set_default_tensor_type, "set_default_tensor_type")


@public(function=False)
def new(
    input: Tensor, *args: Any, device: Any = None, size: Any = None, data: Any = None, other: Tensor | None = None,
    storage: Any = None,
) -> Tensor:  # fmt: skip
    """The legacy constructor of the tensor's own dtype and device."""
    if len(args) == 1 and isinstance(args[0], Tensor) and args[0]._kind.plain is input._kind.plain:
        return _alias_of(args[0])
    return legacy_new(input._kind.plain, *args, device=device, data=data, size=size, other=other, storage=storage)


def make_subclass(cls: type, data: Tensor, require_grad: bool = False, **options: Any) -> Any:
    """An instance of the tensor class `cls` that shares the memory and the version of `data`, outside the graph."""
    if not isinstance(data, Tensor):
        raise TypeError(f"_make_subclass(): argument 'data' must be Tensor, not {type(data).__name__}")
    if type(require_grad) is not bool:
        raise TypeError(
            f"_make_subclass(): argument 'require_grad' (position 3) must be bool, not {type(require_grad).__name__}"
        )
    made_tensor = retype(Tensor._from_parts((data._array, data._kind, data._counter)), cls)
    if require_grad:
        made_tensor.requires_grad = True
    return made_tensor


export_method(staticmethod(make_subclass), "_make_subclass")
export_method(staticmethod(make_wrapper_subclass), "_make_wrapper_subclass")


def as_subclass(input: Any, cls: type) -> Any:
    """The tensor, in the same graph, as an instance of a subclass."""
    return retype(_alias(input), cls)


export_method(as_subclass, "as_subclass")
