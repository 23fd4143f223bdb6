"""`autocast`: regions of a program in which ops choose the precision that suits them."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast

import numpy as np

from .._core.dtype import bfloat16, dtype, float16, float64
from .._core.process.interrupts import uninterrupted
from .._core.self_type import Self
from .._core.slots import SLOTS
from .._core.tensor import Tensor
from .._dispatch.arguments.autocast import (
    autocast_nesting,
    clear_autocast_cache,
    get_autocast_dtype,
    is_autocast_cache_enabled,
    is_autocast_enabled,
    is_available,
    set_autocast_cache_enabled,
    set_autocast_dtype,
    set_autocast_enabled,
    set_autocast_nesting,
)

__all__ = ["autocast", "autocast_decorator", "custom_bwd", "custom_fwd", "is_autocast_available"]

F = TypeVar("F", bound=Callable[..., Any])


def is_autocast_available(device_type: str) -> bool:
    """Whether `autocast` knows a type of device, such as "cpu" or "cuda".

    >>> flambeau.amp.is_autocast_available("cpu")
    True

    Args:
        device_type (str): the type of device, such as "cpu" or "cuda".

    Returns:
        bool: whether it does.
    """
    return is_available(device_type)


def autocast_decorator(autocast_instance: autocast, func: F) -> F:
    """`func` running inside `autocast_instance`."""

    @functools.wraps(func)
    def decorate_autocast(*args: Any, **kwargs: Any) -> Any:
        with autocast_instance:
            return func(*args, **kwargs)

    vars(decorate_autocast)["__script_unsupported"] = "@autocast() decorator is not supported in script mode"
    return cast(F, decorate_autocast)


class autocast:
    """A region in which ops cast their inputs: products of matrices to `dtype`, what needs precision to float32.

    A context manager or a decorator. `device_type` says whose tensors it is about. Weights are cast once in a region,
    unless `cache_enabled` is False. Regions nest; `enabled=False` makes an inner one that casts nothing. Leave the
    region before `backward`, whose ops have the dtypes of those in forward.

    >>> weight = flambeau.ones(2, 2)
    >>> with flambeau.autocast("cpu", dtype=flambeau.bfloat16):
    ...     product = weight @ weight
    >>> product.dtype
    torch.bfloat16

    Args:
        device_type (str): the type of device, such as "cpu" or "cuda".
        dtype (dtype, optional): what products are computed in; None means the dtype of `get_autocast_dtype`.
        enabled (bool): whether the region casts at all. Default: `True`.
        cache_enabled (bool, optional): whether casts of weights are kept until the outermost region ends; None keeps
            the setting.
    """

    prev: bool
    prev_fastdtype: dtype
    prev_cache_enabled: bool

    def __init__(
        self,
        device_type: str,
        dtype: dtype | None = None,
        enabled: bool = True,
        cache_enabled: bool | None = None,
    ) -> None:
        if not isinstance(device_type, str):
            raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
        self.fast_dtype = get_autocast_dtype(device_type) if dtype is None else dtype
        self.device = device_type
        if not is_available(device_type):
            raise RuntimeError(f"User specified an unsupported autocast device_type '{device_type}'")
        self._cache_enabled = is_autocast_cache_enabled() if cache_enabled is None else cache_enabled
        complaint = self._unusable() if enabled else None
        if complaint is not None:
            warnings.warn(complaint, stacklevel=2)
            enabled = False
        self._enabled = enabled

    def _unusable(self) -> str | None:
        """Why this region can cast nothing, if so."""
        if self.device == "cuda" and not SLOTS.cuda_is_present():
            return "CUDA is not available or torch_xla is imported. Disabling autocast."
        if self.device == "cpu" and self.fast_dtype not in (bfloat16, float16):
            return (
                "In CPU autocast, but the target dtype is not supported. Disabling autocast.\nCPU Autocast only "
                f"supports dtypes of torch.bfloat16, torch.float16 currently. Got {self.fast_dtype}."
            )
        return None

    @uninterrupted
    def __enter__(self) -> Self:
        self.prev_cache_enabled = is_autocast_cache_enabled()
        self.prev = is_autocast_enabled(self.device)
        self.prev_fastdtype = get_autocast_dtype(self.device)
        outer = autocast_nesting()
        try:
            set_autocast_dtype(self.device, self.fast_dtype)
            set_autocast_enabled(self.device, bool(self._enabled))
            set_autocast_nesting(outer + 1)
            set_autocast_cache_enabled(self._cache_enabled)
        except BaseException:  # the user's interrupt
            self._put_back(outer)
            raise
        return self

    @uninterrupted
    def __exit__(self, *exception: object) -> None:
        outer = autocast_nesting() - 1
        try:
            self._put_back(outer)
        except BaseException:
            self._put_back(outer)
            raise

    def _put_back(self, outer: int) -> None:
        """Make the settings those of before, `outer` regions being open."""
        set_autocast_nesting(outer)
        if outer == 0:
            clear_autocast_cache()
        set_autocast_enabled(self.device, self.prev)
        set_autocast_dtype(self.device, self.prev_fastdtype)
        set_autocast_cache_enabled(self.prev_cache_enabled)

    def __call__(self, func: F) -> F:
        return autocast_decorator(self, func)


def _enter_autocast(*vals: Any) -> autocast:
    """Begin a region without a `with`; `vals` are the arguments of `autocast`.

    Args:
        *vals: the arguments of `autocast`.

    Returns:
        autocast: the region.

    Example:
        >>> mode = torch.amp._enter_autocast("cpu", torch.bfloat16, True, True)
        >>> torch.amp._exit_autocast(mode)
    """
    return autocast(*vals).__enter__()


def _exit_autocast(mode: autocast) -> None:
    """End a region that `_enter_autocast` began.

    Args:
        mode (autocast): the region.

    Example:
        >>> torch.amp._exit_autocast(torch.amp._enter_autocast("cpu", torch.bfloat16, True, True))
    """
    mode.__exit__(None, None, None)


def _cast(value: Any, device_type: str, dtype: dtype) -> Any:
    """`value` with the tensors in it that autocast would touch in another dtype."""
    if isinstance(value, Tensor):
        touched = value.is_floating_point() and value.device.type == device_type and value.dtype is not float64
        return value.to(dtype) if touched else value
    if isinstance(value, (str, bytes, np.ndarray)):
        return value
    if isinstance(value, Mapping):
        return {_cast(k, device_type, dtype): _cast(v, device_type, dtype) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)([_cast(each, device_type, dtype) for each in value])
    return value


def custom_fwd(fwd: Any = None, *, device_type: str, cast_inputs: dtype | None = None) -> Any:
    """For the `forward` of a custom `autograd.Function`: says how it behaves in an autocast region.

    With `cast_inputs`, tensors among the inputs come in this dtype, and autocast is off inside. Without, it is on as
    outside. The `backward` goes with `custom_bwd`.

    Args:
        fwd: the method; None returns a decorator.
        device_type (str): the type of device.
        cast_inputs (dtype, optional): the dtype to which floating-point tensors are cast; the method then runs without
            autocast. None leaves it on.

    Returns:
        the decorated method.

    Example:
        >>> class Double(torch.autograd.Function):
        ...     @staticmethod
        ...     @torch.amp.custom_fwd(device_type="cpu", cast_inputs=torch.float32)
        ...     def forward(ctx, x):
        ...         return x * 2
        >>> with torch.autocast("cpu"):
        ...     Double.apply(torch.ones(1, dtype=torch.bfloat16)).dtype
        torch.float32
    """
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)

    @functools.wraps(fwd)
    def decorate_fwd(*args: Any, **kwargs: Any) -> Any:
        context = args[0]
        context._dtype = get_autocast_dtype(device_type)
        on = is_autocast_enabled(device_type)
        context._fwd_used_autocast = on and cast_inputs is None
        if cast_inputs is None or not on:
            return fwd(*args, **kwargs)
        with autocast(device_type=device_type, enabled=False):
            return fwd(*_cast(args, device_type, cast_inputs), **_cast(kwargs, device_type, cast_inputs))

    return decorate_fwd


def custom_bwd(bwd: Any = None, *, device_type: str) -> Any:
    """For the `backward` of a custom `autograd.Function`: runs it as its `forward`, under `custom_fwd`, ran.

    Args:
        bwd: the method; None returns a decorator.
        device_type (str): the type of device.

    Returns:
        the decorated method.

    Example:
        >>> class Double(torch.autograd.Function):
        ...     @staticmethod
        ...     @torch.amp.custom_fwd(device_type="cpu", cast_inputs=torch.float32)
        ...     def forward(ctx, x):
        ...         return x * 2
        ...     @staticmethod
        ...     @torch.amp.custom_bwd(device_type="cpu")
        ...     def backward(ctx, grad):
        ...         return grad * 2
        >>> Double.apply(torch.ones(1))
        tensor([2.])
    """
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)

    @functools.wraps(bwd)
    def decorate_bwd(*args: Any, **kwargs: Any) -> Any:
        context = args[0]
        with autocast(device_type=device_type, enabled=context._fwd_used_autocast, dtype=context._dtype):
            return bwd(*args, **kwargs)

    return decorate_bwd
