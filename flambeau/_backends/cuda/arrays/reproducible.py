"""Which functions of libraries, and of the host, give the same bits at a level of `flambeau.reproducible`."""

from __future__ import annotations

from typing import Any

from ...._core.process.reproducibility import REPRODUCIBILITY, NotKept
from .array import DeviceArray

UNORDERED = frozenset((
    "add.at", "subtract.at", "multiply.at", "divide.at", "bincount", "cumsum", "cumprod", "add.accumulate",
    "multiply.accumulate", "logaddexp.accumulate",
))  # fmt: skip
"""Sums that a device's library makes in another order in each run: at a level the host makes them, one by one."""
_ORDERED_BY_SIZE = frozenset((
    "sum", "prod", "mean", "var", "std", "trace", "dot", "vdot", "inner", "matmul", "tensordot", "einsum", "add.reduce",
    "multiply.reduce", "logaddexp.reduce", "convolve", "correlate", "fft", "ifft", "rfft", "irfft", "hfft", "ihfft",
    "fftn", "ifftn", "rfftn", "irfftn", "fft2", "ifft2", "rfft2", "irfft2",
))  # fmt: skip
"""Sums in an order that is chosen by the sizes of arrays, that of the batch among them."""


def is_inexact(value: Any) -> bool:
    """Whether arrays among arguments hold floating-point or complex numbers, whose sums depend on their order."""
    if type(value) is DeviceArray:
        return value.form.dtype.kind not in "biu"
    return type(value) in (list, tuple) and any(map(is_inexact, value))


def refuse_sums(name: str, args: Any) -> None:
    """Raise for sums whose order depends on the batch, if that matters."""
    if REPRODUCIBILITY.product is not None and name in _ORDERED_BY_SIZE and is_inexact(args):
        raise NotKept(f"{name}, whose sums a library makes in an order that depends on the sizes of arrays")
