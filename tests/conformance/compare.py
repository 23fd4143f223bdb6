"""Whether two results are the same: value, dtype, shape, strides, and what they share memory with."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy
import torch as pytorch

import flambeau

TENSORS = (pytorch.Tensor, flambeau.Tensor)


class Tolerance(NamedTuple):
    """|actual - expected| <= absolute + relative * |expected|."""

    absolute: float
    relative: float


_TOLERANCES = {
    pytorch.float16: Tolerance(1e-5, 1e-3),
    pytorch.bfloat16: Tolerance(1e-5, 1.6e-2),
    pytorch.float32: Tolerance(1e-5, 1.3e-6),
    pytorch.float64: Tolerance(1e-7, 1e-7),
    pytorch.complex32: Tolerance(1e-5, 1e-3),
    pytorch.complex64: Tolerance(1e-5, 1.3e-6),
    pytorch.complex128: Tolerance(1e-7, 1e-7),
}
"""What PyTorch's own tests ask for."""
_EXACT = Tolerance(0.0, 0.0)


def tolerance_for(dtype: pytorch.dtype, wider: Tolerance | None) -> Tolerance:
    """PyTorch's tolerance of a dtype, widened to the one that its database gives for an entry."""
    usual = _TOLERANCES.get(dtype, _EXACT)
    if wider is None or usual is _EXACT:
        return usual
    return Tolerance(max(usual.absolute, wider.absolute), max(usual.relative, wider.relative))


_AS_NUMBERS = {pytorch.bfloat16: pytorch.float32, pytorch.complex32: pytorch.complex64}


def _numbers(value: pytorch.Tensor) -> numpy.ndarray[Any, Any]:
    value = value.detach().clone().resolve_conj().resolve_neg()
    if value.dtype in _AS_NUMBERS or "float8" in str(value.dtype):
        value = value.to(_AS_NUMBERS.get(value.dtype, pytorch.float32))
    return value.numpy()


def _flambeau_numbers(value: flambeau.Tensor) -> numpy.ndarray[Any, Any]:
    value = value.detach().resolve_conj().resolve_neg()
    name = str(value.dtype)
    if name == "torch.bfloat16" or "float8" in name:
        value = value.to(flambeau.float32)
    elif name == "torch.complex32":
        value = value.to(flambeau.complex64)
    return value.numpy()


def differences(
    expected: Any, actual: Any, tolerance: Tolerance | None = None, path: str = "", exact: Any = None
) -> Iterator[str]:
    """One line for each place where a result of Flambeau is not PyTorch's.

    `exact` is PyTorch's result from the same inputs in higher precision: a number that is nearer to it is right too.
    """
    if isinstance(expected, pytorch.Tensor):
        if not isinstance(actual, flambeau.Tensor):
            yield f"{path}is {type(actual).__name__}, not a tensor"
        else:
            yield from _tensor_differences(expected, actual, tolerance, path, exact)
    elif isinstance(expected, dict):
        if not isinstance(actual, dict) or expected.keys() != actual.keys():
            yield f"{path}is {actual!r}, not {expected!r}"
        else:
            for key, item in expected.items():
                yield from differences(
                    item, actual[key], tolerance, f"{path}[{key!r}] ", None if exact is None else exact[key]
                )
    elif isinstance(expected, (tuple, list)):
        if not isinstance(actual, (tuple, list)) or len(expected) != len(actual):
            yield f"{path}is a {_kind(actual)}, not a {_kind(expected)}"
        else:
            for position, (left, right) in enumerate(zip(expected, actual, strict=True)):
                part = None if exact is None else exact[position]
                yield from differences(left, right, tolerance, f"{path}[{position}] ", part)
    elif isinstance(expected, (float, complex)) and isinstance(actual, type(expected)):
        if not _close(numpy.asarray(expected), numpy.asarray(actual), tolerance or Tolerance(1e-6, 1e-6)).all():
            yield f"{path}is {actual!r}, not {expected!r}"
    elif isinstance(expected, (pytorch.dtype, pytorch.device, pytorch.layout)):
        if str(expected) != str(actual):
            yield f"{path}is {actual}, not {expected}"
    elif type(expected) is not type(actual) or expected != actual:
        yield f"{path}is {actual!r}, not {expected!r}"


def _kind(value: Any) -> str:
    return f"{type(value).__name__} of {len(value)}" if isinstance(value, (tuple, list)) else type(value).__name__


def _tensor_differences(
    expected: pytorch.Tensor, actual: flambeau.Tensor, tolerance: Tolerance | None, path: str, exact: Any
) -> Iterator[str]:
    if str(expected.dtype) != str(actual.dtype):
        yield f"{path}has dtype {actual.dtype}, not {expected.dtype}"
        return
    if tuple(expected.shape) != tuple(actual.shape):
        yield f"{path}has shape {tuple(actual.shape)}, not {tuple(expected.shape)}"
        return
    if str(expected.layout) != str(actual.layout):
        yield f"{path}has layout {actual.layout}, not {expected.layout}"
        return
    if expected.layout is not pytorch.strided:
        yield from _sparse_differences(expected, actual, tolerance, path, exact)
        return
    if expected.device.type != actual.device.type:
        yield f"{path}is on {actual.device}, not {expected.device}"
        return
    for sign in ("is_conj", "is_neg"):
        if getattr(expected, sign)() != getattr(actual, sign)():
            yield f"{path}{sign}() is {getattr(actual, sign)()}, not {getattr(expected, sign)()}"
            return
    if expected.is_meta or expected.numel() == 0:
        return
    left, right = _numbers(expected), _flambeau_numbers(actual)
    allowed = tolerance_for(expected.dtype, tolerance)
    close = _close(left, right, allowed)
    if isinstance(exact, pytorch.Tensor) and exact.shape == expected.shape and allowed is not _EXACT:
        close |= _nearer(_numbers(exact), left, right, allowed)
    if not close.all():
        where = tuple(int(index) for index in numpy.argwhere(~close)[0])
        count = int((~close).sum())
        yield (
            f"{path}{count} of {close.size} values differ: at {where} {right[where]!r}, not {left[where]!r} "
            f"(shape {tuple(expected.shape)})"
        )


def _sparse_differences(
    expected: pytorch.Tensor, actual: flambeau.Tensor, tolerance: Tolerance | None, path: str, exact: Any
) -> Iterator[str]:
    """The places and the elements there, as they are kept, one after the other."""
    names = ["crow_indices", "col_indices", "values"]
    if expected.layout in (pytorch.sparse_csc, pytorch.sparse_bsc):
        names = ["ccol_indices", "row_indices", "values"]
    if expected.layout is pytorch.sparse_coo:
        names = ["_indices", "_values"]
        if expected.is_coalesced() != actual.is_coalesced():
            yield f"{path}is coalesced: {actual.is_coalesced()}, not {expected.is_coalesced()}"
    for name in names:
        parts = [None if each is None else getattr(each.detach(), name)() for each in (expected, actual, exact)]
        yield from _tensor_differences(parts[0], parts[1], tolerance, f"{path}{name} ", parts[2])


def _close(expected: Any, actual: Any, allowed: Tolerance) -> Any:
    if allowed is _EXACT or expected.dtype.kind in "biu":
        return expected == actual
    with numpy.errstate(all="ignore"):
        if expected.dtype.kind == "c":
            return (
                _close(expected.real, actual.real, _around(expected, allowed))
                & _close(expected.imag, actual.imag, _around(expected, allowed))
            ) | (expected == actual)
        distance = numpy.abs(actual - expected)
        near = distance <= allowed.absolute + allowed.relative * numpy.abs(expected)
        return near & numpy.isfinite(expected) | (expected == actual) | numpy.isnan(expected) & numpy.isnan(actual)


def _nearer(exact: Any, expected: Any, actual: Any, allowed: Tolerance) -> Any:
    """Where `actual` is the exact number within the tolerance, or no further from it than PyTorch's."""
    with numpy.errstate(all="ignore"):
        rounded = exact.astype(expected.dtype)
        return _close(rounded, actual, allowed) | (numpy.abs(actual - exact) <= numpy.abs(expected - exact))


def _around(expected: Any, allowed: Tolerance) -> Tolerance:
    """For the parts of a complex number the tolerance is that of its modulus."""
    modulus = numpy.abs(expected)
    return Tolerance(
        allowed.absolute + allowed.relative * numpy.where(numpy.isfinite(modulus), modulus, 0.0),
        0.0,  # type: ignore[arg-type]
    )


def strides_differ(expected: pytorch.Tensor, actual: flambeau.Tensor) -> str | None:
    """How the strides differ, dimensions of size one apart, whose stride nobody uses."""
    if expected.numel() < 2 or expected.layout is not pytorch.strided:
        return None
    pairs = zip(expected.shape, expected.stride(), actual.stride(), strict=True)
    if all(size == 1 or left == right for size, left, right in pairs):
        return None
    return f"has strides {tuple(actual.stride())}, not {tuple(expected.stride())} (shape {tuple(expected.shape)})"


def tensors_in(value: Any) -> list[Any]:
    """The tensors in a nest of containers, in order."""
    if isinstance(value, TENSORS):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return [found for item in value for found in tensors_in(item)]
    return []


def _address(value: Any) -> int:
    if str(value.layout) != "torch.strided":
        return 0
    return int(value.untyped_storage().data_ptr()) if value.numel() and value.device.type != "meta" else 0


def sharing(results: Any, inputs: Any) -> list[int | None]:
    """For each result, the first input whose memory it shares."""
    addresses = [_address(each) for each in tensors_in(inputs)]
    found = []
    for result in tensors_in(results):
        address = _address(result)
        found.append(addresses.index(address) if address and address in addresses else None)
    return found


def magnitude(value: Any) -> float:
    """The largest finite absolute value, at least one: what a rounding error of a sum is relative to."""
    if value.numel() == 0 or value.device.type == "meta":
        return 1.0
    if value.layout is not pytorch.strided:
        value = value.detach().to_dense()
    numbers = numpy.abs(_numbers(value).astype(numpy.complex128))
    numbers = numbers[numpy.isfinite(numbers)]
    return max(1.0, float(numbers.max())) if numbers.size and not math.isnan(numbers.max()) else 1.0
