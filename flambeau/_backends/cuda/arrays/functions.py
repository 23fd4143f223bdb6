"""NumPy's protocols for device arrays: ufuncs, functions, operators and methods."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...._core.process.determinism import DETERMINISM
from ..indexing.row_sums import add_in_order
from ..indexing.scatter_reduce import combine_at
from ..linalg.products import product
from ..reductions.reduce import position, reduced
from ..reductions.scan import accumulated, fill_diagonal, last_of_running, partitioned, segmented
from .array import DeviceArray, dense_like, empty, from_host, view_of, zeros
from .assignment import assign, astype, column_major, copied, copyto
from .host import by_host, by_library_or_host, geometry
from .reproducible import is_inexact
from .subscripts import getitem, setitem
from .ufuncs import call, selection

Handler = Callable[..., Any]

# ----- ufuncs ---------------------------------------------------------------------------------------------------------


def array_ufunc(self: DeviceArray, ufunc: Any, method: str, *inputs: Any, out: Any = None, **kwargs: Any) -> Any:
    """NumPy's protocol for ufuncs."""
    if out is None and not kwargs and method == "__call__" and ufunc.nout == 1:
        return call(ufunc, inputs)
    target = None if out is None else out[0]
    if target is not None and type(target) is not DeviceArray:
        raise TypeError(f"{ufunc.__name__}: out= is an array of the host, the operands are on cuda")
    if method == "__call__":
        kwargs.pop("casting", None)
        kwargs.pop("order", None)
        if (where := kwargs.pop("where", True)) is not True:
            result = call(ufunc, inputs, None, kwargs.pop("dtype", None))
            if target is None:
                return result
            copyto(target, result, where=where)
            return target
        if ufunc.nout == 1 and not kwargs.keys() - {"dtype"}:
            return call(ufunc, inputs, target, kwargs.get("dtype"))
        if target is not None:
            kwargs["out"] = target
        return by_library_or_host(ufunc, inputs, kwargs)
    if method == "outer":
        first, second = inputs
        return call(ufunc, (first.reshape(first.shape + (1,) * second.ndim), second))
    if target is not None:
        result = array_ufunc(self, ufunc, method, *inputs, **kwargs)
        assign(target, result)
        return target
    if method == "reduce":
        if kwargs.get("keepdims") is np._NoValue:
            kwargs.pop("keepdims")
        kwargs.setdefault("axis", inputs[1] if len(inputs) > 1 else 0)
        kwargs = {key: value for key, value in kwargs.items() if value is not None or key == "axis"}
        if "where" in kwargs:
            return by_host(ufunc, inputs[:1], kwargs, method)
        if "initial" in kwargs and not inputs[0].size:
            nothing = np.empty(inputs[0].shape, inputs[0].dtype)  # so that there is nothing to wait for
            return from_host(np.asarray(ufunc.reduce(nothing, **kwargs)))
        if "initial" in kwargs:
            first = kwargs.pop("initial")
            return call(ufunc, (array_ufunc(self, ufunc, method, *inputs, **kwargs), first))
        how = (ufunc.__name__, inputs[0], kwargs["axis"], _dtype(kwargs.get("dtype")), kwargs.get("keepdims", False))
        found = reduced(*how)
        if found is None:
            found = last_of_running(*how)
        return by_library_or_host(ufunc, inputs[:1], kwargs, method) if found is None else found
    if method == "accumulate":
        kwargs.setdefault("axis", inputs[1] if len(inputs) > 1 else 0)
        plain = not kwargs.keys() - {"axis", "dtype"} and kwargs.get("dtype") in (None, inputs[0].dtype)
        found = accumulated(ufunc.__name__, inputs[0], kwargs["axis"]) if plain else None
        return by_library_or_host(ufunc, inputs[:1], kwargs, method) if found is None else found
    if method == "reduceat":
        found = segmented(ufunc.__name__, *inputs, **kwargs) if not kwargs.keys() - {"axis"} else None
        return by_library_or_host(ufunc, inputs, kwargs, method) if found is None else found
    if method == "at" and len(inputs) == 3:
        if DETERMINISM.asked and ufunc is np.add and add_in_order(*inputs):
            return None
        rounds = DETERMINISM.asked and ufunc is np.multiply and is_inexact(inputs[0])
        if not rounds and combine_at(ufunc.__name__, *inputs):
            return None
    return by_library_or_host(ufunc, inputs, kwargs, method)


def _dtype(wanted: Any) -> Any:
    return None if wanted is None else np.dtype(wanted)


def _position(function: Any) -> Handler:
    def run(a: Any, axis: Any = None, out: Any = None, keepdims: Any = False, **options: Any) -> Any:
        keepdims = keepdims is not np._NoValue and keepdims
        found = position(function.__name__, a, axis, keepdims) if out is None else None
        if found is not None:
            return found
        options = {"keepdims": keepdims} if out is None else {"keepdims": keepdims, "out": out}
        return by_library_or_host(function, (a, axis), options)

    return run


# ----- functions ------------------------------------------------------------------------------------------------------

_VIEWS = frozenset(
    [np.transpose, np.swapaxes, np.moveaxis, np.rollaxis, np.expand_dims, np.squeeze, np.broadcast_to, np.diagonal,
     np.flip, np.fliplr, np.flipud, np.split, np.array_split, np.hsplit, np.vsplit, np.dsplit, np.broadcast_arrays,
     np.atleast_1d, np.atleast_2d, np.atleast_3d, np.rot90, np.lib.stride_tricks.as_strided,
     np.lib.stride_tricks.sliding_window_view]
)  # fmt: skip
_ABOUT_SHAPES = frozenset(
    [np.ndim, np.size, np.shape, np.can_cast, np.result_type, np.min_scalar_type, np.common_type, np.iscomplexobj,
     np.isrealobj, np.may_share_memory, np.shares_memory]
)  # fmt: skip


def array_function(self: DeviceArray, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
    """NumPy's protocol for everything that is no ufunc."""
    handler = _HANDLERS.get(function)
    if handler is not None:
        return handler(*args, **kwargs)
    if function in _VIEWS:
        return geometry(function, args, kwargs)
    if function in _ABOUT_SHAPES:
        return function(*_forms(args), **_forms(kwargs))
    return by_library_or_host(function, args, kwargs)


def _forms(value: Any) -> Any:
    if type(value) is DeviceArray:
        return value.form
    if type(value) in (list, tuple):
        return type(value)([_forms(each) for each in value])
    if type(value) is dict:
        return {key: _forms(each) for key, each in value.items()}
    return value


def _kind_of(operand: Any) -> Any:
    if type(operand) is DeviceArray or isinstance(operand, (np.generic, np.ndarray)):
        return operand.dtype
    return np.dtype(bool) if type(operand) is bool else operand


def where(condition: Any, *choice: Any) -> Any:
    """`np.where` for arrays of the device."""
    if not choice:
        return by_library_or_host(np.nonzero, (condition,), {})
    first, second = choice
    if type(condition) is not DeviceArray:
        condition = from_host(np.asarray(condition))
    kinds = [_kind_of(each) for each in choice]
    result = np.result_type(*kinds)
    kinds = [each if isinstance(each, np.dtype) else result for each in kinds]
    for each in choice:
        if isinstance(each, np.ndarray) and each.ndim:
            raise TypeError(f"where: an array of the host, of shape {each.shape}, meets one on cuda")
    compiled = selection(condition.dtype, kinds[0], kinds[1], result)
    if compiled is None:
        return by_host(np.where, (condition, first, second), {})
    return compiled.many(condition, first, second)[0]


def clip(a: Any, a_min: Any = None, a_max: Any = None, out: Any = None, **options: Any) -> Any:
    """`np.clip` for arrays of the device."""
    a_min, a_max = options.pop("min", a_min), options.pop("max", a_max)
    result = a
    if a_min is not None:
        result = np.maximum(result, a_min)
    if a_max is not None:
        result = np.minimum(result, a_max)
    if out is None:
        return result.copy() if result is a else result
    assign(out, result)
    return out


def _like(a: Any, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None, **options: Any) -> Any:
    form = _forms(a)
    kind = form.dtype if dtype is None else np.dtype(dtype)
    if shape is not None:
        return empty(shape, kind)
    strides = None
    if order == "F":
        strides = tuple([step // form.itemsize * kind.itemsize for step in column_major(form)])
    elif order != "C" and not form.flags.c_contiguous:
        strides = tuple([step // form.itemsize * kind.itemsize for step in dense_like(form)])
    return empty(form.shape, kind, strides)


def _full_like(a: Any, fill_value: Any, dtype: Any = None, order: str = "K", **options: Any) -> Any:
    made = _like(a, dtype, order, **options)
    assign(made, fill_value)
    return made


def _filled_like(value: int) -> Handler:
    return lambda a, dtype=None, order="K", **options: _full_like(a, value, dtype, order, **options)


def _shape(shape: Any) -> Any:
    return shape if isinstance(shape, tuple) else (int(shape),) if not hasattr(shape, "__iter__") else tuple(shape)


def _empty(shape: Any, dtype: Any = float, order: str = "C", **options: Any) -> Any:
    return empty(_shape(shape), np.dtype(dtype))


def _zeros(shape: Any, dtype: Any = float, order: str = "C", **options: Any) -> Any:
    return zeros(_shape(shape), np.dtype(dtype))


def _full(shape: Any, fill_value: Any, dtype: Any = None, order: str = "C", **options: Any) -> Any:
    kind = np.asarray(fill_value).dtype if dtype is None and type(fill_value) is not DeviceArray else dtype
    made = empty(_shape(shape), np.dtype(fill_value.dtype if kind is None else kind))
    assign(made, fill_value)
    return made


def _ones(shape: Any, dtype: Any = float, order: str = "C", **options: Any) -> Any:
    return _full(shape, 1, float if dtype is None else dtype)


def _made_on_host(function: Any) -> Handler:
    """Something small and made of numbers: it is made on the host."""
    return lambda *args, **kwargs: from_host(function(*args, **kwargs))


def _array(value: Any, dtype: Any = None, *, copy: Any = True, order: str = "K", **options: Any) -> Any:
    if type(value) is DeviceArray:
        kind = value.dtype if dtype is None else np.dtype(dtype)
        return astype(value, kind, "K" if order is None else order, bool(copy))
    if isinstance(value, (list, tuple)) and any(type(each) in (DeviceArray, list, tuple) for each in value):
        return _stack([_array(each, dtype) for each in value])
    return from_host(np.array(value, dtype))


def _concatenate(arrays: Any, axis: Any = 0, out: Any = None, **options: Any) -> Any:
    """Side by side, each written where it belongs."""
    arrays = [each if type(each) is DeviceArray else from_host(each) for each in arrays]
    if axis is None:
        arrays, axis = [each.ravel() for each in arrays], 0
    first = arrays[0].form
    axis = axis + first.ndim if axis < 0 else axis
    kind = options.get("dtype") or np.result_type(*[each.dtype for each in arrays])
    shape = list(first.shape)
    shape[axis] = sum([each.form.shape[axis] for each in arrays])
    for each in arrays[1:]:
        own = list(each.form.shape)
        if len(own) != first.ndim or own[:axis] + own[axis + 1 :] != shape[:axis] + shape[axis + 1 :]:
            np.concatenate([one.form for one in arrays], axis)  # raises what NumPy says of it
    made = empty(tuple(shape), np.dtype(kind)) if out is None else out
    start, before = 0, (slice(None),) * axis
    for each in arrays:
        stop = start + each.form.shape[axis]
        assign(view_of(made, made.form[(*before, slice(start, stop))]), each)
        start = stop
    return made


def _stack(arrays: Any, axis: int = 0, out: Any = None, **options: Any) -> Any:
    return _concatenate([np.expand_dims(each, axis) for each in arrays], axis, out, **options)


def _dot(a: Any, b: Any, out: Any = None) -> Any:
    if type(a) is DeviceArray and type(b) is DeviceArray and a.ndim and 0 < b.ndim <= 2 and out is None:
        found = product(a, b)
        if found is not None:
            return found
    return by_library_or_host(np.dot, (a, b), {} if out is None else {"out": out})


def _reshape(a: Any, shape: Any = None, order: str = "C", *, newshape: Any = None, copy: bool | None = None) -> Any:
    return a.reshape(newshape if shape is None else shape, order=order, copy=copy)


def _reduction(ufunc: Any) -> Handler:
    def run(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False, **options: Any) -> Any:
        options = {key: value for key, value in options.items() if value is not np._NoValue}
        keepdims = False if keepdims is np._NoValue else keepdims
        targets = {} if out is None else {"out": (out,)}
        return array_ufunc(a, ufunc, "reduce", a, axis=axis, dtype=dtype, keepdims=keepdims, **targets, **options)

    return run


def _extreme(ufunc: Any) -> Handler:
    reduce = _reduction(ufunc)

    def run(a: Any, axis: Any = None, out: Any = None, keepdims: Any = False, **options: Any) -> Any:
        return reduce(a, axis, None, out, keepdims, **options)

    return run


_HANDLERS: dict[Any, Handler] = {
    np.where: where,
    np.copyto: copyto,
    np.clip: clip,
    np.empty_like: _like,
    np.full_like: _full_like,
    np.zeros_like: _filled_like(0),
    np.ones_like: _filled_like(1),
    np.empty: _empty,
    np.zeros: _zeros,
    np.ones: _ones,
    np.full: _full,
    np.arange: _made_on_host(np.arange),
    np.eye: _made_on_host(np.eye),
    np.tri: _made_on_host(np.tri),
    np.identity: _made_on_host(np.identity),
    np.array: _array,
    np.asarray: lambda value, dtype=None, **options: _array(value, dtype, copy=False),
    np.asanyarray: lambda value, dtype=None, **options: _array(value, dtype, copy=False),
    np.ascontiguousarray: lambda value, dtype=None, **options: _array(value, dtype, copy=False, order="C"),
    np.copy: lambda a, order="K", **options: a.copy(order),
    np.dot: _dot,
    np.concatenate: _concatenate,
    np.fill_diagonal: fill_diagonal,
    np.partition: partitioned,
    np.stack: _stack,
    np.reshape: _reshape,
    np.ravel: lambda a, order="C": a.ravel(order),
    np.real: lambda value: value.real,
    np.imag: lambda value: value.imag,
    np.sum: _reduction(np.add),
    np.prod: _reduction(np.multiply),
    np.all: _extreme(np.logical_and),
    np.any: _extreme(np.logical_or),
    np.max: _extreme(np.maximum),
    np.min: _extreme(np.minimum),
    np.amax: _extreme(np.maximum),
    np.amin: _extreme(np.minimum),
    np.argmax: _position(np.argmax),
    np.argmin: _position(np.argmin),
}


# ----- operators and methods ------------------------------------------------------------------------------------------


def _operator(ufunc: Any) -> tuple[Handler, Handler, Handler]:
    def forward(self: DeviceArray, other: Any) -> Any:
        return call(ufunc, (self, other))

    def reflected(self: DeviceArray, other: Any) -> Any:
        return call(ufunc, (other, self))

    def inplace(self: DeviceArray, other: Any) -> Any:
        return call(ufunc, (self, other), self)

    return forward, reflected, inplace


_OPERATORS = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "truediv": np.divide, "floordiv": np.floor_divide,
    "mod": np.remainder, "pow": np.power, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
    "lshift": np.left_shift, "rshift": np.right_shift, "matmul": np.matmul,
}  # fmt: skip
_COMPARISONS = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
}  # fmt: skip
_METHODS = (
    "all any argmax argmin argsort cumprod cumsum max mean min nonzero prod repeat searchsorted std sum take trace var "
    "dot clip round argpartition compress choose"
)
_UNARY = {"neg": np.negative, "pos": np.positive, "abs": np.absolute, "invert": np.invert}


def _method(function: Any) -> Handler:
    def method(self: DeviceArray, *args: Any, **kwargs: Any) -> Any:
        return array_function(self, function, (), (self, *args), kwargs)

    method.__name__ = function.__name__
    return method


def _fill_method(self: DeviceArray, value: Any) -> None:
    assign(self, value)


def _no_conversion(self: DeviceArray, *args: Any) -> Any:
    raise TypeError("implicit conversion of an array on cuda to the host: it would have to wait for the device")


def _iterate(self: DeviceArray) -> Any:
    """The parts along the first dimension, as views: nothing is read."""
    return (getitem(self, number) for number in range(len(self)))


def _part(read: Handler) -> property:
    """The real or the imaginary part as something that can be assigned to."""

    def write(self: DeviceArray, value: Any) -> None:
        assign(read(self), value)

    return property(read, write)


def _complete() -> None:
    """Give the class what takes more than geometry."""
    for name, ufunc in _OPERATORS.items():
        forward, reflected, inplace = _operator(ufunc)
        setattr(DeviceArray, f"__{name}__", forward)
        setattr(DeviceArray, f"__r{name}__", reflected)
        setattr(DeviceArray, f"__i{name}__", inplace)
    for name, ufunc in _COMPARISONS.items():
        setattr(DeviceArray, f"__{name}__", _operator(ufunc)[0])
    for name, ufunc in _UNARY.items():
        setattr(DeviceArray, f"__{name}__", lambda self, ufunc=ufunc: call(ufunc, (self,)))
    for name in _METHODS.split():
        setattr(DeviceArray, name, _method(getattr(np, name)))
    for name in ("float", "int", "bool", "complex", "index", "contains", "array"):
        setattr(DeviceArray, f"__{name}__", _no_conversion)
    methods: dict[str, Any] = {
        "__iter__": _iterate, "copy": copied, "__copy__": copied, "astype": astype, "fill": _fill_method,
        "__getitem__": getitem, "__setitem__": setitem, "__array_ufunc__": array_ufunc,
        "__array_function__": array_function, "conj": lambda self: call(np.conjugate, (self,)),
        "conjugate": lambda self: call(np.conjugate, (self,)),
    }  # fmt: skip
    for name, method in methods.items():
        setattr(DeviceArray, name, method)
    for name in ("real", "imag"):
        setattr(DeviceArray, name, _part(getattr(DeviceArray, name).fget))


_complete()
