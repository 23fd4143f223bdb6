"""`torch.onnx.symbolic_helper`: what rules of the older style use. Arguments reach them as values and plain numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

from ._element_types import onnx_type
from ._graph import Value
from .errors import SymbolicValueError, UnsupportedOperatorError

Function = TypeVar("Function", bound=Callable[..., Any])

cast_pytorch_to_onnx: dict[str, int] = {
    name: onnx_type(dtype)
    for name, dtype in {
        "Byte": "uint8", "Char": "int8", "Double": "float64", "Float": "float32", "Half": "float16", "Int": "int32",
        "Long": "int64", "Short": "int16", "Bool": "bool", "ComplexFloat": "complex64", "ComplexDouble": "complex128",
    }.items()
}  # fmt: skip
"""The numbers of element types by PyTorch's older names."""


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


def _is_value(x: Any) -> bool:
    """Whether an argument of a rule is a tensor of the graph."""
    return isinstance(x, Value)


def _get_const(value: Any, desc: str, arg_name: str) -> Any:
    """An argument of a rule that has to be known when the model is exported."""
    if isinstance(value, Value):
        raise SymbolicValueError(f"ONNX symbolic expected a constant value of the '{arg_name}' argument, got a tensor")
    return value


def _unimplemented(op: str, msg: str, value: Any = None) -> NoReturn:
    """Refuse to export an operator."""
    raise UnsupportedOperatorError(f"Unsupported: ONNX export of operator {op}, {msg}")
