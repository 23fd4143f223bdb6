"""`torch.onnx.symbolic_helper`: marks for the rules of the older exporter. They are kept; export is not built yet."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from .._core.names.absent import Table

Function = TypeVar("Function", bound=Callable[..., Any])

__getattr__, __dir__ = (
    Table(__name__)
    .absent("ONNX export is not built yet", functions="cast_pytorch_to_onnx _get_const _unimplemented _is_value")
    .parts()
)


def parse_args(*arg_descriptors: str) -> Callable[[Function], Function]:
    """Say of which kind the arguments of a rule are."""

    def mark(fn: Function) -> Function:
        vars(fn)["_arg_descriptors"] = arg_descriptors
        return fn

    return mark


def quantized_args(
    *arg_q_descriptors: bool, scale: float | None = None, zero_point: int | None = None, quantize_output: bool = True
) -> Callable[[Function], Function]:
    """Say which arguments of a rule may be quantized."""

    def mark(fn: Function) -> Function:
        vars(fn)["_arg_q_descriptors"] = arg_q_descriptors
        return fn

    return mark
