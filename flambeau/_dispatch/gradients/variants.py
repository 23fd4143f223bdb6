"""Relatives of a view: the same kernel and derivative under another node name, or with memory of its own."""

from __future__ import annotations

import functools
from typing import Any

from ..dispatch import Primitive, Results, primitive


def variant(
    original: Primitive[..., Results], name: str, node: str, *, view: bool = True, copies: bool = False
) -> Primitive[..., Results]:
    """`original` as a primitive called `name`, which records `node`.

    `view`: whether its results are tracked as views. `copies`: whether they have memory of their own.
    """
    kernel = original.kernel

    @functools.wraps(kernel)
    def run(*args: Any) -> Any:
        result = kernel(*args)
        if not copies:
            return result
        return [each.copy() for each in result] if type(result) in (tuple, list) else result.copy()

    run.__name__ = name
    recorded = original.node_class
    assert recorded is not None
    names = [original.parameters[position] for position in original.grad_positions]
    entries = zip(names, recorded.formulas, strict=True)
    formulas: dict[str, Any] = {each: entry[0] for each, entry in entries if entry is not None}
    joint = recorded.joint[0] if recorded.joint is not None else None
    made: Primitive[..., Any] = primitive(node, view=view and not copies, joint=joint, axes=original.axes, **formulas)(
        run
    )
    made.makes_windows = not copies  # on the memory of their input, even where they are not tracked as views
    return made
