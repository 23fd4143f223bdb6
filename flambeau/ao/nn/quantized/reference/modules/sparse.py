"""Embeddings that compute with floats as quantized ones will."""

from __future__ import annotations

from typing import Any

from flambeau import nn
from flambeau.nn import functional as F

from ....._constructors import EMBEDDING, EMBEDDING_BAG, EMBEDDING_OPTIONS, PLACE, attributes, shown_as, takes
from .utils import ReferenceQuantizedModule

__all__ = ["Embedding", "EmbeddingBag"]


class Embedding(nn.Embedding, ReferenceQuantizedModule):
    """Rows of the table that codes stand for."""

    _IS_REFERENCE = True

    @takes(EMBEDDING, PLACE, "weight_qparams=None")
    def __init__(self, options: dict[str, Any]) -> None:
        weight_qparams = options.pop("weight_qparams")
        super().__init__(**options)
        self._init_weight_qparams(weight_qparams, options["device"])

    _get_name = shown_as("Quantized{}(Reference)")

    def forward(self, input: Any) -> Any:
        """The rows."""
        return F.embedding(input, self.get_weight(), self.padding_idx, self.max_norm, self.norm_type)

    @classmethod
    def from_float(cls, mod: Any, weight_qparams: dict[str, Any]) -> Any:
        """A reference layer with the table of an ordinary one."""
        return _of(cls, mod, weight_qparams, "padding_idx")


class EmbeddingBag(nn.EmbeddingBag, ReferenceQuantizedModule):
    """Sums or means of rows of the table that codes stand for."""

    _IS_REFERENCE = True

    @takes(EMBEDDING_BAG, "padding_idx=None", PLACE, "weight_qparams=None")
    def __init__(self, options: dict[str, Any]) -> None:
        weight_qparams = options.pop("weight_qparams")
        super().__init__(**options)
        self._init_weight_qparams(weight_qparams, options["device"])

    _get_name = shown_as("QuantizedEmbedding(Reference)")

    def forward(self, input: Any, offsets: Any = None, per_sample_weights: Any = None) -> Any:
        """The sums or means."""
        return F.embedding_bag(
            input, self.get_weight(), offsets, mode=self.mode, per_sample_weights=per_sample_weights,
            include_last_offset=self.include_last_offset, padding_idx=self.padding_idx,
        )  # fmt: skip

    @classmethod
    def from_float(cls, mod: Any, weight_qparams: dict[str, Any], use_precomputed_fake_quant: bool = False) -> Any:
        """A reference layer with the table of an ordinary one."""
        return _of(cls, mod, weight_qparams, "mode", "include_last_offset", "padding_idx")


def _of(cls: Any, mod: Any, weight_qparams: dict[str, Any], *further: str) -> Any:
    place = {"_weight": mod.weight, "device": mod.weight.device, "dtype": mod.weight.dtype}
    return cls(**attributes(mod, (*EMBEDDING_OPTIONS, *further)), **place, weight_qparams=weight_qparams)
