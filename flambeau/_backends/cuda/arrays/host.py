"""What has no kernel here: functions of the device's library, and in the end NumPy's on the host.

The way over the host is always right and never quick: `on_the_host` warns of it once for each op. `HOST_CALLS` counts
the functions that took it.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from ...._core.arrays.quick import name_of
from ...._core.process.determinism import DETERMINISM
from ...._core.process.host_calls import on_the_host
from ...._core.process.reproducibility import REPRODUCIBILITY
from ..runtime.driver import driver
from ..runtime.synchronization import SYNCHRONIZATIONS
from .array import DeviceArray, from_host, is_dense, over, to_host, view_of
from .raw_types import RAW
from .reproducible import UNORDERED, is_inexact, refuse_sums

HOST_CALLS: Counter[str] = Counter()
"""How often a function ran on the host, by its name: each is a wait for the device and two copies."""

_CHANGES = frozenset(("copyto", "put_along_axis", "fill_diagonal", "place", "putmask", "put", "at"))
"""The functions that change their first argument."""

_WORDS = {
    "types": "bool int8 uint8 int16 uint16 int32 uint32 int64 uint64 float16 float32 float64 complex64 complex128",
    "moves": "concatenate stack take take_along_axis put_along_axis tile repeat roll flip tril triu compress append",
    "others": "sum prod max min amax amin all any argmax argmin mean cumsum cumprod sort argsort nonzero flatnonzero "
    "count_nonzero bincount searchsorted unique diff dot vdot matmul tensordot einsum isin select isposinf isneginf "
    "ravel_multi_index var std trace outer inner kron argwhere fft ifft fftn ifftn rfft irfft rfftn irfftn hfft ihfft "
    "fft2 ifft2 rfft2 irfft2 frexp modf divmod arccos arccosh arcsin arcsinh arctan arctanh cos cosh sin sinh tan tanh "
    "exp log sqrt power expm1 log1p log2 log10 exp2 sign rint floor_divide remainder less less_equal greater "
    "greater_equal maximum minimum ldexp spacing conjugate absolute add.reduce multiply.reduce maximum.reduce "
    "minimum.reduce logical_and.reduce logical_or.reduce add.accumulate multiply.accumulate add.at",
    "decompositions": "cholesky qr svd eigh eigvalsh eig eigvals solve inv det slogdet pinv",
}
_LIBRARY_TYPES, _MOVES, _OTHERS, _DECOMPOSITIONS = (frozenset(names.split()) for names in _WORDS.values())
"""The dtypes that the library computes with; its functions for which only the bits of an element matter, so that types
which it does not know move as others; the rest of those that do what NumPy's do, as far as kernels ask for it; and
those among them after which the device is waited for: whether a matrix can be decomposed is known then."""

_REDUCTIONS = {
    "add.reduce": "sum", "multiply.reduce": "prod", "maximum.reduce": "max", "minimum.reduce": "min",
    "logical_and.reduce": "all", "logical_or.reduce": "any", "add.accumulate": "cumsum",
    "multiply.accumulate": "cumprod",
}  # fmt: skip


def movable(array: DeviceArray) -> DeviceArray:
    """An array as one of a type that the library knows, for what only moves elements."""
    dtype = array.form.dtype
    return array if name_of(dtype) in _LIBRARY_TYPES else array.view(RAW[dtype.itemsize])


def by_library_or_host(function: Any, args: Any, kwargs: Any, method: str = "__call__") -> Any:
    """A function that has no kernel here, on arrays of the device."""
    name = function.__name__ if method == "__call__" else f"{function.__name__}.{method}"
    if DETERMINISM.asked and is_inexact(args):
        # How the library decomposes matrices depends on how many there are, and on the GPU.
        if name in UNORDERED or (name in _DECOMPOSITIONS and REPRODUCIBILITY.level is not None):
            return by_host(function, args, kwargs, method)
        refuse_sums(name, args)
    if name in _MOVES or name in _OTHERS or name in _DECOMPOSITIONS:
        found = _by_library(function, name, args, kwargs)
        if found is not NotImplemented:
            return found
    return by_host(function, args, kwargs, method)


def _by_library(function: Any, name: str, args: Any, kwargs: Any) -> Any:
    narrow: list[Any] = []
    if name in _DECOMPOSITIONS:
        SYNCHRONIZATIONS.note(f"linalg.{name}")
    try:
        if name.endswith(".at"):
            own = driver().functions
            getattr(own, function.__name__).at(*_seen(args, name, narrow))
            return None if not narrow else NotImplemented
        own_function = _library_function(function, name)
        if own_function is None:
            return NotImplemented
        if name in _DECOMPOSITIONS:
            with driver().raising_failures():
                result = own_function(*_seen(args, name, narrow), **_seen(kwargs, name, narrow))
        else:
            result = own_function(*_seen(args, name, narrow), **_seen(kwargs, name, narrow))
    except MemoryError:
        raise
    except Exception:  # whatever it is: if it is not the library's own limit, NumPy will raise it again
        return NotImplemented
    if isinstance(out := kwargs.get("out"), DeviceArray):
        return out if not narrow else NotImplemented
    if name in _CHANGES:
        return None
    result = adopted(result)
    if narrow and kwargs.get("dtype") is None:
        result = _narrowed(result, narrow[0], name)
    return result


def _library_function(function: Any, name: str) -> Any:
    place = driver().functions
    if name in _REDUCTIONS:
        return getattr(place, _REDUCTIONS[name])
    module = getattr(function, "__module__", None) or "numpy"
    for part in module.split(".")[1:]:
        place = getattr(place, part, None)
    return getattr(place, name, None)


def _seen(value: Any, name: str, narrow: list[Any]) -> Any:
    """Arguments as the library takes them; types that it does not compute with as others, noted in `narrow`."""
    if type(value) is DeviceArray:
        dtype = value.form.dtype
        if name_of(dtype) not in _LIBRARY_TYPES:
            if name in _MOVES:
                narrow.append(dtype)
                return driver().seen(value.view(RAW[dtype.itemsize]))
            if dtype.name != "bfloat16":
                raise NotImplementedError(dtype.name)
            narrow.append(dtype)
            value = value.astype(np.float32)
        return driver().seen(value)
    if isinstance(value, np.ndarray) and value.ndim:
        raise TypeError(f"{name}: an array of the host, of shape {value.shape}, meets one on cuda")
    if type(value) in (list, tuple):
        return type(value)([_seen(each, name, narrow) for each in value])
    if type(value) is dict:
        return {key: _seen(each, name, narrow) for key, each in value.items()}
    return value


def _narrowed(result: Any, dtype: Any, name: str) -> Any:
    if type(result) is DeviceArray:
        if name in _MOVES:
            return result.view(dtype) if result.dtype == RAW[dtype.itemsize] else result
        return result.astype(dtype) if result.dtype == np.float32 else result
    if type(result) in (list, tuple):
        return type(result)([_narrowed(each, dtype, name) for each in result])
    return result


def adopted(value: Any) -> Any:
    """What the library returned, with its arrays as ours."""
    own = driver()
    if own.is_seen(value):
        if not is_dense(value):
            value = value.copy()
        return over(*own.adopted(value), value.shape, value.dtype, value.strides if value.size else None)
    if isinstance(value, (tuple, list)):
        items = [adopted(each) for each in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    return value


def by_host(function: Any, args: Any, kwargs: Any, method: str = "__call__") -> Any:
    """NumPy's function of copies on the host, its result on the device."""
    name = function.__name__ if method == "__call__" else f"{function.__name__}.{method}"
    refuse_sums(name, args)
    HOST_CALLS[name] += 1
    with on_the_host(name, "cuda"):
        return _by_host(function, args, kwargs, method)


def _by_host(function: Any, args: Any, kwargs: Any, method: str) -> Any:
    hosts: dict[int, Any] = {}
    given = [_on_host(each, hosts) for each in args]
    options = {key: _on_host(each, hosts) for key, each in kwargs.items()}
    result = getattr(function, method)(*given, **options)
    if (function.__name__ in _CHANGES or method == "at") and type(args[0]) is DeviceArray:
        args[0][...] = from_host(given[0])
        return None
    out = kwargs.get("out")
    if isinstance(out, DeviceArray):
        out[...] = from_host(options["out"])
        return out
    return on_device(result)


def _on_host(value: Any, hosts: dict[int, Any]) -> Any:
    if type(value) is DeviceArray:
        if id(value) not in hosts:
            hosts[id(value)] = to_host(value)
        return hosts[id(value)]
    if type(value) in (list, tuple):
        return type(value)([_on_host(each, hosts) for each in value])
    return value


def on_device(value: Any) -> Any:
    """What NumPy returned, with its arrays and numbers on the device."""
    if isinstance(value, (np.ndarray, np.generic)):
        return from_host(np.asarray(value))
    if isinstance(value, (tuple, list)):
        items = [on_device(each) for each in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    return value


def geometry(function: Any, args: Any, kwargs: Any) -> Any:
    """A function of NumPy's that makes views: it runs on the forms."""
    source: list[DeviceArray] = []

    def form_of(value: Any) -> Any:
        if type(value) is DeviceArray:
            source.append(value)
            return value.form
        if type(value) in (list, tuple):
            return type(value)([form_of(each) for each in value])
        return value

    result = function(*form_of(args), **{key: form_of(each) for key, each in kwargs.items()})
    if isinstance(result, (tuple, list)):
        if len(source) == len(result):  # each of its own
            return type(result)([view_of(array, form) for array, form in zip(source, result, strict=True)])
        return type(result)([view_of(source[0], form) for form in result])
    return view_of(source[0], result)
