"""Quantization of models, module by module, beside PyTorch's: observers, rounding in training, quantized modules."""

from __future__ import annotations

import importlib
import io
import warnings
from collections.abc import Iterator
from typing import Any

import pytest

import flambeau
from tests.support.differential import differential, outcome
from tests.support.quantized import warned_before  # noqa: F401  it runs before every test

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """PyTorch announces the end of this package at every step."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def quantization(torch: Any) -> Any:
    return importlib.import_module(f"{torch.__name__}.ao.quantization")


def numbers(torch: Any, *shape: int) -> Any:
    torch.manual_seed(5)
    return torch.randn(*shape)


@differential(tolerance=1e-5)
def test_observers(torch: Any) -> Any:
    q = quantization(torch)
    warnings.simplefilter("ignore")
    observed = []
    for make in (
        q.default_observer,
        q.default_weight_observer,
        q.default_per_channel_weight_observer,
        q.default_float_qparams_observer,
        q.default_histogram_observer,
        q.weight_observer_range_neg_127_to_127,
        q.per_channel_weight_observer_range_neg_127_to_127,
        q.MovingAverageMinMaxObserver.with_args(averaging_constant=0.3),
        q.MovingAveragePerChannelMinMaxObserver.with_args(ch_axis=1, averaging_constant=0.3),
        q.HistogramObserver.with_args(bins=64, dtype=torch.qint8, qscheme=torch.per_tensor_symmetric),
        q.MinMaxObserver.with_args(dtype=torch.qint32),
        q.MinMaxObserver.with_args(reduce_range=True),
        q.default_fixed_qparams_range_neg1to1_observer,
    ):
        watch = make()
        before = outcome(watch.calculate_qparams)
        for step in (1.0, 3.0, 2.0):
            x = numbers(torch, 4, 30) * step
            assert watch(x) is x
        loaded = make()
        loaded.load_state_dict(watch.state_dict())
        observed += [before, watch.calculate_qparams(), loaded.calculate_qparams(), list(watch.state_dict())]
        observed += [watch.extra_repr(), str(watch.dtype), watch.is_dynamic, watch.quant_min, watch.quant_max]
    recording = q.default_debug_observer()
    recording(numbers(torch, 2))
    return (
        observed,
        recording.get_tensor_value(),
        outcome(lambda: q.MinMaxObserver(qscheme=torch.per_channel_affine), "qscheme only support"),
        outcome(lambda: q.MinMaxObserver(quant_min=1, quant_max=5), "must include 0"),
        outcome(lambda: q.NoopObserver().calculate_qparams(), "should not be called"),
        [repr(q.get_block_size((8, 16), each)) for each in (q.PerTensor(), q.PerAxis(0), q.PerGroup(4), q.PerToken())],
    )


@differential(tolerance=1e-5)
def test_rounding_modules(torch: Any) -> Any:
    q = quantization(torch)
    warnings.simplefilter("ignore")
    observed = []
    for make in (
        q.default_fake_quant,
        q.default_weight_fake_quant,
        q.default_per_channel_weight_fake_quant,
        q.default_embedding_fake_quant,
        q.default_histogram_fake_quant,
        q.default_fused_act_fake_quant,
        q.default_fused_wt_fake_quant,
        q.default_fused_per_channel_wt_fake_quant,
        q.default_fixed_qparams_range_0to1_fake_quant,
        q.default_dynamic_fake_quant,
    ):
        module = make()
        for step in (1.0, 2.0):
            x = (numbers(torch, 3, 8) * step).requires_grad_()
            y = module(x)
            y.square().sum().backward()
            observed += [y.detach(), x.grad]
        module.apply(q.disable_observer)
        observed += [module(numbers(torch, 3, 8) * 5)]
        module.apply(q.disable_fake_quant)
        observed += [module(numbers(torch, 3, 8) * 5), module.scale, module.zero_point, module.extra_repr()]
        again = make()
        again.load_state_dict(module.state_dict())
        observed += [again.scale, list(module.state_dict())]
    return observed, outcome(lambda: q.FakeQuantize(quant_min=-5, quant_max=9), "out of bound")


@differential
def test_configurations(torch: Any) -> Any:
    q = quantization(torch)
    config = q.get_default_qconfig("qnnpack")
    mapping = q.get_default_qconfig_mapping()
    mapping.set_module_name("layer", None).set_module_name_regex("l.*", config)
    again = q.QConfigMapping.from_dict(mapping.to_dict())
    utils = importlib.import_module(f"{torch.__name__}.ao.quantization.utils")
    return (
        [utils.get_quant_type(each).name for each in (config, q.default_dynamic_qconfig, q.float16_dynamic_qconfig)],
        q.qconfig_equals(config, q.get_default_qconfig("qnnpack")),
        q.qconfig_equals(config, q.get_default_qconfig("fbgemm")),
        q.qconfig_equals(q.get_default_qat_qconfig(), q.get_default_qat_qconfig()),
        list(again.module_name_qconfigs),
        list(again.module_name_regex_qconfigs),
        len(again.object_type_qconfigs),
        utils.activation_is_statically_quantized(config),
        utils.weight_is_quantized(config),
        [str(each) for each in utils.get_qconfig_dtypes(config)],
        outcome(lambda: q.QConfig(torch.nn.Identity(), None), "observer instance"),
        outcome(lambda: q.get_default_qconfig("moon"), "not supported"),
        outcome(lambda: q.get_static_quant_module_class(torch.nn.Bilinear), "does not have"),
        q.get_static_quant_module_class(torch.nn.Linear).__name__,
        q.get_dynamic_quant_module_class(torch.nn.Linear).__name__,
        sorted(each.__name__ for each in q.get_default_qat_module_mappings()),
    )


def network(torch: Any) -> Any:
    q, nn = quantization(torch), torch.nn

    class Network(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.quant = q.QuantStub()
            self.conv = nn.Conv2d(2, 4, 3, padding=1)
            self.bn = nn.BatchNorm2d(4)
            self.relu = nn.ReLU()
            self.second = nn.Conv2d(4, 4, 1, groups=2, bias=False)
            self.act = nn.Hardswish()
            self.sum = nn.quantized.FloatFunctional()
            self.linear = nn.Linear(4, 3)
            self.dequant = q.DeQuantStub()

        def forward(self, x: Any) -> Any:
            x = self.relu(self.bn(self.conv(self.quant(x))))
            x = self.sum.add(x, self.act(self.second(x)))
            x = torch.nn.functional.adaptive_avg_pool2d(x, 1).flatten(1)
            return self.dequant(self.linear(x))

    torch.manual_seed(2)
    return Network()


@differential(tolerance=2e-2)
def test_a_trained_network(torch: Any) -> Any:
    q = quantization(torch)
    warnings.simplefilter("ignore")
    model = network(torch).eval()
    fused = q.fuse_modules(model, [["conv", "bn", "relu"]])
    fused.qconfig = q.get_default_qconfig("fbgemm")
    data = numbers(torch, 6, 2, 5, 5)
    prepared = q.prepare(fused)
    prepared(data)
    converted = q.convert(prepared)
    x = data[:3]
    state = converted.state_dict()
    again = q.convert(q.prepare(fused))
    again.load_state_dict(state)
    return (
        fused(x),
        converted(x),
        torch.equal(converted(x), again(x)),
        sorted(state),
        [type(each).__name__ for each in converted.children()],
        converted.conv.weight().q_per_channel_scales(),
        [converted.conv.scale, converted.conv.zero_point, converted.sum.scale, converted.linear.zero_point],
        converted.linear.weight().int_repr(),
        repr(converted.second).partition("scale")[0],
    )


@differential(tolerance=1e-4)
def test_training_with_rounding(torch: Any) -> Any:
    q = quantization(torch)
    warnings.simplefilter("ignore")
    model = network(torch).train()
    fused = q.fuse_modules_qat(model, [["conv", "bn", "relu"]])
    fused.qconfig = q.get_default_qat_qconfig("qnnpack")
    prepared = q.prepare_qat(fused)
    optimizer = torch.optim.SGD(prepared.parameters(), lr=0.05)
    losses = []
    for _ in range(3):
        loss = prepared(numbers(torch, 8, 2, 5, 5)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    prepared.apply(torch.nn.intrinsic.qat.modules.freeze_bn_stats)
    prepared.eval()
    return losses, prepared(numbers(torch, 2, 2, 5, 5)).detach(), [type(each).__name__ for each in prepared.children()]


@differential(tolerance=1e-4)
def test_inputs_that_are_quantized_as_they_come(torch: Any) -> Any:
    q, nn = quantization(torch), torch.nn
    warnings.simplefilter("ignore")
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
    x = numbers(torch, 5, 8)
    whole, halves = q.quantize_dynamic(model, {nn.Linear}), q.quantize_dynamic(model, dtype=torch.float16)
    table = q.quantize_dynamic(nn.Sequential(nn.Embedding(6, 4)), dtype=torch.quint8)
    file = io.BytesIO()
    torch.save(whole.state_dict(), file)
    return (
        whole(x),
        halves(x).detach(),
        whole[0].weight().int_repr(),
        table(torch.tensor([[1, 5]])),
        repr(whole),
        sorted(whole.state_dict()),
        torch.ao.nn.quantized.dynamic.Conv1d.__name__,
    )


@differential(tolerance=1e-5)
def test_modules_of_codes(torch: Any) -> Any:
    nnq = importlib.import_module(f"{torch.__name__}.ao.nn.quantized")
    functional = importlib.import_module(f"{torch.__name__}.ao.nn.quantized.functional")
    warnings.simplefilter("ignore")
    x = torch.quantize_per_tensor(numbers(torch, 2, 4, 6, 6), 0.05, 64, torch.quint8)
    weight = torch.quantize_per_tensor(numbers(torch, 3, 4, 3, 3), 0.02, 0, torch.qint8)
    flat = torch.quantize_per_tensor(numbers(torch, 5, 6), 0.05, 64, torch.quint8)
    matrix = torch.quantize_per_tensor(numbers(torch, 3, 6), 0.02, 0, torch.qint8)
    both = nnq.QFunctional()
    both.scale, both.zero_point = 0.0931, 60
    results = [
        functional.conv2d(x, weight, torch.ones(3), padding=1, scale=0.2, zero_point=30),
        functional.linear(flat, matrix, torch.ones(3), 0.1, 40),
        functional.leaky_relu(x, 0.2, scale=0.0931, zero_point=30),
        functional.clamp(x, -0.5, 0.5),
        functional.threshold(x, 0.1, 0.0),
        functional.max_pool2d(x, 2),
        functional.avg_pool2d(x, 3),
        functional.adaptive_avg_pool2d(x, 2),
        functional.interpolate(x, scale_factor=2),
        both.add(x, x),
        both.mul(x, x),
        both.cat([x, x], 1),
        both.add_relu(x, x),
        nnq.ReLU6()(x),
        nnq.Dropout()(x),
        nnq.Quantize(0.1, 3, torch.quint8)(numbers(torch, 4)),
        nnq.LeakyReLU(0.0931, 20, 0.3)(x),
    ]
    return [(each.int_repr(), each.q_scale(), each.q_zero_point()) for each in results], nnq.DeQuantize()(x)


def test_what_is_not_built_says_so() -> None:
    with pytest.raises(NotImplementedError, match=r"names\.html"):
        importlib.import_module("flambeau.ao.quantization.quantize_jit").prepare_jit(None, None)
    assert flambeau.nn.quantized is flambeau.ao.nn.quantized
    assert importlib.import_module("flambeau.quantization.observer") is flambeau.ao.quantization.observer
