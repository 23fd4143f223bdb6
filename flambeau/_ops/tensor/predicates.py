"""Questions about tensors: what they are, hold, and would become together."""

from __future__ import annotations

from typing import Any

from ..._core.dtype import can_cast as _can_cast
from ..._core.dtype import dtype as DType
from ..._core.storage import UntypedStorage
from ..._core.tensor import Tensor
from ..._core.typed_storage import TypedStorage
from ..._dispatch.arguments.promotion import Operand, result_type_of
from ..._dispatch.public.registry import export, public


def is_tensor(obj: Any) -> bool:
    """Whether `obj` is a tensor."""
    return isinstance(obj, Tensor)


def is_storage(obj: Any) -> bool:
    """Whether `obj` is a storage."""
    return isinstance(obj, (UntypedStorage, TypedStorage))


def typename(obj: Any) -> str:
    """The name of an object's type with its module; tensors have names such as 'torch.FloatTensor'."""
    if isinstance(obj, Tensor) and type(obj) is Tensor:
        return obj._kind.legacy_name
    kind = obj if isinstance(obj, type) else type(obj)
    module = kind.__module__
    return kind.__qualname__ if module in ("builtins", "__builtin__", None) else f"{module}.{kind.__qualname__}"


def can_cast(from_: Any, to: Any) -> bool:
    """Whether PyTorch's promotion rules allow a conversion: never to a lower category of dtypes."""
    if not (isinstance(from_, DType) and isinstance(to, DType)):
        raise TypeError(f"can_cast(): both arguments must be torch.dtype, not {from_!r} and {to!r}")
    return _can_cast(from_, to)


@public()
def is_floating_point(input: Tensor) -> bool:
    """Whether the dtype is a floating-point one."""
    return input._kind.dtype.is_floating_point


@public()
def is_complex(input: Tensor) -> bool:
    """Whether the dtype is a complex one."""
    return input._kind.dtype.is_complex


@public()
def is_signed(input: Tensor) -> bool:
    """Whether the dtype has negative numbers."""
    return input._kind.dtype.is_signed


@public()
def is_nonzero(input: Tensor) -> bool:
    """Whether the one element is different from zero."""
    return bool(input)


@public()
def is_same_size(input: Tensor, other: Tensor) -> bool:
    """Whether both tensors have the same shape."""
    return bool(input._array.shape == other._array.shape)


@public(method=False)
def is_inference(input: Tensor) -> bool:
    """Whether the tensor was made in inference mode."""
    return input.is_inference()


@public(method=False)
def numel(input: Tensor) -> int:
    """The number of elements."""
    return input.numel()


@public(method=False)
def get_device(input: Tensor) -> int:
    """The ordinal of the tensor's accelerator, -1 on the CPU."""
    return input.get_device()


@public(method=False)
def result_type(
    tensor: Operand = None, other: Operand = None, *, scalar: Operand = None, scalar1: Operand = None,
    scalar2: Operand = None,
) -> DType:  # fmt: skip
    """The dtype that arithmetic on two tensors or numbers gives, which may be named for what they are."""
    given = [each for each in (tensor, other, scalar, scalar1, scalar2) if each is not None]
    if len(given) != 2:
        raise TypeError(f"result_type() received an invalid combination of arguments: 2 expected, got {len(given)}")
    return result_type_of(*given)


export(is_tensor, "is_tensor")
export(is_storage, "is_storage")
export(typename, "typename")
export(can_cast, "can_cast")
