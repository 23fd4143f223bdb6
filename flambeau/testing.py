"""Comparing tensors in tests: `assert_close`, under the name and with the tolerances of `torch.testing`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ._core.arrays.lazy_signs import content
from ._core.backend import to_host
from ._core.dtype import bfloat16, dtype, float16, float32, float64, promote_types
from ._core.tensor import Tensor

__all__ = ["assert_allclose", "assert_close"]

_TOLERANCES: dict[dtype, tuple[float, float]] = {
    float16: (1e-3, 1e-5),
    bfloat16: (1.6e-2, 1e-5),
    float32: (1.3e-6, 1e-5),
    float64: (1e-7, 1e-7),
}
"""The relative and the absolute tolerance that suit each precision; integers must be equal."""


def assert_close(
    actual: Any,
    expected: Any,
    *,
    allow_subclasses: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
    check_layout: bool = True,
    check_stride: bool = False,
    msg: str | Callable[[str], str] | None = None,
) -> None:
    """Raise an AssertionError unless `actual` and `expected` (tensors, numbers, or nests of them) are close.

    >>> flambeau.testing.assert_close(flambeau.tensor([1.0]), flambeau.tensor([1.0 + 1e-7]))

    Args:
        actual: what was computed.
        expected: what is right.
        allow_subclasses (bool): whether classes may differ if one inherits from the other. Default: `True`.
        rtol (float, optional): the relative tolerance; None takes that of the dtype.
        atol (float, optional): the absolute tolerance; None takes that of the dtype.
        equal_nan (bool): whether two NaN count as equal. Default: `False`.
        check_device (bool): whether devices must be the same. Default: `True`.
        check_dtype (bool): whether dtypes must be the same. Default: `True`.
        check_layout (bool): whether layouts must be the same. Default: `True`.
        check_stride (bool): whether strides must be the same. Default: `False`.
        msg (str or Callable, optional): the message of the error, or a function that makes it from the usual one.
    """
    if (rtol is None) != (atol is None):
        raise ValueError(
            f"rtol and atol must both be specified or both be unspecified, but got rtol={rtol} and atol={atol}"
        )
    for tolerance in (rtol, atol):
        if tolerance is not None and (not isinstance(tolerance, (int, float)) or not tolerance >= 0):
            raise RuntimeError(f"Comparing with rtol={rtol} and atol={atol}: tolerances are numbers from 0 on")
    options = {"equal_nan": equal_nan, "device": check_device, "dtype": check_dtype, "stride": check_stride}
    tolerances = None if rtol is None or atol is None else (rtol, atol)
    problem = _difference(actual, expected, "", tolerances, options)
    if problem is not None:
        raise AssertionError(problem if msg is None else msg(problem) if callable(msg) else msg)


def _difference(actual: Any, expected: Any, where: str, tolerances: Any, options: dict[str, bool]) -> str | None:
    if isinstance(actual, Mapping) and isinstance(expected, Mapping):
        if set(actual) != set(expected):
            return f"The keys of the mappings do not match{where}: {sorted(actual)} against {sorted(expected)}"
        pairs = [(actual[key], expected[key], f"{where} at item [{key!r}]") for key in expected]
    elif _is_sequence(actual) and _is_sequence(expected):
        if len(actual) != len(expected):
            return f"The length of the sequences mismatch{where}: {len(actual)} != {len(expected)}"
        pairs = [(a, b, f"{where} at item [{i}]") for i, (a, b) in enumerate(zip(actual, expected, strict=True))]
    elif actual is None or expected is None:
        return None if actual is expected else f"None mismatch{where}: {actual} is not {expected}"
    elif _is_number(actual) is not _is_number(expected):
        raise TypeError(
            f"No comparison pair was able to handle inputs of type {type(actual)} and {type(expected)}{where}."
        )
    else:
        return _tensor_difference(_as_tensor(actual), _as_tensor(expected), where, tolerances, options)
    found = (_difference(*pair, tolerances, options) for pair in pairs)
    return next((problem for problem in found if problem is not None), None)


def _is_sequence(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _is_number(value: Any) -> bool:
    return isinstance(value, (bool, int, float, complex, np.generic))


def _as_tensor(value: Any) -> Tensor:
    from ._ops.create.constants import tensor

    if isinstance(value, Tensor):
        return value
    if isinstance(value, (bool, int, float, complex, np.ndarray, np.generic)):
        return tensor(value)
    raise TypeError(f"assert_close() compares tensors, numbers, arrays and nests of them, not {type(value).__name__}")


def _tensor_difference(a: Tensor, b: Tensor, where: str, tolerances: Any, options: dict[str, bool]) -> str | None:
    if a.shape != b.shape:
        return f"The values for attribute 'shape' do not match{where}: {a.shape} != {b.shape}."
    for attribute in ("device", "dtype"):
        if options[attribute] and getattr(a, attribute) is not getattr(b, attribute):
            return (
                f"The values for attribute '{attribute}' do not match{where}: "
                f"{getattr(a, attribute)} != {getattr(b, attribute)}."
            )
    if options["stride"] and a.stride() != b.stride():
        return f"The values for attribute 'stride()' do not match{where}: {a.stride()} != {b.stride()}."
    if a.is_meta or b.is_meta:
        return None
    common = promote_types(a.dtype, b.dtype)
    relative, absolute = tolerances or _TOLERANCES.get(common.to_real(), (0.0, 0.0))
    mine, theirs = _wide(a, common), _wide(b, common)
    apart = np.asarray(np.abs(mine - theirs))
    close = np.asarray((mine == theirs) | (apart <= absolute + relative * np.abs(theirs))).astype(bool)
    if options["equal_nan"] and mine.dtype != object:
        close |= np.isnan(mine) & np.isnan(theirs)
    if close.all():
        return None
    wrong = int((~close).sum())
    sizes = np.where(close, -1, np.nan_to_num(apart.astype(np.float64), nan=np.inf))
    worst = np.unravel_index(int(np.argmax(sizes)), close.shape)
    place = f" at index {tuple(int(each) for each in worst)}" if close.ndim else ""
    share = 100 * wrong / close.size
    return (
        f"Tensor-likes are not close{where}!\n\nMismatched elements: {wrong} / {close.size} ({share:.1f}%)\n"
        f"Greatest absolute difference: {apart[worst]}{place} (up to {absolute:g} allowed, and {relative:g} of the "
        f"expected value): got {mine[worst]}, expected {theirs[worst]}"
    )


def _wide(tensor: Tensor, common: dtype) -> Any:
    """The values in a type in which their differences are exact enough to judge."""
    array = to_host(content(tensor))
    if common.is_complex:
        return array.astype(np.complex128)
    return array.astype(np.float64) if common.is_floating_point or common.name == "bool" else array.astype(object)


def assert_allclose(
    actual: Any,
    expected: Any,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = True,
    msg: str = "",
) -> None:
    """The older form of `assert_close`, which looks at values alone.

    Args:
        actual: what was computed.
        expected: what is right.
        rtol (float, optional): the relative tolerance; None takes that of the dtype.
        atol (float, optional): the absolute tolerance; None takes that of the dtype.
        equal_nan (bool): whether two NaN count as equal. Default: `True`.
        msg (str): the message of the error. Default: `""`.

    Raises:
        AssertionError: they differ.

    Example:
        >>> import warnings
        >>> with warnings.catch_warnings():
        ...     warnings.simplefilter("ignore")
        ...     torch.testing.assert_allclose(torch.ones(2), torch.ones(2) + 1e-8)
    """
    first, second = _as_tensor(actual), _as_tensor(expected)
    if rtol is None and atol is None:
        pairs = [_OLDER_TOLERANCES.get(each.dtype, (0.0, 0.0)) for each in (first, second)]
        rtol, atol = max(pair[0] for pair in pairs), max(pair[1] for pair in pairs)
    assert_close(
        first, second, rtol=rtol, atol=atol, equal_nan=equal_nan, check_device=True, check_dtype=False,
        check_stride=False, msg=msg or None,
    )  # fmt: skip


_OLDER_TOLERANCES: dict[dtype, tuple[float, float]] = {
    float16: (1e-3, 1e-3),
    float32: (1e-4, 1e-5),
    float64: (1e-5, 1e-8),
}


def __getattr__(name: str) -> Any:
    if name == "make_tensor":  # loads on first use
        from ._ops.random.make_tensor import make_tensor

        return make_tensor
    if name == "FileCheck":
        import flambeau

        return flambeau.FileCheck
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
