"""What kernels call in place of `numpy` and `math` at `reproducible("machine")`: the same bits on every processor.

NumPy's arithmetic, roots, comparisons, sorts and sums are those of IEEE 754 in an order that NumPy's source fixes. Its
other functions are the C library's, or vector code that differs from processor to processor, and its products are
those of a library. While the level holds, files of ops see this module's stand-ins under the names `np` and `math`:
functions run by the polynomials of generated code, products in a fixed order, and what has neither raises.
"""

from __future__ import annotations

import functools
import math
import re
import sys
from collections.abc import Callable, Iterable
from importlib.machinery import PathFinder
from types import ModuleType
from typing import Any

import numpy as np

from .._core.arrays.sparse import SparseArray
from .._core.backend import Backend, backend_of
from .._core.process.reproducibility import OF_COMPLEX, REPRODUCIBILITY

Array = Any

_FUNCTIONS = (
    *("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "sinh", "cosh", "tanh"),
    *("arcsin", "arccos", "arctan", "arctan2", "arcsinh", "arccosh", "arctanh"),
    *("power", "float_power", "cbrt", "hypot", "logaddexp", "logaddexp2"),
)
"""NumPy's functions of which generated code has its own forms."""
_OF_MATH = (
    *("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "sinh", "cosh", "tanh"),
    *("asin", "acos", "atan", "atan2", "asinh", "acosh", "atanh", "pow", "cbrt"),
)
_NAMES = {
    **{name: f"arc{name[1:]}" for name in ("asin", "acos", "atan", "atan2", "asinh", "acosh", "atanh")},
    "pow": "power",
    "float_power": "power",
}
_NOT_KEPT = (
    *("einsum", "tensordot", "inner", "vdot", "convolve", "correlate", "interp", "i0", "logspace", "geomspace"),
    *("polyval", "polyfit", "cov", "corrcoef", "unwrap"),
)

_SINGLE, _DOUBLE = np.dtype(np.float32), np.dtype(np.float64)


class NotPortable(RuntimeError):
    """A kernel has asked for something that differs from processor to processor."""

    def __init__(self, what: str) -> None:
        super().__init__(f'{what} cannot be kept by reproducible("machine")')
        self.what = what


def _refuse(what: str) -> Any:
    raise NotPortable(what)


def refuse_library(name: str) -> None:
    """Raise for a routine of a linear algebra library, if "machine" was asked for."""
    if REPRODUCIBILITY.machine:
        _refuse(f"{name}, {_LIBRARY}")


_LIBRARY = "which a linear algebra library computes, by other instructions on other processors"


@functools.lru_cache(1024)
def _compiled(name: str, dtype: np.dtype[Any]) -> Any:
    from .cpu.elementwise.pointwise import pointwise

    ufunc = getattr(np, name)
    return pointwise(ufunc, (dtype,) * ufunc.nin, dtype)


def function(name: str, *operands: Any) -> Array:
    """A function of real numbers, as generated code computes it; `name` is NumPy's."""
    common = np.result_type(*operands)
    if common.kind == "c":
        _refuse(f"{name} of complex numbers, which NumPy computes by the C library")
    dtype = common if common in (_SINGLE, _DOUBLE) else _SINGLE if common.itemsize <= 2 else _DOUBLE
    if common.kind in "iub":
        dtype = np.dtype(getattr(np, name)(*[np.ones((), each.dtype) for each in map(np.asarray, operands)]).dtype)
        if dtype.kind in "iub":
            result: Array = getattr(np, name)(*operands)
            return result
    arrays = [np.asarray(each, _DOUBLE if dtype.itemsize == 2 else dtype) for each in operands]
    if dtype.itemsize == 2:
        arrays = [each.astype(_SINGLE) for each in arrays]
    shape = np.broadcast_shapes(*[each.shape for each in arrays])
    if 0 in shape:
        return np.empty(shape, dtype)
    arrays = [np.ascontiguousarray(np.broadcast_to(each, shape)).reshape(shape) for each in arrays]
    found: Array = _compiled(name, arrays[0].dtype).many(*arrays)[0]
    wanted = common if common.kind not in "iub" else dtype
    return found if found.dtype == wanted else found.astype(wanted)


class _Function:
    """The stand-in for a ufunc."""

    def __init__(self, ufunc: np.ufunc) -> None:
        self.ufunc, self.__name__ = ufunc, ufunc.__name__
        self._name = _NAMES.get(ufunc.__name__, ufunc.__name__)

    def __call__(self, *operands: Any, out: Any = None, where: Any = True, dtype: Any = None, **options: Any) -> Any:
        given, out = operands[: self.ufunc.nin], operands[self.ufunc.nin] if len(operands) > self.ufunc.nin else out
        if not all(isinstance(each, (np.ndarray, np.generic, int, float, complex)) for each in given):
            return self.ufunc(*operands, **({} if out is None else {"out": out}), **options)  # traced, or abstract
        if self.ufunc is np.float_power or dtype is not None:
            given = tuple(np.asarray(each, dtype or np.result_type(each, _DOUBLE)) for each in given)
        found = function(self._name, *given)
        if out is None:
            return found[()] if where is True else np.where(where, found, 0)
        target = out[0] if isinstance(out, tuple) else out
        np.copyto(target, found, casting="unsafe", where=where)
        return target

    def reduce(self, array: Array, axis: int = 0, **options: Any) -> Any:
        """One element after the other."""
        return np.take(self.accumulate(array, axis), -1, axis)

    def accumulate(self, array: Array, axis: int = 0, **options: Any) -> Any:
        """One element after the other."""
        moved = np.moveaxis(array, axis, 0)
        results = np.array(moved)
        for number in range(1, len(moved)):
            results[number] = function(self._name, results[number - 1], moved[number])
        return np.moveaxis(results, 0, axis)

    def outer(self, left: Array, right: Array) -> Any:
        """The function of every pair of elements, one of each array, as `numpy.ufunc.outer`."""
        left, right = np.asarray(left), np.asarray(right)
        return self(left.reshape(*left.shape, *(1,) * right.ndim), right)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.ufunc, name)


class _Refusing:
    """The stand-in for a part of NumPy whose functions are a library's."""

    def __init__(self, module: Any, why: str, kept: Iterable[str] = ()) -> None:
        self._module, self._why, self._kept = module, why, frozenset(kept)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._module, name)
        if name in self._kept or name.startswith("_") or not callable(found) or isinstance(found, type):
            return found
        return lambda *args, **kwargs: _refuse(f"{name}, {self._why}")


class _Portable(ModuleType):
    """A module with some other functions."""

    def __init__(self, module: ModuleType, others: dict[str, Any]) -> None:
        super().__init__(module.__name__)
        self._module = module
        self.__dict__.update(others)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._module, name)


def _matmul(left: Any, right: Any, out: Any = None, **options: Any) -> Any:
    if not (isinstance(left, np.ndarray) and isinstance(right, np.ndarray)):
        return np.matmul(left, right, **options)
    if left.dtype.kind == "c" or right.dtype.kind == "c":
        _refuse("a product of complex matrices")
    assert REPRODUCIBILITY.product is not None
    common = np.result_type(left, right)
    found = REPRODUCIBILITY.product(left.astype(common, copy=False), right.astype(common, copy=False))
    if out is None:
        return found
    target = out[0] if isinstance(out, tuple) else out
    target[...] = found
    return target


def _dot(left: Any, right: Any, out: Any = None) -> Any:
    if np.ndim(left) == 0 or np.ndim(right) == 0:
        return np.multiply(left, right, out=out)
    if np.ndim(right) > 2 and np.result_type(left, right).kind not in "iub":
        _refuse("dot of more than two dimensions")
    return _matmul(np.asarray(left), np.asarray(right), out)


def _arange(*limits: Any, dtype: Any = None, **options: Any) -> Any:
    """Numbers at equal distances: a product and a sum, each of which is rounded."""
    kind = np.dtype(dtype).kind if dtype is not None else np.result_type(*limits).kind
    if kind != "f":
        return np.arange(*limits, dtype=dtype, **options)
    start, stop, step = limits if len(limits) == 3 else (*limits, 1) if len(limits) == 2 else (0, limits[0], 1)
    count = max(0, math.ceil((stop - start) / step))
    found = np.arange(count, dtype=_DOUBLE, **options) * float(step) + float(start)
    return found.astype(dtype or np.result_type(*limits, _DOUBLE))


def _absolute(x: Any, *args: Any, **options: Any) -> Any:
    if isinstance(x, (np.ndarray, np.generic)) and x.dtype.kind == "c":
        return function("hypot", x.real, x.imag)
    return np.absolute(x, *args, **options)


def _angle(x: Any, deg: bool = False) -> Any:
    if deg:
        _refuse("angle in degrees")
    x = np.asarray(x)
    return function("arctan2", x.imag, x.real)


def _sinc(x: Any) -> Any:
    if not isinstance(x, (np.ndarray, np.generic)):
        return np.sinc(x)
    if x.dtype.kind == "c":
        _refuse("sinc of complex numbers")
    y = np.pi * np.where(x == 0, x.dtype.type(1e-20) if x.dtype.kind == "f" else 1e-20, x)
    return function("sin", y) / y


def _root(x: Any, *args: Any, **options: Any) -> Any:
    if isinstance(x, (np.ndarray, np.generic)) and x.dtype.kind == "c":
        _refuse("sqrt of complex numbers")
    return np.sqrt(x, *args, **options)


def _of_number(name: str) -> Callable[..., float]:
    own, of_numpy = getattr(math, name, None), _NAMES.get(name, name)

    def run(*numbers: Any) -> float:
        if own is not None:
            own(*numbers)  # which raises what it raises
        if name == "log" and len(numbers) == 2:
            return float(function("log", np.float64(numbers[0])) / function("log", np.float64(numbers[1])))
        return float(function(of_numpy, *[np.float64(each) for each in numbers]))

    return run


def _numpy() -> ModuleType:
    others: dict[str, Any] = {name: _Function(getattr(np, name)) for name in _FUNCTIONS}
    others["pow"] = others["power"]
    for name in _NOT_KEPT:
        others[name] = functools.partial(_not_kept, name)
    others.update(matmul=_matmul, dot=_dot, arange=_arange, absolute=_absolute, abs=_absolute, angle=_angle)
    others.update(sinc=_sinc, sqrt=_root)
    others["linalg"] = _Refusing(np.linalg, _LIBRARY, ("diagonal", "trace", "matrix_transpose"))
    others["fft"] = _Refusing(
        np.fft, "whose sums NumPy's library makes by other instructions on other processors", ("fftfreq", "rfftfreq")
    )
    return _Portable(np, others)


def _not_kept(name: str, *operands: Any, **options: Any) -> Any:
    if all(np.asarray(each).dtype.kind in "iub" for each in operands if isinstance(each, np.ndarray)):
        return getattr(np, name)(*operands, **options)
    return _refuse(f"{name}, whose sums NumPy makes in an order that depends on the processor")


def _math() -> ModuleType:
    others: dict[str, Any] = {name: _of_number(name) for name in _OF_MATH if hasattr(math, name)}
    for name in ("gamma", "lgamma", "erf", "erfc"):
        others[name] = lambda *numbers, name=name: _refuse(f"{name} of a number, which is the C library's")
    return _Portable(math, others)


_PLACES = tuple(f"flambeau.{each}." for each in ("_ops", "_core.random", "ao", "distributions", "nn", "ops", "optim"))
_changed: list[tuple[dict[str, Any], str, Any]] = []


class _LaterImports:
    """Finds modules as Python does, and lets those of ops see the stand-ins from their end on."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> Any:
        """What finds a module, changed if it is one of ops."""
        spec = PathFinder.find_spec(name, path, target) if name.startswith(_PLACES) else None
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def execute_and_change(module: ModuleType) -> None:
                execute(module)
                if REPRODUCIBILITY.machine:
                    _change(module)

            spec.loader.exec_module = execute_and_change  # type: ignore[method-assign]
        return spec


@functools.cache
def _stand_ins() -> dict[str, tuple[ModuleType, ModuleType]]:
    return {"np": (np, _numpy()), "math": (math, _math())}


def _change(module: ModuleType) -> None:
    for each, (own, other) in _stand_ins().items():
        if module.__dict__.get(each) is own:
            module.__dict__[each] = other
            _changed.append((module.__dict__, each, own))


def begin() -> None:
    """Let the files of ops see the stand-ins, and let ops that cannot be kept raise."""
    REPRODUCIBILITY.function, REPRODUCIBILITY.checked = function, _checked
    for name, module in sorted(sys.modules.items()):
        if name.startswith(_PLACES) and isinstance(module, ModuleType):
            _change(module)
    sys.meta_path.insert(0, _LaterImports)
    backend = backend_of("cpu")
    backend.__dict__["prepare"] = backend.__dict__["first_try"] = functools.partial(_prepared, backend)
    backend.forget()


def end() -> None:
    """Let everything be as before `begin`; it need not have been called."""
    REPRODUCIBILITY.function = REPRODUCIBILITY.checked = None
    if _LaterImports in sys.meta_path:
        sys.meta_path.remove(_LaterImports)
    while _changed:
        names, each, own = _changed.pop()
        names[each] = own
    backend = backend_of("cpu")
    for name in ("prepare", "first_try"):
        backend.__dict__.pop(name, None)
    backend.forget()


def _prepared(backend: Backend, op: Any) -> Callable[..., Any]:
    """What the backend runs for `op`, checked."""
    run = backend.runs[op] = backend.tries[op] = _checked(op, Backend.prepare(backend, op))
    return run


_MOVES_SPARSE = re.compile("sparse_(?!.*(?:mul|product|scale|sum|reduced))")
"""Names of ops that only move the numbers of sparse tensors, or add two of them."""


def _checked(op: Any, run: Callable[..., Any]) -> Callable[..., Any]:
    """What runs a kernel of `op`, and says its name where it cannot be kept."""
    name, writes = op.name, bool(op.writes)
    may_be_complex = _MOVES_SPARSE.match(name) is not None or getattr(op, "makes_windows", False)
    why = NOT_KEPT.get(name)

    def checked(*args: Any) -> Any:
        if why is not None:
            REPRODUCIBILITY.refuse_at_machine(name, why)
        if not may_be_complex:
            for each in args:
                if isinstance(each, (np.ndarray, SparseArray)) and each.dtype.kind == "c":
                    REPRODUCIBILITY.refuse_at_machine(name, OF_COMPLEX)
        try:
            found = run(*args)
            return True if found is None and writes else found  # None would mean that nothing was done
        except NotPortable as error:
            REPRODUCIBILITY.refuse_at_machine(name, f"it needs {error.what}")
            raise

    return checked


_REJECTION = "its numbers are drawn by rejection, with functions of the C library"
NOT_KEPT: dict[str, str] = dict.fromkeys(("gamma", "poisson", "binomial", "dirichlet"), _REJECTION)
"""Ops that cannot be kept, and why; what others need and cannot have raises where they ask for it."""
