"""`ao.quantization`: the classes behind its observers, the functions behind its steps, and its joined layers."""

from __future__ import annotations

import copy
import typing
import warnings
from typing import Any

from tests.support.differential import differential, outcome
from tests.support.oracle import ON_X86

OF_CODES = 1e-5 if ON_X86 else 5e-2
"""How near results of integer codes are: elsewhere PyTorch rounds otherwise, by one code."""


def _quantization(torch: Any) -> Any:
    """The package; PyTorch announces its end at every step."""
    warnings.simplefilter("ignore")
    return torch.ao.quantization


def _numbers(torch: Any, *shape: int) -> Any:
    torch.manual_seed(3)
    return torch.randn(*shape)


def _names(classes: Any) -> list[str]:
    return sorted(each.__name__ for each in classes if isinstance(each, type))


@differential(tolerance=1e-5)
def test_classes_of_observers(torch: Any) -> Any:
    """Each by itself: what it computes from what it saw, what it keeps, what it refuses."""
    q = _quantization(torch)
    x = _numbers(torch, 3, 4)
    channels = q.PerChannelMinMaxObserver(ch_axis=1, dtype=torch.qint8, qscheme=torch.per_channel_symmetric)
    channels(x)
    channels(x * 2)
    fixed = q.FixedQParamsObserver(scale=0.25, zero_point=7)
    placeholder = q.PlaceholderObserver(dtype=torch.float16, custom_op_name="cast")
    recording = q.RecordingObserver()
    reuse = q.ReuseInputObserver()
    for each in (fixed, placeholder, recording, reuse):
        assert each(x) is x
    channels.reset_min_max_vals()
    again = outcome(lambda: channels.calculate_qparams())
    return (
        channels.extra_repr(), again, fixed.calculate_qparams(), placeholder.extra_repr(),
        outcome(placeholder.calculate_qparams), recording.get_tensor_value(), outcome(recording.calculate_qparams),
        outcome(reuse.calculate_qparams), str(placeholder.dtype), str(reuse.dtype), str(fixed.qscheme),
    )  # fmt: skip


@differential(tolerance=1e-5)
def test_observers_of_ones_own(torch: Any) -> Any:
    """Subclasses of the bases: what they must have, and what they get."""
    q = _quantization(torch)

    class Largest(q.UniformQuantizationObserverBase):
        def __init__(self, **options: Any) -> None:
            super().__init__(**options)
            self.largest = torch.zeros(())

        def forward(self, x: Any) -> Any:
            self.largest = torch.maximum(self.largest, x.abs().max())
            return x

        def calculate_qparams(self) -> Any:
            return self._calculate_qparams(-self.largest, self.largest)

    class Nothing(q.ObserverBase):
        def forward(self, x: Any) -> Any:
            return x

        def calculate_qparams(self) -> Any:
            return 1.0, 0

    class Affine(q.AffineQuantizedObserverBase):
        def forward(self, x: Any) -> Any:
            self.shape = x.shape
            return x

        def calculate_qparams(self) -> Any:
            return outcome(lambda: q.get_block_size(self.shape, self.granularity))

    class Halved(q.FakeQuantizeBase):
        def forward(self, x: Any) -> Any:
            return x / 2 if self.fake_quant_enabled[0] else x

        def calculate_qparams(self) -> Any:
            return 2.0, 0

    x = _numbers(torch, 2, 6)
    seen = []
    for make in (Largest.with_args(dtype=torch.qint8), Largest.with_args(qscheme=torch.per_tensor_symmetric)):
        watch = make()
        watch(x)
        seen.append(watch.calculate_qparams())
    for granularity in (q.PerBlock((1, 3)), q.PerRow(), q.PerTensor()):
        watch = Affine(q.MappingType.ASYMMETRIC, torch.int8, granularity, eps=1e-5)
        assert watch(x) is x
        asked = (watch.quant_min, watch.quant_max, watch.eps, watch.preserve_zero, str(watch.target_dtype))
        seen.append((watch.calculate_qparams(), asked, watch.zero_point_domain.name, watch.mapping_type.name))
        seen.append((isinstance(granularity, q.Granularity), repr(granularity)))
    halved = Halved()
    outputs = [halved(x)]
    for step in (q.disable_fake_quant, q.enable_fake_quant, q.disable_observer, q.enable_observer):
        halved.apply(step)
        outputs.append((halved(x), halved.fake_quant_enabled, halved.observer_enabled))
    return (
        seen, outputs, Nothing(torch.quint8).calculate_qparams(), str(Nothing(torch.quint8, is_dynamic=True).dtype),
        Nothing(torch.quint8, is_dynamic=True).is_dynamic, sorted(halved.state_dict()),
        outcome(lambda: q.ObserverBase(torch.quint8)), outcome(lambda: q.FakeQuantizeBase()),
    )  # fmt: skip


@differential
def test_kinds(torch: Any) -> Any:
    """The enumerations, and which types an observer may have."""
    q = _quantization(torch)
    kinds = [
        [(each.name, each.value) for each in kind]
        for kind in (q.MappingType, q.ZeroPointDomain, q.TorchAODType, q.QuantType)
    ]
    dynamic = q.QConfigDynamic(activation=torch.nn.Identity, weight=q.default_weight_observer)
    optional = typing.Optional[q.QConfigAny]  # noqa: UP045
    either = typing.Union[q.ObserverOrFakeQuantize, int]  # noqa: UP007
    return kinds, q.QuantType.STATIC < q.QuantType.QAT, dynamic._fields, optional is None, either is None


@differential(tolerance=1e-5)
def test_rounding_that_is_fixed_or_averaged(torch: Any) -> Any:
    """Values, gradients and what is kept."""
    q = _quantization(torch)
    fixed = q.FixedQParamsFakeQuantize(q.FixedQParamsObserver.with_args(scale=1 / 16, zero_point=128))
    averaged = q.FusedMovingAvgObsFakeQuantize(
        q.MovingAverageMinMaxObserver, quant_min=-128, quant_max=127, dtype=torch.qint8, averaging_constant=0.5
    )
    seen = []
    for module in (fixed, averaged):
        for factor in (1.0, 4.0):
            x = (_numbers(torch, 2, 5) * factor).requires_grad_()
            y = module(x)
            y.sum().backward()
            seen += [y.detach(), x.grad]
        seen += [module.calculate_qparams(), module.extra_repr(), sorted(module.state_dict())]
    return seen


def _network(torch: Any) -> Any:
    torch.manual_seed(1)
    return torch.nn.Sequential(torch.nn.Linear(6, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))


@differential(tolerance=OF_CODES)
def test_steps_in_one_call(torch: Any) -> Any:
    """Calibrated and trained networks, each from one call; the numbers that they compute afterwards."""
    q = _quantization(torch)
    x = _numbers(torch, 8, 6)
    net = q.QuantWrapper(_network(torch))
    net.qconfig = q.default_qconfig
    calibrated = q.quantize(net.eval(), q.default_eval_fn, [[(x, 0), (x * 2, 1)]])

    def train(model: Any, batch: Any) -> None:
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(2):
            optimizer.zero_grad()
            model(batch).square().mean().backward()
            optimizer.step()

    trained = q.QuantWrapper(_network(torch))
    trained.qconfig = q.default_qat_qconfig
    trained = q.quantize_qat(trained.train(), train, [x])
    kinds = [[type(each).__name__ for each in model.modules()] for model in (net, calibrated, trained)]
    return kinds, calibrated(x), trained(x), sorted(calibrated.state_dict())


@differential(tolerance=OF_CODES)
def test_parts_of_the_steps(torch: Any) -> Any:
    """Configurations handed down, wrappers around layers, statistics moved from one model to another."""
    q = _quantization(torch)
    net = _network(torch)
    net.qconfig = q.default_qconfig
    net[2].qconfig = None
    q.propagate_qconfig_(net)

    def kind(module: Any) -> str | None:
        configuration = getattr(module, "qconfig", None)
        return configuration and f"{type(configuration.activation()).__name__} {configuration.weight().dtype}"

    handed = [kind(each) for each in net.modules()]
    named = _network(torch)
    q.propagate_qconfig_(named, {"0": q.default_qconfig, torch.nn.ReLU: q.default_dynamic_qconfig})
    by_name = [kind(each) for each in named]
    wrapped = q.add_quant_dequant(net)
    kinds = [type(each).__name__ for each in wrapped.modules()]

    def observed() -> Any:
        model = q.QuantWrapper(_network(torch)).eval()
        model.qconfig = q.default_qconfig
        return q.prepare(model)

    first, second = observed(), observed()
    first(_numbers(torch, 8, 6))
    statistics = q.get_observer_state_dict(first)
    q.load_observer_state_dict(second, statistics)
    moved = q.get_observer_state_dict(second)
    x = _numbers(torch, 2, 6)
    return handed, by_name, kinds, list(statistics), dict(moved), q.convert(first)(x), q.convert(second)(x)


@differential(tolerance=OF_CODES)
def test_layers_with_classes_of_their_own(torch: Any) -> Any:
    """A recurrent layer is watched by one class and quantized by another, both from the tables."""
    q = _quantization(torch)

    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.quant, self.dequant = q.QuantStub(), q.DeQuantStub()
            self.lstm = torch.nn.LSTM(3, 4)

        def forward(self, x: Any) -> Any:
            return self.dequant(self.lstm(self.quant(x))[0])

    torch.manual_seed(1)
    net = Net().eval()
    net.qconfig = q.default_qconfig
    x = _numbers(torch, 2, 1, 3)
    prepared = q.prepare(net)
    watched = type(prepared.lstm).__module__.partition(".")[2]
    prepared(x)
    converted = q.convert(prepared)
    return (
        watched,
        type(converted.lstm).__module__.partition(".")[2],
        repr(converted.lstm).partition("(")[0],
        converted(x),
    )


@differential
def test_tables_of_the_steps(torch: Any) -> Any:
    """Which modules are configured, watched and compared, and which are not."""
    q = _quantization(torch)
    asked = {"Linear", "Conv2d", "LSTM", "Embedding", "BatchNorm2d", "ReLU", "Sequential", "QuantStub", "Dropout"}
    listed = q.get_default_qconfig_propagation_list(), q.get_default_compare_output_module_list()
    custom = q.get_default_custom_config_dict()
    operator = outcome(lambda: str(q.get_quantized_operator(torch.nn.functional.hardswish)).rpartition(".")[2])
    return (
        [sorted(asked & set(_names(each))) for each in listed], _names(q.no_observer_set()), operator[0],
        {key: {a.__name__: b.__module__.partition(".")[2] for a, b in table.items()} for key, table in custom.items()},
        outcome(lambda: q.get_quantized_operator(torch.sin))[:2],
    )  # fmt: skip


@differential
def test_default_configurations(torch: Any) -> Any:
    """One configuration for all, and others for some kinds of layers, as a mapping and as a dict."""
    q = _quantization(torch)
    mapping = q.get_default_qat_qconfig_mapping("fbgemm")
    dicts = q.get_default_qconfig_dict("fbgemm"), q.get_default_qat_qconfig_dict("fbgemm")
    shown = []
    for each in (mapping.to_dict(), *dicts):
        overall = each[""]
        made = overall.activation(), overall.weight()
        kinds = [getattr(kind, "__name__", kind) for kind, _ in each["object_type"]]
        shown.append((sorted(each), [type(part).__name__ for part in made], sorted(set(map(str, kinds)))[:6]))
    return shown, outcome(lambda: q.get_default_qat_qconfig_mapping("none"))[:2]


@differential(tolerance=1e-5)
def test_joined_layers(torch: Any) -> Any:
    """A layer with its normalisation: as one layer where it is evaluated, as one module where it is trained."""
    q, nn = _quantization(torch), torch.nn

    def norm(kind: Any) -> Any:
        made = kind(4)
        with torch.no_grad():
            made.running_mean.copy_(torch.arange(4.0) / 4)
            made.running_var.copy_(torch.arange(1.0, 5.0))
            made.weight.copy_(torch.linspace(0.5, 2.0, 4))
        return made

    torch.manual_seed(2)
    conv, linear, transposed = nn.Conv2d(3, 4, 2), nn.Linear(3, 4), nn.ConvTranspose2d(3, 4, 2)
    image, rows = _numbers(torch, 2, 3, 4, 4), _numbers(torch, 5, 3)
    cases = (
        (q.fuse_conv_bn, (conv, norm(nn.BatchNorm2d)), image),
        (q.fuse_conv_bn_relu, (conv, norm(nn.BatchNorm2d), nn.ReLU()), image),
        (q.fuse_linear_bn, (linear, norm(nn.BatchNorm1d)), rows),
        (q.fuse_convtranspose_bn, (transposed, norm(nn.BatchNorm2d)), image),
    )
    seen = []
    for join, layers, x in cases:
        for is_qat in (False, True):
            parts = [copy.deepcopy(each).train(is_qat) for each in layers]
            made = outcome(lambda join=join, is_qat=is_qat, parts=parts: join(is_qat, *parts))
            result = made[1](x).detach() if made[0] == "value" else None
            seen.append((made[0], made[1] if result is None else type(made[1]).__name__, result))
    found = q.get_fuser_method((nn.Conv2d, nn.BatchNorm2d, nn.ReLU))
    own = q.get_fuser_method((nn.Tanh, nn.Tanh), {(nn.Tanh, nn.Tanh): max})
    newer = q.get_fuser_method_new((nn.ReLU, nn.Linear), {(nn.ReLU, nn.Linear): min})
    return (
        seen, found is q.fuse_conv_bn_relu, own is max, newer is min,
        outcome(lambda: q.get_fuser_method((nn.Tanh, nn.Linear)))[:2],
        outcome(lambda: q.get_fuser_method_new((nn.Tanh, nn.Linear), {}))[:2],
    )  # fmt: skip
