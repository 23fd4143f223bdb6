"""What programs set for cuDNN, which computes convolutions and attention on CUDA devices."""

from __future__ import annotations

from typing import Any

from ..._core.process.gpu_choices import CHOICES
from ...cuda import is_available as _has_device
from .._flags import setters
from .._modules import check_precision, settings_class
from . import rnn as rnn

enabled = True
benchmark = False
deterministic = False
allow_tf32 = True
benchmark_limit = 10
fp32_precision = "none"
depthwise_kernel: str | None = None


class _Convolutions:
    """In what float32 is computed by convolutions: "ieee", "tf32", or as others say."""

    _fp32_precision = "tf32"

    @property
    def fp32_precision(self) -> str:
        return self._fp32_precision

    @fp32_precision.setter
    def fp32_precision(self, value: str) -> None:
        check_precision(value)
        self._fp32_precision = value
        CHOICES.shortened_convolutions = value == "tf32"


conv = _Convolutions()


def _library() -> Any:
    if not _has_device():
        return None
    from ..._backends.cuda.cudnn.descriptors import library

    return library()


def is_available() -> bool:
    """Whether the library can be used: it needs a GPU."""
    return _library() is not None


def version() -> int | None:
    """The library's version, or None where there is none."""
    found = _library()
    return None if found is None else int(found.cudnnGetVersion())


def is_acceptable(tensor: Any) -> bool:
    """Whether the library could work on a tensor."""
    types = ("torch.float16", "torch.bfloat16", "torch.float32", "torch.float64")
    return enabled and tensor.is_cuda and str(tensor.dtype) in types and is_available()


set_flags, flags = setters(
    globals(),
    enabled=False,
    benchmark=False,
    benchmark_limit=10,
    deterministic=False,
    allow_tf32=True,
    fp32_precision="none",
    depthwise_kernel=None,
)


def _take_effect(name: str, value: Any) -> None:
    if name == "benchmark":
        CHOICES.measured = bool(value)
    elif name == "deterministic":
        CHOICES.deterministic = bool(value)
    elif name == "enabled":
        CHOICES.uses_library = bool(value)
    elif name == "allow_tf32":
        conv.fp32_precision = "tf32" if value else "none"
        vars(rnn)["fp32_precision"] = conv.fp32_precision
        CHOICES.shortened_networks = bool(value)


settings_class(
    "CudnnModule",
    __name__,
    "enabled deterministic benchmark benchmark_limit allow_tf32 conv fp32_precision depthwise_kernel",
    _take_effect,
)
