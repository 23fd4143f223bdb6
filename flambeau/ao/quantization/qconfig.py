"""Configurations: with what activations and weights of a layer are watched and quantized."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple, Optional

import flambeau as torch

from ...nn.modules.linear import Identity
from ...nn.modules.module import Module
from . import fake_quantize as fakes
from . import observer as observers
from ._factories import _PartialWrapper
from .fake_quantize import FakeQuantize, FusedMovingAvgObsFakeQuantize
from .observer import HistogramObserver, MinMaxObserver, MovingAverageMinMaxObserver, NoopObserver, PlaceholderObserver

__all__ = [
    "QConfig", "QConfigAny", "QConfigDynamic", "default_activation_only_qconfig", "default_debug_qconfig",
    "default_dynamic_qat_qconfig", "default_dynamic_qconfig", "default_embedding_qat_qconfig",
    "default_embedding_qat_qconfig_4bit", "default_per_channel_qconfig",
    "default_per_channel_symmetric_qnnpack_qat_qconfig", "default_per_channel_symmetric_qnnpack_qconfig",
    "default_qat_qconfig", "default_qat_qconfig_v2", "default_qconfig", "default_quint8_weight_qconfig",
    "default_reuse_input_qconfig", "default_symmetric_qnnpack_qat_qconfig", "default_symmetric_qnnpack_qconfig",
    "default_weight_only_qconfig", "float16_dynamic_qconfig", "float16_static_qconfig",
    "float_qparams_weight_only_qconfig", "float_qparams_weight_only_qconfig_4bit", "get_default_qat_qconfig",
    "get_default_qat_qconfig_dict", "get_default_qconfig", "get_default_qconfig_dict", "per_channel_dynamic_qconfig",
    "qconfig_equals",
]  # fmt: skip

_INSTANCE = (
    "received observer instance, please pass observer class instead. Use MyObserver.with_args(x=1) to override "
    "arguments to constructor if needed"
)


class _Pair(NamedTuple):
    activation: Any
    weight: Any


class QConfig(_Pair):
    """What makes the observers of activations and of weights: classes, or `with_args` of classes."""

    __slots__ = ()

    def __new__(cls, activation: Any, weight: Any) -> QConfig:
        if isinstance(activation, Module) or isinstance(weight, Module):
            raise ValueError(f"QConfig {_INSTANCE}")
        return super().__new__(cls, activation, weight)


QConfigAny = Optional[QConfig]  # noqa: UP045  not an annotation: programs look at it as at PyTorch's


class QConfigDynamic(_Pair):
    """Deprecated: a configuration of weights alone; use `QConfig`."""

    __slots__ = ()

    def __new__(cls, activation: Any = Identity, weight: Any = Identity) -> QConfigDynamic:
        warnings.warn("`QConfigDynamic` is deprecated, please use `QConfig` instead", FutureWarning, stacklevel=2)
        if isinstance(weight, Module):
            raise ValueError(f"QConfigDynamic {_INSTANCE}")
        return super().__new__(cls, activation, weight)


_HALVES = PlaceholderObserver.with_args(dtype=torch.float16)
_NO_ACTIVATION = NoopObserver.with_args(dtype=torch.float32)
_SIGNED_HISTOGRAM = HistogramObserver.with_args(dtype=torch.qint8, reduce_range=False, eps=2**-12)
_SIGNED_AVERAGE = FusedMovingAvgObsFakeQuantize.with_args(
    observer=MovingAverageMinMaxObserver, quant_min=-128, quant_max=127, dtype=torch.qint8, reduce_range=False,
    eps=2**-12,
)  # fmt: skip

default_qconfig = QConfig(observers.default_observer, observers.default_weight_observer)
default_debug_qconfig = QConfig(observers.default_debug_observer, observers.default_weight_observer)
default_per_channel_qconfig = QConfig(observers.default_observer, observers.default_per_channel_weight_observer)
default_dynamic_qconfig = QConfig(observers.default_dynamic_quant_observer, observers.default_weight_observer)
float16_dynamic_qconfig = QConfig(PlaceholderObserver.with_args(dtype=torch.float16, is_dynamic=True), _HALVES)
float16_static_qconfig = QConfig(_HALVES, _HALVES)
per_channel_dynamic_qconfig = QConfig(
    observers.default_dynamic_quant_observer, observers.default_per_channel_weight_observer
)
float_qparams_weight_only_qconfig = QConfig(
    observers.default_placeholder_observer, observers.default_float_qparams_observer
)
float_qparams_weight_only_qconfig_4bit = QConfig(
    observers.default_placeholder_observer, observers.default_float_qparams_observer_4bit
)
default_qat_qconfig = QConfig(fakes.default_fake_quant, fakes.default_weight_fake_quant)
default_dynamic_qat_qconfig = QConfig(fakes.default_dynamic_fake_quant, fakes.default_weight_fake_quant)
default_weight_only_qconfig = QConfig(Identity, fakes.default_weight_fake_quant)
default_activation_only_qconfig = QConfig(fakes.default_fake_quant, Identity)
default_qat_qconfig_v2 = QConfig(fakes.default_fused_act_fake_quant, fakes.default_fused_wt_fake_quant)
default_reuse_input_qconfig = QConfig(observers.default_reuse_input_observer, NoopObserver)
default_symmetric_qnnpack_qconfig = QConfig(_SIGNED_HISTOGRAM, observers.weight_observer_range_neg_127_to_127)
default_per_channel_symmetric_qnnpack_qconfig = QConfig(
    _SIGNED_HISTOGRAM, observers.per_channel_weight_observer_range_neg_127_to_127
)
default_symmetric_qnnpack_qat_qconfig = QConfig(_SIGNED_AVERAGE, fakes.fused_wt_fake_quant_range_neg_127_to_127)
default_per_channel_symmetric_qnnpack_qat_qconfig = QConfig(
    _SIGNED_AVERAGE, fakes.fused_per_channel_wt_fake_quant_range_neg_127_to_127
)
default_embedding_qat_qconfig = QConfig(_NO_ACTIVATION, fakes.default_embedding_fake_quant)
default_embedding_qat_qconfig_4bit = QConfig(_NO_ACTIVATION, fakes.default_embedding_fake_quant_4bit)
default_quint8_weight_qconfig = QConfig(HistogramObserver, MinMaxObserver)

_REDUCES = {"fbgemm": True, "x86": True, "qnnpack": False, "onednn": False}
"""The kernels that a configuration may be for, and whether their sums overflow with all 8 bits."""


def _check(backend: str, version: int, versions: tuple[int, ...], name: str) -> None:
    if backend not in _REDUCES:
        raise AssertionError(
            f"backend: {backend} not supported. backend must be one of ['fbgemm', 'x86', 'qnnpack', 'onednn']"
        )
    if version not in versions:
        known = " or ".join(map(str, versions))
        raise AssertionError(f"Version number: {version} in {name} is not supported. Version number must be {known}")


def get_default_qconfig(backend: str = "x86", version: int = 0) -> QConfig:
    """The configuration for quantizing a trained model."""
    _check(backend, version, (0,), "get_default_qconfig")
    weight = (
        observers.default_weight_observer if backend == "qnnpack" else observers.default_per_channel_weight_observer
    )
    return QConfig(HistogramObserver.with_args(reduce_range=_REDUCES[backend]), weight)


def get_default_qat_qconfig(backend: str = "x86", version: int = 1) -> QConfig:
    """The configuration for training a model that is to be quantized."""
    _check(backend, version, (0, 1), "get_default_qat_qconfig")
    options: dict[str, Any] = {"observer": MovingAverageMinMaxObserver, "quant_min": 0, "quant_max": 255}
    if backend != "onednn":
        options["reduce_range"] = _REDUCES[backend]
    whole = backend == "qnnpack"
    if version == 0:
        weight = fakes.default_weight_fake_quant if whole else fakes.default_per_channel_weight_fake_quant
        return QConfig(FakeQuantize.with_args(**options), weight)
    weight = fakes.default_fused_wt_fake_quant if whole else fakes.default_fused_per_channel_wt_fake_quant
    return QConfig(FusedMovingAvgObsFakeQuantize.with_args(**options), weight)


def _of_mapping(name: str, better: str, backend: str, version: int) -> dict[str, Any]:
    from . import qconfig_mapping

    warnings.warn(
        f"`torch.ao.quantization.{name}` is deprecated. Please use `torch.ao.quantization.{better}` instead.",
        FutureWarning,
        stacklevel=3,
    )
    found: dict[str, Any] = getattr(qconfig_mapping, better)(backend, version).to_dict()
    return found


def get_default_qconfig_dict(backend: str = "x86", version: int = 0) -> dict[str, Any]:
    """The default mapping as a dictionary."""
    return _of_mapping("get_default_qconfig_dict", "get_default_qconfig_mapping", backend, version)


def get_default_qat_qconfig_dict(backend: str = "x86", version: int = 1) -> dict[str, Any]:
    """The default mapping for training as a dictionary."""
    return _of_mapping("get_default_qat_qconfig_dict", "get_default_qat_qconfig_mapping", backend, version)


def _assert_valid_qconfig(qconfig: Any, mod: Any) -> None:
    transposed = (torch.nn.ConvTranspose1d, torch.nn.ConvTranspose2d, torch.nn.ConvTranspose3d)
    if qconfig is not None and qconfig.weight is not None and isinstance(mod, transposed):
        slices = (observers.PerChannelMinMaxObserver, observers.MovingAveragePerChannelMinMaxObserver)
        if isinstance(qconfig.weight(), slices):
            raise AssertionError("Per channel weight observer is not supported yet for ConvTranspose{n}d.")


def _same_maker(left: Any, right: Any) -> bool:
    if not (isinstance(left, _PartialWrapper) and isinstance(right, _PartialWrapper)):
        return bool(left == right)
    mine, others = dict(left.p.keywords), dict(right.p.keywords)
    same = "observer" not in mine or "observer" not in others or _same_maker(mine.pop("observer"), others.pop("observer"))  # noqa: E501  # fmt: skip
    return bool(same and mine == others and left.p.func == right.p.func and left.p.args == right.p.args)


def qconfig_equals(q1: Any, q2: Any) -> bool:
    """Whether two configurations make the same observers."""
    if q1 is None or q2 is None:
        return q1 is q2
    try:
        return _same_maker(q1.activation, q2.activation) and _same_maker(q1.weight, q2.weight)
    except AttributeError:
        return bool(q1 == q2)
