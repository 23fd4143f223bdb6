"""The operators of `torch.ops.prims`: PyTorch's smallest ones, of operands that have one dtype and one shape."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from .._core.tensor import Tensor
from .._dispatch.public.overloads import OpOverloadPacket
from .._dispatch.public.schemas import operators_of
from ..jit._language.numbers_of import dtype_of_number

_OTHERS = {
    "bessel_i0": "i0", "bessel_i0e": "special.i0e", "bessel_i1": "special.i1", "bessel_i1e": "special.i1e",
    "bessel_j0": "special.bessel_j0", "bessel_j1": "special.bessel_j1", "copy_to": "Tensor.copy_",
    "erf_inv": "erfinv", "erfcx": "special.erfcx", "ndtri": "special.ndtri", "resize": "Tensor.resize_",
    "shift_left": "bitwise_left_shift", "shift_right_arithmetic": "bitwise_right_shift",
    "spherical_bessel_j0": "special.spherical_bessel_j0", "rev": "flip", "transpose": "permute", "item": "Tensor.item",
    "view_of_dtype": "Tensor.view", "zeta": "special.zeta", "svd": "linalg.svd",
}  # fmt: skip
"""The operators that the package has under other names."""


def _torch() -> Any:
    import flambeau

    return flambeau


def _broadcast_in_dim(a: Tensor, shape: Any, broadcast_dimensions: Any) -> Tensor:
    extents = [1] * len(shape)
    for place, extent in zip(broadcast_dimensions, a.shape, strict=True):
        extents[place] = extent
    return a.reshape(extents).expand(list(shape))


def _collapse(a: Tensor, start: int, end: int) -> Tensor:
    return a.reshape([*a.shape[:start], math.prod(a.shape[start : end + 1]), *a.shape[end + 1 :]])


def _split_dim(a: Tensor, dim: int, outer_length: int) -> Tensor:
    return a.reshape([*a.shape[:dim], outer_length, a.shape[dim] // outer_length, *a.shape[dim + 1 :]])


def _squeeze(a: Tensor, dimensions: Any) -> Tensor:
    return a.squeeze(tuple(dimensions))


def _div(a: Tensor, b: Tensor) -> Tensor:
    """A quotient; of integers, rounded towards zero."""
    is_exact = a.dtype.is_floating_point or a.dtype.is_complex
    quotient: Tensor = _torch().div(a, b, rounding_mode=None if is_exact else "trunc")
    return quotient


def _cbrt(a: Tensor) -> Tensor:
    root: Tensor = _torch().copysign(a.abs().pow(1 / 3), a)
    return root


def _var(inp: Tensor, dims: Any, correction: Any = 1, *, output_dtype: Any = None) -> Tensor:
    result = inp.var(None if dims is None else list(dims), correction=correction)
    return result if output_dtype is None else result.to(dtype_of_number(output_dtype))


def _product(inp: Tensor, dims: Any, *, output_dtype: Any = None) -> Tensor:
    result = inp
    for dim in sorted(range(inp.ndim) if dims is None else dims, reverse=True):
        result = result.prod(dim)
    return result if output_dtype is None else result.to(dtype_of_number(output_dtype))


def _iota(length: int, *, start: int, step: int, dtype: Any, device: Any, requires_grad: bool) -> Tensor:
    stop = start + length * step
    made: Tensor = _torch().arange(start, stop, step, dtype=dtype_of_number(dtype), device=device)
    return made.requires_grad_(requires_grad)


def _full(shape: Any, fill_value: Any, *, dtype: Any, device: Any, requires_grad: bool) -> Tensor:
    options = {"dtype": dtype_of_number(dtype), "device": device, "requires_grad": requires_grad}
    made: Tensor = _torch().full(shape, fill_value, **options)
    return made


def _full_like(a: Tensor, fill_value: Any, *, dtype: Any, device: Any, requires_grad: bool) -> Tensor:
    options = {"dtype": dtype_of_number(dtype), "device": device, "requires_grad": requires_grad}
    made: Tensor = _torch().full_like(a, fill_value, **options)
    return made


def _empty(shape: Any, *, dtype: Any, device: Any, requires_grad: bool) -> Tensor:
    options = {"dtype": dtype_of_number(dtype), "device": device, "requires_grad": requires_grad}
    made: Tensor = _torch().empty(shape, **options)
    return made


def _empty_strided(shape: Any, strides: Any, *, dtype: Any, device: Any, requires_grad: bool) -> Tensor:
    options = {"dtype": dtype_of_number(dtype), "device": device, "requires_grad": requires_grad}
    made: Tensor = _torch().empty_strided(shape, strides, **options)
    return made


def _empty_permuted(shape: Any, physical_layout: Any, *, dtype: Any, device: Any, requires_grad: bool) -> Tensor:
    options = {"dtype": dtype_of_number(dtype), "device": device, "requires_grad": requires_grad}
    made: Tensor = _torch().empty_permuted(shape, physical_layout, **options)
    return made


def _normal(
    shape: Any, *, mean: Any, std: Any, dtype: Any, device: Any, requires_grad: bool, generator: Any = None
) -> Tensor:
    made = _empty(shape, dtype=dtype, device=device, requires_grad=False)
    return made.normal_(mean, std, generator=generator).requires_grad_(requires_grad)


def _uniform(shape: Any, *, low: float, high: float, dtype: Any, device: Any, generator: Any = None) -> Tensor:
    return _empty(shape, dtype=dtype, device=device, requires_grad=False).uniform_(low, high, generator=generator)


def _extreme(which: str) -> Callable[[Any], Any]:
    def value(dtype: Any) -> Any:
        kind, torch = dtype_of_number(dtype), _torch()
        if kind is torch.bool:
            return which == "max"
        if kind.is_floating_point:
            return getattr(torch.finfo(kind), which)
        return getattr(torch.iinfo(kind), which)

    return value


def _fft(name: str) -> Callable[..., Tensor]:
    def transform(self: Tensor, *, dim: Any, **options: Any) -> Tensor:
        function = getattr(_torch().ops.aten, f"_fft_{name}")
        if name == "c2c":
            result: Tensor = function(self, dim, 0, options["forward"])
        elif name == "c2r":
            result = function(self, dim, 0, options["last_dim_size"])
        else:
            result = function(self, dim, 0, options["onesided"])
        return result

    return transform


_WRITTEN: dict[str, Callable[..., Any]] = {
    "broadcast_in_dim": _broadcast_in_dim,
    "collapse": _collapse,
    "collapse_view": _collapse,
    "split_dim": _split_dim,
    "squeeze": _squeeze,
    "div": _div,
    "cbrt": _cbrt,
    "var": _var,
    "prod": _product,
    "iota": _iota,
    "full": _full,
    "full_like": _full_like,
    "empty": _empty,
    "empty_strided": _empty_strided,
    "empty_permuted": _empty_permuted,
    "normal": _normal,
    "uniform": _uniform,
    "maximum_value": _extreme("max"),
    "minimum_value": _extreme("min"),
    "fill": lambda self, value: _torch().full_like(self, value),
    "convert_element_type": lambda a, dtype: a.to(dtype_of_number(dtype), copy=True),
    "device_put": lambda a, device, non_blocking=False: a.to(device, copy=True),
    "copy_strided": lambda a, stride: _torch().empty_strided(a.shape, stride, dtype=a.dtype).copy_(a),
    "view_of": lambda a: a.view(a.shape),
    **{f"fft_{name}": _fft(name) for name in ("c2c", "c2r", "r2c")},
}
"""Operators with arguments of their own."""


def _body(name: str) -> Any:
    """What runs an operator; None if there is nothing here that does."""
    if name in _WRITTEN:
        return _WRITTEN[name]
    found: Any = _torch()
    for part in _OTHERS.get(name, name).split("."):
        found = getattr(found, part, None)
    return found


def __getattr__(name: str) -> Any:
    body = _body(name) if name in operators_of("prims") else None
    if body is None:
        raise AttributeError(f"'_OpNamespace' 'prims' object has no attribute '{name}'")
    packet = globals()[name] = OpOverloadPacket("prims", name, body)
    return packet


def __dir__() -> list[str]:
    return sorted(each for each in operators_of("prims") if _body(each) is not None)
