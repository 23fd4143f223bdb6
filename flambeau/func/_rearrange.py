"""Dimensions rearranged by a pattern that names them: "batch (height width) channel -> batch channel height width"."""

from __future__ import annotations

import math
import re
from typing import Any

from .._core.tensor import Tensor

_SPREAD = "* ..."
"""Dots outside of parentheses: as many dimensions as they stand for."""
_TOKEN = re.compile(r"\.\.\.|\w+|[()]")


def _groups(side: str) -> list[list[str]]:
    """The names of one side of a pattern: a list for each dimension, of one name or of those in parentheses."""
    found: list[list[str]] = []
    inside: list[str] | None = None
    for token in _TOKEN.findall(side):
        if token == "(":
            if inside is not None:
                raise ValueError(f"brackets are not balanced in {side!r}")
            inside = []
        elif token == ")":
            if inside is None:
                raise ValueError(f"brackets are not balanced in {side!r}")
            found.append(inside)
            inside = None
        elif inside is not None:
            inside.append(token)
        else:
            found.append([] if token == "1" else [_SPREAD] if token == "..." else [token])
    if inside is not None:
        raise ValueError(f"brackets are not balanced in {side!r}")
    names = [name for group in found for name in group]
    if len(set(names)) != len(names):
        raise ValueError(f"Identifiers appear more than once in {side!r}")
    return found


def _with_dots(groups: list[list[str]], count: int) -> list[list[str]]:
    """Names for the dimensions that three dots stand for; in parentheses they stay together."""
    dots = [f"_{at}" for at in range(count)]
    spread: list[list[str]] = []
    for group in groups:
        if group == [_SPREAD]:
            spread += [[each] for each in dots]
        else:
            spread.append([each for name in group for each in (dots if name == "..." else [name])])
    return spread


def rearrange(tensor: Tensor | list[Tensor] | tuple[Tensor, ...], pattern: str, **axes_lengths: int) -> Any:
    """A tensor, or tensors stacked along a first dimension, with its dimensions as the right side of a pattern says.

    Names in parentheses share a dimension; `axes_lengths` has the lengths that do not follow; "..." stands for any
    number of dimensions, and "1" for one of length 1.

    >>> flambeau.func.rearrange(flambeau.arange(6).reshape(2, 3), "row column -> (column row)")
    tensor([0, 3, 1, 4, 2, 5])

    Args:
        tensor (Tensor or list of Tensors or tuple of Tensors): the tensor, or tensors of one shape.
        pattern (str): the dimensions before and after, such as "batch (height width) -> batch height width".
        **axes_lengths: the sizes of dimensions that cannot be computed.

    Returns:
        Tensor: the tensor in its new form; a view where possible.
    """
    from .. import stack

    value: Any = tensor if isinstance(tensor, Tensor) else stack(list(tensor))
    sides = pattern.split("->")
    if len(sides) != 2:
        raise ValueError(f"a pattern has two sides, with '->' between them: {pattern!r}")
    left, right = _groups(sides[0]), _groups(sides[1])
    named = [{"..." if name == _SPREAD else name for group in side for name in group} for side in (left, right)]
    if named[0] != named[1]:
        raise ValueError(
            "Identifiers only on one side of rearrange expression (should be on both): "
            f"{named[0].symmetric_difference(named[1])}"
        )
    has_dots = "..." in named[0]
    count = value.dim() - (len(left) - 1) if has_dots else 0
    if has_dots:
        left, right = _with_dots(left, count), _with_dots(right, count)
    if len(left) != value.dim():
        raise ValueError(
            f"Number of dimensions in pattern ({len(left)}) must be equal to the number of dimensions in the tensor "
            f"({value.dim()})"
        )
    sizes = _sizes(left, value.shape, axes_lengths)
    names = [name for group in left for name in group]
    apart = value.reshape([sizes[name] for name in names])
    order = [names.index(name) for group in right for name in group]
    return apart.permute(order).reshape([math.prod(sizes[name] for name in group) for group in right])


def _sizes(groups: list[list[str]], shape: Any, given: dict[str, int]) -> dict[str, int]:
    """The length of each name: that of its dimension, or what those beside it leave."""
    sizes = dict(given)
    for group, length in zip(groups, shape, strict=True):
        open_names = [name for name in group if name not in sizes]
        known = math.prod(sizes[name] for name in group if name in sizes)
        if len(open_names) > 1:
            raise ValueError(f"the lengths of {open_names} do not follow from a dimension of {length}")
        if open_names:
            if known == 0 or length % known:
                raise ValueError(f"a dimension of {length} does not divide into parts of {known}")
            sizes[open_names[0]] = length // known
        elif known != length:
            raise ValueError(f"{group} have a length of {known} together, but the dimension has {length}")
    return sizes
