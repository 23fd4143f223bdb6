"""Ops on tensors without data: the meta device carries shapes, strides and dtypes through a program."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._core.arrays.abstract import NeedsData, empty_meta, meta_array
from ..._core.arrays.narrow import run_widened
from ..._core.geometry.layout import arranged_strides
from ..._core.size import fits_int64
from .fake import refuse_shape

if TYPE_CHECKING:
    from ..._core.device import device
    from ..op import Op


def run_without_data(op: Op, arrays: list[Any], place: device) -> Any:
    """The results of an op as dataless arrays: by its shape rule, or else by its kernel on nothing."""

    def abstract(value: Any) -> Any:
        if type(value) is np.ndarray:
            return meta_array(value)
        return [abstract(each) for each in value] if type(value) is list else value

    given = [abstract(each) for each in arrays]
    if hasattr(op.shape, "refuses"):
        refuse_shape(op.name, place)
    try:
        computed = run_widened(op.kernel, given) if op.shape is None else op.shape(*given)
    except NeedsData:
        refuse_shape(op.name, place)
        computed = shape_in_elements(op.name)()
    if type(computed) in (tuple, list):
        return [_dataless(each) for each in computed]
    return _dataless(computed)


def shape_in_elements(name: str) -> Callable[..., Any]:
    """The shape rule of an op that has none: what it returns depends on the elements."""

    def refuse(*args: Any) -> Any:
        if name == "nonzero":
            raise NotImplementedError(
                "The register_meta function for torch.nonzero() raises unimplemented by default: how many elements are "
                "not zero is not known of a tensor without data."
            )
        raise NotImplementedError(
            f"aten::{name}: attempted to run this operator with Meta tensors, but the shape of its result depends on "
            "the elements, which they do not have."
        )

    vars(refuse)["refuses"] = True
    return refuse


def arranged_dataless(shape: tuple[int, ...], array_type: Any, *operands: Any) -> Any:
    """The dataless result of an elementwise op."""
    item = array_type.itemsize
    _check_room(shape, item)
    return empty_meta(shape, array_type, tuple([step * item for step in arranged_strides(shape, *operands)]))


def _dataless(result: Any) -> Any:
    array = result if hasattr(result, "strides") else np.asarray(result)
    _check_room(array.shape, array.itemsize)
    return meta_array(array)


def _check_room(shape: tuple[int, ...], item: int) -> None:
    if not fits_int64(math.prod(shape) * item):
        raise RuntimeError(f"Storage size calculation overflowed with sizes={list(shape)}")
