"""Quantization of traced models: not built."""

from __future__ import annotations

from ..._core.names.absent import Table

__getattr__, __dir__ = (
    Table(__name__)
    .absent(
        "models are quantized module by module here, and not as graphs",
        functions="attach_preserved_attrs_to_model convert_fx convert_to_reference_fx fuse_fx prepare_fx "
        "prepare_qat_fx",
    )
    .parts()
)
