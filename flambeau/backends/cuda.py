"""What programs ask and set about CUDA's libraries, and which ways of computing attention may be taken."""

from __future__ import annotations

import contextlib
import enum
from collections.abc import Iterator
from typing import Any, NamedTuple

from .._core.device import device as as_device
from .._core.names.absent import Table
from .._core.process.gpu_choices import CHOICES
from .._dispatch.public.choices import set_float32_matmul_precision
from .._ops.nn import attention
from ..cuda import is_available as _has_device


class cuBLASModule:
    """How products of matrices are computed on CUDA devices."""

    __slots__ = (
        "_said", "allow_bf16_reduced_precision_reduction", "allow_fp16_accumulation",
        "allow_fp16_reduced_precision_reduction",
    )  # fmt: skip

    def __init__(self) -> None:
        self._said = False
        self.allow_fp16_reduced_precision_reduction = True
        self.allow_bf16_reduced_precision_reduction = True
        self.allow_fp16_accumulation = False

    @property
    def allow_tf32(self) -> bool:
        """Whether operands of float32 may be shortened to 19 bits (TF32)."""
        return CHOICES.shortened_products

    @allow_tf32.setter
    def allow_tf32(self, value: bool) -> None:
        self._said = True
        set_float32_matmul_precision("high" if value else "highest")

    @property
    def fp32_precision(self) -> str:
        """How float32 products are rounded, as a word: "tf32", "ieee", or "none" if nobody has chosen."""
        if CHOICES.shortened_products:
            return "tf32"
        return "ieee" if self._said else "none"

    @fp32_precision.setter
    def fp32_precision(self, value: str) -> None:
        if value not in ("none", "ieee", "tf32"):
            raise RuntimeError(f"Unknown precision: {value}")
        self.allow_tf32 = value == "tf32"
        self._said = value != "none"


matmul = cuBLASModule()


class SDPAParams(NamedTuple):
    """The operands and options of a call of `scaled_dot_product_attention`, about which may be asked."""

    query: Any
    key: Any
    value: Any
    attn_mask: Any
    dropout: float
    is_causal: bool
    enable_gqa: bool


class cuFFTPlanCacheAttrContextProp:
    """A property of a cache of plans; without a setter it cannot be changed."""

    def __init__(self, getter: Any, setter: Any) -> None:
        self.getter, self.setter = getter, setter

    def __get__(self, obj: Any, objtype: Any) -> Any:
        return self if obj is None else self.getter(obj.device_index)

    def __set__(self, obj: Any, val: Any) -> None:
        if isinstance(self.setter, str):
            raise RuntimeError(self.setter)
        self.setter(obj.device_index, val)


_PLANS: dict[int, int] = {}
"""By device how many plans programs want to be kept: the library that makes plans keeps them by itself."""
_MOST_PLANS = 4096


def _with_device(index: int) -> int:
    if not _has_device():
        raise RuntimeError("Cannot access cuFFT plan cache without ATen_cuda library: there is no CUDA device")
    return index


class cuFFTPlanCache:
    """The plans of Fourier transforms that are kept for a device: of this package none are, so `size` is 0."""

    def __init__(self, device_index: int) -> None:
        self.device_index = device_index

    size = cuFFTPlanCacheAttrContextProp(
        lambda index: 0 * _with_device(index), ".size is a read-only property showing the number of plans in the cache"
    )
    max_size = cuFFTPlanCacheAttrContextProp(
        lambda index: _PLANS.get(_with_device(index), _MOST_PLANS),
        lambda index, value: _PLANS.update({_with_device(index): value}),
    )

    def clear(self) -> None:
        """Forget them."""
        _with_device(self.device_index)


class cuFFTPlanCacheManager:
    """The caches of all devices, by number; its own attributes are those of the device in use."""

    def __getitem__(self, device: Any) -> cuFFTPlanCache:
        from ..cuda import device_count

        index = device if isinstance(device, int) else (as_device(device).index or 0)
        if not 0 <= index < device_count():
            raise RuntimeError(
                f"cufft_plan_cache: expected 0 <= device index < {device_count()}, but got device with index {index}"
            )
        return cuFFTPlanCache(index)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # who asks what the object is needs no device
            raise AttributeError(name)
        from ..cuda import current_device

        return getattr(self[current_device()], name)

    def __setattr__(self, name: str, value: Any) -> None:
        from ..cuda import current_device

        setattr(self[current_device()], name, value)


cufft_plan_cache = cuFFTPlanCacheManager()

__getattr__, __dir__ = (
    Table(__name__)
    .returning(
        lambda: False,
        functions="is_ck_sdpa_available can_use_efficient_attention can_use_flash_attention",
    )
    .raising(
        AttributeError,
        "torch.backends.cuda.{name} needs a CUDA device, and this version of Flambeau has none",
        functions="blas_workspace_size cublas_workspace_size cublaslt_workspace_size",
    )
    .parts()
)


def is_built() -> bool:
    """Whether CUDA devices can be used here."""
    return _has_device()


def is_flash_attention_available() -> bool:
    """Whether attention can be computed in one kernel."""
    return _has_device()


def can_use_cudnn_attention(params: Any, debug: bool = False) -> bool:
    """Whether cuDNN's attention takes such operands."""
    return _has_device() and cudnn_sdp_enabled()


class _LinalgBackend(enum.Enum):
    Default = 0
    Cusolver = 1
    Magma = 2


class _BlasBackend(enum.Enum):
    Default = 0
    Cublas = 1
    Cublaslt = 2
    Ck = 3


class _ROCmFABackend(enum.Enum):
    Default = 0
    AOTriton = 1
    Ck = 2


_preferred: dict[type[enum.Enum], enum.Enum] = {
    _LinalgBackend: _LinalgBackend.Default,
    _BlasBackend: _BlasBackend.Cublas,
    _ROCmFABackend: _ROCmFABackend.Default,
}


def _prefer(kind: type[enum.Enum], backend: Any) -> Any:
    if isinstance(backend, str):
        found = {each.name.lower(): each for each in kind}.get(backend.lower())
        if found is None:
            raise RuntimeError(f"Unknown input value. Choose from: {', '.join(each.name.lower() for each in kind)}.")
        backend = found
    if backend is not None:
        if not isinstance(backend, kind):
            raise RuntimeError(f"Unknown input value type {type(backend).__name__}.")
        _preferred[kind] = backend
    return _preferred[kind]


def preferred_linalg_library(backend: Any = None) -> Any:
    """The library for linear algebra on CUDA devices that was asked for."""
    return _prefer(_LinalgBackend, backend)


def preferred_blas_library(backend: Any = None) -> Any:
    """The library for products on CUDA devices that was asked for."""
    return _prefer(_BlasBackend, backend)


def preferred_rocm_fa_library(backend: Any = None) -> Any:
    """The library for attention on AMD's devices that was asked for."""
    return _prefer(_ROCmFABackend, backend)


def _enable(name: str, enabled: bool) -> None:
    (attention.ENABLED.add if enabled else attention.ENABLED.discard)(name)


def enable_flash_sdp(enabled: bool) -> None:
    """Whether attention may be computed in one op."""
    _enable("FLASH_ATTENTION", enabled)


def enable_math_sdp(enabled: bool) -> None:
    """Whether attention may be computed from its parts."""
    _enable("MATH", enabled)


def enable_mem_efficient_sdp(enabled: bool) -> None:
    """Whether attention may be computed in a way that the CPU does not have."""
    _enable("EFFICIENT_ATTENTION", enabled)


def enable_cudnn_sdp(enabled: bool) -> None:
    """Whether attention may be computed in a way that the CPU does not have."""
    _enable("CUDNN_ATTENTION", enabled)


def flash_sdp_enabled() -> bool:
    """Whether attention may be computed in one op."""
    return "FLASH_ATTENTION" in attention.ENABLED


def math_sdp_enabled() -> bool:
    """Whether attention may be computed from its parts."""
    return "MATH" in attention.ENABLED


def mem_efficient_sdp_enabled() -> bool:
    """Whether attention may be computed in a way that the CPU does not have."""
    return "EFFICIENT_ATTENTION" in attention.ENABLED


def cudnn_sdp_enabled() -> bool:
    """Whether attention may be computed in a way that the CPU does not have."""
    return "CUDNN_ATTENTION" in attention.ENABLED


_reduced_reductions = True


def allow_fp16_bf16_reduction_math_sdp(enabled: bool) -> None:
    """Whether attention in half precision may add in half precision; on the CPU it never does."""
    global _reduced_reductions
    _reduced_reductions = enabled


def fp16_bf16_reduction_math_sdp_allowed() -> bool:
    """Whether that was allowed."""
    return _reduced_reductions


@contextlib.contextmanager
def sdp_kernel(
    enable_flash: bool = True, enable_math: bool = True, enable_mem_efficient: bool = True, enable_cudnn: bool = True
) -> Iterator[dict[str, object]]:
    """The older form of `nn.attention.sdpa_kernel`."""
    before = attention.ENABLED.copy()
    enable_flash_sdp(enable_flash)
    enable_math_sdp(enable_math)
    enable_mem_efficient_sdp(enable_mem_efficient)
    enable_cudnn_sdp(enable_cudnn)
    try:
        yield {}
    finally:
        attention.ENABLED.clear()
        attention.ENABLED.update(before)
