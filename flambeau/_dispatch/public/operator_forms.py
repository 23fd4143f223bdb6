"""Which of PyTorch's operators a public function is, whatever ops it runs, and with which arguments.

TorchScript and exported programs hold the call that a program made, `aten.linear`, not what is inside of it.
`aten_names.py` says the same of single ops.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ..._core.reduction import REDUCTIONS
from . import schema
from .registry import function_named
from .schemas import schemas_of

_OF_FUNCTIONAL = """
    linear embedding dropout alpha_dropout feature_alpha_dropout dropout1d=feature_dropout dropout2d=feature_dropout
    dropout3d=feature_dropout batch_norm instance_norm layer_norm group_norm relu relu6 silu mish selu hardswish
    hardsigmoid logsigmoid=log_sigmoid celu elu leaky_relu rrelu hardtanh softplus softshrink glu gelu
    softmax=softmax.int log_softmax=log_softmax.int max_pool1d max_pool2d max_pool3d avg_pool1d avg_pool2d avg_pool3d
    adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d pad scaled_dot_product_attention
    cross_entropy=cross_entropy_loss nll_loss=nll_loss_nd mse_loss l1_loss smooth_l1_loss huber_loss
    binary_cross_entropy binary_cross_entropy_with_logits kl_div"""
_OF_TORCH = """
    conv1d conv2d conv3d conv_transpose1d conv_transpose2d=conv_transpose2d.input
    conv_transpose3d=conv_transpose3d.input flatten=flatten.using_ints unflatten=unflatten.int softmax=softmax.int
    log_softmax=log_softmax.int chunk cholesky inverse histogramdd"""
_OF_LINALG = """
    inv=linalg_inv det=linalg_det solve=linalg_solve inv_ex=linalg_inv_ex solve_ex=linalg_solve_ex
    cholesky=linalg_cholesky cholesky_ex=linalg_cholesky_ex lu_factor=linalg_lu_factor lu_factor_ex=linalg_lu_factor_ex
    ldl_factor=linalg_ldl_factor ldl_factor_ex=linalg_ldl_factor_ex tensorinv=linalg_tensorinv
    tensorsolve=linalg_tensorsolve cond=linalg_cond"""
"""`function=operator.overload`; the function has the operator's name where none is said. The arguments are those of the
operator's schema. A function that works in place is the operator with a mark behind its name.
"""

_PARAMETERS = {"self": "input", "indices": "input", "train": "training", "cudnn_enable": "cudnn_enabled"}
"""Arguments of operators that are parameters of functions by another name."""
_SETTINGS = ("cudnn_enabled",)
"""Arguments that are settings of the process: they are always given."""
_STATISTICS = ("running_mean", "running_var")
"""What operators change though their schemas do not say it."""
_NOT_OF_FUNCTIONS = {"elu": ("scale", "input_scale"), "rrelu": ("generator",)}
"""Arguments of an operator that its function does not have."""
OTHERWISE = ("out", "return_indices", "size_average", "reduce", "max_norm", "enable_gqa")
"""Parameters that make a call another operator if they are given."""
_NONE_GIVEN: Any = object()


class Argument(NamedTuple):
    """An argument of an operator: which parameter of the function it is, and how it is given."""

    name: str
    is_written: bool
    length: int | None
    default: Any
    by_name: bool

    @classmethod
    def from_schema(cls, argument: schema.Argument) -> Argument:
        """What an argument of a schema is to a function."""
        name = _PARAMETERS.get(argument.name, argument.name)
        default, length = argument.default, argument.N
        if default is schema.NO_DEFAULT or name in _SETTINGS:
            default = _NONE_GIVEN
        elif length and default in (0, 1):
            default = [default] * length
        elif argument.type_text == "Scalar":  # functions say `1.0`
            default = float(default)
        return cls(name, argument.is_write or name in _STATISTICS, length, default, argument.kwarg_only)

    def as_given(self, value: Any) -> Any:
        """What the operator takes where the function has `value`."""
        if self.name == "reduction" and isinstance(value, str):
            return REDUCTIONS.index(value)
        if value is None and self.default is not _NONE_GIVEN:
            return self.default
        if self.length is not None and isinstance(value, int):
            return [value] * self.length
        return list(value) if isinstance(value, tuple) else value

    def as_taken(self, value: Any) -> Any:
        """What the function takes where the operator has `value`: the way back."""
        if self.name == "reduction":
            return REDUCTIONS[value]
        return None if self.name in ("stride", "padding_idx") and value == self.default else value

    def is_left_out(self, value: Any) -> bool:
        """Whether it is the default's value, which need not be said."""
        return type(value) is type(self.default) and bool(value == self.default)


class OperatorForm:
    """How a call of a public function becomes a call of an operator."""

    def __init__(self, space: str, function: str, operator: str, overload: str) -> None:
        self.space, self.name = space, function
        self.operator, self.overload = operator, overload
        others = (*OTHERWISE, *_NOT_OF_FUNCTIONS.get(operator, ()))
        taken = schemas_of("aten", operator)[overload].arguments
        self.arguments = [Argument.from_schema(each) for each in taken if each.name not in others]
        self.writes = tuple([number for number, each in enumerate(self.arguments) if each.is_written])

    @functools.cached_property
    def function(self) -> Any:
        """The public function."""
        return function_named(self.space, self.name)

    @functools.cached_property
    def _signature(self) -> inspect.Signature:
        return inspect.signature(self.function)

    def given(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """All parameters of a call of the function."""
        bound = self._signature.bind(*args, **kwargs)
        bound.apply_defaults()
        return bound.arguments

    def another(self, given: Mapping[str, Any]) -> str | None:
        """The parameter that makes a call one of another operator, if there is one."""
        return next((name for name in OTHERWISE if given.get(name) not in (None, False)), None)

    @property
    def has_in_place(self) -> bool:
        """Whether the function may change its input."""
        return "inplace" in self._signature.parameters

    def operator_for(self, in_place: Any) -> str:
        return f"{self.operator}_" if in_place else self.operator


def _read(space: str, entries: str) -> dict[str, OperatorForm]:
    forms = {}
    for entry in entries.split():
        function, _, said = entry.partition("=")
        operator, _, overload = (said or function).partition(".")
        forms[function] = OperatorForm(space, function, operator, overload or "default")
    return forms


@functools.cache
def forms_of_functional() -> dict[str, OperatorForm]:
    """The forms of `nn.functional`'s functions, by their names."""
    return _read("nn.functional", _OF_FUNCTIONAL)


@functools.cache
def forms_of_torch() -> dict[str, OperatorForm]:
    """The forms of functions of the package itself."""
    return _read("", _OF_TORCH)


@functools.cache
def forms_of_linalg() -> dict[str, OperatorForm]:
    """The forms of `linalg`'s functions: what checks whether they succeeded reads elements, and is inside of them."""
    return _read("linalg", _OF_LINALG)
