"""Rounding to codes in training: modules that watch numbers and pass them on as their codes would give them back."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import flambeau as torch

from ...nn.modules.module import Module
from ._factories import _PartialWrapper, _with_args
from .observer import (
    FixedQParamsObserver,
    HistogramObserver,
    MovingAverageMinMaxObserver,
    MovingAveragePerChannelMinMaxObserver,
    default_fixed_qparams_range_0to1_observer,
    default_fixed_qparams_range_neg1to1_observer,
)
from .utils import is_per_channel, is_per_tensor

__all__ = [
    "FakeQuantize", "FakeQuantizeBase", "FixedQParamsFakeQuantize", "FusedMovingAvgObsFakeQuantize",
    "default_affine_fixed_qparams_fake_quant", "default_dynamic_fake_quant", "default_embedding_fake_quant",
    "default_embedding_fake_quant_4bit", "default_fake_quant", "default_fixed_qparams_range_0to1_fake_quant",
    "default_fixed_qparams_range_neg1to1_fake_quant", "default_fused_act_fake_quant",
    "default_fused_per_channel_wt_fake_quant", "default_fused_wt_fake_quant", "default_histogram_fake_quant",
    "default_per_channel_weight_fake_quant", "default_symmetric_fixed_qparams_fake_quant",
    "default_weight_fake_quant", "disable_fake_quant", "disable_observer", "enable_fake_quant", "enable_observer",
    "fused_per_channel_wt_fake_quant_range_neg_127_to_127", "fused_wt_fake_quant_range_neg_127_to_127",
]  # fmt: skip

_LIMITS = {"quint8": (0, 255), "qint8": (-128, 127), "qint32": (-(2**31), 2**31 - 1)}


class FakeQuantizeBase(Module, ABC):
    """A module that rounds, and watches, each as far as it is switched on."""

    fake_quant_enabled: Any
    observer_enabled: Any

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("fake_quant_enabled", torch.tensor([1], dtype=torch.uint8))
        self.register_buffer("observer_enabled", torch.tensor([1], dtype=torch.uint8))

    @abstractmethod
    def forward(self, x: Any) -> Any:
        """The numbers that remain of a tensor."""

    @abstractmethod
    def calculate_qparams(self) -> Any:
        """The scale and the zero point for what was seen."""

    def enable_fake_quant(self, enabled: bool = True) -> None:
        """Switch the rounding on, or off."""
        self.fake_quant_enabled[0] = 1 if enabled else 0

    def disable_fake_quant(self) -> None:
        """Switch the rounding off."""
        self.enable_fake_quant(False)

    def enable_observer(self, enabled: bool = True) -> None:
        """Switch the watching on, or off."""
        self.observer_enabled[0] = 1 if enabled else 0

    def disable_observer(self) -> None:
        """Switch the watching off."""
        self.enable_observer(False)

    @classmethod
    def with_args(cls, **kwargs: Any) -> _PartialWrapper:
        """What makes such modules with these arguments."""
        return _with_args(cls, **kwargs)


class FakeQuantize(FakeQuantizeBase):
    """Watches with an observer, and rounds with the scale that it chooses."""

    scale: Any
    zero_point: Any

    def __init__(
        self,
        observer: Any = MovingAverageMinMaxObserver,
        quant_min: int | None = None,
        quant_max: int | None = None,
        is_dynamic: bool = False,
        **observer_kwargs: Any,
    ) -> None:
        super().__init__()
        if quant_min is not None and quant_max is not None:
            if quant_min > quant_max:
                raise AssertionError("quant_min must be less than or equal to quant_max")
            dtype = observer_kwargs.get("dtype", torch.quint8)
            if isinstance(observer, _PartialWrapper):
                dtype = getattr(observer.p, "keywords", {}).get("dtype", dtype)
            low, high = (
                _LIMITS[dtype.name] if dtype.name in _LIMITS else (torch.iinfo(dtype).min, torch.iinfo(dtype).max)
            )
            if low > quant_min:
                raise AssertionError("quant_min out of bound")
            if quant_max > high:
                raise AssertionError("quant_max out of bound")
            observer_kwargs.update({"quant_min": quant_min, "quant_max": quant_max})
        watch = self.activation_post_process = observer(is_dynamic=is_dynamic, **observer_kwargs)
        self.quant_min = watch.quant_min
        self.quant_max = watch.quant_max
        self.is_dynamic = watch.is_dynamic
        floats = watch.qscheme is torch.per_channel_affine_float_qparams
        self.register_buffer("scale", torch.tensor([1.0], dtype=torch.float))
        self.register_buffer("zero_point", torch.tensor([0], dtype=torch.float if floats else torch.int))
        self.dtype = watch.dtype
        self.qscheme = watch.qscheme
        self.ch_axis = getattr(watch, "ch_axis", -1)
        self.is_per_channel = is_per_channel(self.qscheme)

    def calculate_qparams(self) -> Any:
        """The scale and the zero point for what was seen."""
        return self.activation_post_process.calculate_qparams()

    def forward(self, X: Any) -> Any:
        """The numbers that remain of a tensor."""
        watch = self.activation_post_process
        if self.observer_enabled[0] == 1:
            watch(X.detach())
            for buffer, chosen in zip((self.scale, self.zero_point), self.calculate_qparams(), strict=True):
                if buffer.shape != chosen.shape:
                    buffer.resize_(chosen.shape)
                buffer.copy_(chosen)
        if self.fake_quant_enabled[0] != 1:
            return X
        # What the derivative needs must not change when this sees another tensor.
        scale, zero_point = self.scale.clone(), self.zero_point.clone()
        if self.is_per_channel:
            return torch.fake_quantize_per_channel_affine(
                X, scale, zero_point, self.ch_axis, watch.quant_min, watch.quant_max
            )
        return torch.fake_quantize_per_tensor_affine(X, scale, zero_point, watch.quant_min, watch.quant_max)

    def extra_repr(self) -> str:
        """What is switched on, and the codes."""
        watch = self.activation_post_process
        return (
            f"fake_quant_enabled={self.fake_quant_enabled}, observer_enabled={self.observer_enabled}, "
            f"quant_min={watch.quant_min}, quant_max={watch.quant_max}, "
            f"dtype={self.dtype}, qscheme={self.qscheme}, ch_axis={self.ch_axis}, "
            f"scale={self.scale}, zero_point={self.zero_point}"
        )

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *further: Any) -> None:
        for name in ("scale", "zero_point"):
            if prefix + name in state_dict:  # the number of slices is known only from what was seen
                getattr(self, name).resize_(state_dict[prefix + name].shape)
        super()._load_from_state_dict(state_dict, prefix, *further)


class FixedQParamsFakeQuantize(FakeQuantize):
    """Rounds with a scale that is known beforehand."""

    def __init__(self, observer: Any) -> None:
        super().__init__(observer=observer)
        watch: Any = self.activation_post_process
        if type(watch) is not FixedQParamsObserver:
            raise AssertionError(f"{type(self).__name__}'s observer must be a {FixedQParamsObserver.__name__}")
        self._observer_ctr = observer
        self.scale = watch.scale
        self.zero_point = watch.zero_point
        if not is_per_tensor(self.qscheme):
            raise AssertionError(f"Only per tensor quantization is supported, got qscheme:{self.qscheme}")

    def calculate_qparams(self) -> Any:
        """The scale and the zero point."""
        return self.scale, self.zero_point

    def extra_repr(self) -> str:
        """What is switched on, and the codes."""
        watch = self.activation_post_process
        return (
            f"fake_quant_enabled={self.fake_quant_enabled}, observer_enabled={self.observer_enabled}, "
            f"scale={self.scale}, zero_point={self.zero_point}, dtype={self.dtype}, quant_min={watch.quant_min}, "
            f"quant_max={watch.quant_max}, qscheme={self.qscheme}"
        )


class FusedMovingAvgObsFakeQuantize(FakeQuantize):
    """Watches and rounds in one function."""

    def __init__(
        self,
        observer: Any = MovingAverageMinMaxObserver,
        quant_min: int = 0,
        quant_max: int = 255,
        **observer_kwargs: Any,
    ) -> None:
        super().__init__(observer, quant_min, quant_max, **observer_kwargs)
        watch = self.activation_post_process
        if not isinstance(watch, (MovingAverageMinMaxObserver, MovingAveragePerChannelMinMaxObserver)):
            raise AssertionError("Fused observer+fake_quant module only works with MovingAverageMinMaxObserver")
        self.register_buffer("fake_quant_enabled", torch.tensor([1], dtype=torch.long))
        self.register_buffer("observer_enabled", torch.tensor([1], dtype=torch.long))
        self.is_symmetric_quant = watch.qscheme in (torch.per_tensor_symmetric, torch.per_channel_symmetric)

    def extra_repr(self) -> str:
        """What is switched on, and the codes."""
        watch = self.activation_post_process
        return (
            f"fake_quant_enabled={self.fake_quant_enabled}, observer_enabled={self.observer_enabled}, "
            f"scale={self.scale}, zero_point={self.zero_point}, dtype={self.dtype}, "
            f"quant_min={watch.quant_min}, quant_max={watch.quant_max}, "
            f"qscheme={self.qscheme}, reduce_range={watch.reduce_range}"
        )

    def forward(self, X: Any) -> Any:
        """The numbers that remain of a tensor."""
        watch: Any = self.activation_post_process
        return torch.fused_moving_avg_obs_fake_quant(
            X,
            self.observer_enabled,
            self.fake_quant_enabled,
            watch.min_val,
            watch.max_val,
            self.scale,
            self.zero_point,
            watch.averaging_constant,
            watch.quant_min,
            watch.quant_max,
            self.ch_axis,
            self.is_per_channel,
            self.is_symmetric_quant,
        )


_UNSIGNED: dict[str, Any] = {"quant_min": 0, "quant_max": 255, "dtype": torch.quint8}
_SIGNED: dict[str, Any] = {"quant_min": -128, "quant_max": 127, "dtype": torch.qint8}
_NARROW: dict[str, Any] = {"quant_min": -127, "quant_max": 127, "dtype": torch.qint8, "eps": 2**-12}
_AVERAGE: dict[str, Any] = {"observer": MovingAverageMinMaxObserver}
_SLICES: dict[str, Any] = {"observer": MovingAveragePerChannelMinMaxObserver}
_FLOATS: dict[str, Any] = {**_SLICES, "qscheme": torch.per_channel_affine_float_qparams, "ch_axis": 0, "averaging_constant": 1}  # noqa: E501  # fmt: skip

default_fake_quant = FakeQuantize.with_args(**_AVERAGE, **_UNSIGNED, qscheme=torch.per_tensor_affine, reduce_range=True)
default_weight_fake_quant = FakeQuantize.with_args(
    **_AVERAGE, **_SIGNED, qscheme=torch.per_tensor_symmetric, reduce_range=False
)
default_dynamic_fake_quant = FakeQuantize.with_args(**_AVERAGE, **_UNSIGNED, is_dynamic=True, averaging_constant=1)
default_fixed_qparams_range_neg1to1_fake_quant = FixedQParamsFakeQuantize.with_args(
    observer=default_fixed_qparams_range_neg1to1_observer
)
default_fixed_qparams_range_0to1_fake_quant = FixedQParamsFakeQuantize.with_args(
    observer=default_fixed_qparams_range_0to1_observer
)
default_symmetric_fixed_qparams_fake_quant = default_fixed_qparams_range_neg1to1_fake_quant
default_affine_fixed_qparams_fake_quant = default_fixed_qparams_range_0to1_fake_quant
default_per_channel_weight_fake_quant = FakeQuantize.with_args(
    **_SLICES, **_SIGNED, qscheme=torch.per_channel_symmetric, reduce_range=False, ch_axis=0
)
default_embedding_fake_quant = FakeQuantize.with_args(**_FLOATS, **_UNSIGNED)
default_embedding_fake_quant_4bit = FakeQuantize.with_args(**_FLOATS, dtype=torch.quint4x2)
default_histogram_fake_quant = FakeQuantize.with_args(
    observer=HistogramObserver, **_UNSIGNED, qscheme=torch.per_tensor_affine, reduce_range=True
)
default_fused_act_fake_quant = FusedMovingAvgObsFakeQuantize.with_args(**_AVERAGE, **_UNSIGNED)
default_fused_wt_fake_quant = FusedMovingAvgObsFakeQuantize.with_args(
    **_AVERAGE, **_SIGNED, qscheme=torch.per_tensor_symmetric
)
default_fused_per_channel_wt_fake_quant = FusedMovingAvgObsFakeQuantize.with_args(
    **_SLICES, **_SIGNED, qscheme=torch.per_channel_symmetric
)
fused_wt_fake_quant_range_neg_127_to_127 = FusedMovingAvgObsFakeQuantize.with_args(
    **_AVERAGE, **_NARROW, qscheme=torch.per_tensor_symmetric
)
fused_per_channel_wt_fake_quant_range_neg_127_to_127 = FusedMovingAvgObsFakeQuantize.with_args(
    **_SLICES, **_NARROW, qscheme=torch.per_channel_symmetric
)


def disable_fake_quant(mod: Any) -> None:
    """Switch the rounding of a module off; for `Module.apply`."""
    if isinstance(mod, FakeQuantizeBase):
        mod.disable_fake_quant()


def enable_fake_quant(mod: Any) -> None:
    """Switch the rounding of a module on; for `Module.apply`."""
    if isinstance(mod, FakeQuantizeBase):
        mod.enable_fake_quant()


def disable_observer(mod: Any) -> None:
    """Switch the watching of a module off; for `Module.apply`."""
    if isinstance(mod, FakeQuantizeBase):
        mod.disable_observer()


def enable_observer(mod: Any) -> None:
    """Switch the watching of a module on; for `Module.apply`."""
    if isinstance(mod, FakeQuantizeBase):
        mod.enable_observer()
