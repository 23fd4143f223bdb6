"""Cross entropy of scores that are cut along the classes: no process ever has all of them."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

from ...._core.tensor import Tensor
from ... import _calls
from ..._world import ProcessGroup
from ...reductions import ReduceOp
from .._dtensor import DTensor, made
from .._layout import Layout
from .._moving import added_up
from .._rules.functions import FUNCTIONS
from ..placement_types import Replicate, Shard

__all__ = ["loss_parallel"]


@contextlib.contextmanager
def loss_parallel() -> Iterator[None]:
    """A context in which `cross_entropy` works on scores that are cut along the classes, and leaves them where they
    are.

    Returns:
        a context manager.
    """
    before, _CONTEXT.entered = _CONTEXT.entered, True
    try:
        yield
    finally:
        _CONTEXT.entered = before


class _Context(threading.local):
    entered = False


_CONTEXT = _Context()


def _cross_entropy(
    input: Any,
    target: Any,
    weight: Any = None,
    size_average: Any = None,
    ignore_index: int = -100,
    reduce: Any = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Any:
    if not _CONTEXT.entered or not isinstance(input, DTensor) or input.device_mesh.ndim != 1:
        return NotImplemented
    classes = 1 if input.ndim > 1 else 0
    if input.placements != (Shard(classes),):
        return NotImplemented
    if weight is not None or label_smoothing:
        raise NotImplementedError("loss_parallel: cross_entropy has no weight and no label_smoothing there")
    layout, mesh = input._layout, input.device_mesh
    group = mesh.get_group(0)
    wanted = target.full_tensor() if isinstance(target, DTensor) else target
    counted = wanted != ignore_index
    losses = _losses(input._local_tensor, wanted, layout.extents(classes), classes, group) * counted
    if reduction == "mean":
        losses = losses.sum() / counted.sum()
    elif reduction == "sum":
        losses = losses.sum()
    return made(losses, Layout(tuple(losses.shape), mesh, (Replicate(),)))


def _losses(scores: Tensor, target: Tensor, extents: tuple[int, int], classes: int, group: ProcessGroup) -> Any:
    """The loss of each example: the logarithm of the sum of all exponentials, less the score of its class."""
    count, start = extents
    most = scores.detach().amax(classes) if count else scores.new_full(target.shape, -float("inf"))
    _calls.all_reduce(most, ReduceOp.MAX, group)
    shifted = scores - most.unsqueeze(classes)
    total = added_up(shifted.exp().sum(classes), [group])
    here = (target >= start) & (target < start + count)
    own = ((target - start) * here).unsqueeze(classes)
    chosen = shifted.gather(classes, own).squeeze(classes) * here if count else total * 0
    return total.log() - added_up(chosen, [group])


FUNCTIONS["cross_entropy"] = _cross_entropy
