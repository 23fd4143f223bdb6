"""Names that libraries reach for beside the documented ones: what they do."""

from __future__ import annotations

import importlib
from typing import Any

from tests.support.differential import differential, warned


@differential
def test_the_meta_device_has_no_ordinal(T: Any) -> Any:
    kept = T.device("meta:3")
    made = T.empty(0, device="meta:3"), T.ones(2).to("meta:1"), T.zeros(2, device=T.device("meta", 2))
    return str(kept), [str(each.device) for each in made]


@differential
def test_reductions_as_words_and_numbers(T: Any) -> Any:
    module = T.nn.functional._Reduction
    words = [
        warned(lambda average=average, reduce=reduce: module.legacy_get_string(average, reduce))[:2]
        for average in (None, True, False)
        for reduce in (None, True, False)
    ]
    return (
        [module.get_enum(each) for each in ("none", "mean", "sum")],
        words,
        module.legacy_get_enum(None, False, False),
    )


@differential
def test_gradients_of_convolutions_by_name(T: Any) -> Any:
    x, w = T.arange(16.0).reshape(1, 1, 4, 4), T.ones(1, 1, 2, 2)
    grad = T.ones(1, 1, 3, 3)
    return T.nn.functional.grad.conv2d_input(x.shape, w, grad), T.nn.grad.conv2d_weight(x, w.shape, grad)


@differential
def test_the_backends_of_attention(T: Any) -> Any:
    attention = importlib.import_module(f"{T.__name__}.nn.attention")
    backend = attention.SDPBackend
    with attention.sdpa_kernel([backend.MATH, backend.FLASH_ATTENTION]):
        return [each.name for each in attention._cur_sdpa_kernel_backends()]


@differential
def test_compiled_functions_of_layers(T: Any) -> Any:
    x = T.arange(4.0).reshape(1, 1, 2, 2)
    return T._C._nn.upsample_nearest2d(x, [4, 4]), T._C._nn.upsample_bilinear2d(x, [3, 3], False)


@differential
def test_quantisation_as_operators(T: Any) -> Any:
    importlib.import_module(f"{T.__name__}.ao.quantization.fx._decomposed")
    ops, x = T.ops.quantized_decomposed, T.linspace(-2, 2, 12).reshape(3, 4)
    by_one = ops.quantize_per_tensor(x, 0.05, 3, -128, 127, T.int8)
    by_tensors = ops.quantize_per_tensor.tensor(x, T.tensor(0.05), T.tensor(3), -128, 127, T.int8)
    scales, points = T.tensor([0.1, 0.02, 0.5]), T.tensor([0, 3, -4])
    by_row = ops.quantize_per_channel(x, scales, points, 0, -128, 127, T.int8)
    return (
        by_one, by_tensors, by_row, ops.dequantize_per_tensor(by_one, 0.05, 3, -128, 127, T.int8),
        ops.dequantize_per_channel(by_row, scales, points, 0, -128, 127, T.int8),
    )  # fmt: skip
