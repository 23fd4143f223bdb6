"""Copies and conversions, whose memory formats are those of one example; complex numbers as pairs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..._core.device import channels_last, channels_last_3d, contiguous_format
from ..._dispatch.op import Op
from .level import Vmap
from .rules import rule

_OF_IMAGES = (channels_last, channels_last_3d)


@rule("view_as_complex", "view_as_complex_copy")
def _view_as_complex(level: Vmap, op: Op, args: Sequence[Any]) -> Any:
    value = args[0].value
    return op(
        value
        if value.stride(-1) == 1 and not any(each % 2 for each in value.stride()[:-1])
        else value.clone(memory_format=contiguous_format)
    )


@rule("clone")
def _clone(level: Vmap, op: Op, args: Sequence[Any]) -> Any:
    tensor, memory_format = args
    return op(tensor.value, None if memory_format in _OF_IMAGES else memory_format)


@rule("to_copy", "to_device")
def _convert(level: Vmap, op: Op, args: Sequence[Any]) -> Any:
    tensor, dtype, memory_format, *rest = args
    return op(tensor.value, dtype, None if memory_format in _OF_IMAGES else memory_format, *rest)


@rule("copy_")
def _copy(level: Vmap, op: Op, args: Sequence[Any]) -> Any:
    target, source = args
    _check_target(level, target, "copy_")
    if not level.has(source):
        target.value.copy_(source)
        return
    value = source.value
    missing = target._array.ndim - source._array.ndim
    if missing > 0:
        value = value.reshape(level.size, *[1] * missing, *source._array.shape)
    target.value.copy_(value)


@rule("fill_")
def _fill(level: Vmap, op: Op, args: Sequence[Any]) -> Any:
    args[0].value.fill_(args[1])


def _check_target(level: Vmap, target: Any, name: str) -> None:
    if not level.has(target):
        raise RuntimeError(
            f"vmap: {name}(self, *extra_args) is not possible because there exists a Tensor `other` in extra_args that "
            "has more elements than `self`. This happened due to `other` being vmapped over but `self` not being "
            f"vmapped over in a vmap. Please try to use out-of-place operators instead of {name}."
        )
