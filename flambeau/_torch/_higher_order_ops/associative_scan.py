"""Scans with a function of one's own: `torch._higher_order_ops.associative_scan`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from flambeau._core.slots import SLOTS
from flambeau._core.tensor import Tensor
from flambeau._ops.shape.join import cat, stack

__all__ = ["associative_scan"]

Leaves = Sequence[Tensor]


def associative_scan(
    combine_fn: Callable[[Any, Any], Any],
    xs: Any,
    dim: int,
    reverse: bool = False,
    combine_mode: str = "pointwise",
) -> Any:
    """What `combine_fn`, an associative function, makes of the first slices of `xs`, for each number of them.

    `xs` is a tensor or a tree of tensors, scanned along `dim`, from its end if `reverse` is set. `combine_fn` is given
    two such trees and returns one: of single slices if `combine_mode` is "generic"; if it is "pointwise", of many
    slices at once, and has to treat each element by itself.

    >>> from flambeau._higher_order_ops import associative_scan
    >>> x = flambeau.tensor([1.0, 2.0, 3.0])
    >>> associative_scan(lambda a, b: a * b, x, 0, combine_mode="generic")
    tensor([1., 2., 6.])
    """
    if not callable(combine_fn):
        raise ValueError(f"Combine_fn must be a callable, but got {combine_fn}")
    if type(dim) is not int:
        raise ValueError(f"Dim must be an int, but got {type(dim)}")
    if combine_mode not in ("pointwise", "generic"):
        raise ValueError(f"Combine_mode must either 'pointwise' or 'generic', but got {combine_mode}")
    leaves, form = SLOTS.tree_flatten(xs)
    if combine_mode == "pointwise" and any(each.device.type == "cpu" for each in leaves):
        raise ValueError(
            "For combine_mode='pointwise', all input tensors need to be on CUDA or XPU: use combine_mode='generic'"
        )
    given = [each.movedim(dim, 0) for each in leaves]
    if not all(map(len, given)):
        raise ValueError(
            "All xs leaves must at least have 'dim' number of dimensions and scan dimension > 0, "
            f"but got {[list(each.shape) for each in leaves]}"
        )
    every = combine_fn if combine_mode == "pointwise" else SLOTS.vmap(combine_fn)

    def combined(first: Leaves, second: Leaves) -> Leaves:
        return SLOTS.tree_flatten(
            every(SLOTS.tree_unflatten(list(first), form), SLOTS.tree_unflatten(list(second), form))
        )[0]

    if reverse:
        given = [each.flip(0) for each in given]
    found = _scanned(combined, given)
    if reverse:
        found = [each.flip(0) for each in found]
    return SLOTS.tree_unflatten([each.movedim(0, dim) for each in found], form)


def _scanned(combined: Callable[[Leaves, Leaves], Leaves], leaves: Leaves) -> Leaves:
    """The scan along the first dimension: of neighbours in pairs first, then of what stands between these."""
    count = len(leaves[0])
    if count == 1:
        return leaves
    pairs = combined([each[: count - 1 : 2] for each in leaves], [each[1::2] for each in leaves])
    at_odd = _scanned(combined, pairs)
    at_even = [each[:1] for each in leaves]
    if count > 2:
        before = [each[: (count - 1) // 2] for each in at_odd]
        later = combined(before, [each[2::2] for each in leaves])
        at_even = [cat([first, rest]) for first, rest in zip(at_even, later, strict=True)]
    return [_in_turns(even, odd) for even, odd in zip(at_even, at_odd, strict=True)]


def _in_turns(even: Tensor, odd: Tensor) -> Tensor:
    """Slices of two tensors in turns; the first may have one more."""
    turns = stack([even[: len(odd)], odd], 1).flatten(0, 1)
    return turns if len(even) == len(odd) else cat([turns, even[len(odd) :]])
