"""Quantized tensors, and rounding to codes in training, beside PyTorch's."""

from __future__ import annotations

import copy
import io
import pickle
import warnings
from typing import Any

import pytest

import flambeau
from tests.support.differential import differential, outcome
from tests.support.oracle import pytorch

pytestmark = pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor", "ignore:TypedStorage")


def numbers(torch: Any, *shape: int) -> Any:
    torch.manual_seed(3)
    return torch.randn(*shape)


def content(q: Any) -> Any:
    """What can be compared of a quantized tensor."""
    meaning: Any
    if q.qscheme().__repr__() == "torch.per_tensor_affine":
        meaning = q.q_scale(), q.q_zero_point()
    else:
        meaning = q.q_per_channel_scales(), q.q_per_channel_zero_points(), q.q_per_channel_axis()
    return str(q.dtype), str(q.qscheme()), tuple(q.shape), q.stride(), q.int_repr(), q.dequantize(), meaning, repr(q)


def quantized(torch: Any, dtype: str = "quint8", *shape: int) -> Any:
    return torch.quantize_per_tensor(numbers(torch, *(shape or (4, 6))), 0.05, 10, getattr(torch, dtype))


@differential
def test_a_scale_for_all(torch: Any) -> Any:
    x = numbers(torch, 4, 6)
    x[0, :4] = torch.tensor([float("inf"), -float("inf"), 0.025, 0.075])
    tensors = torch.quantize_per_tensor([x, x], torch.tensor([0.1, 0.2]), torch.tensor([3, 4]), torch.quint8)
    return (
        [content(torch.quantize_per_tensor(x, 0.05, 8, getattr(torch, each))) for each in ("quint8", "qint8")],
        content(torch.quantize_per_tensor(numbers(torch, 9), 1e-6, -5, torch.qint32)),
        [content(each) for each in tensors],
        [content(torch.quantize_per_tensor_dynamic(x[1:], torch.qint8, each)) for each in (True, False)],
        content(torch.quantize_per_tensor_dynamic(x[1:].abs(), torch.quint8, False)),
        content(torch._make_per_tensor_quantized_tensor(torch.arange(4, dtype=torch.uint8), 0.5, 1)),
        torch.dequantize(tensors),
        x[1:].dequantize(),
        outcome(lambda: torch.quantize_per_tensor(x.double(), 0.1, 0, torch.quint8), "only works on Float"),
        outcome(lambda: torch.quantize_per_tensor(x, 0.1, 0, torch.float32), "not supported in new_qtensor"),
        outcome(lambda: torch.quantize_per_tensor(x, 0.1, 300, torch.quint8), "above upper bound"),
        outcome(lambda: x.int_repr(), "Could not run 'aten::int_repr'"),
    )


@differential
def test_a_scale_for_each_slice(torch: Any) -> Any:
    x = numbers(torch, 3, 4)
    scales, zero_points = torch.tensor([0.1, 0.02, 0.3]), torch.tensor([0, 5, -7])
    q = torch.quantize_per_channel(x, scales, zero_points, 0, torch.qint8)
    other = torch.quantize_per_channel(x.t(), scales, zero_points.float() + 0.5, 1, torch.quint8)
    return (
        content(q),
        content(other),
        content(q[1]),
        content(q.clone()),
        content(torch._make_per_channel_quantized_tensor(q.int_repr(), scales, zero_points, 0)),
        torch._empty_per_channel_affine_quantized(
            [3, 2], scales=scales, zero_points=zero_points, axis=0, dtype=torch.qint8
        ).q_per_channel_axis(),
        outcome(q.q_scale, "kPerTensorAffine"),
        outcome(lambda: torch.quantize_per_channel(x, scales, zero_points, 5, torch.qint8), "out of range"),
    )


@differential
def test_four_bits(torch: Any) -> Any:
    q = torch.quantize_per_channel(
        numbers(torch, 2, 6), torch.tensor([0.1, 0.2]), torch.tensor([7.5, 3.0]), 0, torch.quint4x2
    )
    return q.int_repr(), q.dequantize(), q.dtype


@differential
def test_elements_move_with_their_codes(torch: Any) -> Any:
    q = quantized(torch)
    column = q.t()[2]
    shared = q.view(24)
    q.fill_(1.0)
    q[0].copy_(numbers(torch, 6))
    results = [
        *(column, shared, q.reshape(3, 8), q.permute(1, 0), q.flatten(), q.unsqueeze(1), q[1:3, ::2], q.flip(0)),
        *(torch.cat([q, q]), torch.stack([q, q], 1), q.repeat(2, 1), q.expand(2, 4, 6)),
        *(*q.chunk(2), *q.split(3), q.index_select(1, torch.tensor([4, 0])), q.contiguous(), q.as_strided((3,), (2,))),
        *(torch.empty_quantized([2], q)[:0], torch.ones_like(q), q.sort()[0], q.topk(2)[0], q.max(1)[0], q.min()),
    ]
    return [content(each) for each in results], q[0].topk(3)[1], q[0].max(0)[1], q.storage_offset(), q.nbytes


@differential
def test_functions_of_the_numbers(torch: Any) -> Any:
    functional = torch.nn.functional
    observed = []
    for dtype in ("quint8", "qint8"):
        q = quantized(torch, dtype, 2, 3, 4, 4)
        observed += [
            content(each)
            for each in (
                *(q.relu(), q.clamp(-0.2, 0.4), q.sigmoid(), q.tanh(), functional.hardtanh(q), q.mean()),
                *(functional.leaky_relu(q, 0.1), functional.threshold(q, 0.1, 0.0), functional.hardsigmoid(q)),
                *(functional.max_pool2d(q, 2), functional.avg_pool2d(q, 2), functional.adaptive_avg_pool2d(q, 1)),
                *(functional.interpolate(q, scale_factor=2), functional.pixel_shuffle(q.reshape(2, 4, 3, 4), 2)),
            )
        ]
    q = quantized(torch)
    return (
        observed,
        [q == q, q > 0.3, q != q.flip(0), torch.equal(q, q.clone()), torch.equal(q, q.flip(0)), q[0, 0].item()],
        [q.is_quantized, q.type(), q.element_size(), q.is_contiguous(), len(q)],
        outcome(lambda: q + q, "Could not run"),
        outcome(lambda: q.sum(), "Could not run"),
        outcome(lambda: q.float(), "requires quantized dtype"),
        outcome(lambda: q.numpy(), "unsupported ScalarType QUInt8"),
        outcome(lambda: q.tolist(), "invalid type"),
    )


@differential
def test_copies_and_files(torch: Any) -> Any:
    channels = torch.quantize_per_channel(
        numbers(torch, 2, 3), torch.tensor([0.1, 0.2]), torch.tensor([1, 2]), 0, torch.qint8
    )
    observed = []
    for q in (quantized(torch), channels):
        file = io.BytesIO()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # PyTorch warns of its own typed storages
            torch.save({"q": q}, file)
            file.seek(0)
            loaded = torch.load(file)["q"]
        observed += [content(loaded)]
    return observed


def test_pickles() -> None:
    q = quantized(flambeau)
    assert content(pickle.loads(pickle.dumps(q)))[7] == content(copy.deepcopy(q))[7] == content(q)[7]
    scales, zero_points = flambeau.ones(4), flambeau.zeros(4, dtype=flambeau.int64)
    slices = flambeau.quantize_per_channel(numbers(flambeau, 4, 6), scales, zero_points, 0, flambeau.qint8)
    assert slices.t().q_per_channel_axis() == slices.permute(1, 0).q_per_channel_axis() == 1


def test_files_of_both_libraries() -> None:
    for writer, reader in ((pytorch, flambeau), (flambeau, pytorch)):
        file = io.BytesIO()
        writer.save(quantized(writer), file)
        file.seek(0)
        expected, actual = content(quantized(writer)), content(reader.load(file, weights_only=True))
        assert expected[4].tolist() == actual[4].tolist()
        assert expected[7] == actual[7]


@differential
def test_packed_types_have_bytes_alone(torch: Any) -> Any:
    observed = []
    for name in ("uint1", "uint3", "int4", "bits8", "bits1x8", "float4_e2m1fn_x2"):
        dtype = getattr(torch, name)
        made = torch.arange(6, dtype=torch.uint8).view(dtype)
        observed += [
            str(made.dtype),
            made[1:4].view(torch.uint8),
            made.reshape(2, 3).t().is_contiguous(),
            made.element_size(),
            outcome(lambda made=made: made + 1, "not implemented")[:2] == "error",
        ]
    scales = torch.tensor([1.0, 2.5, 3.0, 1000.0]).to(torch.float8_e8m0fnu)
    return observed, scales.view(torch.uint8), scales.float(), torch.bits16.itemsize


@differential
def test_rounding_in_training(torch: Any) -> Any:
    observed = []
    for scale, zero_point in (
        (0.1, 3),
        (torch.tensor([0.1]), torch.tensor([3], dtype=torch.int32)),
    ):
        x = numbers(torch, 4, 5).requires_grad_()
        y = torch.fake_quantize_per_tensor_affine(x, scale, zero_point, -10, 10)
        y.square().sum().backward()
        observed += [y, x.grad]
    x = numbers(torch, 3, 5).requires_grad_()
    scales, zero_points = torch.tensor([0.1, 0.05, 0.2]), torch.tensor([0, 2, -1], dtype=torch.int32)
    y = torch.fake_quantize_per_channel_affine(x, scales, zero_points, 0, -10, 10)
    y.square().sum().backward()
    return (
        observed,
        [y, x.grad],
        torch.fake_quantize_per_channel_affine(x.detach(), scales, zero_points + 0.5, 0, -10, 10),
        outcome(lambda: torch.fake_quantize_per_tensor_affine(x, 0.1, 0, 5, 3), "quant_min"),
        outcome(lambda: torch.fake_quantize_per_tensor_affine(x, 0.1, 40, 0, 15), "zero_point"),
        outcome(lambda: torch.fake_quantize_per_channel_affine(x, scales, zero_points, 1, 0, 15), "not consistent"),
        outcome(
            lambda: torch.fake_quantize_per_channel_affine(x, scales, zero_points.long(), 0, -10, 10), "found Long"
        ),
        torch.choose_qparams_optimized(x.detach(), 15, 10, 0.16, 4),
    )


@differential
def test_watching_and_rounding_at_once(torch: Any) -> Any:
    observed = []
    for rows, symmetric in ((False, False), (False, True), (True, False), (True, True)):
        count = 3 if rows else 1
        state = [torch.full((count,), float("inf")), torch.full((count,), -float("inf")), torch.ones(count)]
        zero_point = torch.zeros(count, dtype=torch.int32)
        for step in range(3):
            x = (numbers(torch, 3, 4) * (step + 1)).requires_grad_()
            on = torch.tensor([1 if step < 2 else 0])
            y = torch.fused_moving_avg_obs_fake_quant(
                x, on, torch.tensor([1]), *state, zero_point, 0.1, -128, 127, 0, rows, symmetric
            )
            y.sum().backward()
            observed += [y.detach(), x.grad, *(each.clone() for each in state), zero_point.clone()]
    return observed
