"""`torch.ops.quantized` by its names: what lowered graphs of quantised networks call gives PyTorch's codes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import flambeau
from tests.support.oracle import pytorch

pytestmark = pytest.mark.skipif(pytorch is None, reason="needs PyTorch")


def _floats(torch: Any, *shape: int) -> Any:
    count = int(torch.empty(shape).numel())
    return ((torch.arange(float(count)) * 37 % 101) / 25 - 1.5).reshape(shape)


def _codes(torch: Any, *shape: int, scale: float = 0.05, dtype: str = "quint8") -> Any:
    return torch.quantize_per_tensor(_floats(torch, *shape), scale, 30, getattr(torch, dtype))


def _weight(torch: Any, *shape: int) -> Any:
    return torch.quantize_per_tensor(_floats(torch, *shape) / 3, 0.02, 0, torch.qint8)


def _statistics(torch: Any) -> tuple[Any, ...]:
    return tuple(torch.tensor(each) for each in ([1.0, 0.5], [0.1, 0.2], [0.3, -0.1], [1.0, 2.0]))


def _packed(torch: Any, number: int, transposed: bool = False) -> Any:
    name = f"conv_transpose{number}d" if transposed else f"conv{number}d"
    one = [1] * number
    options = ([2] * number, one, [0] * number, one, 1) if transposed else ([2] * number, one, one, 1)
    weight = _weight(torch, 2, 2, *[3] * number)
    return getattr(torch.ops.quantized, f"{name}_prepack")(weight, torch.tensor([0.5, -0.5]), *options)


CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "add_scalar": lambda t, q: [q.add_scalar(_codes(t, 3, 4), each) for each in (0.5, -20.0, 20.0, t.tensor(0.3))],
    "add_scalar_relu": lambda t, q: [q.add_scalar_relu(_codes(t, 3, 4), each) for each in (0.5, -20.0)],
    "mul_scalar": lambda t, q: [q.mul_scalar(_codes(t, 3, 4), each) for each in (0.5, -2.0, 0.0, t.tensor(1.5))],
    "mul_scalar_relu": lambda t, q: [q.mul_scalar_relu(_codes(t, 3, 4), each) for each in (0.5, -2.0)],
    "add_out": lambda t, q: q.add_out(_codes(t, 3, 4), _codes(t, 3, 4), _codes(t, 3, 4, scale=0.2)),
    "add_relu_out": lambda t, q: q.add_relu_out(_codes(t, 3, 4), _codes(t, 3, 4), _codes(t, 3, 4, scale=0.2)),
    "mul_out": lambda t, q: q.mul_out(_codes(t, 3, 4), _codes(t, 3, 4), _codes(t, 3, 4, scale=0.2)),
    "mul_relu_out": lambda t, q: q.mul_relu_out(_codes(t, 3, 4), _codes(t, 3, 4), _codes(t, 3, 4, scale=0.2)),
    "add_scalar_out": lambda t, q: q.add_scalar_out(_codes(t, 3, 4), 0.5, _codes(t, 3, 4, scale=0.2)),
    "mul_scalar_relu_out": lambda t, q: q.mul_scalar_relu_out(_codes(t, 3, 4), 0.5, _codes(t, 3, 4, scale=0.2)),
    "cat_relu": lambda t, q: q.cat_relu([_codes(t, 3, 4), _codes(t, 3, 4, scale=0.1)], 1, 0.07, 3),
    "cat_out": lambda t, q: q.cat_out([_codes(t, 3, 4), _codes(t, 3, 4)], 0, _codes(t, 6, 4, scale=0.1)),
    "aten.slice": lambda t, q: [t.ops.aten.slice(_codes(t, 3, 4), 1, 1, 4, 2), _codes(t, 3, 4)[:, 1:]],
    "aten.unfold": lambda t, q: [t.ops.aten.unfold(_codes(t, 3, 6), 1, 3, 2), _codes(t, 3, 6).unfold(0, 2, 1)],
    "sigmoid": lambda t, q: q.sigmoid(_codes(t, 3, 4), 0.01, 5),
    "softmax": lambda t, q: q.softmax(_codes(t, 3, 4), 1, 0.01, 5),
    "prelu": lambda t, q: q.prelu(_codes(t, 2, 2, 3, 3), _codes(t, 2), 0.11, 40),
    "relu6": lambda t, q: q.relu6(_codes(t, 3, 4, scale=0.3)),
    "threshold": lambda t, q: q.threshold(_codes(t, 3, 4), 0.5, 0.1),
    "clamp": lambda t, q: [q.clamp(_codes(t, 3, 4), 0.0, 1.0), q.clamp(_codes(t, 3, 4), -0.5)],
    "max_pool1d": lambda t, q: q.max_pool1d(_codes(t, 2, 3, 9), [3], [2], [1], [1], False),
    "max_pool2d": lambda t, q: q.max_pool2d(_codes(t, 2, 3, 9, 7), [3, 2], [2, 2], [1, 0], [1, 1], True),
    "batch_norm": lambda t, q: q.batch_norm(_codes(t, 3, 2, 3, 3), *_statistics(t), 1e-5, 0.1, 20),
    "batch_norm1d": lambda t, q: q.batch_norm1d(_codes(t, 3, 2, 5), *_statistics(t), 1e-5, 0.1, 20),
    "batch_norm1d_relu": lambda t, q: q.batch_norm1d_relu(_codes(t, 3, 2), *_statistics(t), 1e-5, 0.1, 20),
    "batch_norm2d": lambda t, q: q.batch_norm2d(_codes(t, 3, 2, 3, 3), *_statistics(t), 1e-5, 0.1, 20),
    "batch_norm2d_relu": lambda t, q: q.batch_norm2d_relu(_codes(t, 3, 2, 3, 3), *_statistics(t), 1e-5, 0.1, 20),
    "batch_norm3d": lambda t, q: q.batch_norm3d(_codes(t, 3, 2, 2, 3, 3), *_statistics(t), 1e-5, 0.1, 20),
    "conv1d_dynamic": lambda t, q: q.conv1d_dynamic(_floats(t, 2, 2, 9), _packed(t, 1), True),
    "conv2d_dynamic": lambda t, q: q.conv2d_dynamic(_floats(t, 2, 2, 9, 9), _packed(t, 2), True),
    "conv3d_dynamic": lambda t, q: q.conv3d_dynamic(_floats(t, 1, 2, 5, 5, 5), _packed(t, 3), True),
    "conv_transpose1d_dynamic": lambda t, q: q.conv_transpose1d_dynamic(_floats(t, 2, 2, 5), _packed(t, 1, True), True),
    "conv1d_unpack": lambda t, q: q.conv1d_unpack(_packed(t, 1)),
    "conv2d_unpack": lambda t, q: q.conv2d_unpack(_packed(t, 2)),
    "conv_transpose2d_unpack": lambda t, q: q.conv_transpose2d_unpack(_packed(t, 2, True)),
    **{
        f"{name}_{each}": lambda t, q, n=int(name[-2]), tr="tr" in name, full=f"{name}_{each}": getattr(q, full)(
            _packed(t, n, tr)
        )
        for name in ("conv2d", "conv3d", "conv_transpose2d", "conv_transpose3d")
        for each in ("stride", "padding", "dilation", "groups", "transpose")
    },
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:The current implementation of the DynamicQuantized")
@pytest.mark.parametrize("reduce_range", [False, True])
@pytest.mark.parametrize("name", ["Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d"])
def test_dynamic_convolutions_round_their_result_as_pytorch(name: str, reduce_range: bool) -> None:
    number = int(name[-2])
    transposed = "Transpose" in name

    def run(torch: Any) -> Any:
        layer = getattr(torch.ao.nn.quantized.dynamic, name)(2, 2, 3, stride=2, padding=0 if transposed else 1)
        layer.set_weight_bias(_weight(torch, 2, 2, *[3] * number), torch.tensor([0.5, -0.5]))
        return layer(_floats(torch, 2, 2, *[5] * number), reduce_range=reduce_range)

    assert _plain(run(flambeau)) == _plain(run(pytorch))


def _plain(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    if not isinstance(value, (flambeau.Tensor, pytorch.Tensor)):
        return value
    if not value.is_quantized:
        return [round(each, 4) for each in value.flatten().tolist()]
    return value.int_repr().tolist(), str(value.dtype), round(value.q_scale(), 7), value.q_zero_point()


@pytest.mark.parametrize("name", CALLS)
def test_a_quantized_operator_gives_the_codes_of_pytorch(name: str) -> None:
    expected = _plain(CALLS[name](pytorch, pytorch.ops.quantized))
    assert _plain(CALLS[name](flambeau, flambeau.ops.quantized)) == expected
