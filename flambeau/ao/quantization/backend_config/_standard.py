"""The backends of PyTorch's own kernels, which differ in types and in a few families."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from . import _families as families
from . import _types as types
from .backend_config import BackendConfig, DTypeConfig


@dataclasses.dataclass
class Standard:
    """The types of each family; an empty list leaves a family out."""

    convolution: Sequence[DTypeConfig] = (types.WEIGHTED,)
    linear: Sequence[DTypeConfig] = (types.WEIGHTED, types.DYNAMIC, types.DYNAMIC_HALF)
    binary: Sequence[DTypeConfig] = (types.QUINT8,)
    other: Sequence[DTypeConfig] = (types.QUINT8,)
    known_range: Sequence[DTypeConfig] = (types.QUINT8,)
    same_codes: Sequence[DTypeConfig] = (types.QUINT8,)
    sizes: Sequence[DTypeConfig] = (types.QUINT8,)
    layer_norm: Sequence[DTypeConfig] = ()
    recurrent: Sequence[DTypeConfig] = (types.DYNAMIC, types.DYNAMIC_HALF)
    embedding: Sequence[DTypeConfig] = (types.WEIGHT_ONLY, types.WEIGHT_ONLY_4_BITS)

    def named(self, name: str) -> BackendConfig:
        """The backend."""
        made = BackendConfig(name)
        for family, own in (
            (families.convolutions, self.convolution),
            (families.linear_maps, self.linear),
            (families.linear_with_others, self.linear),
            (families.binary, self.binary),
            (families.concatenation, self.other),
            (families.activations_and_norms, self.other),
            (families.known_ranges, self.known_range),
            (families.same_codes, self.same_codes),
            (families.sizes, self.sizes),
            (families.batch_norms, self.other),
            (families.layer_norms, self.layer_norm),
            (families.recurrent, self.recurrent),
            (families.embeddings, self.embedding),
        ):
            if own:
                made.set_backend_pattern_configs(family(list(own)))
        return made
