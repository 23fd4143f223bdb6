"""Backends of one's own: functions that are given a graph of what a call does, and examples of its inputs.

What is checked before such a graph is run, and what a break is, does not depend on the backend.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._core.slots import SLOTS
from .._core.tensor import Tensor
from ._compiled import Compiled, Refused
from ._marks import run_inside
from .capture.breaks.split import Definition
from .capture.watch import Uncompilable
from .emit.source import Source
from .emit.write import Recording, write_checks
from .program.items import Call
from .program.pure import is_pure

Backend = Callable[..., Callable[..., Any]]


class CompiledEagerly(Compiled):
    """A function that runs eagerly: `backend="eager"`. With `fullgraph` a call is recorded, to find out what breaks."""

    _backend = "eager"

    def forget(self) -> None:
        super().forget()
        self._is_known = not self.fullgraph
        self.reasons.append("backend='eager' runs every call eagerly")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return run_inside(self.function, args, kwargs) if self._is_known else super().__call__(*args, **kwargs)

    def _program(self, recording: Recording) -> None:
        self._is_known = True


class CompiledByBackend(Compiled):
    """A function whose graphs somebody else compiles."""

    _guards = False
    _is_timed = False
    _replays = False

    def __init__(
        self,
        function: Callable[..., Any],
        fullgraph: bool = False,
        definition: Definition | None = None,
        dynamic: bool | None = None,
        *,
        backend: Backend,
    ) -> None:
        self._backend = backend
        super().__init__(function, fullgraph, definition, dynamic)

    def _options(self) -> dict[str, Any]:
        return {"dynamic": self.dynamic, "backend": self._backend}

    def _part(self, refused: Refused, function: Callable[..., Any], definition: Definition | None) -> Compiled:
        return CompiledByBackend(function, definition=definition, backend=self._backend)

    def _program(self, recording: Recording) -> Callable[..., Any]:
        joint, items = recording.joint, recording.recorder.program.items
        forward = items if joint is None else items[: joint.boundary]
        if not all(isinstance(each, Call) and (is_pure(each) or each.op.draws) for each in forward):
            raise Uncompilable("a backend of one's own is given graphs without changes of what was there before")
        leaves, rebuild = _flat(recording.call)
        results: list[Callable[..., Any]] = []

        def flat(*tensors: Any) -> Any:
            again_args, again_kwargs = rebuild(tensors)
            found, back = _flat(run_inside(self.function, again_args, again_kwargs))
            results.append(back)
            return tuple(found)

        graph = SLOTS.graph_of(flat, leaves)
        compiled, back = self._backend(graph, leaves), results[-1]
        source = Source(recording.state.constants)
        write_checks(source, recording.state.lines, recording)
        run = source.constant(lambda args, kwargs: back(compiled(*_flat((args, kwargs))[0])))
        source.lines.append(f"return {run}(args, kwargs)")
        made: Callable[..., Any] = source.function("call", "args, kwargs")
        vars(made).update(places=set(), graph=graph)
        return made


def _flat(tree: Any) -> tuple[list[Any], Callable[[Any], Any]]:
    """The tensors in a tree, and a function that puts others in their places."""
    leaves: list[Any] = []
    SLOTS.tree_map_only(Tensor, leaves.append, tree)

    def rebuild(others: Any) -> Any:
        following = iter(others)
        return SLOTS.tree_map_only(Tensor, lambda _: next(following), tree)

    return leaves, rebuild
