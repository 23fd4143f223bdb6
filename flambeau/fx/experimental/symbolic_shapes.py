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


def has_free_symbols(value: Any) -> bool:
    """Whether a size is symbolic; none is."""
    return False


has_free_unbacked_symbols = is_symbolic = has_free_symbols


def guard_size_oblivious(expr: Any) -> bool:
    """The truth of a condition on sizes."""
    return bool(expr)


guard_bool = guard_or_false = guard_or_true = statically_known_true = definitely_true = guard_size_oblivious


def guard_int(value: Any) -> int:
    """A size as a number."""
    return int(value)


def guard_float(value: Any) -> float:
    """A number computed from sizes."""
    return float(value)


def guard_scalar(value: Any) -> Any:
    """A number computed from sizes, as it is."""
    return value


hint_int = guard_int
