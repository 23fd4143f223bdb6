"""Ops that ran, as calls of PyTorch's operators: what stands in graphs of operators."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..._core.generator import Generator
from ..._dispatch.op import Op
from ..._dispatch.public.overloads import OpOverload, operator_call, overload_named


class OperatorCall(NamedTuple):
    """A call of an operator."""

    func: OpOverload
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    only_first: bool = False
    """Whether the operator returns just the first of the op's results; the others are for derivatives."""


@dataclass(frozen=True)
class WholeCall:
    """A call that a trace holds as one, whatever ops it ran: it stands in the place of an op."""

    func: OpOverload
    names: tuple[str, ...] = ()
    """The names of the last arguments."""
    writes: tuple[int, ...] = ()

    reads = False

    @property
    def name(self) -> str:
        """The name of the operator."""
        return self.func.__name__

    def operator_call(self, args: Sequence[Any]) -> OperatorCall:
        """The call with its arguments, those by name behind those by position."""
        count = len(args) - len(self.names)
        return OperatorCall(self.func, tuple(args[:count]), dict(zip(self.names, args[count:], strict=True)))


def _aten(name: str, *args: Any, overload: str = "default", only_first: bool = False, **kwargs: Any) -> OperatorCall:
    return OperatorCall(overload_named("aten", name, overload), args, kwargs, only_first)


def _batch_norm(
    input: Any, weight: Any, bias: Any, mean: Any, var: Any, training: bool, eps: float, kept: Any
) -> OperatorCall:
    statistics = (None, None) if training else (mean, var)  # another op changes the running ones
    return _aten("batch_norm", input, weight, bias, *statistics, training, 0.1, eps, False, only_first=True)


def _attention(query: Any, key: Any, value: Any, p: float, causal: bool, mask: Any, scale: Any) -> OperatorCall:
    options = {} if scale is None else {"scale": scale}
    return _aten("scaled_dot_product_attention", query, key, value, mask, p, causal, only_first=True, **options)


_FORMS: dict[str, Callable[..., OperatorCall]] = {
    "attention": _attention,
    "group_norm": lambda input, weight, bias, N, C, HxW, group, eps, kept: _aten(
        "group_norm", input, group, weight, bias, eps, False, only_first=True
    ),
    "grouped": lambda self, mat2, offs: _aten("_grouped_mm", self, mat2, offs),
    "index": lambda self, advanced, indices: _aten("index", self, list(advanced), overload="Tensor"),
    "layer_norm": lambda input, shape, weight, bias, eps, kept: _aten(
        "layer_norm", input, list(shape), weight, bias, eps, False, only_first=True
    ),
    "matmul": lambda left, right: _aten("matmul", left, right),
    "native_batch_norm": _batch_norm,
    "normalised": lambda v, g, dim: _aten("_weight_norm", v, g, dim),
    "pow_of_number": lambda number, exponent: _aten("pow", number, exponent, overload="Scalar"),
    "remainder_of_number": lambda number, other: _aten("remainder", number, other, overload="Scalar_Tensor"),
    "reshape_alias": lambda self, size: _aten("reshape", self, list(size)),
}
"""Ops whose operator has other arguments, so that no entry of `_dispatch/public/aten_names.py` says what they are."""


def as_operator(op: Op | WholeCall, args: Sequence[Any]) -> OperatorCall:
    """The operator that an op is, with its arguments; one of this package's own where PyTorch has none.

    A graph draws random numbers from the generator of all.
    """
    if isinstance(op, WholeCall):
        return op.operator_call(args)
    form = _FORMS.get(op.name)
    if form is not None:
        return form(*args)
    func, positional, kwargs = operator_call(op, args)
    drawn = {name: value for name, value in kwargs.items() if not isinstance(value, Generator)}
    return OperatorCall(func, tuple([None if isinstance(each, Generator) else each for each in positional]), drawn)
