"""Which of PyTorch's operators a public function is, whatever ops it runs, and with which arguments.

TorchScript and exported programs hold the call that a program made, `aten.linear`, not what is inside of it.
`aten_names.py` says the same of single ops.
"""

from __future__ import annotations

import ast
import functools
import inspect
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ..._core.reduction import REDUCTIONS
from .registry import function_named

_OF_FUNCTIONAL = (
    "linear.default(input, weight, bias=None)",
    "embedding.default(weight, input, padding_idx=-1, scale_grad_by_freq=False, sparse=False)",
    "dropout.default(input, p, training)",
    "alpha_dropout.default(input, p, training)",
    "feature_alpha_dropout.default(input, p, training)",
    "dropout1d -> feature_dropout.default(input, p, training)",
    "dropout2d -> feature_dropout.default(input, p, training)",
    "dropout3d -> feature_dropout.default(input, p, training)",
    "batch_norm.default(input, weight, bias, running_mean!, running_var!, training, momentum, eps, cudnn_enabled)",
    (
        "instance_norm.default(input, weight, bias, running_mean!, running_var!, use_input_stats, momentum, eps, "
        "cudnn_enabled)"
    ),
    "layer_norm.default(input, normalized_shape, weight=None, bias=None, eps=1e-05, cudnn_enabled)",
    "group_norm.default(input, num_groups, weight=None, bias=None, eps=1e-05, cudnn_enabled)",
    "relu.default(input)",
    "relu6.default(input)",
    "silu.default(input)",
    "mish.default(input)",
    "selu.default(input)",
    "hardswish.default(input)",
    "hardsigmoid.default(input)",
    "logsigmoid -> log_sigmoid.default(input)",
    "celu.default(input, alpha=1.0)",
    "elu.default(input, alpha=1.0)",
    "leaky_relu.default(input, negative_slope=0.01)",
    "rrelu.default(input, lower=0.125, upper=0.3333333333333333, training=False)",
    "hardtanh.default(input, min_val=-1.0, max_val=1.0)",
    "softplus.default(input, beta=1.0, threshold=20.0)",
    "softshrink.default(input, lambd=0.5)",
    "glu.default(input, dim=-1)",
    "gelu.default(input, *, approximate='none')",
    "softmax.int(input, dim, dtype=None)",
    "log_softmax.int(input, dim, dtype=None)",
    *(
        f"max_pool{n}d.default(input, kernel_size[{n}], stride[{n}]=[], padding[{n}]=0, dilation[{n}]=1, "
        "ceil_mode=False)"
        for n in (1, 2, 3)
    ),
    "avg_pool1d.default(input, kernel_size[1], stride[1]=[], padding[1]=0, ceil_mode=False, count_include_pad=True)",
    *(
        f"avg_pool{n}d.default(input, kernel_size[{n}], stride[{n}]=[], padding[{n}]=0, ceil_mode=False, "
        "count_include_pad=True, divisor_override=None)"
        for n in (2, 3)
    ),
    *(f"adaptive_avg_pool{n}d.default(input, output_size[{n}])" for n in (1, 2, 3)),
    "pad.default(input, pad, mode='constant', value=None)",
    (
        "scaled_dot_product_attention.default(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, *, "
        "scale=None)"
    ),
    (
        "cross_entropy -> cross_entropy_loss.default(input, target, weight=None, reduction=1, ignore_index=-100, "
        "label_smoothing=0.0)"
    ),
    "nll_loss -> nll_loss_nd.default(input, target, weight=None, reduction=1, ignore_index=-100)",
    "mse_loss.default(input, target, reduction=1)",
    "l1_loss.default(input, target, reduction=1)",
    "smooth_l1_loss.default(input, target, reduction=1, beta=1.0)",
    "huber_loss.default(input, target, reduction=1, delta=1.0)",
    "binary_cross_entropy.default(input, target, weight=None, reduction=1)",
    "binary_cross_entropy_with_logits.default(input, target, weight=None, pos_weight=None, reduction=1)",
    "kl_div.default(input, target, reduction=1, *, log_target=False)",
)
_OF_TORCH = (
    *(
        f"conv{n}d.default(input, weight, bias=None, stride[{n}]=1, padding[{n}]=0, dilation[{n}]=1, groups=1)"
        for n in (1, 2, 3)
    ),
    *(
        f"conv_transpose{n}d.{overload}(input, weight, bias=None, stride[{n}]=1, padding[{n}]=0, "
        f"output_padding[{n}]=0, groups=1, dilation[{n}]=1)"
        for n, overload in ((1, "default"), (2, "input"), (3, "input"))
    ),
    "flatten.using_ints(input, start_dim=0, end_dim=-1)",
    "unflatten.int(input, dim, sizes)",
    "softmax.int(input, dim, dtype=None)",
    "log_softmax.int(input, dim, dtype=None)",
    "chunk.default(input, chunks, dim=0)",
    "cholesky.default(input, upper=False)",
    "inverse.default(input)",
    "histogramdd.default(input, bins, range=None, weight=None, density=False)",
)
_OF_LINALG = (
    "inv -> linalg_inv.default(A)",
    "det -> linalg_det.default(A)",
    "solve -> linalg_solve.default(A, B, *, left=True)",
    "inv_ex -> linalg_inv_ex.default(A, *, check_errors=False)",
    "solve_ex -> linalg_solve_ex.default(A, B, *, left=True, check_errors=False)",
    "cholesky -> linalg_cholesky.default(input, *, upper=False)",
    "cholesky_ex -> linalg_cholesky_ex.default(input, *, upper=False, check_errors=False)",
    "lu_factor -> linalg_lu_factor.default(A, *, pivot=True)",
    "lu_factor_ex -> linalg_lu_factor_ex.default(A, *, pivot=True, check_errors=False)",
    "ldl_factor -> linalg_ldl_factor.default(input, *, hermitian=False)",
    "ldl_factor_ex -> linalg_ldl_factor_ex.default(input, *, hermitian=False, check_errors=False)",
    "tensorinv -> linalg_tensorinv.default(input, ind=2)",
    "tensorsolve -> linalg_tensorsolve.default(input, other, dims=None)",
    "cond -> linalg_cond.default(input, p=None)",
)
"""`function -> operator.overload(arguments)`; the function has the operator's name where none is said.

Arguments are parameters of the function, or settings of the process, with PyTorch's defaults. `!`: the operator
changes it. `[2]`: one number stands for two. Those behind `*` are given by name. A function that works in place is the
operator with a mark behind its name.
"""

_ENTRY = re.compile(r"(?:(\w+) -> )?(\w+)\.(\w+)\((.*)\)")
_PARAMETER = re.compile(r"(\w+)(!?)(?:\[(\d)\])?(?:=(.+))?")
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
    def from_text(cls, text: str, by_name: bool) -> Argument:
        match = _PARAMETER.fullmatch(text)
        assert match is not None, text
        name, written, digit, shown = match.groups()
        length = None if digit is None else int(digit)
        default = _NONE_GIVEN if shown is None else ast.literal_eval(shown)
        if length and default in (0, 1):
            default = [default] * length
        return cls(name, bool(written), length, default, by_name)

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

    def __init__(self, space: str, function: str, operator: str, overload: str, arguments: str) -> None:
        self.space, self.name = space, function
        self.operator, self.overload = operator, overload
        positional, _, named = arguments.partition(", *, ")
        texts = [(each, False) for each in _separated(positional)] + [(each, True) for each in _separated(named)]
        self.arguments = [Argument.from_text(*each) for each in texts]
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


def _separated(arguments: str) -> list[str]:
    return re.split(r", (?![^\[]*\])", arguments) if arguments else []


def _read(space: str, entries: Iterable[str]) -> dict[str, OperatorForm]:
    forms = {}
    for entry in entries:
        match = _ENTRY.fullmatch(entry)
        assert match is not None, entry
        name, operator, overload, arguments = match.groups()
        forms[name or operator] = OperatorForm(space, name or operator, operator, overload, arguments)
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
