"""Embeddings that compute with floats as quantized ones will."""

from __future__ import annotations

from typing import Any

from flambeau import nn
from flambeau.nn import functional as F

from .utils import ReferenceQuantizedModule

__all__ = ["Embedding", "EmbeddingBag"]


class Embedding(nn.Embedding, ReferenceQuantizedModule):
    """Rows of the table that codes stand for."""

    _IS_REFERENCE = True

    def __init__(self, *args: Any, weight_qparams: dict[str, Any] | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._init_weight_qparams(weight_qparams)

    def _get_name(self) -> str:
        return "QuantizedEmbedding(Reference)"

    def forward(self, input: Any) -> Any:
        """The rows."""
        return F.embedding(input, self.get_weight(), self.padding_idx, self.max_norm, self.norm_type)

    @classmethod
    def from_float(cls, mod: Any, weight_qparams: dict[str, Any]) -> Any:
        """The same with the table of an ordinary layer."""
        made = cls(mod.num_embeddings, mod.embedding_dim, mod.padding_idx, weight_qparams=weight_qparams)
        made.weight = mod.weight
        return made


class EmbeddingBag(nn.EmbeddingBag, ReferenceQuantizedModule):
    """Sums or means of rows of the table that codes stand for."""

    _IS_REFERENCE = True

    def __init__(self, *args: Any, weight_qparams: dict[str, Any] | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._init_weight_qparams(weight_qparams)

    def _get_name(self) -> str:
        return "QuantizedEmbedding(Reference)"

    def forward(self, input: Any, offsets: Any = None, per_sample_weights: Any = None) -> Any:
        """The sums or means."""
        return F.embedding_bag(
            input, self.get_weight(), offsets, mode=self.mode, per_sample_weights=per_sample_weights,
            include_last_offset=self.include_last_offset, padding_idx=self.padding_idx,
        )  # fmt: skip

    @classmethod
    def from_float(cls, mod: Any, weight_qparams: dict[str, Any]) -> Any:
        """The same with the table of an ordinary layer."""
        made = cls(mod.num_embeddings, mod.embedding_dim, mode=mod.mode, weight_qparams=weight_qparams)
        made.weight = mod.weight
        return made
