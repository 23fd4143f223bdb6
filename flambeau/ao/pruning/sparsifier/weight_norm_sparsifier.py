"""`WeightNormSparsifier`: the smallest weights, in blocks, become zero."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import flambeau as torch

from ...._core.tensor import Tensor
from .base_sparsifier import BaseSparsifier

__all__ = ["WeightNormSparsifier"]


class WeightNormSparsifier(BaseSparsifier):
    """The share `sparsity_level` of the blocks of a weight, those with the smallest norms, gets zeros.

    In such a block the `zeros_per_block` smallest weights become zero; all of them, if that is how many it has.
    """

    def __init__(
        self,
        sparsity_level: float = 0.5,
        sparse_block_shape: tuple[int, int] = (1, 4),
        zeros_per_block: int | None = None,
        norm: Callable[[Tensor], Tensor] | int | None = None,
    ) -> None:
        if zeros_per_block is None:
            zeros_per_block = sparse_block_shape[0] * sparse_block_shape[1]
        super().__init__(
            {
                "sparsity_level": sparsity_level,
                "sparse_block_shape": sparse_block_shape,
                "zeros_per_block": zeros_per_block,
            }
        )
        if callable(norm):
            self.norm_fn = norm
        elif norm == 1:
            self.norm_fn = lambda weight: weight.abs()
        elif norm in (None, 2):
            self.norm_fn = lambda weight: weight * weight
        else:
            raise NotImplementedError(f"L-{norm} is not yet implemented.")

    def update_mask(
        self,
        module: Any,
        tensor_name: str,
        sparsity_level: float,
        sparse_block_shape: tuple[int, int],
        zeros_per_block: int,
        **kwargs: Any,
    ) -> None:
        """Choose the blocks, and in them the weights, that become zero."""
        height, width = sparse_block_shape
        if zeros_per_block > height * width:
            raise ValueError(
                "Number of zeros per block cannot be more than the total number of elements in that block."
            )
        if zeros_per_block < 0:
            raise ValueError("Number of zeros per block should be positive.")
        mask = self._mask_of(module, tensor_name)
        if sparsity_level <= 0 or zeros_per_block == 0:
            mask.mask = torch.ones_like(mask.mask)
            return
        if sparsity_level >= 1 and zeros_per_block == height * width:
            mask.mask = torch.zeros_like(mask.mask)
            return
        sizes = self.norm_fn(getattr(module, tensor_name).detach())
        blocks = _blocks(sizes, height, width)
        means = blocks.sum(-1) / _blocks(torch.ones_like(sizes), height, width).sum(
            -1
        )  # of what is inside, at the edges too
        stays = _largest(means.flatten(), sparsity_level).reshape(*blocks.shape[:-1], 1)
        if zeros_per_block == height * width:
            kept = stays.expand(blocks.shape).to(sizes.dtype)
        else:
            smallest = blocks.argsort(-1)[..., :zeros_per_block]
            kept = stays | torch.ones_like(blocks).bool().scatter(-1, smallest, False)
        mask.mask = _together(kept, height, width)[: sizes.size(0), : sizes.size(1)].contiguous()


def _blocks(matrix: Tensor, height: int, width: int) -> Tensor:
    """Blocks by row and column, each with its elements in the last dimension; what is missing at the edges is zero."""
    rows, columns = matrix.shape
    whole = torch.nn.functional.pad(matrix, (0, -columns % width, 0, -rows % height))
    parts = whole.unflatten(1, (-1, width)).unflatten(0, (-1, height))
    return parts.transpose(1, 2).flatten(2)


def _together(blocks: Tensor, height: int, width: int) -> Tensor:
    """The matrix of such blocks."""
    return blocks.unflatten(2, (height, width)).transpose(1, 2).flatten(0, 1).flatten(1)


def _largest(sizes: Tensor, share_of_zeros: float) -> Tensor:
    """Where the largest are, without a share of the smallest: never without all unless the share is whole."""
    number = sizes.numel()
    zeros = number if share_of_zeros >= 1 else min(round(share_of_zeros * number), number - 1)
    return torch.ones_like(sizes).bool().scatter(0, sizes.argsort()[:zeros], False)
