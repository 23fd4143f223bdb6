"""`torch._decomp`: functions that take operators apart, for `make_fx` and `aot_function`.

The tables begin empty: an operator is taken apart where a program says how.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from flambeau._dispatch.public.overloads import OpOverload, OpOverloadPacket
from flambeau.export.decomp_utils import CustomDecompTable

__all__ = [
    "core_aten_decompositions", "decomposition_table", "get_decompositions", "global_decomposition_table", "meta_table",
    "pre_autograd_decomposition_table", "register_decomposition", "remove_decompositions",
]  # fmt: skip

Decomposition = TypeVar("Decomposition", bound=Callable[..., Any])

global_decomposition_table: dict[str, dict[Any, Callable[..., Any]]] = {
    "post_autograd": {},
    "pre_autograd": {},
    "meta": {},
}
decomposition_table = global_decomposition_table["post_autograd"]
pre_autograd_decomposition_table = global_decomposition_table["pre_autograd"]
meta_table = global_decomposition_table["meta"]


def register_decomposition(
    aten_op: Any, registry: dict[Any, Callable[..., Any]] | None = None, *, type: str = "post_autograd",
    unsafe: bool = False,
) -> Callable[[Decomposition], Decomposition]:  # fmt: skip
    """A decorator for a function that computes what an operator computes, by other operators.

    Args:
        aten_op: an operator, all of whose overloads are meant, an overload, or a list of these.
        registry (dict, optional): the table; None takes the one of `type`.
        type (str): "post_autograd", "pre_autograd" or "meta".
        unsafe (bool): not used.

    Returns:
        Callable: the decorator.
    """
    if type not in global_decomposition_table:
        raise AssertionError(f"type must be one of {sorted(global_decomposition_table)}, got {type!r}")
    table = global_decomposition_table[type] if registry is None else registry

    def register(function: Decomposition) -> Decomposition:
        for each in _overloads(aten_op if isinstance(aten_op, (list, tuple)) else [aten_op]):
            if each in table:
                raise RuntimeError(f"duplicate registrations for {each}")
            table[each] = function
        return function

    return register


def get_decompositions(aten_ops: Sequence[Any], type: str = "post_autograd") -> dict[Any, Callable[..., Any]]:
    """The functions for some operators; those without one are left out.

    Args:
        aten_ops (Sequence): operators or overloads.
        type (str): which table: "post_autograd", "pre_autograd" or "meta". Default: `"post_autograd"`.

    Returns:
        dict: functions by overloads.
    """
    table = global_decomposition_table[type]
    return {each: table[each] for each in _overloads(aten_ops) if each in table}


def remove_decompositions(decompositions: dict[Any, Callable[..., Any]], aten_ops: Sequence[Any]) -> None:
    """Take operators out of a table."""
    for each in _overloads(aten_ops):
        decompositions.pop(each, None)


def core_aten_decompositions() -> CustomDecompTable:
    """What graphs of the core operators need, which are all that are recorded: an empty table."""
    return CustomDecompTable()


def _overloads(operators: Iterable[Any]) -> Iterator[OpOverload]:
    for each in operators:
        if isinstance(each, OpOverloadPacket):
            yield from [getattr(each, name) for name in each.overloads()]
        else:
            yield each
