"""The interpreter of one `vmap` call: how ops run on all examples at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..._dispatch.op import Op
from .level import READ, Vmap
from .rules import rule_of

_UNWRITTEN = ("full", "full_strided")


class Interpreter(Vmap):
    """Runs ops on all examples of a level, by the rules of the ops."""

    def run(self, op: Op, args: Sequence[Any]) -> Any:
        if not self.among(args):
            return self._unbatched(op, args)
        if op.reads:
            raise RuntimeError(READ)
        decomposes, rule = rule_of(op)
        if decomposes:
            with self:
                return rule(*args)
        return self.finished(rule(self, op, args))

    def _unbatched(self, op: Op, args: Sequence[Any]) -> Any:
        """An op that has nothing of this level among its arguments: the same for every example, unless it draws."""
        if op.draws:
            from .random import draw_unbatched

            return draw_unbatched(self, op, args)
        if op.name in _UNWRITTEN and self.randomness == "different" and args[-2] is None:
            from .random import unwritten

            return unwritten(self, op, args)
        return op(*args)

    def one_by_one(self, function: Callable[..., Any], args: Sequence[Any], options: dict[str, Any]) -> Any:
        from .loop import in_turn

        with self.outside():
            return self.finished(in_turn(self, function, function.__name__, args, options))

    def custom_function(self, function: Any, args: Sequence[Any]) -> Any:
        from .custom import apply

        return apply(self, function, args)
