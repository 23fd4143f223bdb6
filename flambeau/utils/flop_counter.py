"""How many floating-point operations a program needs, under the names of `torch.utils.flop_counter`.

Products and convolutions are counted, which outweigh all else: a multiplication and an addition are two operations.
"""

from __future__ import annotations

import math
import warnings
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

from .. import ops
from .._core.tensor import Tensor
from .._dispatch.interpreter import Interpreter
from .._dispatch.op import Op
from .._dispatch.public.overloads import OpOverloadPacket, forms_of, operator_call, packet
from ._pytree import tree_map
from .module_tracker import ModuleTracker

__all__ = ["FlopCounterMode", "register_flop_formula"]

Shape = Sequence[int]
Formula = Callable[..., int]

aten: Any = ops.aten
own: Any = ops.flambeau

flop_registry: dict[Any, Formula] = {}
"""Formulas by operator: from the operator's arguments, with shapes in the place of tensors, and `out_shape`."""


def register_flop_formula(targets: Any, get_raw: bool = False) -> Callable[[Formula], Formula]:
    """Make the decorated function the formula of an operator, or of several; `get_raw`: it wants the tensors.

    Args:
        targets: the operator, or a list of them.
        get_raw (bool): whether the function gets the tensors; otherwise it gets their shapes. Default: `False`.

    Returns:
        a decorator.

    Example:
        >>> @torch.utils.flop_counter.register_flop_formula(torch.ops.aten.cosh)
        ... def cosh_flop(shape, out_shape=None, **kwargs):
        ...     return 10 * shape[0]
        >>> with torch.utils.flop_counter.FlopCounterMode(display=False) as counter:
        ...     _ = torch.cosh(torch.ones(3))
        >>> counter.get_total_flops()
        30
    """

    def decorate(formula: Formula) -> Formula:
        formula._get_raw = get_raw  # type: ignore[attr-defined]  # PyTorch marks functions so
        for target in targets if isinstance(targets, (list, tuple)) else [targets]:
            if not isinstance(target, OpOverloadPacket):
                raise ValueError(
                    f"register_flop_formula(targets): expected each target to be OpOverloadPacket (i.e. "
                    f"torch.ops.mylib.foo), got {target} which is of type {type(target)}"
                )
            if target in flop_registry:
                raise RuntimeError(f"duplicate registrations for {target}")
            flop_registry[target] = formula
        return formula

    return decorate


@register_flop_formula(aten.mm)
def mm_flop(a_shape: Shape, b_shape: Shape, *args: Any, out_shape: Any = None, **kwargs: Any) -> int:
    """The operations of a product of two matrices."""
    return 2 * a_shape[0] * a_shape[1] * b_shape[1]


@register_flop_formula(aten.addmm)
def addmm_flop(self_shape: Shape, a_shape: Shape, b_shape: Shape, out_shape: Any = None, **kwargs: Any) -> int:
    """The operations of a product of matrices that is added to something; adding it is not counted."""
    return mm_flop(a_shape, b_shape)


@register_flop_formula(aten.bmm)
def bmm_flop(a_shape: Shape, b_shape: Shape, out_shape: Any = None, **kwargs: Any) -> int:
    """The operations of a stack of products of matrices."""
    return a_shape[0] * mm_flop(a_shape[1:], b_shape[1:])


@register_flop_formula(aten.baddbmm)
def baddbmm_flop(self_shape: Shape, a_shape: Shape, b_shape: Shape, out_shape: Any = None, **kwargs: Any) -> int:
    """The operations of a stack of products that is added to something."""
    return bmm_flop(a_shape, b_shape)


def conv_flop_count(x_shape: Shape, w_shape: Shape, out_shape: Shape, transposed: bool = False) -> int:
    """The operations of a convolution: each element of the weight meets each place of the result (if transposed, of
    the input) once for every example.
    """
    places = (x_shape if transposed else out_shape)[2:]
    return 2 * x_shape[0] * math.prod(places) * math.prod(w_shape)


@register_flop_formula(aten.convolution)
def conv_flop(
    x_shape: Shape, w_shape: Shape, _bias: Any, _stride: Any, _padding: Any, _dilation: Any, transposed: bool,
    *args: Any, out_shape: Any = None, **kwargs: Any,
) -> int:  # fmt: skip
    """The operations of a convolution, from the arguments of the op."""
    return conv_flop_count(x_shape, w_shape, out_shape, transposed)


@register_flop_formula(aten.convolution_backward)
def conv_backward_flop(
    grad_out_shape: Shape, x_shape: Shape, w_shape: Shape, _bias: Any, _stride: Any, _padding: Any, _dilation: Any,
    transposed: bool, _output_padding: Any, _groups: int, output_mask: Sequence[bool], out_shape: Any, **kwargs: Any,
) -> int:  # fmt: skip
    """The operations of a convolution's gradients: each gradient is a convolution too."""
    total = 0
    if output_mask[0]:
        total += conv_flop_count(grad_out_shape, w_shape, x_shape, not transposed)
    if output_mask[1]:
        first, second = (grad_out_shape, x_shape) if transposed else (x_shape, grad_out_shape)
        total += conv_flop_count(_swapped(first), _swapped(second), _swapped(w_shape))
    return total


def _swapped(shape: Shape) -> list[int]:
    return [shape[1], shape[0], *shape[2:]]


@register_flop_formula(own.attention)
def sdpa_flop(
    query_shape: Shape, key_shape: Shape, value_shape: Shape, *args: Any, out_shape: Any = None, **kwargs: Any
) -> int:
    """The operations of attention: scores, and their product with the values."""
    pairs = math.prod(query_shape[:-1]) * key_shape[-2]
    return 2 * pairs * (query_shape[-1] + value_shape[-1])


def sdpa_backward_flop(
    grad_out_shape: Any, query_shape: Shape, key_shape: Shape, value_shape: Shape, *args: Any, out_shape: Any = None,
    **kwargs: Any,
) -> int:  # fmt: skip
    """The operations of attention's gradients, for which the scores are computed again."""
    pairs = math.prod(query_shape[:-1]) * key_shape[-2]
    return 2 * pairs * (3 * query_shape[-1] + 2 * value_shape[-1])


@register_flop_formula(own.attention_backward)
def _own_sdpa_backward_flop(grads: Any, needed: Any, *args: Any, out_shape: Any = None, **kwargs: Any) -> int:
    return sdpa_backward_flop(grads, *args, out_shape=out_shape)


@register_flop_formula(own.matmul)
def matmul_flop(left: Shape, right: Shape, *args: Any, out_shape: Any = None, **kwargs: Any) -> int:
    """The operations of a stack of products with broadcasting."""
    return 2 * int(math.prod(out_shape)) * left[-1]


@register_flop_formula([own.rnn_layer, own.gru_layer])
def recurrent_flop(
    input: Shape, hx: Shape, w_ih: Shape, w_hh: Shape, *args: Any, out_shape: Any = None, **kwargs: Any
) -> int:
    """The operations of a recurrent layer: each row by both of its matrices."""
    return 2 * math.prod(input[:-1]) * (math.prod(w_ih) + math.prod(w_hh))


@register_flop_formula(own.lstm_layer)
def lstm_flop(
    input: Shape, hx: Shape, cx: Shape, w_ih: Shape, w_hh: Shape, *args: Any, out_shape: Any = None, **kwargs: Any
) -> int:
    """The operations of a layer of long short-term memory, with its projection."""
    _, _, w_hr, *_ = args
    return recurrent_flop(input, hx, w_ih, w_hh) + 2 * math.prod(input[:-1]) * (math.prod(w_hr) if w_hr else 0)


@register_flop_formula(own.recurrent_backward)
def recurrent_backward_flop(
    values: Any, given: Any, gradients: Any, grads: int, needed: Any, *args: Any, out_shape: Any = None, **kwargs: Any
) -> int:
    """The operations of a recurrent layer's gradients: for each matrix, and for what was multiplied by it."""
    present = iter(values)
    everything: list[Any] = [next(present) if each else None for each in given]
    input, hx, *saved = everything[grads:]
    if is_lstm := len(needed) == 8:
        _, w_ih, w_hh, w_hr, *_ = saved
    else:
        w_ih, w_hh, *_ = saved
    of_input, of_state, of_w_ih, of_w_hh = needed[0], needed[1], needed[2 + is_lstm], needed[3 + is_lstm]
    rows = math.prod(input[:-1])
    steps_back = rows if of_state else rows - hx[-2]
    total = rows * math.prod(w_ih) * (of_input + of_w_ih) + math.prod(w_hh) * (steps_back + rows * of_w_hh)
    if is_lstm and w_hr:
        total += rows * math.prod(w_hr) * (1 + needed[7])
    return 2 * int(total)


_LISTED_AS = {
    own.recurrent_backward: aten.mm,
    own.attention: packet("aten", "_scaled_dot_product_flash_attention"),
    own.attention_backward: packet("aten", "_scaled_dot_product_flash_attention_backward"),
    own.matmul: aten.bmm,
}
"""PyTorch's operators that do the work of some of this package's."""

_PLACE_OF_BIAS = {"rnn_layer": 4, "gru_layer": 4, "lstm_layer": 5}
"""Layers that are listed as products with or without a sum."""


def _shape(value: Any) -> Any:
    return list(value.shape) if isinstance(value, Tensor) else value


def _counted(op: Op, args: Sequence[Any], result: Any, registry: dict[Any, Formula]) -> tuple[Any, int] | None:
    """The operator that a call of an op is, and its operations; None where there is no formula."""
    func, positional, kwargs = operator_call(op, args)
    operator = func.overloadpacket
    formula = registry.get(operator)
    if formula is None:
        return None
    if getattr(formula, "_get_raw", False):
        count = formula(*positional, **kwargs, out_val=result)
    else:
        shapes, named, out_shape = tree_map(_shape, (positional, kwargs, result))
        count = formula(*shapes, **named, out_shape=out_shape)
    if op.name == "matmul" and positional[1].dim() <= 2:
        operator = aten.mm  # one matrix for the whole stack
    elif (biases := _PLACE_OF_BIAS.get(op.name)) is not None:
        operator = aten.mm if positional[biases] is None else aten.addmm
    return _LISTED_AS.get(operator, operator), count


def flops_of(op: Op, args: Sequence[Any], result: Any) -> int | None:
    """The operations of one call of an op; None where there is no formula."""
    found = _counted(op, args, result, flop_registry)
    return None if found is None else found[1]


def has_formula(op: Op) -> bool:
    """Whether calls of an op can have operations that are counted."""
    operators = [packet("aten", form.name) for form in forms_of(op)]
    return any(each in flop_registry for each in (*operators, packet("flambeau", op.name)))


class FlopCounterMode(Interpreter):
    """A context that counts floating-point operations, by module and by operator, backward passes included.

    `depth` is that of the table that is printed in the end, if `display` is set. `custom_mapping` has formulas for
    further operators, such as `{torch.ops.aten.add: lambda a, b, out_shape=None: math.prod(out_shape)}`.

    >>> counter = flambeau.utils.flop_counter.FlopCounterMode(display=False)
    >>> with counter:
    ...     _ = flambeau.ones(2, 3) @ flambeau.ones(3, 4)
    >>> counter.get_total_flops()
    48

    Args:
        mods: not needed: modules are found by themselves.
        depth (int): how many levels of modules the table shows. Default: `2`.
        display (bool): whether the table is printed at the end. Default: `True`.
        custom_mapping (dict[Any, Any], optional): formulas by operator.
    """

    def __init__(
        self, mods: Any = None, depth: int = 2, display: bool = True, custom_mapping: dict[Any, Any] | None = None
    ) -> None:
        if mods is not None:
            warnings.warn("mods argument is not needed anymore, you can stop passing it", stacklevel=2)
        self.depth, self.display = depth, display
        self.flop_counts: dict[str, dict[Any, int]] = defaultdict(lambda: defaultdict(int))
        self.flop_registry = {**flop_registry, **(custom_mapping or {})}
        self.mod_tracker = ModuleTracker()

    def run(self, op: Op, args: Sequence[Any]) -> Any:
        result = op(*args)
        found = _counted(op, args, result, self.flop_registry)
        if found is not None:
            for name in self.mod_tracker.parents:
                self.flop_counts[name][found[0]] += found[1]
        return result

    def get_total_flops(self) -> int:
        """The number of all operations together."""
        return sum(self.flop_counts["Global"].values())

    def get_flop_counts(self) -> dict[str, dict[Any, int]]:
        """The operations by module, and in each by operator; "Global" is the whole program."""
        return {name: dict(counts) for name, counts in self.flop_counts.items()}

    def get_table(self, depth: int | None = None) -> str:
        """The counts as text, with modules down to a depth, and the share of each in the whole."""
        depth = 999999 if depth is None else depth
        total = self.get_total_flops()
        rows: list[tuple[str, str, str]] = []
        for name in ["Global", *sorted(each for each in self.flop_counts if each != "Global")]:
            level = 0 if name == "Global" else name.count(".") + 1
            if level > depth:
                continue
            counts = self.flop_counts[name]
            rows.append((" " * level + name, *_amounts(sum(counts.values()), total)))
            rows += [(" " * (level + 1) + f"- {op}", *_amounts(count, total)) for op, count in counts.items()]
        table = [("Module", "FLOP", "% Total"), *rows]
        widths = [max(len(row[column]) for row in table) for column in range(3)]
        lines = [f"{a:<{widths[0]}}  {b:>{widths[1]}}  {c:>{widths[2]}}" for a, b, c in table]
        return "\n".join([lines[0], "  ".join("-" * width for width in widths), *lines[1:]])

    def __enter__(self) -> FlopCounterMode:
        self.flop_counts.clear()
        self.mod_tracker.__enter__()
        super().__enter__()
        return self

    def __exit__(self, *exception: object) -> None:
        super().__exit__(*exception)
        self.mod_tracker.__exit__()
        if self.display:
            print(self.get_table(self.depth))  # noqa: T201  (that is what `display` asks for)


def _amounts(count: int, total: int) -> tuple[str, str]:
    digits = len(str(count))
    scale = max(0, min(4, (digits - 1) // 3))
    text = f"{count / 1000**scale:.3f}{' KMBT'[scale]}".strip() if scale else str(count)
    return text, f"{100 * count / total:.2f}%" if total else "0.00%"
