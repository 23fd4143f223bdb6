"""`torch.fx.experimental.symbolic_shapes`: sizes are plain numbers here, so questions about them have answers."""

from __future__ import annotations

from typing import Any

from ..._core.names.absent import Table

__getattr__, __dir__ = (
    Table(__name__)
    .absent(
        "symbolic shapes are not built yet",
        classes="ShapeEnv DimDynamic StatelessSymbolicContext ConstraintViolationError",
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
