"""`NearlyDiagonalSparsifier`: only weights near the diagonal."""

from __future__ import annotations

from typing import Any

from .base_sparsifier import BaseSparsifier

__all__ = ["NearlyDiagonalSparsifier"]


class NearlyDiagonalSparsifier(BaseSparsifier):
    """Weights on a band of `nearliness` diagonals, an odd number, stay."""

    def __init__(self, nearliness: int = 1) -> None:
        super().__init__({"nearliness": nearliness})

    def update_mask(self, module: Any, tensor_name: str, nearliness: int, **kwargs: Any) -> None:
        """Zero whatever is not on the band."""
        from .... import ones_like

        mask = self._mask_of(module, tensor_name)
        if nearliness % 2 == 0:
            raise ValueError("nearliness can only be an odd number")
        rows, columns = mask.mask.shape
        reach = nearliness // 2
        if reach >= min(rows, columns):
            raise ValueError("nearliness cannot be larger than the dimensions of tensor.")
        mask.mask = ones_like(mask.mask).tril(reach).triu(-reach)
