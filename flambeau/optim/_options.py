"""Options of optimizers by name: what a constructor keeps as defaults, what a function of lists of tensors is given."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any

Group = dict[str, Any]


_PAIRS = {
    "betas": ("beta1", "beta2"),
    "etas": ("etaminus", "etaplus"),
    "step_sizes": ("step_size_min", "step_size_max"),
}
"""Options of two numbers, which functions of lists of tensors take one by one."""


def added(names: str, **others: Any) -> dict[str, Any]:
    """Options that checkpoints of former versions may lack: off there, or None where that chooses."""
    return {name: None if name in ("foreach", "fused") else False for name in names.split()} | others


def chosen(values: dict[str, Any], names: str) -> dict[str, Any]:
    """The defaults of an optimizer: of its constructor's `locals()` those with the names, in the order of PyTorch's."""
    return {name: values[name] for name in names.split()}


def kept(states: Sequence[dict[str, Any]], *names: str) -> list[list[Any]]:
    """What is kept for the parameters under each of the names, as lists."""
    return [list(map(itemgetter(name), states)) for name in names]


def run_on(function: Callable[..., None], group: Group, *lists: list[Any], **further: Any) -> None:
    """Call a function of lists of tensors with the options of a group that it takes."""
    taken = _parameters(function)
    options = {name: group[name] for name in taken[len(lists) :] if name in group}
    for pair, names in _PAIRS.items():
        if pair in group and names[0] in taken:
            options.update(zip(names, group[pair], strict=True))
    function(*lists, **further, **options)


def with_option(function: Callable[..., None], name: str, doc: str, **option: Any) -> Callable[..., None]:
    """A function of lists of tensors of which one option is fixed, and no parameter any more."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> None:
        function(*args, **kwargs, **option)

    signature, own = inspect.signature(function), vars(call)
    own["__signature__"] = signature.replace(
        parameters=[each for each in signature.parameters.values() if each.name not in option]
    )
    call.__name__ = call.__qualname__ = name
    call.__doc__, call.__module__ = doc, f"{__package__}.{name}"
    return call


@functools.cache
def _parameters(function: Callable[..., None]) -> tuple[str, ...]:
    code = function.__code__
    return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
