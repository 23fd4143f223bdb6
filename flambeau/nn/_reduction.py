"""What losses do with the losses of elements, as words and as numbers, under the names of `torch.nn._reduction`."""

from __future__ import annotations

from .._core.reduction import REDUCTIONS
from .._ops.nn.loss.common import reduction_number

__all__ = ["get_enum", "legacy_get_enum", "legacy_get_string"]


def get_enum(reduction: str) -> int:
    """The number of a word: "none", "mean" or "sum"."""
    return reduction_number(reduction, None, None)


def legacy_get_enum(size_average: bool | None, reduce: bool | None, emit_warning: bool = True) -> int:
    """The number that two deprecated arguments stand for."""
    return get_enum(legacy_get_string(size_average, reduce, emit_warning))


def legacy_get_string(size_average: bool | None, reduce: bool | None, emit_warning: bool = True) -> str:
    """The word that two deprecated arguments stand for; what is None is true."""
    if not emit_warning:
        return "none" if reduce is False else "sum" if size_average is False else "mean"
    given = (True, True) if size_average is None and reduce is None else (size_average, reduce)
    return REDUCTIONS[reduction_number("mean", *given)]
