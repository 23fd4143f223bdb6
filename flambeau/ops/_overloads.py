"""Ops with their overloads, as `torch.ops.aten` has them: `aten.add`, `aten.add.Tensor`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_OVERLOADS = frozenset({
    "default", "out", "Scalar", "Tensor", "int", "float", "Scalar_out", "grad_input", "Tensor_out", "complex",
    "ScalarList", "List", "int_float", "float_int", "dim", "vec", "str", "x_scalar", "n_scalar", "bool",
    "Scalar_Tensor", "Tensor_Scalar", "float_complex", "complex_float", "dtype_out", "dtype", "generator", "t",
    "Tensor_Tensor", "output", "input", "data", "dims", "Scalar_Scalar", "Tensor_mode", "Scalar_mode", "values",
    "correction", "device", "other", "int_out", "msg", "result", "dim_IntList", "out_mode", "memory_format",
    "int_Tensor", "int_Scalar", "unary_out", "dim_values", "decimals", "value", "src", "reduce", "value_reduce",
    "two", "other_scalar", "self_scalar", "deprecated", "eigenvalues", "sign", "start", "start_step", "p", "padding",
    "m", "a", "periodic", "inverse", "L", "dim_max", "indexing", "dim_min", "ScalarOpt_dim", "ScalarOpt_dim_dtype",
    "ScalarOpt_dtype", "Tensor_float", "float_Tensor", "dim_int", "tensors", "low", "low_generator", "self_Tensor",
    "self_int", "source_Tensor", "source_Storage", "stable", "values_stable", "any", "sizes", "center", "sections",
    "indices", "tensor_indices_or_sections", "dtype_layout", "X", "self", "ScalarOther", "ScalarSelf", "hacked_twin",
    "int_list", "Scalar_Self", "Scalar_Other",
})  # fmt: skip
"""The names of overloads that PyTorch's ops have. Python's functions take all of their arguments in one."""


class OpOverload:
    """One overload of an op."""

    def __init__(self, packet: OpOverloadPacket, overload: str) -> None:
        self._overloadpacket = packet
        self._overloadname = overload
        self.namespace = "aten"
        self.__name__ = f"{packet.__name__}.{overload}"
        self.__doc__ = packet.__doc__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._overloadpacket(*args, **kwargs)

    @property
    def op(self) -> Callable[..., Any]:
        """The function that runs."""
        return self._overloadpacket.op

    @property
    def overloadpacket(self) -> OpOverloadPacket:
        """The op with all its overloads."""
        return self._overloadpacket

    def name(self) -> str:
        """The full name: aten::add.Tensor."""
        name = f"aten::{self._overloadpacket.__name__}"
        return name if self._overloadname == "default" else f"{name}.{self._overloadname}"

    def __repr__(self) -> str:
        return f"<OpOverload(op='aten.{self._overloadpacket.__name__}', overload='{self._overloadname}')>"

    def __str__(self) -> str:
        return f"aten.{self.__name__}"

    def __deepcopy__(self, memo: Any = None) -> OpOverload:
        return self


class OpOverloadPacket:
    """An op; its overloads are its attributes."""

    def __init__(self, name: str, function: Callable[..., Any]) -> None:
        self.__name__ = name
        self.__doc__ = function.__doc__
        self._qualified_op_name = f"aten::{name}"
        self.op = function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.op(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        if name not in _OVERLOADS:
            raise AttributeError(f"The underlying op of 'aten.{self.__name__}' has no overload name '{name}'")
        overload = self.__dict__[name] = OpOverload(self, name)
        return overload

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='aten.{self.__name__}')>"

    def __str__(self) -> str:
        return f"aten.{self.__name__}"

    def __deepcopy__(self, memo: Any = None) -> OpOverloadPacket:
        return self
