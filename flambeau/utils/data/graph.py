"""Which pipes a pipe is made of."""

from __future__ import annotations

import io
import pickle
import warnings
from collections.abc import Collection
from typing import Any

from .datapipes.datapipe import IterDataPipe, MapDataPipe

__all__ = ["traverse", "traverse_dps"]

Graph = dict[int, tuple[Any, Any]]


def traverse_dps(datapipe: Any) -> Graph:
    """For each pipe, under its `id`, the pipe and the same of those that it reads from."""
    if not isinstance(datapipe, (IterDataPipe, MapDataPipe)):
        raise RuntimeError(f"Expected `IterDataPipe` or `MapDataPipe`, but {type(datapipe)} is found")
    return _graph(datapipe, set())


def traverse(datapipe: Any, only_datapipe: bool | None = None) -> Graph:
    """`traverse_dps`, under its older name."""
    warnings.warn(
        "`traverse` function is deprecated and will be removed after 1.13. Please use `traverse_dps` instead. And, the "
        "behavior will be changed to the equivalent of `only_datapipe=True`.",
        FutureWarning,
        stacklevel=2,
    )
    return traverse_dps(datapipe)


class _Collector(pickle.Pickler):
    """Notes the pipes that a value holds, however deep, by the way in which pickle walks it."""

    def __init__(self, found: list[Any]) -> None:
        super().__init__(io.BytesIO())
        self._found = found

    def persistent_id(self, obj: Any) -> Any:
        if isinstance(obj, (IterDataPipe, MapDataPipe)):
            self._found.append(obj)
            return len(self._found)
        return "left out" if callable(obj) and not isinstance(obj, type) else None


def _held(pipe: Any) -> list[Any]:
    """The pipes that are attributes of a pipe, or in its lists and dicts."""
    found: list[Any] = []
    for value in vars(pipe).values():
        if isinstance(value, (IterDataPipe, MapDataPipe)):
            found.append(value)
        elif isinstance(value, Collection) and not isinstance(value, (str, bytes, range)):
            try:
                _Collector(found).dump(value)
            except (TypeError, pickle.PicklingError, AttributeError):  # what cannot be pickled is no pipe
                continue
    return list({id(each): each for each in found}.values())


def _graph(pipe: Any, above: set[int]) -> Graph:
    if id(pipe) in above:
        return {}
    inner: Graph = {}
    for held in _held(pipe):
        inner.update(_graph(held, above | {id(pipe)}))
    return {id(pipe): (pipe, inner)}
