"""The last resort: an op runs on one example after the other."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

from ..._core.tensor import Tensor
from ..._dispatch.op import Op
from ..._dispatch.public.return_types import named
from ..._ops.shape.join import stack
from .level import Vmap

WARNS = [True]
"""Whether a loop says that it is one: `torch._C._debug_only_display_vmap_fallback_warnings`."""


def loop(level: Vmap, op: Op, args: Sequence[Any]) -> Any:
    """Run `op` on each example, and join the results."""
    if op.writes:
        raise RuntimeError(
            f"vmap: {op.name} changes its arguments in place, and there is no batching rule for it: use an "
            "out-of-place form"
        )
    return in_turn(level, op, op.name, args, {})


def in_turn(level: Vmap, function: Callable[..., Any], name: str, args: Sequence[Any], options: dict[str, Any]) -> Any:
    """`function` on each example of `level`, outside of it, and the results joined."""
    if WARNS[0]:
        warnings.warn(
            f"There is a performance drop because we have not yet implemented the batching rule for {name}: it runs "
            "on one example after the other.",
            UserWarning,
            stacklevel=2,
        )
    if not level.size:
        raise RuntimeError(f"vmap: {name} has no batching rule, and cannot run on a batch of size 0 without one")
    results = [
        function(
            *[_example(level, each, number) for each in args],
            **{key: _example(level, each, number) for key, each in options.items()},
        )
        for number in range(level.size)
    ]
    if isinstance(results[0], Tensor):
        return stack(results)
    joined = [None if each[0] is None else stack(list(each)) for each in zip(*results, strict=True)]
    return joined if type(results[0]) is list else named(type(results[0]), joined)


def _example(level: Vmap, value: Any, number: int) -> Any:
    if level.has(value):
        return value.value[number]
    return [_example(level, each, number) for each in value] if type(value) is list else value
