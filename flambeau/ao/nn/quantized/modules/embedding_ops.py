"""Embeddings with tables of codes."""

from __future__ import annotations

from typing import Any

import flambeau as torch
from flambeau import nn
from flambeau.nn import functional as F

from ...._constructors import EMBEDDING, EMBEDDING_BAG, shown_as, takes
from .utils import quantize_weight

__all__ = ["Embedding", "EmbeddingBag", "EmbeddingPackedParams"]


class EmbeddingPackedParams(nn.Module):
    """A table of codes, with a scale and a zero point for each row."""

    _version = 1

    def __init__(self, num_embeddings: int, embedding_dim: int, dtype: Any = torch.quint8) -> None:
        super().__init__()
        if dtype not in (torch.quint8, torch.quint4x2):
            raise NotImplementedError(f"Unsupported dtype on quantized embedding! Supports quint8 and quint4x2. Got dtype: {dtype}")  # noqa: E501  # fmt: skip
        self.dtype = dtype
        scales, zero_points = torch.ones(num_embeddings), torch.zeros(num_embeddings, dtype=torch.float)
        self.set_weight(
            torch._empty_per_channel_affine_quantized(
                [num_embeddings, embedding_dim], scales=scales, zero_points=zero_points, axis=0, dtype=dtype
            )
        )

    def set_weight(self, weight: Any) -> None:
        """Take over a table."""
        self._packed_weight = weight

    def _weight(self) -> Any:
        return self._packed_weight

    def forward(self, x: Any) -> Any:
        """The tensor itself."""
        return x

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[prefix + "dtype"] = self.dtype
        destination[prefix + "_packed_weight"] = self._weight()

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *further: Any) -> None:
        self.dtype = state_dict.pop(prefix + "dtype")
        self.set_weight(state_dict.pop(prefix + "_packed_weight"))
        super()._load_from_state_dict(state_dict, prefix, *further)

    def __repr__(self) -> str:
        return repr(self._weight())


class Embedding(nn.Module):
    """Rows of a table of codes, as floats."""

    @takes(EMBEDDING, "dtype=torch.quint8")
    def __init__(self, options: dict[str, Any]) -> None:
        super().__init__()
        self.num_embeddings, self.embedding_dim = sizes = options["num_embeddings"], options["embedding_dim"]
        self.dtype, weight = options["dtype"], options["_weight"]
        self._packed_params = EmbeddingPackedParams(*sizes, self.dtype)
        if weight is not None:
            if tuple(weight.shape) != sizes:
                raise AssertionError("Shape of weight does not match num_embeddings and embedding_dim")
            self._packed_params.set_weight(weight)

    _get_name = shown_as("Quantized{}")

    def extra_repr(self) -> str:
        """Sizes, dtype and scheme."""
        return (
            f"num_embeddings={self.num_embeddings}, embedding_dim={self.embedding_dim}, dtype={self.dtype}, "
            f"qscheme={self.weight().qscheme()}"
        )

    def forward(self, indices: Any) -> Any:
        """The rows."""
        return F.embedding(indices, self.weight().dequantize())

    def set_weight(self, w: Any) -> None:
        """Take over a table."""
        self._packed_params.set_weight(w)

    def weight(self) -> Any:
        """The table of codes, as a quantized tensor."""
        return self._packed_params._weight()

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """A table of codes for one of floats."""
        watch = getattr(mod, "weight_fake_quant", None) or mod.qconfig.weight()
        if watch.dtype not in (torch.quint8, torch.quint4x2):
            raise AssertionError(f"The only supported dtype for nnq.Embedding is torch.quint8 and torch.quint4x2, got {watch.dtype}")  # noqa: E501  # fmt: skip
        watch(mod.weight)
        table = quantize_weight(mod.weight.detach().float(), watch)
        made = cls._of(mod, watch.dtype)
        made.set_weight(table)
        return made

    @classmethod
    def from_reference(cls, ref_embedding: Any) -> Any:
        """A table of codes for one that computes with floats as codes would."""
        made = cls._of(ref_embedding, ref_embedding.weight_dtype)
        made.set_weight(ref_embedding.get_quantized_weight())
        return made

    @classmethod
    def _of(cls, mod: Any, dtype: Any) -> Any:
        return cls(mod.num_embeddings, mod.embedding_dim, dtype=dtype)


class EmbeddingBag(Embedding):
    """Sums or means of rows of a table of codes."""

    @takes(EMBEDDING_BAG.replace("'mean'", "'sum'"), "dtype=torch.quint8")
    def __init__(self, options: dict[str, Any]) -> None:
        names = ("num_embeddings", "embedding_dim", "_weight", "dtype")
        super().__init__(**{name: options[name] for name in names})
        self.mode = options["mode"]
        self.include_last_offset = options["include_last_offset"]

    def forward(
        self, indices: Any, offsets: Any = None, per_sample_weights: Any = None, compressed_indices_mapping: Any = None
    ) -> Any:
        """The sums."""
        return F.embedding_bag(
            indices,
            self.weight().dequantize(),
            offsets,
            mode="sum",
            per_sample_weights=per_sample_weights,
            include_last_offset=self.include_last_offset,
        )

    @classmethod
    def _of(cls, mod: Any, dtype: Any) -> Any:
        return cls(mod.num_embeddings, mod.embedding_dim, mode=mod.mode, dtype=dtype)

    @classmethod
    def from_reference(cls, ref_embedding_bag: Any) -> Any:
        """A table of codes for one that computes with floats as codes would."""
        return super().from_reference(ref_embedding_bag)
