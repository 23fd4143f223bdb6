"""`MaskedTensor`: a tensor with a mask of the elements that count."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from ..._core.device import LAYOUTS
from ..._core.dtype import NAMES
from ..._core.tensor import Tensor
from ..._torch._subclasses.carrier import Carrier

__all__ = ["MaskedTensor", "is_masked_tensor"]


def is_masked_tensor(obj: Any, /) -> bool:
    """Whether it is a tensor with a mask.

    Args:
        obj: any object.

    Returns:
        bool: whether it is.

    Example:
        >>> from flambeau.masked import is_masked_tensor
        >>> is_masked_tensor(torch.ones(1))
        False
    """
    return isinstance(obj, MaskedTensor)


class MaskedTensor(Carrier):
    """A tensor whose elements count where a mask is True. Autograd follows the elements.

    >>> from flambeau.masked import masked_tensor
    >>> masked_tensor(flambeau.tensor([1.0, 2.0, 4.0]), flambeau.tensor([True, False, True])).sum()
    MaskedTensor(  5.0000, True)

    Args:
        data (Tensor): the elements.
        mask (Tensor): True where an element counts.
        requires_grad (bool): whether autograd records operations on it. Default: `False`.
    """

    if TYPE_CHECKING:
        _mask: Tensor

    _has_no_other_ops = True  # its `__torch_function__` is heeded where those of users' classes are not

    def __new__(cls, data: Tensor, mask: Tensor, requires_grad: bool = False) -> MaskedTensor:
        _check(data, mask)
        if data.requires_grad:
            warnings.warn(
                "It is not recommended to create a MaskedTensor with a tensor that requires_grad. To avoid this, you "
                "can use data.detach().clone()",
                UserWarning,
                stacklevel=2,
            )
        return _masked(data.detach().requires_grad_(requires_grad), mask)

    def __init__(self, data: Tensor, mask: Tensor, requires_grad: bool = False) -> None:
        """Everything is done by `__new__`, as for all tensors."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        from .rules import run

        return run(func, args, kwargs or {})

    @classmethod
    def unary(cls, fn: Any, data: Tensor, mask: Tensor) -> MaskedTensor:
        """What a function gives of the elements, with a mask."""
        return cls(fn(data), mask)

    def _around(self, inner: Tensor) -> MaskedTensor:
        return _masked(inner, self._mask)

    def get_data(self) -> Tensor:
        """All elements, those that do not count too."""
        return self._inner

    def get_mask(self) -> Tensor:
        """Which elements count."""
        return self._mask

    def to_tensor(self, value: Any) -> Tensor:
        """An ordinary tensor with `value` where elements do not count."""
        return self._inner.masked_fill(~self._mask, value)

    @property
    def is_sparse(self) -> bool:
        """Whether the elements are those of a sparse tensor: they never are."""
        return False

    def is_sparse_coo(self) -> bool:
        """Whether the elements are in a sparse layout: they never are."""
        return False

    def _as_text(self) -> str:
        shown = _shown(self._inner.tolist(), self._mask.tolist(), 1)
        if not self._inner.dim():
            return f"MaskedTensor({shown}, {bool(self._mask)})"
        return f"MaskedTensor(\n{shown}\n)"


# A method here, and an attribute of all other tensors.
setattr(MaskedTensor, "is_sparse_csr", MaskedTensor.is_sparse_coo)  # noqa: B010


def _masked(inner: Tensor, mask: Tensor) -> MaskedTensor:
    made: MaskedTensor = object.__new__(MaskedTensor)
    made._carry(inner)
    made._mask = mask
    return made


def _check(data: Any, mask: Any) -> None:
    for name, each in (("data", data), ("mask", mask)):
        if not isinstance(each, Tensor) or isinstance(each, MaskedTensor):
            raise TypeError(f"{name} must be a Tensor")
        if each.layout is not LAYOUTS["strided"]:
            raise TypeError(f"{name}: masked tensors have ordinary elements, not those of a sparse layout")
    if mask.dtype is not NAMES["bool"]:
        raise TypeError("mask must have dtype bool.")
    if data.dim() != mask.dim():
        raise ValueError("data.dim() must equal mask.dim()")
    if data.shape != mask.shape:
        raise ValueError("data.size() must equal mask.size()")


def _shown(data: Any, mask: Any, depth: int) -> str:
    """Elements in brackets, a line for each row, with `--` where they do not count."""
    if not isinstance(data, list):
        text = f"{data:8.4f}" if isinstance(data, float) else str(data)
        return text if mask else ("      --" if depth > 1 else "--")
    indent = "  " * depth
    if not data or not isinstance(data[0], list):
        elements = (_shown(each, counts, depth + 1) for each, counts in zip(data, mask, strict=True))
        return f"{indent}[{', '.join(elements)}]"
    rows = (_shown(each, counts, depth + 1) for each, counts in zip(data, mask, strict=True))
    return f"{indent}[\n" + ",\n".join(rows) + f"\n{indent}]"
