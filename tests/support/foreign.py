"""A device that stands in for a GPU: its arrays are not NumPy's, and nothing reads them unasked.

A `ForeignArray` hides an `ndarray`. NumPy's functions work on it, by NumPy's own protocols, and give foreign arrays. It
refuses what an array on a GPU refuses: to become a host array by itself, to meet host arrays that have dimensions, and
to be read as a Python number. `install_foreign_device()` makes it the device "privateuseone"; `Foreign.to_host` is the
one way to see what is in it.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from flambeau._core.backend import Backend, backend_of, install, is_installed
from flambeau._core.storage import owner_of

DEVICE = "privateuseone"

_HOST_ANSWERS = (bool, int, float, complex)
_ABOUT_SHAPES = frozenset(
    (np.ndim, np.size, np.shape, np.can_cast, np.result_type, np.min_scalar_type, np.common_type)
    + (np.may_share_memory, np.shares_memory, np.iscomplexobj, np.isrealobj)
)
"""NumPy's functions that look at no element: their answers are the host's."""

_OWNERS: weakref.WeakValueDictionary[int, ForeignArray] = weakref.WeakValueDictionary()
"""The arrays that own memory, by the ids of the host arrays that they hide: views find their base here."""


class Refused(Exception):
    """A host would have had to wait for the device, or to copy from it."""


class ForeignArray:
    """An array in the memory of another device, as far as a program can tell."""

    __slots__ = ("__weakref__", "_hidden", "base")

    def __init__(self, hidden: Any) -> None:
        self._hidden = hidden
        owner = owner_of(hidden)
        self.base = None if owner is hidden else _owner(owner)
        if self.base is None:
            _OWNERS[id(hidden)] = self

    # ----- NumPy's protocols --------------------------------------------------------------------------------------

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, out: Any = None, **kwargs: Any) -> Any:
        if out is not None:
            for each in out:
                if each is not None and type(each) is not ForeignArray:
                    raise Refused(f"{ufunc.__name__}: out= is an array of the host, the operands are on {DEVICE}")
        kwargs = _hidden(kwargs)
        if out is not None:
            kwargs["out"] = tuple(None if each is None else each._hidden for each in out)
        result = getattr(ufunc, method)(*[_hidden(each) for each in inputs], **kwargs)
        if out is not None and method != "at":
            return out[0] if len(out) == 1 else out
        return _foreign(result)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        result = function(*_hidden(args), **_hidden(kwargs))
        if function in _ABOUT_SHAPES:
            return result
        if function is np.count_nonzero:  # before NumPy 2.4 it gives a Python number, of any array
            result = np.asarray(result)
        if isinstance(result, _HOST_ANSWERS) and not isinstance(result, np.generic):
            raise Refused(f"{function.__name__} of an array on {DEVICE} is a number of the host")
        if isinstance(out := kwargs.get("out"), ForeignArray):
            return out
        return _foreign(result)

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise Refused(f"implicit conversion of an array on {DEVICE} to a host array")

    # ----- what it is ---------------------------------------------------------------------------------------------

    @property
    def T(self) -> ForeignArray:
        return ForeignArray(self._hidden.T)

    @property
    def real(self) -> ForeignArray:
        return ForeignArray(self._hidden.real)

    @real.setter
    def real(self, value: Any) -> None:
        self._hidden.real = _hidden(value)

    @property
    def imag(self) -> ForeignArray:
        return ForeignArray(self._hidden.imag)

    @imag.setter
    def imag(self, value: Any) -> None:
        self._hidden.imag = _hidden(value)

    def __len__(self) -> int:
        return len(self._hidden)

    def __repr__(self) -> str:
        return f"<array of shape {self._hidden.shape} and type {self._hidden.dtype} on {DEVICE}>"

    # ----- what it holds ------------------------------------------------------------------------------------------

    def __getitem__(self, index: Any) -> Any:
        return _foreign(self._hidden[_hidden(index)])

    def __setitem__(self, index: Any, value: Any) -> None:
        self._hidden[_hidden(index)] = _hidden(value)

    def __copy__(self) -> ForeignArray:
        return ForeignArray(self._hidden.copy())

    __hash__ = None  # type: ignore[assignment]


def _owner(hidden: Any) -> ForeignArray:
    found = _OWNERS.get(id(hidden))
    return found if found is not None and found._hidden is hidden else ForeignArray(hidden)


def _hidden(value: Any) -> Any:
    """What NumPy is to compute with."""
    if type(value) is ForeignArray:
        return value._hidden
    if isinstance(value, np.ndarray) and value.ndim:
        raise Refused(f"an array of the host, of shape {value.shape}, meets one on {DEVICE}")
    if type(value) in (list, tuple):
        return type(value)([_hidden(each) for each in value])
    if type(value) is dict:
        return {name: _hidden(each) for name, each in value.items()}
    return value


def _foreign(result: Any) -> Any:
    """What the device's library would have returned: arrays, where NumPy returns numbers too."""
    if isinstance(result, np.ndarray):
        return ForeignArray(result)
    if isinstance(result, np.generic):
        return ForeignArray(np.asarray(result))
    if isinstance(result, tuple) and hasattr(result, "_fields"):
        return type(result)(*[_foreign(each) for each in result])
    if type(result) in (list, tuple):
        return type(result)([_foreign(each) for each in result])
    return result


def _attribute(name: str) -> Any:
    return property(lambda self: getattr(self._hidden, name))


def _method(name: str) -> Callable[..., Any]:
    def method(self: ForeignArray, *args: Any, **kwargs: Any) -> Any:
        result = getattr(self._hidden, name)(*_hidden(args), **_hidden(kwargs))
        if result is self._hidden:
            return self
        out = kwargs.get("out")
        return out if isinstance(out, ForeignArray) else _foreign(result)

    method.__name__ = name
    return method


def _refusal(name: str) -> Callable[..., Any]:
    def method(self: ForeignArray, *args: Any) -> Any:
        raise Refused(f"{name} of an array on {DEVICE} waits for the device: read it with the backend's to_host")

    method.__name__ = name
    return method


for _name in ("shape", "dtype", "ndim", "size", "itemsize", "nbytes", "strides", "flags"):
    setattr(ForeignArray, _name, _attribute(_name))
_METHODS = (
    "all any argmax argmin argpartition argsort astype choose clip compress conj conjugate copy cumprod cumsum "
    "diagonal dot fill flatten max mean min nonzero partition prod ptp put ravel repeat reshape round searchsorted "
    "sort squeeze "
    "std sum swapaxes take trace transpose var view "
    "__add__ __radd__ __iadd__ __sub__ __rsub__ __isub__ __mul__ __rmul__ __imul__ __truediv__ __rtruediv__ "
    "__itruediv__ __floordiv__ __rfloordiv__ __ifloordiv__ __mod__ __rmod__ __imod__ __pow__ __rpow__ __ipow__ "
    "__matmul__ __rmatmul__ __and__ __rand__ __iand__ __or__ __ror__ __ior__ __xor__ __rxor__ __ixor__ __lshift__ "
    "__rlshift__ __ilshift__ __rshift__ __rrshift__ __irshift__ __neg__ __pos__ __abs__ __invert__ __eq__ __ne__ "
    "__lt__ __le__ __gt__ __ge__ __divmod__"
)
_REFUSED = "__float__ __int__ __bool__ __complex__ __index__ __iter__ __contains__ item tolist tobytes dump"
for _name in _METHODS.split():
    setattr(ForeignArray, _name, _method(_name))
for _name in _REFUSED.split():
    setattr(ForeignArray, _name, _refusal(_name))


class Foreign(Backend):
    """The backend of `ForeignArray`s: what a GPU's would be, without lowerings."""

    array_class = ForeignArray

    def __init__(self) -> None:
        super().__init__(DEVICE)

    def asarray(self, value: Any) -> Any:
        return value if type(value) is ForeignArray else ForeignArray(np.array(value))

    def empty(self, shape: Any, array_type: Any) -> Any:
        return ForeignArray(np.empty(shape, array_type))

    def zeros(self, shape: Any, array_type: Any) -> Any:
        return ForeignArray(np.zeros(shape, array_type))

    def from_host(self, array: Any) -> Any:
        return ForeignArray(array.copy("K"))

    def to_host(self, array: Any) -> Any:
        return array._hidden.copy("K")

    def window(self, memory: Any, shape: Any, array_type: Any, start: int, strides: Any) -> Any:
        return ForeignArray(np.ndarray(shape, array_type, memory._hidden, start, strides))

    def address(self, array: Any) -> int:
        return int(array._hidden.ctypes.data)


def install_foreign_device() -> Any:
    """Have the device, and give its backend; more than once is once."""
    return backend_of(DEVICE) if is_installed(DEVICE) else install(Foreign())
