"""`ao.quantization`: its ready-made observers, settings and tables, and the steps that it documents."""

from __future__ import annotations

from typing import Any

from tests.support.differential import differential, outcome

READY_MADE = (
    "default_observer default_placeholder_observer default_per_channel_weight_observer default_weight_observer "
    "default_histogram_observer default_dynamic_quant_observer default_float_qparams_observer "
    "default_float_qparams_observer_4bit default_fixed_qparams_range_0to1_observer default_debug_observer "
    "default_fixed_qparams_range_neg1to1_observer default_affine_fixed_qparams_observer default_reuse_input_observer "
    "default_symmetric_fixed_qparams_observer default_fake_quant default_weight_fake_quant default_dynamic_fake_quant "
    "default_fixed_qparams_range_neg1to1_fake_quant default_fixed_qparams_range_0to1_fake_quant "
    "default_affine_fixed_qparams_fake_quant default_symmetric_fixed_qparams_fake_quant "
    "default_per_channel_weight_fake_quant default_histogram_fake_quant default_fused_act_fake_quant "
    "default_fused_wt_fake_quant default_fused_per_channel_wt_fake_quant default_embedding_fake_quant "
    "default_embedding_fake_quant_4bit fused_wt_fake_quant_range_neg_127_to_127 "
    "fused_per_channel_wt_fake_quant_range_neg_127_to_127"
)
TABLES = (
    "get_default_static_quant_module_mappings get_default_static_quant_reference_module_mappings "
    "get_default_qat_module_mappings get_default_dynamic_quant_module_mappings get_embedding_qat_module_mappings "
    "get_embedding_static_quant_module_mappings get_default_static_sparse_quant_module_mappings "
    "get_default_dynamic_sparse_quant_module_mappings get_default_float_to_quantized_operator_mappings"
)


def _name(value: Any) -> str:
    return str(getattr(value, "__name__", value)).rpartition(".")[2]


@differential
def test_ready_made_observers(torch: Any) -> Any:
    """What each of them is, and what it makes of a range of numbers."""
    q = torch.ao.quantization
    x = torch.linspace(-1.0, 3.0, 24).reshape(4, 6)
    seen = {}
    for name in READY_MADE.split():
        made = getattr(q, name)()
        inner = getattr(made, "activation_post_process", made)
        asked = ("dtype", "qscheme", "quant_min", "quant_max", "ch_axis", "is_dynamic")
        with torch.no_grad():
            y = outcome(lambda made=made: made(x).round(decimals=4).tolist())
        seen[name] = type(made).__name__, [str(getattr(inner, each, None)) for each in asked], y
    return seen


@differential
def test_tables_of_modules(torch: Any) -> Any:
    """Which module becomes which; what a table adds for back ends that Flambeau has not is not looked at."""
    q = torch.ao.quantization
    asked = ["Linear", "Conv2d", "Embedding", "EmbeddingBag", "LSTM", "GRUCell", "ConvTranspose2d", "LayerNorm"]
    found: dict[str, Any] = {}
    for name in TABLES.split():
        table = {_name(key): _name(value) for key, value in getattr(q, name)().items()}
        found[name] = {key: table.get(key) for key in asked}
    return found
