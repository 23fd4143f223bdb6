"""The ways of quantizing that PyTorch names."""

from __future__ import annotations

from typing import Any


class qscheme:
    """How a tensor is quantized.

    Args:
        name (str): its name.

    Example:
        >>> torch.per_tensor_affine
        torch.per_tensor_affine
    """

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __reduce__(self) -> tuple[Any, ...]:
        return _qscheme_named, (self.name,)


per_tensor_affine = qscheme("per_tensor_affine")
per_channel_affine = qscheme("per_channel_affine")
per_tensor_symmetric = qscheme("per_tensor_symmetric")
per_channel_symmetric = qscheme("per_channel_symmetric")
per_channel_affine_float_qparams = qscheme("per_channel_affine_float_qparams")


def _qscheme_named(name: str) -> qscheme:
    found: qscheme = globals()[name]
    return found
