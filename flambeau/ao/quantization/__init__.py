"""Quantization of models, under the names of `torch.ao.quantization`: module by module, or as graphs (`quantize_fx`).

    model.qconfig = get_default_qconfig()
    prepared = prepare(model)
    for batch in data:
        prepared(batch)
    quantized = convert(prepared)

`quantize_weights_`, which PyTorch has in a package of its own, rounds the weights of linear layers alone.
`QuantStub` and `DeQuantStub` mark where tensors become codes, and floats again.
"""

from __future__ import annotations

from typing import Any

from ..._core.names.absent import Table
from . import fake_quantize, observer, qconfig, qconfig_mapping, quant_type, stubs

__all__ = ["ObserverOrFakeQuantize", "fuse_modules", "quantize"]

ObserverOrFakeQuantize = Any
_HOMES = {
    "fake_quantize": fake_quantize.__all__,
    "observer": [each for each in observer.__all__ if not each.startswith("_")],
    "qconfig": qconfig.__all__,
    "qconfig_mapping": qconfig_mapping.__all__,
    "quant_type": quant_type.__all__,
    "stubs": stubs.__all__,
    "fuse_modules": ["fuse_modules", "fuse_modules_qat"],
    "fuser_method_mappings": [
        "fuse_conv_bn", "fuse_conv_bn_relu", "fuse_convtranspose_bn", "fuse_linear_bn", "get_fuser_method",
        "get_fuser_method_new",
    ],
    "quantization_mappings": [
        "get_default_compare_output_module_list", "get_default_dynamic_quant_module_mappings",
        "get_default_dynamic_sparse_quant_module_mappings", "get_default_float_to_quantized_operator_mappings",
        "get_default_qat_module_mappings", "get_default_qconfig_propagation_list",
        "get_default_static_quant_module_mappings", "get_default_static_quant_reference_module_mappings",
        "get_default_static_sparse_quant_module_mappings", "get_dynamic_quant_module_class",
        "get_embedding_qat_module_mappings", "get_embedding_static_quant_module_mappings", "get_quantized_operator",
        "get_static_quant_module_class", "no_observer_set",
    ],
    "quantize": [
        "add_quant_dequant", "convert", "get_default_custom_config_dict", "prepare", "prepare_qat",
        "propagate_qconfig_", "quantize", "quantize_dynamic", "quantize_qat", "swap_module",
    ],
}  # fmt: skip
"""Which file has which of the names; all but those of the configurations are read on first use."""

_table = (
    Table(__name__)
    .submodules("backend_config fx quantization_mappings fuser_method_mappings quantize_fx quantize_jit utils")
    .elsewhere("default_eval_fn", "ao.quantization.quantize")
    .elsewhere("quantize_weights_", "ao.quantization._layers")
    .elsewhere(
        "convert_dynamic_jit convert_jit fuse_conv_bn_jit prepare_dynamic_jit prepare_jit quantize_dynamic_jit "
        "quantize_jit script_qconfig script_qconfig_dict",
        "ao.quantization.quantize_jit",
    )
)
for _module, _names in _HOMES.items():
    _table.elsewhere(" ".join(_names), f"ao.quantization.{_module}")
__getattr__, __dir__ = _table.parts()

# The functions of these names, and not the files that they stand in.
from .fuse_modules import fuse_modules  # noqa: E402
from .quantize import quantize  # noqa: E402
