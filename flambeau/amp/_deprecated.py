"""The functions that asked about one type of device each, before there was an argument for it."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from .._dispatch.arguments.autocast import (
    get_autocast_dtype,
    is_autocast_enabled,
    set_autocast_dtype,
    set_autocast_enabled,
)

_DOC = """Deprecated: use `{new}("{device}")`.

Args:
    *values: what `{new}` takes after the type of device.

Returns:
    What `{new}` returns.

Example:
    {example}
"""
_ANSWER = '>{arrows} torch.{name}() == torch.{new}("{device}")\n    True'
_CHANGE = ">{arrows} torch.{name}({value})"


def _older(name: str, function: Callable[..., Any], device_type: str) -> Callable[..., Any]:
    """`function` for one type of device, under an older name."""

    def older(*values: Any) -> Any:
        argument = "".join(f", {'dtype' if 'dtype' in name else 'enabled'}" for _ in values)
        warnings.warn(
            f"torch.{name}({argument[2:]}) is deprecated. Please use torch.{function.__name__}('{device_type}'"
            f"{argument}) instead.",
            DeprecationWarning,
            stacklevel=2,
        )
        return function(device_type, *values)

    older.__name__ = older.__qualname__ = name
    value = f'torch.get_autocast_dtype("{device_type}")' if "dtype" in name else "False"
    form = _CHANGE if name.startswith("set") else _ANSWER
    example = form.format(arrows=">>", name=name, new=function.__name__, device=device_type, value=value)
    older.__doc__ = _DOC.format(new=function.__name__, device=device_type, example=example)
    return older


is_autocast_cpu_enabled = _older("is_autocast_cpu_enabled", is_autocast_enabled, "cpu")
is_autocast_ipu_enabled = _older("is_autocast_ipu_enabled", is_autocast_enabled, "ipu")
is_autocast_xla_enabled = _older("is_autocast_xla_enabled", is_autocast_enabled, "xla")
set_autocast_cpu_enabled = _older("set_autocast_cpu_enabled", set_autocast_enabled, "cpu")
set_autocast_ipu_enabled = _older("set_autocast_ipu_enabled", set_autocast_enabled, "ipu")
set_autocast_xla_enabled = _older("set_autocast_xla_enabled", set_autocast_enabled, "xla")
get_autocast_cpu_dtype = _older("get_autocast_cpu_dtype", get_autocast_dtype, "cpu")
get_autocast_gpu_dtype = _older("get_autocast_gpu_dtype", get_autocast_dtype, "cuda")
get_autocast_ipu_dtype = _older("get_autocast_ipu_dtype", get_autocast_dtype, "ipu")
get_autocast_xla_dtype = _older("get_autocast_xla_dtype", get_autocast_dtype, "xla")
set_autocast_cpu_dtype = _older("set_autocast_cpu_dtype", set_autocast_dtype, "cpu")
set_autocast_gpu_dtype = _older("set_autocast_gpu_dtype", set_autocast_dtype, "cuda")
set_autocast_ipu_dtype = _older("set_autocast_ipu_dtype", set_autocast_dtype, "ipu")
set_autocast_xla_dtype = _older("set_autocast_xla_dtype", set_autocast_dtype, "xla")
