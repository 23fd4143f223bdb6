"""Derivatives of elementwise ops in one pass: the formulas of a node, traced and compiled.

A derivative is written in Flambeau's own ops, as in `grad * (1 - result * result)`. Run as it stands it reads and
writes memory at every step. In an ordinary backward pass over large tensors, whose own steps nobody will
differentiate, the formulas of all inputs that need a gradient run once with `Symbol`s in place of tensors; what they
computed becomes one kernel, which reads each operand once. Formulas that do more than elementwise arithmetic cannot be
traced, and run as they stand.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Sequence
from typing import Any

from .._backends.tiers import generated
from .._core import node as node_module
from .._core.dtype import dtype
from .._core.modes import THREAD
from .._core.node import OpNode
from .._core.tensor import PLAIN_TYPES, Tensor
from .dispatch import fresh
from .elementwise import Elementwise

_MOST_VARIANTS = 16


class Symbol:
    """A tensor of a formula that is being traced. It has the operators and the elementwise methods of tensors."""

    def __init__(self, expression: Any, kind: Any) -> None:
        self.expression = expression
        self._kind = kind

    @property
    def dtype(self) -> dtype:
        """The dtype of the tensor that it stands for."""
        return self._kind.dtype  # type: ignore[no-any-return]

    def is_complex(self) -> bool:
        """Whether it is complex: such formulas are not traced."""
        return False

    def conj(self) -> Symbol:
        """Itself: it is real."""
        return self

    conjugate = conj

    def traced(self, kernel: Callable[..., Any], args: Sequence[Any]) -> Symbol:
        """What a kernel on arrays makes of symbols."""
        given = [each.expression if isinstance(each, Symbol) else each for each in args]
        return Symbol(kernel(*given), self._kind)

    def __getattr__(self, name: str) -> Any:
        op = getattr(getattr(sys.modules["flambeau"], name, None), "op", None)
        if not isinstance(op, Elementwise):
            raise AttributeError(name)
        return lambda *others: self.traced(op.body, (self, *others))

    @classmethod
    def __torch_function__(cls, function: Any, types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        op = getattr(function, "op", None)
        if not isinstance(op, Elementwise) or kwargs:
            raise TypeError(f"{function} is not elementwise")
        symbol = next(each for each in args if isinstance(each, Symbol))
        return symbol.traced(op.body, args)


def _add_operators() -> None:
    def forward(apply: Callable[..., Any]) -> Callable[..., Symbol]:
        return lambda self, *others: self.traced(apply, (self, *others))

    def backward(apply: Callable[..., Any]) -> Callable[..., Symbol]:
        return lambda self, other: self.traced(apply, (other, self))

    for name in ("add", "sub", "mul", "truediv", "and", "or", "xor"):
        apply = getattr(operator, f"{name}_" if name in ("and", "or") else name)
        setattr(Symbol, f"__{name}__", forward(apply))
        setattr(Symbol, f"__r{name}__", backward(apply))
    for name in ("neg", "invert", "lt", "le", "gt", "ge", "eq", "ne"):
        setattr(Symbol, f"__{name}__", forward(getattr(operator, name)))


_add_operators()


class _Fusion:
    """The compiled formulas of a node class for one choice of operands."""

    __slots__ = ("compiled", "passed_on")

    def __init__(self, compiled: Any, passed_on: tuple[int | None, ...]) -> None:
        self.compiled = compiled
        self.passed_on = passed_on
        """For each gradient: None if it is computed, else the number of the operand that it is."""


def fused(node: OpNode, grad: Tensor, values: dict[str, Any] | None, edges: Sequence[Any]) -> list[Any] | None:
    """The gradients of the inputs in one pass; None: the formulas have to run as they stand."""
    module = generated("pointwise")
    if module is None or THREAD.modes.grad or not THREAD.modes.plain or type(grad) not in PLAIN_TYPES:
        return None
    saved = values or {}
    tensors = [grad]
    key: list[Any] = [grad._array.dtype, *[edge is not None for edge in edges]]
    shape = grad._array.shape
    for name, value in saved.items():
        if isinstance(value, Tensor):
            if type(value) not in PLAIN_TYPES or value._kind is not grad._kind or not _fits(value._array.shape, shape):
                return None
            tensors.append(value)
            key.append(None)
        elif type(value) is float or type(value) is int:
            tensors.append(value)  # type: ignore[arg-type]
            key.append(float)
        else:
            key.append((name, value))
    fusions: dict[tuple[Any, ...], _Fusion | None] = type(node).__dict__.get("fusions") or _table(type(node))
    try:
        fusion = fusions[tuple(key)]
    except KeyError:
        fusion = fusions[tuple(key)] = (
            _fuse(module, node, grad, saved, edges) if len(fusions) < _MOST_VARIANTS else None
        )
    except TypeError:  # a saved value without a hash
        return None
    if fusion is None:
        return None
    arrays = [each._array if isinstance(each, Tensor) else each for each in tensors]
    computed = iter(fusion.compiled.many(*arrays) if fusion.compiled is not None else ())
    results: list[Any] = []
    numbers = iter(fusion.passed_on)
    for edge, formula in zip(edges, node.formulas, strict=True):
        if edge is None or formula is None:
            results.append(None)
            continue
        number = next(numbers)
        results.append(fresh(next(computed), grad) if number is None else tensors[number])
    return results


def _table(cls: type[OpNode]) -> dict[Any, Any]:
    cls.fusions = {}  # type: ignore[attr-defined]
    return cls.fusions  # type: ignore[attr-defined, no-any-return]


def _fits(shape: tuple[int, ...], whole: tuple[int, ...]) -> bool:
    """Whether a tensor of `shape` broadcasts to `whole`, the shape of the gradient."""
    if shape == whole:
        return True
    return len(shape) <= len(whole) and all(
        own in (1, size) for own, size in zip(reversed(shape), reversed(whole), strict=False)
    )


def _fuse(module: Any, node: OpNode, grad: Tensor, saved: dict[str, Any], edges: Sequence[Any]) -> _Fusion | None:
    wanted = [
        formula for edge, formula in zip(edges, node.formulas, strict=True) if edge is not None and formula is not None
    ]
    kind = grad._kind
    array_type = grad._array.dtype
    passed_on: list[int | None] = []

    def body(*operands: Any) -> Any:
        symbols = [Symbol(each, kind) for each in operands]
        remaining = iter(symbols[1:])
        named = {
            name: next(remaining) if isinstance(value, Tensor) or type(value) in (float, int) else value
            for name, value in saved.items()
        }
        results = []
        for formula, names in wanted:
            result = formula(symbols[0], *[named[name] for name in names])
            if not isinstance(result, Symbol):
                raise TypeError("the formula gives no tensor")
            same = next((i for i, each in enumerate(symbols) if each.expression is result.expression), None)
            passed_on.append(same)
            if same is None:
                results.append(result.expression)
        return tuple(results)

    operands = [array_type] + [
        array_type for value in saved.values() if isinstance(value, Tensor) or type(value) in (float, int)
    ]
    compiled = module.pointwise(body, operands, array_type)
    return None if compiled is None else _Fusion(compiled if compiled.results else None, tuple(passed_on))


node_module.fuse = fused
