"""Logs of gradients, under the names of `torch.utils.debug_log`."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from .._core.slots import SLOTS
from .._core.tensor import Tensor
from ..autograd.graph import register_multi_grad_hook

__all__ = ["debug_grad_log"]

_LOG = logging.getLogger(__name__)


def _rank() -> int:
    known = SLOTS.rank_and_size()
    return 0 if known is None else known[0]


def debug_grad_log(*tensors: Tensor) -> None:
    """Log the norms of the gradients of tensors, once, when a backward pass has all of them."""
    watched = [each for each in tensors if each.requires_grad]
    if not watched:
        return

    def report(gradients: Sequence[Any]) -> None:
        norms = [f"t{at}_grad_norm={float(each.norm()):.6f}" for at, each in enumerate(gradients) if each is not None]
        _LOG.info("[rank %d][bwd] %s", _rank(), " ".join(norms))

    register_multi_grad_hook(watched, report)
