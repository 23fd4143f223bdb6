"""Options of optimizers by name: what a constructor keeps as defaults, what a function of lists of tensors is given."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any

Group = dict[str, Any]


def chosen(values: dict[str, Any], names: str) -> dict[str, Any]:
    """The defaults of an optimizer: of its constructor's `locals()` those with the names, in the order of PyTorch's."""
    return {name: values[name] for name in names.split()}


def kept(states: Sequence[dict[str, Any]], *names: str) -> list[list[Any]]:
    """What is kept for the parameters under each of the names, as lists."""
    return [list(map(itemgetter(name), states)) for name in names]


def run_on(function: Callable[..., None], group: Group, *lists: list[Any], **further: Any) -> None:
    """Call a function of lists of tensors with the options of a group that it takes."""
    options = {name: group[name] for name in _parameters(function)[len(lists) :] if name in group}
    function(*lists, **further, **options)


@functools.cache
def _parameters(function: Callable[..., None]) -> tuple[str, ...]:
    code = function.__code__
    return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
