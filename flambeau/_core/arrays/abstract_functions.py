"""What NumPy's functions return for abstract arrays: shapes by rules, types from NumPy itself, asked about nothing.

The type of a result is that of the same call on arrays without elements, so promotion is NumPy's own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .abstract import AbstractArray, NeedsData, check_fits, empty_meta, in_order, joined, reduced, shape_of
from .views import broadcast_shapes

_INDEX = np.dtype(np.intp)


# ----- ufuncs -------------------------------------------------------------------------------------------------------


def run_ufunc(ufunc: Any, method: str, inputs: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """A ufunc, or one of its methods, on arrays of which one at least is abstract."""
    out = kwargs.pop("out", None)
    casting = kwargs.get("casting", "same_kind")
    if out is not None:
        out = out if type(out) is tuple else (out,)
        if any(isinstance(each, np.ndarray) for each in out):
            raise NeedsData(f"{ufunc.__name__}: to be written into an array with data")
    results = _METHODS[method](ufunc, inputs, kwargs)
    if out is None or all(each is None for each in out):
        return results
    for target, result in zip(out, results if type(results) is tuple else (results,), strict=True):
        if target is None:
            continue
        check_fits(result, target.shape)
        if not np.can_cast(result.dtype, target.dtype, casting):
            raise np.exceptions.DTypePromotionError(
                f"{ufunc.__name__}: {result.dtype} cannot be cast to {target.dtype}"
            )
    return out if len(out) > 1 else out[0]


def _call(ufunc: Any, inputs: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    if ufunc is np.matmul:
        return matmul(*inputs, **kwargs)
    if ufunc.signature is not None:
        raise NeedsData(ufunc.__name__)
    kwargs.pop("where", None)
    shape = broadcast_shapes(*[shape_of(each) for each in inputs])
    order = kwargs.pop("order", "K")
    with np.errstate(all="ignore"):
        types = ufunc(*[_empty(each) for each in inputs], **kwargs)
    operands = [each for each in inputs if hasattr(each, "strides")]
    if ufunc.nout == 1:
        return in_order(shape, types.dtype, order, operands)
    return tuple([in_order(shape, each.dtype, order, operands) for each in types])


def _empty(value: Any) -> Any:
    """A stand-in for an operand that says its type and has no element; Python's numbers promote in their own way."""
    if type(value) in (int, float, complex, bool):
        return value
    return np.empty(0, value.dtype if hasattr(value, "dtype") else np.asarray(value).dtype)


def _reduce(ufunc: Any, inputs: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    array, axis, dtype, _, keepdims, *_ = (*inputs, *[_UNSET] * 5)[:6]
    axis = kwargs.get("axis", 0 if axis is _UNSET else axis)
    dtype = kwargs.get("dtype", None if dtype is _UNSET else dtype)
    keepdims = kwargs.get("keepdims", False if keepdims is _UNSET else keepdims)
    if ufunc.identity is None and not array.size and kwargs.get("initial", np._NoValue) is np._NoValue:
        result = reduced(array, axis, keepdims, array.dtype)
        if result.size:
            raise ValueError(f"zero-size array to reduction operation {ufunc.__name__} which has no identity")
    return reduced(array, axis, keepdims, ufunc.reduce(np.ones(1, array.dtype), dtype=dtype).dtype)


_UNSET: Any = object()


def _accumulate(ufunc: Any, inputs: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    array, _, dtype, *_ = (*inputs, _UNSET, _UNSET)
    dtype = kwargs.get("dtype", None if dtype is _UNSET else dtype)
    return in_order(array.shape, ufunc.accumulate(np.ones(1, array.dtype), dtype=dtype).dtype, "K", [array])


def _reduceat(ufunc: Any, inputs: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    array, indices = inputs[:2]
    axis = range(array.ndim)[kwargs.get("axis", inputs[2] if len(inputs) > 2 else 0)]
    kept = (*array.shape[:axis], len(indices), *array.shape[axis + 1 :])
    return empty_meta(kept, ufunc.reduce(np.ones(1, array.dtype), dtype=kwargs.get("dtype")).dtype)


def _outer(ufunc: Any, inputs: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    first, second = inputs
    return _call(ufunc, (first[(..., *[None] * len(shape_of(second)))], second), kwargs)


def _at(ufunc: Any, inputs: Sequence[Any], kwargs: dict[str, Any]) -> None:
    if not isinstance(inputs[0], AbstractArray):
        raise NeedsData(f"{ufunc.__name__}.at: to be written into an array with data")


_METHODS: dict[str, Callable[..., Any]] = {
    "__call__": _call,
    "reduce": _reduce,
    "accumulate": _accumulate,
    "reduceat": _reduceat,
    "outer": _outer,
    "at": _at,
}


def _common_type(*values: Any) -> np.dtype[Any]:
    return np.result_type(*[each if type(each) in (int, float, complex, bool) else dtype_of(each) for each in values])


def dtype_of(value: Any) -> Any:
    """The type of an array, or of what NumPy would make one of."""
    return value.dtype if hasattr(value, "dtype") else np.asarray(value).dtype


def matmul(first: Any, second: Any, **kwargs: Any) -> AbstractArray:
    """The product of matrices, vectors and stacks of matrices."""
    left, right = shape_of(first), shape_of(second)
    if not left or not right:
        raise ValueError("matmul: Input operand does not have enough dimensions")
    inner = right[-2] if len(right) > 1 else right[0]
    if left[-1] != inner:
        raise ValueError(f"matmul: Input operand 1 has a mismatch in its core dimension 0: {left} and {right}")
    dtype = (
        kwargs.get("dtype") or np.matmul(np.empty((0, 0), dtype_of(first)), np.empty((0, 0), dtype_of(second))).dtype
    )
    rows, columns = left[-2:-1], right[-1:] if len(right) > 1 else ()
    return empty_meta((*broadcast_shapes(left[:-2], right[:-2]), *rows, *columns), np.dtype(dtype))


# ----- functions ----------------------------------------------------------------------------------------------------

RULES: dict[Any, Callable[..., Any]] = {}
"""For NumPy's functions, what they return for abstract arrays."""


def _rule(*functions: Any) -> Callable[[Any], Any]:
    def decorate(rule: Any) -> Any:
        RULES.update(dict.fromkeys(functions, rule))
        return rule

    return decorate


def _shape(value: Any) -> tuple[int, ...]:
    return (int(value),) if isinstance(value, (int, np.integer)) else tuple(value)


@_rule(np.empty_like, np.zeros_like, np.ones_like)
def _like(a: Any, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None, **options: Any) -> Any:
    dtype = np.dtype(dtype or dtype_of(a))
    if shape is not None and _shape(shape) != shape_of(a):
        return empty_meta(_shape(shape), dtype)
    return in_order(shape_of(a), dtype, order, [a] if isinstance(a, AbstractArray) else [])


@_rule(np.full_like)
def _full_like(a: Any, fill_value: Any, *args: Any, **options: Any) -> Any:
    return _like(a, *args, **options)


@_rule(np.empty, np.zeros, np.ones)
def _new(shape: Any, dtype: Any = float, *args: Any, **options: Any) -> Any:
    return empty_meta(_shape(shape), np.dtype(dtype))


@_rule(np.full)
def _full(shape: Any, fill_value: Any, dtype: Any = None, **options: Any) -> Any:
    return empty_meta(_shape(shape), np.dtype(dtype or dtype_of(fill_value)))


@_rule(np.arange)
def _arange(start: Any, stop: Any = None, step: Any = None, dtype: Any = None, **options: Any) -> Any:
    start, stop = (0, start) if stop is None else (start, stop)
    step = 1 if step is None else step
    dtype = dtype or np.arange(0, 1, type(step)(1)).dtype if isinstance(start, int) else dtype or np.dtype(float)
    return empty_meta((max(math.ceil((stop - start) / step), 0),), np.dtype(dtype))


@_rule(np.eye)
def _eye(N: int, M: int | None = None, k: int = 0, dtype: Any = float, **options: Any) -> Any:
    return empty_meta((N, N if M is None else M), np.dtype(dtype))


@_rule(np.tri)
def _tri(N: int, M: int | None = None, k: int = 0, dtype: Any = float, **options: Any) -> Any:
    return empty_meta((N, N if M is None else M), np.dtype(dtype))


@_rule(np.array, np.asarray, np.asanyarray)
def _array(value: Any, dtype: Any = None, order: Any = "K", copy: Any = None, **options: Any) -> Any:
    if type(value) in (list, tuple) and any(isinstance(each, (list, tuple, AbstractArray)) for each in value):
        value = _stack([_array(each) for each in value])
    if isinstance(value, AbstractArray):
        return value.astype(dtype or value.dtype, order or "K", copy=bool(copy))
    host = np.asarray(value)
    return empty_meta(host.shape, np.dtype(dtype or host.dtype))


@_rule(np.ascontiguousarray)
def _contiguous(a: Any, dtype: Any = None, **options: Any) -> Any:
    a = a.reshape(1) if a.ndim == 0 else a
    return a.astype(dtype or a.dtype, "C", copy=False)


@_rule(np.asfortranarray)
def _fortran(a: Any, dtype: Any = None, **options: Any) -> Any:
    return a.astype(dtype or a.dtype, "F", copy=False)


@_rule(np.copy)
def _copy(a: Any, order: str = "K", subok: bool = False) -> Any:
    return a.copy(order)


@_rule(np.copyto)
def _copyto(dst: Any, src: Any, casting: str = "same_kind", where: Any = True) -> None:
    if not isinstance(dst, AbstractArray):
        raise NeedsData("copyto: into an array with data")
    check_fits(src, dst.shape)


@_rule(np.putmask, np.put, np.put_along_axis, np.fill_diagonal, np.place)
def _written(a: Any, *args: Any, **options: Any) -> None:
    if not isinstance(a, AbstractArray):
        raise NeedsData("to be written into an array with data")


@_rule(np.take_along_axis)
def _taken_along(arr: Any, indices: Any, axis: int | None = -1) -> Any:
    # NumPy's own code writes out a position for each row, however many there are.
    if axis is None:
        return empty_meta(shape_of(indices), dtype_of(arr))
    axis %= len(shape_of(indices))
    rows = [(*shape[:axis], 1, *shape[axis + 1 :]) for shape in (shape_of(arr), shape_of(indices))]
    shape = broadcast_shapes(*rows)
    return empty_meta((*shape[:axis], shape_of(indices)[axis], *shape[axis + 1 :]), dtype_of(arr))


@_rule(np.where)
def _where(condition: Any, x: Any = _UNSET, y: Any = _UNSET) -> Any:
    if x is _UNSET:
        raise NeedsData("where: the result's shape is in the elements")
    operands = (condition, x, y)
    shape = broadcast_shapes(*[shape_of(each) for each in operands])
    return in_order(shape, _common_type(x, y), "K", [each for each in operands if hasattr(each, "strides")])


@_rule(np.concatenate)
def _concatenate(arrays: Any, axis: Any = 0, out: Any = None, *, dtype: Any = None, **options: Any) -> Any:
    arrays = list(arrays)
    if axis is None:
        arrays, axis = [each.reshape(-1) for each in arrays], 0
    first = shape_of(arrays[0])
    axis = range(len(first))[axis]
    shapes = [shape_of(each) for each in arrays]
    for shape in shapes:
        if len(shape) != len(first) or any(
            a != b for i, (a, b) in enumerate(zip(shape, first, strict=True)) if i != axis
        ):
            raise ValueError(f"all the input array dimensions except for the concatenation axis must match: {shapes}")
    total = sum([shape[axis] for shape in shapes])
    if out is not None:
        return out
    dtype = np.dtype(dtype or np.result_type(*[dtype_of(each) for each in arrays]))
    return joined((*first[:axis], total, *first[axis + 1 :]), dtype, arrays)


@_rule(np.stack)
def _stack(arrays: Any, axis: int = 0, out: Any = None, *, dtype: Any = None, **options: Any) -> Any:
    arrays = list(arrays)
    axis = range(arrays[0].ndim + 1)[axis]
    index = (*[slice(None)] * axis, None)
    return _concatenate([each[index] for each in arrays], axis, out, dtype=dtype)


@_rule(np.expand_dims)
def _expand_dims(a: Any, axis: Any) -> Any:
    given = axis if type(axis) in (tuple, list) else (axis,)
    ndim = a.ndim + len(given)
    new = {range(ndim)[each] for each in given}
    return a[tuple([None if dim in new else slice(None) for dim in range(ndim)])]


@_rule(np.broadcast_to)
def _broadcast_to(array: Any, shape: Any, subok: bool = False) -> Any:
    shape = _shape(shape)
    missing = len(shape) - array.ndim
    if missing < 0 or broadcast_shapes(array.shape, shape) != shape:
        raise ValueError(f"cannot broadcast an array of shape {array.shape} to {shape}")
    own = zip(array.shape, array.strides, shape[missing:], strict=True)
    return array._seen((shape, (*[0] * missing, *[0 if size != full else step for size, step, full in own]), 0))


@_rule(np.broadcast_arrays)
def _broadcast_arrays(*arrays: Any, subok: bool = False) -> Any:
    shape = broadcast_shapes(*[shape_of(each) for each in arrays])
    return tuple([np.broadcast_to(each, shape) for each in arrays])


@_rule(np.lib.stride_tricks.as_strided)
def _as_strided(x: Any, shape: Any = None, strides: Any = None, **options: Any) -> Any:
    return x._seen((x.shape if shape is None else _shape(shape), x.strides if strides is None else tuple(strides), 0))


@_rule(np.dot)
def _dot(a: Any, b: Any, out: Any = None) -> Any:
    left, right = shape_of(a), shape_of(b)
    if out is not None:
        return out
    dtype = _product_type(a, b)
    if not left or not right:
        return empty_meta(left or right, dtype)
    inner = right[-2] if len(right) > 1 else right[0]
    if left[-1] != inner:
        raise ValueError(f"shapes {left} and {right} not aligned")
    return empty_meta((*left[:-1], *right[:-2], *(right[-1:] if len(right) > 1 else ())), dtype)


def _product_type(*arrays: Any) -> np.dtype[Any]:
    return np.dtype(np.result_type(*[dtype_of(each) for each in arrays]))


@_rule(np.vdot, np.inner)
def _inner(a: Any, b: Any) -> Any:
    return empty_meta((*shape_of(a)[:-1], *shape_of(b)[:-1]), _product_type(a, b))


@_rule(np.outer)
def _outer_product(a: Any, b: Any, out: Any = None) -> Any:
    return empty_meta((math.prod(shape_of(a)), math.prod(shape_of(b))), _product_type(a, b)) if out is None else out


@_rule(np.tensordot)
def _tensordot(a: Any, b: Any, axes: Any = 2) -> Any:
    if isinstance(axes, int):
        axes = list(range(a.ndim - axes, a.ndim)), list(range(axes))
    first, second = [
        {range(each.ndim)[dim] for dim in np.atleast_1d(dims)} for each, dims in zip((a, b), axes, strict=True)
    ]
    left = [size for dim, size in enumerate(a.shape) if dim not in first]
    return empty_meta((*left, *[size for dim, size in enumerate(b.shape) if dim not in second]), _product_type(a, b))


@_rule(np.einsum)
def _einsum(equation: str, *operands: Any, out: Any = None, **options: Any) -> Any:
    if not isinstance(equation, str) or "->" not in equation or "." in equation:
        raise NeedsData("einsum: an equation that does not say its output")
    inputs, output = equation.replace(" ", "").split("->")
    sizes: dict[str, int] = {}
    for letters, each in zip(inputs.split(","), operands, strict=True):
        for letter, size in zip(letters, shape_of(each), strict=True):
            sizes[letter] = max(sizes.get(letter, 1), size) if size != 1 else sizes.get(letter, 1)
    return empty_meta([sizes[letter] for letter in output], _product_type(*operands)) if out is None else out


@_rule(np.sort, np.partition)
def _sorted(a: Any, *args: Any, **options: Any) -> Any:
    return in_order(a.shape, a.dtype, "K", [a])


@_rule(np.pad)
def _pad(array: Any, pad_width: Any, mode: Any = "constant", **options: Any) -> Any:
    widths = np.broadcast_to(np.asarray(pad_width), (array.ndim, 2)).tolist()
    shape = [size + before + after for size, (before, after) in zip(array.shape, widths, strict=True)]
    return in_order(tuple(shape), array.dtype, "A", [array])


@_rule(np.roll)
def _roll(a: Any, shift: Any, axis: Any = None) -> Any:
    return in_order(a.shape, a.dtype, "K", [a])


@_rule(np.tile)
def _tile(A: Any, reps: Any) -> Any:
    times = (reps,) if isinstance(reps, int) else tuple(reps)
    ndim = max(len(times), A.ndim)
    shape, times = (*[1] * (ndim - A.ndim), *A.shape), (*[1] * (ndim - len(times)), *times)
    return empty_meta([size * each for size, each in zip(shape, times, strict=True)], A.dtype)


@_rule(np.tril, np.triu)
def _triangle(m: Any, k: int = 0) -> Any:
    return in_order(m.shape, m.dtype, "K", [m, empty_meta(m.shape[-2:], np.dtype(bool))])


@_rule(np.diff)
def _diff(a: Any, n: int = 1, axis: int = -1, prepend: Any = np._NoValue, append: Any = np._NoValue) -> Any:
    parts = [each for each in (prepend, a, append) if each is not np._NoValue]
    whole = a if len(parts) == 1 else _concatenate(parts, axis)
    before = (slice(None),) * range(a.ndim)[axis]
    for _ in range(n):
        later, earlier = whole[(*before, slice(1, None))], whole[(*before, slice(None, -1))]
        whole = later != earlier if whole.dtype == bool else later - earlier
    return whole


@_rule(np.diag)
def _diag(v: Any, k: int = 0) -> Any:
    if v.ndim == 1:
        return empty_meta((v.shape[0] + abs(k),) * 2, v.dtype)
    return v.diagonal(k).copy()


@_rule(np.diagonal)
def _diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    return a.diagonal(offset, axis1, axis2)


@_rule(np.atleast_1d)
def _atleast_1d(*arrays: Any) -> Any:
    found = [each.reshape(1) if not each.ndim else each for each in arrays]
    return found[0] if len(found) == 1 else tuple(found)


@_rule(np.ravel_multi_index)
def _ravel_multi_index(multi_index: Any, dims: Any, mode: Any = "raise", order: str = "C") -> Any:
    return empty_meta(broadcast_shapes(*[shape_of(each) for each in multi_index]), _INDEX)


@_rule(np.ravel)
def _ravel(a: Any, order: str = "C") -> Any:
    return a.ravel(order)


@_rule(np.trace)
def _trace(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None, out: Any = None) -> Any:
    return a.trace(offset, axis1, axis2, dtype, out)


@_rule(np.searchsorted)
def _searchsorted(a: Any, v: Any, side: str = "left", sorter: Any = None) -> Any:
    return empty_meta(shape_of(v), _INDEX)


@_rule(np.isin)
def _isin(element: Any, test_elements: Any, **options: Any) -> Any:
    return empty_meta(shape_of(element), np.dtype(bool))


@_rule(np.bincount)
def _bincount(x: Any, weights: Any = None, minlength: int = 0) -> Any:
    raise NeedsData("bincount: the result's shape is in the elements")


@_rule(np.isneginf, np.isposinf)
def _truths(x: Any, out: Any = None) -> Any:
    return in_order(x.shape, np.dtype(bool), "K", [x])


@_rule(np.angle)
def _angle(z: Any, deg: bool = False) -> Any:
    return in_order(z.shape, np.angle(np.ones(1, z.dtype)).dtype, "K", [z])


@_rule(np.sinc, np.nan_to_num, np.real_if_close)
def _same(x: Any, *args: Any, **options: Any) -> Any:
    return in_order(x.shape, x.dtype, "K", [x])


@_rule(np.result_type)
def _result_type(*values: Any) -> Any:
    return np.result_type(*[each.dtype if isinstance(each, AbstractArray) else each for each in values])


@_rule(np.can_cast)
def _can_cast(from_: Any, to: Any, casting: Any = "safe") -> bool:
    return np.can_cast(from_.dtype if isinstance(from_, AbstractArray) else from_, to, casting)


@_rule(np.may_share_memory, np.shares_memory)
def _share(a: Any, b: Any, max_work: Any = None) -> bool:
    return False


@_rule(np.median, np.nanmedian)
def _median(a: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False, keepdims: bool = False) -> Any:
    return reduced(a, axis, keepdims, np.median(np.ones(1, a.dtype)).dtype)


@_rule(np.count_nonzero)
def _count_nonzero(a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
    return reduced(a, axis, keepdims, _INDEX)


# ----- Fourier transforms and linear algebra ------------------------------------------------------------------------


def _transform(function: Any, last: Callable[[int], int] | None) -> None:
    def one(a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None) -> Any:
        return _transformed(a, [n], [axis], function, last)

    RULES[function] = one


def _transformed(a: Any, sizes: Any, axes: Any, function: Any, last: Any) -> Any:
    shape = list(a.shape)
    for size, axis in zip(sizes, axes, strict=True):
        if size is not None:
            shape[axis] = int(size)
    if last is not None:
        given = sizes[-1]
        shape[axes[-1]] = last(shape[axes[-1]]) if given is None or last is _half else int(given)
    return in_order(tuple(shape), function(np.ones((2,) * max(len(axes), 1), a.dtype)).dtype, "K", [a])


def _half(size: int) -> int:
    return size // 2 + 1


def _twice(size: int) -> int:
    return 2 * (size - 1)


def _transforms(function: Any, last: Callable[[int], int] | None) -> None:
    def many(a: Any, s: Any = None, axes: Any = None, norm: Any = None, out: Any = None) -> Any:
        if axes is None:
            axes = tuple(range(a.ndim) if s is None else range(-len(s), 0))
        return _transformed(a, [None] * len(axes) if s is None else list(s), list(axes), function, last)

    RULES[function] = many


for _function, _last in {
    np.fft.fft: None,
    np.fft.ifft: None,
    np.fft.rfft: _half,
    np.fft.irfft: _twice,
    np.fft.hfft: _twice,
    np.fft.ihfft: _half,
}.items():
    _transform(_function, _last)
for _function, _last in {np.fft.fftn: None, np.fft.ifftn: None, np.fft.rfftn: _half, np.fft.irfftn: _twice}.items():
    _transforms(_function, _last)


def _linalg_type(a: Any, *others: Any) -> np.dtype[Any]:
    """The type in which NumPy's linear algebra computes."""
    return np.dtype(np.linalg.solve(*[np.eye(1, dtype=_product_type(a, *others))] * 2).dtype)


def _square(a: Any) -> None:
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise np.linalg.LinAlgError("Last 2 dimensions of the array must be square")


def _real(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return np.dtype(np.ones(1, dtype).real.dtype)


@_rule(np.linalg.inv, np.linalg.cholesky)
def _square_to_square(a: Any, **options: Any) -> Any:
    _square(a)
    return empty_meta(a.shape, _linalg_type(a))


@_rule(np.linalg.solve)
def _solve(a: Any, b: Any) -> Any:
    _square(a)
    if b.ndim == 1:
        return empty_meta((*a.shape[:-2], *b.shape), _linalg_type(a, b))
    return empty_meta((*broadcast_shapes(a.shape[:-2], b.shape[:-2]), *b.shape[-2:]), _linalg_type(a, b))


@_rule(np.linalg.det)
def _det(a: Any) -> Any:
    _square(a)
    return empty_meta(a.shape[:-2], _linalg_type(a))


@_rule(np.linalg.slogdet)
def _slogdet(a: Any) -> Any:
    _square(a)
    dtype = _linalg_type(a)
    return empty_meta(a.shape[:-2], dtype), empty_meta(a.shape[:-2], _real(dtype))


@_rule(np.linalg.eigh)
def _eigh(a: Any, UPLO: str = "L") -> Any:
    _square(a)
    dtype = _linalg_type(a)
    return empty_meta(a.shape[:-1], _real(dtype)), empty_meta(a.shape, dtype)


@_rule(np.linalg.eigvalsh)
def _eigvalsh(a: Any, UPLO: str = "L") -> Any:
    return _eigh(a)[0]


@_rule(np.linalg.eig)
def _eig(a: Any) -> Any:
    _square(a)
    dtype = np.result_type(_linalg_type(a), np.complex64)
    return empty_meta(a.shape[:-1], dtype), empty_meta(a.shape, dtype)


@_rule(np.linalg.eigvals)
def _eigvals(a: Any) -> Any:
    return _eig(a)[0]


@_rule(np.linalg.svd)
def _svd(a: Any, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False) -> Any:
    *batch, rows, columns = a.shape
    least, dtype = min(rows, columns), _linalg_type(a)
    values = empty_meta((*batch, least), _real(dtype))
    if not compute_uv:
        return values
    wide = (rows, columns) if full_matrices else (least, least)
    return empty_meta((*batch, rows, wide[0]), dtype), values, empty_meta((*batch, wide[1], columns), dtype)


@_rule(np.linalg.qr)
def _qr(a: Any, mode: str = "reduced") -> Any:
    *batch, rows, columns = a.shape
    least, dtype = min(rows, columns), _linalg_type(a)
    if mode == "r":
        return empty_meta((*batch, least, columns), dtype)
    if mode == "raw":
        return empty_meta((*batch, columns, rows), dtype), empty_meta((*batch, least), dtype)
    middle = rows if mode == "complete" else least
    return empty_meta((*batch, rows, middle), dtype), empty_meta((*batch, middle, columns), dtype)


@_rule(np.linalg.norm)
def _norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    return reduced(x, axis, keepdims, np.linalg.norm(np.ones(1, x.dtype)).dtype)


@_rule(np.linalg.matrix_power)
def _matrix_power(a: Any, n: int) -> Any:
    _square(a)
    return empty_meta(a.shape, a.dtype)
