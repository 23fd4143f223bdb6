"""Layers that compute with floats as quantized ones will, and the quantized ones made from them, beside PyTorch's."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Iterator
from typing import Any

import pytest

import flambeau
from tests.support.differential import differential, outcome
from tests.support.oracle import pytorch

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(autouse=True)
def _warned_before() -> Iterator[None]:
    """Both libraries announce the end of quantized tensors once in a process: here that is before every test."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for torch in (flambeau, pytorch):
            if torch is not None:
                torch.quantize_per_tensor(torch.ones(1), 1.0, 0, torch.quint8)
        yield


def layers(torch: Any, path: str) -> Any:
    return importlib.import_module(f"{torch.__name__}.ao.nn.{path}")


def numbers(torch: Any, *shape: int) -> Any:
    torch.manual_seed(5)
    return torch.randn(*shape)


def scale_of_weight(torch: Any) -> dict[str, Any]:
    return {"qscheme": torch.per_tensor_affine, "dtype": torch.qint8, "scale": 0.02, "zero_point": 0}


@differential(tolerance=1e-5)
def test_reference_layers_by_position(torch: Any) -> Any:
    reference, scale = layers(torch, "quantized.reference"), scale_of_weight(torch)
    torch.manual_seed(0)
    x = numbers(torch, 1, 2, 6)
    convolution = reference.Conv1d(2, 4, 3, 1, 1, 1, 2, False, "zeros", None, None, scale)
    transposed = reference.ConvTranspose1d(2, 4, 3, 2, 1, 1, 2, True, 1, "zeros", None, None, scale)
    table = reference.Embedding(5, 3, 1, None, 2.0, False, False, None, None, None, scale)
    bag = reference.EmbeddingBag(5, 3, None, 2.0, False, "sum", False, None, False, None, None, None, scale)
    rows = torch.tensor([[1, 2], [4, 0]])
    return convolution(x), transposed(x), table(rows), bag(rows), (table.padding_idx, bag.mode)


@differential(tolerance=1e-5)
def test_options_of_tables_are_kept(torch: Any) -> Any:
    reference, scale = layers(torch, "quantized.reference"), scale_of_weight(torch)
    torch.manual_seed(0)
    table = torch.nn.Embedding(5, 3, padding_idx=1, max_norm=2.0, norm_type=1.0, scale_grad_by_freq=True)
    bag = torch.nn.EmbeddingBag(5, 3, mode="max", include_last_offset=True, padding_idx=2)
    made = reference.Embedding.from_float(table, scale)
    other = reference.EmbeddingBag.from_float(bag, scale, use_precomputed_fake_quant=False)
    return (
        (made.padding_idx, made.max_norm, made.norm_type, made.scale_grad_by_freq, made.weight.tolist()),
        (other.mode, other.include_last_offset, other.padding_idx, other.weight.tolist()),
    )


@differential(tolerance=1e-5)
def test_fused_layers_from_reference(torch: Any) -> Any:
    fused, dynamic = layers(torch, "intrinsic.quantized"), layers(torch, "intrinsic.quantized.dynamic")
    reference, nn = layers(torch, "quantized.reference"), torch.nn
    torch.manual_seed(0)
    linear = reference.Linear(4, 3, weight_qparams=scale_of_weight(torch))
    floats = numbers(torch, 2, 4)
    x = torch.quantize_per_tensor(floats, 0.05, 64, torch.quint8)
    rectified = nn.Sequential(linear, nn.ReLU())
    made = fused.LinearReLU.from_reference(ref_linear_relu=rectified, output_scale=0.1, output_zero_point=3)
    watched = dynamic.LinearReLU.from_reference(ref_qlinear_relu=rectified)
    normed = nn.Sequential(nn.BatchNorm2d(2), nn.ReLU())
    norm = fused.BNReLU2d.from_reference(normed, torch.tensor(0.1), torch.tensor(2))
    images = torch.quantize_per_tensor(numbers(torch, 1, 2, 2, 2), 0.05, 64, torch.quint8)
    return made(x).dequantize(), watched(floats), norm(images).dequantize().contiguous()


@differential
def test_layers_that_only_one_engine_of_pytorch_runs(torch: Any) -> Any:
    fused, reference, nn = layers(torch, "intrinsic.quantized"), layers(torch, "quantized.reference"), torch.nn
    torch.manual_seed(0)
    linear = reference.Linear(4, 3, weight_qparams=scale_of_weight(torch))
    leaky = fused.LinearLeakyReLU.from_reference(nn.Sequential(linear, nn.LeakyReLU(0.3)), 0.1, 64)
    tanh = fused.LinearTanh.from_reference(
        ref_mod=nn.Sequential(linear, nn.Tanh()), output_scale=0.5, output_zero_point=8
    )
    weights = [(each.weight().int_repr(), each.bias().detach(), each.scale, each.zero_point) for each in (leaky, tanh)]
    return weights, leaky.negative_slope


@differential
def test_parts_by_name(torch: Any) -> Any:
    intrinsic, nn = layers(torch, "intrinsic"), torch.nn
    made = [
        intrinsic.ConvBnReLU2d(conv=nn.Conv2d(1, 2, 3), bn=nn.BatchNorm2d(2), relu=nn.ReLU()),
        intrinsic.BNReLU3d(batch_norm=nn.BatchNorm3d(2), relu=nn.ReLU()),
        intrinsic.LinearLeakyReLU(linear=nn.Linear(2, 2), leaky_relu=nn.LeakyReLU()),
    ]
    return [str(each) for each in made], outcome(lambda: intrinsic.LinearReLU(nn.ReLU(), nn.Linear(2, 2)))[:2]


@differential
def test_empty_quantized(torch: Any) -> Any:
    like = torch.quantize_per_tensor(torch.ones(2), 0.5, 3, torch.quint8)
    made = torch.empty_quantized([2, 3], like, layout=torch.strided, pin_memory=False, requires_grad=False)
    refused: list[dict[str, Any]] = [
        {"memory_format": torch.contiguous_format},
        {"layout": torch.sparse_coo},
        {"requires_grad": True},
        {"dtype": torch.float32},
    ]
    return (
        (list(made.shape), made.q_scale(), made.q_zero_point(), str(made.dtype)),
        [outcome(lambda options=options: torch.empty_quantized([2], like, **options))[1] for options in refused],
    )
