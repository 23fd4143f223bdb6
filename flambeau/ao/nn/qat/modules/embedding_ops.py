"""Embeddings whose weights are rounded as their codes will be."""

from __future__ import annotations

from typing import Any

from flambeau import nn
from flambeau.nn import functional as F

from ...._constructors import EMBEDDING, EMBEDDING_BAG, EMBEDDING_OPTIONS, PLACE, attributes, takes
from ._base import copied_layer

__all__ = ["Embedding", "EmbeddingBag"]


_LOOKS = EMBEDDING_OPTIONS[2:]
"""The options that each look into a table takes, beside its sizes."""


class _Rounded:
    _FLOAT_MODULE: Any
    _FURTHER_OPTIONS: tuple[str, ...]
    weight: Any
    qconfig: Any
    training: bool

    def _make(self, options: dict[str, Any]) -> None:
        qconfig = options.pop("qconfig")
        make: Any = super().__init__
        make(**options)
        if not qconfig:
            raise AssertionError("qconfig must be provided for QAT module")
        watch = qconfig.weight()
        if str(watch.qscheme) != "torch.per_channel_affine_float_qparams":
            raise AssertionError(f"Embedding weights requires a qscheme of per_channel_affine_float_qparams, got {watch.qscheme}")  # noqa: E501  # fmt: skip
        self.qconfig = qconfig
        self.weight_fake_quant = watch

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """A layer of this class with the table of one that has a `qconfig`."""
        layer = copied_layer(cls, mod, (nn.Embedding, nn.EmbeddingBag))
        options = attributes(layer, (*EMBEDDING_OPTIONS, *cls._FURTHER_OPTIONS))
        make: Any = cls
        made = make(**options, _weight=layer.weight, qconfig=mod.qconfig)
        made.weight = layer.weight
        return made

    def to_float(self) -> Any:
        """An ordinary layer with the same table."""
        options = attributes(self, (*EMBEDDING_OPTIONS, *self._FURTHER_OPTIONS))
        made = self._FLOAT_MODULE(**options)
        made.weight = nn.Parameter(self.weight.detach())
        return made.train(self.training)


class Embedding(_Rounded, nn.Embedding):
    """A table of vectors."""

    _FLOAT_MODULE: Any = nn.Embedding
    _FURTHER_OPTIONS = ("padding_idx",)

    @takes(EMBEDDING, PLACE, "qconfig=None")
    def __init__(self, options: dict[str, Any]) -> None:
        self._make(options)

    def forward(self, input: Any) -> Any:
        """Rows of the rounded table."""
        return F.embedding(input, self.weight_fake_quant(self.weight), **attributes(self, (*_LOOKS, "padding_idx")))


class EmbeddingBag(_Rounded, nn.EmbeddingBag):
    """A table of vectors, bags of which are added up."""

    _FLOAT_MODULE: Any = nn.EmbeddingBag
    _FURTHER_OPTIONS = ("mode", "include_last_offset", "padding_idx")

    @takes(EMBEDDING_BAG, "padding_idx=None, qconfig=None", PLACE)
    def __init__(self, options: dict[str, Any]) -> None:
        self._make(options)

    def forward(self, input: Any, offsets: Any = None, per_sample_weights: Any = None) -> Any:
        """Sums or means of rows of the rounded table."""
        options = attributes(self, (*_LOOKS, *self._FURTHER_OPTIONS))
        rounded = self.weight_fake_quant(self.weight)
        return F.embedding_bag(input, rounded, offsets, per_sample_weights=per_sample_weights, **options)
