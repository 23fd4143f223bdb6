"""Quantization of scripted models: not built."""

from __future__ import annotations

from ..._core.names.absent import Table

__getattr__, __dir__ = (
    Table(__name__)
    .absent(
        "scripted models are not quantized: quantize_fx quantizes the graphs that fx traces",
        functions="convert_dynamic_jit convert_jit fuse_conv_bn_jit prepare_dynamic_jit prepare_jit "
        "quantize_dynamic_jit quantize_jit script_qconfig script_qconfig_dict",
    )
    .parts()
)
