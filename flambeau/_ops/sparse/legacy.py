"""The constructors of old for sparse tensors: `torch.sparse.FloatTensor(indices, values, size)`, `tensor.new(...)`."""

from __future__ import annotations

from typing import Any

from ..._core.arrays.sparse import COO
from ..._core.device import CPU
from ..._core.dtype import INTEGER, NAMES, dtype
from ..._core.kind import Kind, kind_of
from ..._core.process.caller import warn_user_once
from ..._core.process.defaults import device_for
from ..._core.size import Size
from ..._core.sparse import SparseTensor
from ..._core.tensor import Tensor
from .dispatch import implements
from .tensors import sparse_coo_tensor


def legacy_sparse(name: str, kind: Kind, args: tuple[Any, ...], options: dict[str, Any]) -> Tensor:
    """A sparse tensor from sizes, or from indices and values, in whose dtype it is."""
    options = {name: each for name, each in options.items() if each is not None}
    device = options.pop("device", None)
    if device is not None and device_for(device).type != kind.device.type:
        raise RuntimeError(
            f"legacy constructor expects device type: {kind.device.type} but device type: {device_for(device).type} "
            "was passed"
        )
    named = [options.pop(each) for each in ("indices", "values") if each in options]
    size = options.pop("size", None)
    given = (*args, *named)
    if options or (given and size is None and not (_is_size(given) or _has_values(given))):
        return _refuse(name, given, options)
    if _has_values(given):
        if len(given) == 3:
            size = given[2]
        return sparse_coo_tensor(given[0], given[1], size)
    if size is None:
        size = given[0] if given and isinstance(given[0], Size) else tuple(int(each) for each in given) or (0,)
    if any(each < 0 for each in size):
        raise RuntimeError(f"numel: integer multiplication overflow, or a negative size: {list(size)}")
    return sparse_coo_tensor(tuple(size), dtype=kind.dtype, device=kind.device)


def _is_size(given: tuple[Any, ...]) -> bool:
    if len(given) == 1 and isinstance(given[0], Size):
        return True
    return all(hasattr(each, "__index__") and not isinstance(each, bool) and _is_number(each) for each in given)


def _is_number(value: Any) -> bool:
    """Not a tensor, or one that stands for an integer."""
    if not isinstance(value, Tensor):
        return True
    return not isinstance(value, SparseTensor) and value.ndim == 0 and value.dtype.category == INTEGER


def _has_values(given: tuple[Any, ...]) -> bool:
    if len(given) not in (2, 3) or not all(isinstance(each, Tensor) for each in given[:2]):
        return False
    return len(given) == 2 or isinstance(given[2], (tuple, list))


def _refuse(name: str, given: tuple[Any, ...], options: dict[str, Any]) -> Tensor:
    if len(given) == 1 and isinstance(given[0], (tuple, list)):
        raise TypeError(
            f"{name}(sequence) only accepts sizes.  Please use torch.sparse_coo_tensor() or construct a strided tensor "
            "and convert it to sparse via to_sparse."
        )
    words = [*(type(each).__name__ for each in given), *(f"{each}=" for each in options)]
    raise TypeError(
        f"new() received an invalid combination of arguments - got ({', '.join(words)}), but expected sizes, or "
        "(Tensor indices, Tensor values, tuple of ints size), and device"
    )


@implements("new")
def _new(input: Any, *args: Any, **options: Any) -> Any:
    return legacy_sparse("SparseTensor.new", kind_of(input.dtype, input.device), args, options)


def _warn(args: tuple[Any, ...], options: dict[str, Any]) -> None:
    """Say what to call in place of the constructor."""
    if not args and not options:
        called, instead = "", "(0,), dtype="
    else:
        parts = isinstance(args[0] if args else options.get("indices"), Tensor)
        words = "indices, values" if parts else "shape"
        if parts and (len(args) == 3 or "size" in options):
            words += ", shape"
        called, instead = f"{words}, *, device=", f"{words}, dtype=, device="
    warn_user_once(
        f"torch.sparse.SparseTensor({called}) is deprecated.  Please use torch.sparse_coo_tensor({instead})."
    )


class SparseType(type):
    """The metaclass of `torch.sparse.FloatTensor` and its kin: `isinstance` asks for dtype, device and layout."""

    kind: Kind

    def __call__(cls, *args: Any, **options: Any) -> Any:
        made = legacy_sparse("torch.sparse.SparseTensor", cls.kind, args, options)
        _warn(args, options)
        return made

    def __instancecheck__(cls, instance: Any) -> bool:
        if not isinstance(instance, SparseTensor) or instance.layout is not COO:
            return False
        return instance.dtype is cls.kind.dtype and instance.device.type == "cpu"

    def __repr__(cls) -> str:
        return f"<class 'torch.sparse.{cls.__name__}'>"


def _class(name: str, element: dtype) -> SparseType:
    body = {
        "kind": kind_of(element, CPU), "dtype": element, "layout": COO, "is_sparse": True, "is_cuda": False,
        "__module__": "torch.sparse",
        "__doc__": f"Sparse tensors of `{element}` in COO form; new programs call `torch.sparse_coo_tensor`.",
    }  # fmt: skip
    return SparseType(name, (), body)


CLASSES = {
    f"{name}Tensor": _class(f"{name}Tensor", NAMES[element])
    for name, element in (
        ("BFloat16", "bfloat16"), ("Byte", "uint8"), ("Char", "int8"), ("Double", "float64"), ("Float", "float32"),
        ("Half", "float16"), ("Int", "int32"), ("Long", "int64"), ("Short", "int16"),
    )
}  # fmt: skip
