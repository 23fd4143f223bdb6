"""`torch.fx.experimental.symbolic_shapes`: sizes are plain numbers here, so questions about them have answers."""

from __future__ import annotations

from typing import Any

from ..._core.names.absent import Table
from ..._core.names.symbolic import SymBool, SymFloat, SymInt
from ..._core.tensor import Tensor

__getattr__, __dir__ = (
    Table(__name__)
    .elsewhere("ConstraintViolationError", "compiler._errors")
    .absent(
        "symbolic shapes are not built yet",
        classes="ShapeEnv DimDynamic StatelessSymbolicContext",
    )
    .parts()
)


def has_free_symbols(val: Any) -> bool:
    """Whether a size is symbolic; none is."""
    return False


is_symbolic = has_free_symbols


def has_free_unbacked_symbols(x: Any) -> bool:
    """Whether a size is symbolic and depends on data; none is."""
    return False


def guard_size_oblivious(expr: Any) -> bool:
    """The truth of a condition on sizes."""
    return bool(expr)


def guard_bool(a: Any) -> bool:
    """The truth of a condition on sizes."""
    return bool(a)


guard_or_false = guard_or_true = definitely_true = guard_bool


def statically_known_true(x: Any) -> bool:
    """The truth of a condition on sizes."""
    return bool(x)


def guard_int(a: Any) -> int:
    """A size as a number."""
    return int(a)


def guard_float(a: Any) -> float:
    """A number computed from sizes."""
    return float(a)


def guard_scalar(a: Any) -> Any:
    """A number computed from sizes, as it is."""
    return a


hint_int = guard_int


def guarding_hint_or_throw(a: Any) -> Any:
    """The number behind a size."""
    return a if isinstance(a, (bool, int)) else int(a)


def optimization_hint(a: Any, fallback: int | None = None) -> int:
    """The number behind a size, for decisions about speed."""
    return int(a)


def is_concrete_int(a: Any) -> bool:
    """Whether a whole number is known; all plain ones are."""
    return isinstance(a, int) or _is_known(a)


def is_concrete_float(a: Any) -> bool:
    """Whether a float is known; all plain ones are."""
    return isinstance(a, float) or _is_known(a)


def is_concrete_bool(a: Any) -> bool:
    """Whether a truth is known; all plain ones are."""
    return isinstance(a, bool) or _is_known(a)


def _is_known(a: Any) -> bool:
    return isinstance(a, (SymInt, SymFloat, SymBool)) and a.node.is_constant()


def has_static_value(a: Any) -> bool:
    """Whether a number can have one value only."""
    return not isinstance(a, (SymInt, SymFloat, SymBool)) or _is_known(a)


def is_nested_int(s: Any) -> bool:
    """Whether a size is that of the rows of a nested tensor."""
    return isinstance(s, SymInt) and bool(s.node.is_nested_int())


def statically_known_false(x: Any) -> bool:
    """Whether a condition on sizes does not hold."""
    return not x


def sym_and(x: Any, *others: Any) -> Any:
    """Whether all conditions hold."""
    for each in others:
        x = x & each
    return x


def sym_or(x: Any, *others: Any) -> Any:
    """Whether one of the conditions holds."""
    for each in others:
        x = x | each
    return x


def sym_eq(x: Any, y: Any) -> Any:
    """Whether two values are equal, element by element where they are lists of as many."""
    if isinstance(x, (list, tuple)) and isinstance(y, (list, tuple)):
        if len(x) != len(y):
            return False
        return sym_and(True, *(sym_eq(left, right) for left, right in zip(x, y, strict=True)))
    if isinstance(x, (int, SymInt)) and isinstance(y, (int, SymInt)):
        return x == y
    raise AssertionError(f"unexpected sym_eq between {type(x)} {type(y)}")


def create_contiguous(shape: Any) -> list[Any]:
    """Strides that PyTorch takes for those of a contiguous tensor: from the lengths without the last, not the first."""
    strides: list[Any] = [1]
    for length in reversed(shape[:-1]):
        strides.append(length * strides[-1])
    return strides[::-1]


def has_symbolic_sizes_strides(elem: Any) -> bool:
    """Whether a tensor has symbolic sizes; none has."""
    return False


def free_symbols(val: Any) -> set[Any]:
    """The symbols in a size; there are none."""
    return set()


def check_consistent(new: Any, old: Any) -> None:
    """Refuse values that differ in their shapes, or numbers that differ."""
    if isinstance(new, Tensor) and isinstance(old, Tensor):
        if tuple(new.shape) != tuple(old.shape):
            raise RuntimeError(f"{tuple(old.shape)} != {tuple(new.shape)} (old != new)")
    elif isinstance(new, (int, float, SymInt)) and not isinstance(new, bool) and new != old:
        raise RuntimeError(f"{old} != {new} (old != new)")


class SymIntEqByExpr:
    """A size that equals another if both come from the same expression; it can be a key."""

    def __init__(self, val: Any) -> None:
        self.val = val.node.expr if isinstance(val, SymInt) else val

    def __repr__(self) -> str:
        return repr(self.val)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SymIntEqByExpr):
            raise AssertionError(f"a SymIntEqByExpr is compared with a {type(other).__name__}")
        return bool(self.val == other.val)

    def __hash__(self) -> int:
        return hash(self.val)
