"""Losses of embeddings: which vectors are to be near to each other, which apart."""

from __future__ import annotations

from collections.abc import Callable

from ...._core.reduction import NONE
from ...._core.tensor import Tensor
from ...._dispatch.arguments.autocast_rules import FULL
from ...._dispatch.public.registry import public
from ...index.masked import where
from ...linalg.distance import pairwise_distance
from .common import reduce_losses, reduction_number

_EPSILON = 1e-12


@public(method=False, autocast=FULL)
def cosine_embedding_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: int = NONE
) -> Tensor:
    """1 - cosine where the target is 1, and max(0, cosine - margin) where it is -1."""
    if target.dim() > 1:
        raise RuntimeError(f"0D or 1D target tensor expected, multi-target not supported: got {list(target.shape)}")
    if not input1.dim() == input2.dim() == target.dim() + 1:
        raise RuntimeError(
            f"{target.dim()}D target tensor expects {target.dim() + 1}D input tensors, but found inputs with sizes "
            f"{list(input1.shape)} and {list(input2.shape)}."
        )
    first = input1
    second = input2
    goal = target
    lengths = ((first * first).sum(-1) + _EPSILON) * ((second * second).sum(-1) + _EPSILON)
    cosine = (first * second).sum(-1) / lengths.sqrt()
    near = where(goal == 1, 1 - cosine, 0.0)
    return reduce_losses(near + where(goal == -1, (cosine - margin).clamp_min(0), 0.0), reduction)


@public(
    "nn.functional.cosine_embedding_loss", function=False, method=False, name="cosine_embedding_loss", autocast=FULL
)
def _functional_cosine_embedding_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """1 - cosine where the target is 1, and max(0, cosine - margin) where it is -1."""
    number = reduction_number(reduction, size_average, reduce)
    return cosine_embedding_loss(input1, input2, target, margin, number)


def _check_triplet(anchor: Tensor, positive: Tensor, negative: Tensor) -> None:
    if not anchor.dim() == positive.dim() == negative.dim():
        raise RuntimeError(
            "The anchor, positive, and negative tensors are expected to have the same number of dimensions, but got: "
            f"anchor {anchor.dim()}D, positive {positive.dim()}D, and negative {negative.dim()}D inputs"
        )


def _check_margin(margin: float) -> None:
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")


def _triplet(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    distance: Callable[[Tensor, Tensor], Tensor],
    margin: float,
    swap: bool,
    reduction: int,
) -> Tensor:
    _check_triplet(anchor, positive, negative)
    near = distance(anchor, positive)
    far = distance(anchor, negative)
    if swap:
        far = far.minimum(distance(positive, negative))
    return reduce_losses((margin + near - far).clamp_min(0), reduction)


@public(method=False, autocast=FULL)
def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2.0,
    eps: float = 1e-6,
    swap: bool = False,
    reduction: int = NONE,
) -> Tensor:
    """max(0, margin + distance to the positive - distance to the negative example)."""

    def distance(left: Tensor, right: Tensor) -> Tensor:
        return pairwise_distance(left, right, p, eps)

    return _triplet(anchor, positive, negative, distance, margin, swap, reduction)


@public("nn.functional.triplet_margin_loss", function=False, method=False, name="triplet_margin_loss", autocast=FULL)
def _functional_triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """max(0, margin + distance to the positive - distance to the negative example)."""
    number = reduction_number(reduction, size_average, reduce)
    _check_margin(margin)
    return triplet_margin_loss(anchor, positive, negative, margin, p, eps, swap, number)


@public("nn.functional.triplet_margin_with_distance_loss", function=False, method=False)
def triplet_margin_with_distance_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """`triplet_margin_loss` with a distance of one's own; the Euclidean one by default."""
    number = reduction_number(reduction, None, None)
    _check_margin(margin)
    return _triplet(anchor, positive, negative, distance_function or pairwise_distance, margin, swap, number)
