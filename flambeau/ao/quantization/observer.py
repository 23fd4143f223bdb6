"""Observers: modules that watch the numbers that pass, and choose scales and zero points for them."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections import OrderedDict
from typing import Any, NoReturn

import flambeau as torch

from ...nn.modules.module import Module
from .._constructors import RANGE, RANGE_WITH_FACTORY, takes
from ._factories import _PartialWrapper, _with_args, _with_callable_args
from ._granularity import (
    AffineQuantizedObserverBase,
    Granularity,
    MappingType,
    PerAxis,
    PerBlock,
    PerGroup,
    PerRow,
    PerTensor,
    PerToken,
    TorchAODType,
    ZeroPointDomain,
    get_block_size,
)
from .utils import calculate_qmin_qmax, check_min_max_valid, choose_parameters, is_per_tensor, validate_qmin_qmax

__all__ = [
    "AffineQuantizedObserverBase", "FixedQParamsObserver", "Granularity", "HistogramObserver", "MappingType",
    "MinMaxObserver", "MovingAverageMinMaxObserver", "MovingAveragePerChannelMinMaxObserver", "NoopObserver",
    "ObserverBase", "PerAxis", "PerBlock", "PerChannelMinMaxObserver", "PerGroup", "PerRow", "PerTensor", "PerToken",
    "PlaceholderObserver", "RecordingObserver", "ReuseInputObserver", "TorchAODType",
    "UniformQuantizationObserverBase", "ZeroPointDomain", "_PartialWrapper", "default_affine_fixed_qparams_observer",
    "default_debug_observer", "default_dynamic_quant_observer", "default_fixed_qparams_range_0to1_observer",
    "default_fixed_qparams_range_neg1to1_observer", "default_float_qparams_observer",
    "default_float_qparams_observer_4bit", "default_histogram_observer", "default_observer",
    "default_per_channel_weight_observer", "default_placeholder_observer", "default_reuse_input_observer",
    "default_symmetric_fixed_qparams_observer", "default_weight_observer", "get_block_size",
    "get_observer_state_dict", "load_observer_state_dict", "per_channel_weight_observer_range_neg_127_to_127",
    "weight_observer_range_neg_127_to_127",
]  # fmt: skip

_EPS: float = float(torch.finfo(torch.float32).eps)
_DTYPES = (
    torch.qint8, torch.quint8, torch.quint4x2, torch.qint32, torch.int8, torch.uint8, torch.int16, torch.int32,
    torch.float8_e5m2, torch.float8_e4m3fn, torch.uint16,
)  # fmt: skip


class ObserverBase(Module, ABC):
    """A module through which tensors pass unchanged, and which gives a scale and a zero point for them."""

    with_args = classmethod(_with_args)
    with_callable_args = classmethod(_with_callable_args)

    def __init__(self, dtype: Any, is_dynamic: bool = False) -> None:
        super().__init__()
        self.dtype = dtype
        self.is_dynamic = is_dynamic

    @abstractmethod
    def forward(self, x: Any) -> Any:
        """Watch a tensor, and give it back."""

    @abstractmethod
    def calculate_qparams(self) -> Any:
        """The scale and the zero point for what was seen."""


class UniformQuantizationObserverBase(ObserverBase):
    """What observers of ranges share: the scheme, the codes, and how a range becomes a scale."""

    eps: Any

    def __init__(
        self,
        dtype: Any = torch.quint8,
        qscheme: Any = torch.per_tensor_affine,
        reduce_range: bool = False,
        quant_min: int | None = None,
        quant_max: int | None = None,
        factory_kwargs: dict[str, Any] | None = None,
        eps: float = _EPS,
        is_dynamic: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(dtype=dtype, is_dynamic=is_dynamic, **kwargs)
        self.qscheme = qscheme
        if reduce_range:
            warnings.warn(
                "Please use quant_min and quant_max to specify the range for observers. reduce_range is deprecated in "
                "PyTorch",
                stacklevel=2,
            )
        self.reduce_range = reduce_range
        self.register_buffer("eps", torch.tensor([eps], **(factory_kwargs or {})))
        if dtype not in _DTYPES:
            raise AssertionError(f"Default Observer only works for {_DTYPES} data type")
        self.has_customized_qrange = quant_min is not None and quant_max is not None
        if quant_min is not None and quant_max is not None:
            validate_qmin_qmax(quant_min, quant_max)
        self.quant_min, self.quant_max = calculate_qmin_qmax(
            quant_min, quant_max, self.has_customized_qrange, dtype, reduce_range
        )

    def _calculate_qparams(self, min_val: Any, max_val: Any) -> tuple[Any, Any]:
        if not check_min_max_valid(min_val, max_val):
            return torch.tensor([1.0]), torch.tensor([0])
        return choose_parameters(
            min_val,
            max_val,
            self.quant_min,
            self.quant_max,
            self.dtype,
            self.qscheme,
            self.eps,
            self.has_customized_qrange,
        )

    def reset_min_max_vals(self) -> None:
        """Forget what was seen."""
        raise NotImplementedError("Cannot reset min/max values in the given observer.")


class MinMaxObserver(UniformQuantizationObserverBase):
    """Remembers the smallest and the largest number.

    >>> import flambeau as torch
    >>> observer = torch.ao.quantization.MinMaxObserver()
    >>> _ = observer(torch.tensor([-1.0, 1.55]))
    >>> observer.calculate_qparams()
    (tensor([0.0100]), tensor([100], dtype=torch.int32))
    """

    min_val: Any
    max_val: Any

    @takes(RANGE_WITH_FACTORY)
    def __init__(self, options: dict[str, Any]) -> None:
        if not is_per_tensor(options["qscheme"]):
            raise NotImplementedError("MinMaxObserver's qscheme only support torch.per_tensor_symmetric and torch.per_tensor_affine.")  # noqa: E501  # fmt: skip
        super().__init__(**options)
        place = options["factory_kwargs"] or {}
        self.register_buffer("min_val", torch.tensor(float("inf"), **place))
        self.register_buffer("max_val", torch.tensor(float("-inf"), **place))

    def forward(self, x_orig: Any) -> Any:
        """Watch a tensor, and give it back."""
        if x_orig.numel() == 0:
            return x_orig
        low, high = torch.aminmax(x_orig.detach().to(self.min_val.dtype))
        self._remember(torch.min(low, self.min_val), torch.max(high, self.max_val))
        return x_orig

    def _remember(self, low: Any, high: Any) -> None:
        self.min_val.copy_(low)
        self.max_val.copy_(high)

    def calculate_qparams(self) -> Any:
        """The scale and the zero point for what was seen."""
        return self._calculate_qparams(self.min_val, self.max_val)

    def extra_repr(self) -> str:
        """The ends of the range."""
        return f"min_val={self.min_val}, max_val={self.max_val}"

    def reset_min_max_vals(self) -> None:
        """Forget what was seen."""
        self.min_val.copy_(torch.tensor(float("inf")))
        self.max_val.copy_(torch.tensor(float("-inf")))


class MovingAverageMinMaxObserver(MinMaxObserver):
    """Remembers a moving average of the smallest and of the largest number."""

    @takes("averaging_constant=0.01", RANGE)
    def __init__(self, options: dict[str, Any]) -> None:
        qscheme, self.averaging_constant = options["qscheme"], options.pop("averaging_constant")
        if not is_per_tensor(qscheme):
            raise NotImplementedError(f"MovingAverageMinMaxObserver's qscheme only support torch.per_tensor_symmetric and torch.per_tensor_affine. but got: {qscheme}")  # noqa: E501  # fmt: skip
        if options["is_dynamic"] and self.averaging_constant != 1:
            raise NotImplementedError(
                "MovingAverageMinMaxObserver doesn't support dynamic quantization for averaging constant of "
                f"{self.averaging_constant}"
            )
        super().__init__(**options)

    def forward(self, x_orig: Any) -> Any:
        """Watch a tensor, and give it back."""
        if x_orig.numel() == 0:
            return x_orig
        low, high = torch.aminmax(x_orig.detach().to(self.min_val.dtype))
        if not (self.min_val == float("inf") and self.max_val == float("-inf")):
            low = self.min_val + self.averaging_constant * (low - self.min_val)
            high = self.max_val + self.averaging_constant * (high - self.max_val)
        self._remember(low, high)
        return x_orig


class PerChannelMinMaxObserver(UniformQuantizationObserverBase):
    """Remembers the smallest and the largest number of each slice along an axis."""

    min_val: Any
    max_val: Any

    @takes("ch_axis=0", RANGE_WITH_FACTORY.replace("per_tensor", "per_channel"))
    def __init__(self, options: dict[str, Any]) -> None:
        if is_per_tensor(options["qscheme"]):
            raise NotImplementedError("PerChannelMinMaxObserver's qscheme only support torch.per_channel_symmetric, torch.per_channel_affine and torch.per_channel_affine_float_qparams.")  # noqa: E501  # fmt: skip
        if options["is_dynamic"]:
            raise NotImplementedError("PerChannelMinMaxObserver doesn't support dynamic quantization")
        ch_axis = options.pop("ch_axis")
        super().__init__(**options)
        self.ch_axis = ch_axis
        place = options["factory_kwargs"] or {}
        self.register_buffer("min_val", torch.tensor([], **place))
        self.register_buffer("max_val", torch.tensor([], **place))

    def _ends(self, x: Any) -> tuple[Any, Any]:
        values = x.detach().to(self.min_val.dtype).movedim(self.ch_axis, 0).flatten(1)
        low, high = torch.aminmax(values, dim=1)
        return low, high

    def _combined(self, low: Any, high: Any) -> tuple[Any, Any]:
        return torch.min(low, self.min_val), torch.max(high, self.max_val)

    def forward(self, x_orig: Any) -> Any:
        """Watch a tensor, and give it back."""
        if x_orig.numel() == 0:
            return x_orig
        low, high = self._ends(x_orig)
        if self.min_val.numel():
            low, high = self._combined(low, high)
        for buffer, seen in ((self.min_val, low), (self.max_val, high)):
            buffer.resize_(seen.shape)
            buffer.copy_(seen)
        return x_orig

    def calculate_qparams(self) -> Any:
        """The scales and the zero points for what was seen."""
        return self._calculate_qparams(self.min_val, self.max_val)

    def extra_repr(self) -> str:
        """The ends of the ranges."""
        return f"min_val={self.min_val}, max_val={self.max_val}"

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *further: Any) -> None:
        for name in ("min_val", "max_val"):
            if prefix + name in state_dict:  # the number of slices is known only from what was seen
                getattr(self, name).resize_(state_dict[prefix + name].shape)
        super()._load_from_state_dict(state_dict, prefix, *further)

    def reset_min_max_vals(self) -> None:
        """Forget what was seen."""
        self.min_val = torch.rand(0)
        self.max_val = torch.rand(0)


class MovingAveragePerChannelMinMaxObserver(PerChannelMinMaxObserver):
    """Remembers moving averages of the smallest and of the largest number of each slice."""

    @takes("averaging_constant=0.01, ch_axis=0", RANGE.replace("per_tensor", "per_channel"))
    def __init__(self, options: dict[str, Any]) -> None:
        if options["is_dynamic"]:
            raise NotImplementedError("MovingAveragePerChannelMinMaxObserver doesn't support dynamic quantization")
        averaging_constant = options.pop("averaging_constant")
        super().__init__(**options)
        self.averaging_constant = averaging_constant

    def _combined(self, low: Any, high: Any) -> tuple[Any, Any]:
        constant = self.averaging_constant
        return self.min_val + constant * (low - self.min_val), self.max_val + constant * (high - self.max_val)


class FixedQParamsObserver(ObserverBase):
    """A scale and a zero point that are known beforehand."""

    scale: Any
    zero_point: Any

    def __init__(
        self,
        scale: float,
        zero_point: int,
        dtype: Any = torch.quint8,
        qscheme: Any = torch.per_tensor_affine,
        quant_min: int = 0,
        quant_max: int = 255,
        is_dynamic: bool = False,
        **kwargs: Any,
    ) -> None:
        if is_dynamic:
            raise NotImplementedError("FixedQParamsObserver doesn't support dynamic quantization")
        super().__init__(dtype=dtype, is_dynamic=is_dynamic, **kwargs)
        self.quant_min = quant_min
        self.quant_max = quant_max
        self.register_buffer("scale", torch.tensor([scale], dtype=torch.float))
        self.register_buffer("zero_point", torch.tensor([zero_point], dtype=torch.int))
        self.qscheme = qscheme

    def forward(self, X: Any) -> Any:
        """The tensor itself."""
        return X

    def calculate_qparams(self) -> Any:
        """The scale and the zero point."""
        return self.scale, self.zero_point


class _Watchless(ObserverBase):
    """An observer that chooses nothing."""

    def forward(self, x: Any) -> Any:
        """The tensor itself."""
        return x

    def calculate_qparams(self) -> NoReturn:
        """An error: it has seen nothing."""
        raise Exception(f"calculate_qparams should not be called for {type(self).__name__}")


class PlaceholderObserver(_Watchless):
    """Says which dtype a layer wants, and whether it finds scales itself."""

    def __init__(
        self,
        dtype: Any = torch.float32,
        custom_op_name: str = "",
        compute_dtype: Any = None,
        quant_min: int | None = None,
        quant_max: int | None = None,
        qscheme: Any = None,
        eps: float | None = None,
        is_dynamic: bool = False,
    ) -> None:
        super().__init__(dtype=dtype, is_dynamic=is_dynamic)
        self.qscheme = torch.per_tensor_affine if qscheme is None else qscheme
        self.quant_min = quant_min
        self.quant_max = quant_max
        self.eps = _EPS if eps is None else eps
        self.custom_op = custom_op_name
        if compute_dtype:
            warnings.warn("Please use `is_dynamic` instead of `compute_dtype`.", stacklevel=2)

    def extra_repr(self) -> str:
        """The dtype, and whether scales are found anew."""
        return f"dtype={self.dtype}, is_dynamic={self.is_dynamic}"


class RecordingObserver(_Watchless):
    """Keeps copies of all that passes."""

    def __init__(self, dtype: Any = torch.quint8) -> None:
        super().__init__(dtype=dtype, is_dynamic=False)
        self.tensor_val: list[Any] = []

    def forward(self, x: Any) -> Any:
        """The tensor itself, of which a copy is kept."""
        self.tensor_val.append(x.clone())
        return x

    def get_tensor_value(self) -> list[Any]:
        """The tensors that were seen, as copies."""
        return self.tensor_val


class NoopObserver(_Watchless):
    """Says a dtype, and watches nothing."""

    def __init__(self, dtype: Any = torch.float16, custom_op_name: str = "") -> None:
        super().__init__(dtype=dtype, is_dynamic=False)
        self.custom_op = custom_op_name


class ReuseInputObserver(_Watchless):
    """Stands for the observer of a layer's input."""

    def __init__(self) -> None:
        super().__init__(torch.quint8, is_dynamic=False)


from ._histogram import HistogramObserver  # noqa: E402  (a subclass, in a file of its own)

default_observer = MinMaxObserver.with_args(quant_min=0, quant_max=127)
default_placeholder_observer = PlaceholderObserver
default_debug_observer = RecordingObserver
default_weight_observer = MinMaxObserver.with_args(dtype=torch.qint8, qscheme=torch.per_tensor_symmetric)
weight_observer_range_neg_127_to_127 = MinMaxObserver.with_args(
    dtype=torch.qint8, qscheme=torch.per_tensor_symmetric, quant_min=-127, quant_max=127, eps=2**-12
)
default_histogram_observer = HistogramObserver.with_args(quant_min=0, quant_max=127)
default_per_channel_weight_observer = PerChannelMinMaxObserver.with_args(
    dtype=torch.qint8, qscheme=torch.per_channel_symmetric
)
per_channel_weight_observer_range_neg_127_to_127 = PerChannelMinMaxObserver.with_args(
    dtype=torch.qint8, qscheme=torch.per_channel_symmetric, quant_min=-127, quant_max=127, eps=2**-12
)
default_dynamic_quant_observer = PlaceholderObserver.with_args(
    dtype=torch.quint8, quant_min=0, quant_max=255, is_dynamic=True
)
default_float_qparams_observer = PerChannelMinMaxObserver.with_args(
    dtype=torch.quint8, qscheme=torch.per_channel_affine_float_qparams, ch_axis=0
)
default_float_qparams_observer_4bit = PerChannelMinMaxObserver.with_args(
    dtype=torch.quint4x2, qscheme=torch.per_channel_affine_float_qparams, ch_axis=0
)
default_fixed_qparams_range_neg1to1_observer = FixedQParamsObserver.with_args(
    scale=2.0 / 256.0, zero_point=128, dtype=torch.quint8, quant_min=0, quant_max=255
)
default_fixed_qparams_range_0to1_observer = FixedQParamsObserver.with_args(
    scale=1.0 / 256.0, zero_point=0, dtype=torch.quint8, quant_min=0, quant_max=255
)
default_symmetric_fixed_qparams_observer = default_fixed_qparams_range_neg1to1_observer
default_affine_fixed_qparams_observer = default_fixed_qparams_range_0to1_observer
default_reuse_input_observer = ReuseInputObserver


def _is_activation_post_process(module: Any) -> bool:
    from .fake_quantize import FakeQuantizeBase

    return isinstance(module, (ObserverBase, FakeQuantizeBase, AffineQuantizedObserverBase))


def get_observer_state_dict(mod: Any) -> OrderedDict[str, Any]:
    """What the observers of a model have seen, out of its state."""
    return OrderedDict((name, value) for name, value in mod.state_dict().items() if "activation_post_process" in name)


def load_observer_state_dict(mod: Any, obs_dict: Any) -> None:
    """Give the observers of a model what others have seen."""
    missing: list[str] = []
    unexpected: list[str] = []
    for name, module in mod.named_modules():
        if _is_activation_post_process(module):
            module._load_from_state_dict(obs_dict, f"{name}.", {}, False, missing, unexpected, [])
    for name in missing:
        if "observer" in name or "activation_post_process" in name:
            raise Exception(f"Missing keys for observer {name} in state_dict")
    for name in unexpected:
        if "observer" in name or "activation_post_process" in name:
            raise Exception(f"Unexpected keys for observer {name} in state_dict")
