"""`StandIn`: what a kernel is given in place of an array while its calls of NumPy are written down.

It has the shape, dtype, strides and flags of an array, and no elements. Views of it are views; ufuncs, reductions and
products of it are written to the schedule, with a new array for the result, as NumPy would make it. So the calls that a
schedule holds are those that the kernel makes anyway, with the same bits. A kernel that asks for an element, or for
anything that is not known here, is `Untraceable`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from ..._backends.arrays import dot, matmul
from ..._core.arrays.abstract import AbstractArray, in_order, meta_array
from ..._core.backend import undispatched
from ..._core.names.same_as import same_as
from .schedule import Launch, Place, Schedule, Untraceable

COPY, SELECT = "copy", "select"
"""Steps that are no ufuncs: elements as they are, in the type of the result; one of two, by a condition."""

_NUMBERS = (bool, int, float, np.generic)


class StandIn(NDArrayOperatorsMixin):
    """An array without elements."""

    __slots__ = ("place", "schedule")

    def __init__(self, schedule: Schedule, place: Place) -> None:
        self.schedule = schedule
        self.place = place

    # ----- what it looks like -----------------------------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, ...]:
        sizes: tuple[int, ...] = self.place.header.shape
        return sizes

    dtype: np.dtype[Any] = same_as("place.header.dtype")

    strides: tuple[int, ...] = same_as("place.header.strides")

    flags: Any = same_as("place.header.flags")

    ndim: int = same_as("place.header.ndim")

    size: int = same_as("place.header.size")

    itemsize: int = same_as("place.header.itemsize")

    nbytes: int = same_as("place.header.nbytes")

    def __len__(self) -> int:
        return len(self.place.header)

    def __getattr__(self, name: str) -> Any:
        raise Untraceable(f"the attribute {name}")

    def __bool__(self) -> bool:
        raise Untraceable("a decision about elements")

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise Untraceable("the elements themselves")

    # ----- views ------------------------------------------------------------------------------------------------

    def _window(self, header: AbstractArray) -> StandIn:
        """A view of this array's header as a view of this array."""
        distance = header.start - self.place.header.start
        return StandIn(self.schedule, Place(self.place.buffer, self.place.offset + distance, header))

    def __getitem__(self, index: Any) -> StandIn:
        parts = index if type(index) is tuple else (index,)
        if not all(each is None or each is Ellipsis or type(each) in (int, slice) for each in parts):
            raise Untraceable("an index that is an array")
        if self.ndim == len([each for each in parts if type(each) is int]):
            raise Untraceable("an element")
        return self._window(self.place.header[index])

    def __setitem__(self, index: Any, value: Any) -> None:
        target = self[index]
        if type(value) is not StandIn or value.shape != target.shape or value.dtype != target.dtype:
            raise Untraceable("elements that are set to something else")
        if self.place.buffer.given is not None or self.place.buffer.content is not None:
            raise Untraceable("elements of what was there before")
        places = [self.place, value.place]
        self.schedule.call(_copyto, target.place, value.place, reads=places, writes=[target.place])

    def __iter__(self) -> Iterator[StandIn]:
        return iter([self[position] for position in range(len(self))])

    @property
    def T(self) -> StandIn:
        return self._window(self.place.header.T)

    def transpose(self, *axes: Any) -> StandIn:
        return self._window(self.place.header.transpose(*axes))

    def swapaxes(self, one: int, other: int) -> StandIn:
        return self._window(self.place.header.swapaxes(one, other))

    def reshape(self, *shape: Any) -> StandIn:
        sizes = shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
        known = math.prod([each for each in sizes if each != -1])
        wanted = tuple([self.size // max(known, 1) if each == -1 else each for each in sizes])
        if math.prod(wanted) != self.size or not self.size:
            raise Untraceable("a shape that does not fit")
        try:
            return self._window(self.place.header.reshape(wanted, copy=False))
        except ValueError:
            return self.copy().reshape(wanted)

    # ----- copies and products ------------------------------------------------------------------------------------

    def copy(self, order: str = "C") -> StandIn:
        if order != "C" and not self.flags.c_contiguous:
            raise Untraceable("a copy in another order")
        return copied(self, self.schedule.new(self.shape, self.dtype))

    def astype(self, dtype: Any, copy: bool = True) -> StandIn:
        if not copy and self.dtype == dtype:
            return self
        if not self.flags.c_contiguous:
            raise Untraceable("a conversion of an array with gaps")
        return copied(self, self.schedule.new(self.shape, dtype))

    def fill(self, value: Any) -> None:
        self.schedule.fill(self.place, value)

    def dot(self, other: Any, out: Any = None) -> StandIn:
        return _dot(self, other, out)

    def sum(self, axis: Any = None) -> StandIn:
        found: StandIn = np.add.reduce(self, axis)
        return found

    # ----- NumPy's protocols --------------------------------------------------------------------------------------

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        target = options.pop("out", (None,))[0]
        if method == "reduce":
            return _reduced(self.schedule, ufunc, target, *inputs, **options)
        if method != "__call__" or ufunc.nout != 1:
            raise Untraceable(f"{ufunc.__name__}.{method}")
        if ufunc is np.matmul:
            if options:
                raise Untraceable(f"matmul with {sorted(options)}")
            return _matmul(self.schedule, inputs[0], inputs[1], target)
        if ufunc.signature is not None:
            raise Untraceable(ufunc.__name__)
        return _elementwise(self.schedule, ufunc, inputs, target, **options)

    def __array_function__(self, function: Any, types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if function is np.empty or function is np.zeros:  # beside this array, by `like=`
            sizes = (args[0],) if type(args[0]) is int else args[0]
            made = StandIn(self.schedule, self.schedule.new(sizes, *args[1:]))
            if function is np.zeros:
                made.fill(0)
            return made
        handler = _FUNCTIONS.get(function)
        if handler is None:
            raise Untraceable(function.__name__)
        return handler(*args, **kwargs)


def _place_of(operand: Any) -> Any:
    """An operand as a call has it: numbers and constants as they are."""
    if type(operand) is StandIn:
        return operand.place
    if type(operand) is np.ndarray or isinstance(operand, _NUMBERS):
        return operand
    raise Untraceable(f"an operand of class {type(operand).__name__}")


def _type_of(operand: Any) -> Any:
    """What NumPy's rules of promotion look at."""
    return type(operand) if type(operand) in (bool, int, float) else operand.dtype


def _places(operands: Sequence[Any]) -> list[Place]:
    return [each for each in operands if type(each) is Place]


# ----- ufuncs -------------------------------------------------------------------------------------------------------


def _elementwise(
    schedule: Schedule, ufunc: np.ufunc, inputs: tuple[Any, ...], target: Any, dtype: Any = None
) -> StandIn:
    operands = tuple([_place_of(each) for each in inputs])
    if dtype is not None and any(each.dtype != dtype for each in inputs if hasattr(each, "dtype")):
        raise Untraceable("a ufunc that converts")
    given = tuple([np.dtype(bool) if type(each) is bool else _type_of(each) for each in inputs])
    try:
        result = ufunc.resolve_dtypes((*given, None))[-1]
    except TypeError as error:
        raise Untraceable(str(error)) from None
    shape = np.broadcast_shapes(*[each.shape for each in inputs if hasattr(each, "shape")])
    if target is None:
        place = schedule.new(shape, result, _strides(operands, result))
    else:
        place = target.place
        if place.header.shape != shape or place.header.dtype != result:
            raise Untraceable("a result of another type than its target")
    calls = ((ufunc, operands, {"out": place}),)
    schedule.launches.append(Launch(calls, _places(operands), [place], ufunc.__name__, operands))
    return StandIn(schedule, place)


def _strides(operands: Sequence[Any], dtype: np.dtype[Any]) -> tuple[int, ...] | None:
    """The strides that a ufunc gives its result; None: C order."""
    headers = [each.header if type(each) is Place else meta_array(np.asarray(each)) for each in operands]
    if all(each.flags.c_contiguous for each in headers):
        return None
    return in_order(np.broadcast_shapes(*[each.shape for each in headers]), dtype, "K", headers).strides


def _reduced(
    schedule: Schedule,
    ufunc: np.ufunc,
    target: Any,
    array: Any,
    axis: Any = 0,
    dtype: Any = None,
    out: Any = None,
    keepdims: bool = False,
) -> StandIn:
    if target is not None or out is not None or not array.flags.c_contiguous or not array.size:
        raise Untraceable("a reduction of an array with gaps")
    result = array.dtype if dtype is None else np.dtype(dtype)
    if result.kind != "f" or result.itemsize < 4 or array.dtype != result:
        raise Untraceable("a reduction that converts")
    dims = range(array.ndim) if axis is None else (axis,) if type(axis) is int else axis
    gone = {each % array.ndim for each in dims}
    shape = [1 if dim in gone else size for dim, size in enumerate(array.shape) if keepdims or dim not in gone]
    place = schedule.new(shape, result)
    schedule.call(ufunc.reduce, array.place, axis, dtype, place, keepdims, reads=[array.place], writes=[place])
    return StandIn(schedule, place)


# ----- products -----------------------------------------------------------------------------------------------------


def _dot(left: Any, right: Any, out: Any = None) -> StandIn:
    if type(left) is not StandIn or type(right) is not StandIn or left.ndim != 2 or right.ndim != 2:
        raise Untraceable("a product of other than matrices")
    run = matmul if _has_lines(left) and _has_lines(right) else dot
    return _product(left.schedule, run, left, right, (left.shape[0], right.shape[1]), out)


def _has_lines(matrix: StandIn) -> bool:
    """Whether the elements of the rows or of the columns of a matrix are neighbours, and none is repeated."""
    return matrix.dtype.itemsize in matrix.strides and 0 not in matrix.strides


def _matmul(schedule: Schedule, left: Any, right: Any, target: Any) -> StandIn:
    if type(left) is not StandIn or type(right) is not StandIn or left.ndim < 2 or right.ndim < 2:
        raise Untraceable("a product of other than matrices")
    batch = np.broadcast_shapes(left.shape[:-2], right.shape[:-2])
    return _product(schedule, matmul, left, right, (*batch, left.shape[-2], right.shape[-1]), target)


def _product(
    schedule: Schedule, run: Any, left: StandIn, right: StandIn, shape: tuple[int, ...], target: Any
) -> StandIn:
    if left.dtype != right.dtype or left.dtype.char not in "fd" or left.shape[-1] != right.shape[-2]:
        raise Untraceable("a product of other numbers than floats")
    place = schedule.new(shape, left.dtype) if target is None else target.place
    if place.header.shape != shape or place.header.dtype != left.dtype or not place.header.flags.c_contiguous:
        raise Untraceable("a product into an array that does not fit")
    schedule.call(run, left.place, right.place, place, reads=[left.place, right.place], writes=[place])
    return StandIn(schedule, place)


# ----- functions ----------------------------------------------------------------------------------------------------

_copyto = undispatched(np.copyto)
_concatenate = undispatched(np.concatenate)


def copied(source: StandIn, place: Place) -> StandIn:
    """A new array with the elements of another."""
    calls = ((_copyto, (place, source.place), None),)
    source.schedule.launches.append(Launch(calls, [source.place], [place], COPY, (source.place,)))
    return StandIn(source.schedule, place)


def _copy_into(target: Any, source: Any, where: Any = None) -> None:
    if where is not None:
        _copy_where(target, source, where)
        return
    if type(target) is not StandIn or type(source) is not StandIn or target.shape != source.shape:
        raise Untraceable("a copy of something else")
    copied(source, target.place)


def _copy_where(target: Any, number: Any, condition: Any) -> None:
    """Write down that elements of an array of the schedule are one number where a condition holds."""
    if type(target) is not StandIn or type(condition) is not StandIn or target.place.buffer.given is not None:
        raise Untraceable("a copy into something else")
    if type(number) is not np.ndarray or number.ndim or number.dtype != target.dtype:
        raise Untraceable("a copy of other than a number")
    where = (target.place, number, "same_kind", condition.place)
    places = [target.place, condition.place]
    target.schedule.launches.append(Launch(((_copyto, where, None),), places, [target.place]))


def _like(model: Any, dtype: Any = None) -> StandIn:
    header = np.empty_like(model.place.header, dtype)
    return StandIn(model.schedule, model.schedule.new(header.shape, header.dtype, header.strides))


def _filled_like(value: int) -> Callable[..., StandIn]:
    def filled(model: Any, dtype: Any = None) -> StandIn:
        made = _like(model, dtype)
        made.schedule.fill(made.place, value)
        return made

    return filled


def _joined(arrays: Sequence[Any], axis: int = 0, out: Any = None, casting: str = "") -> StandIn:
    first = arrays[0]
    if not all(type(each) is StandIn and each.dtype == first.dtype for each in arrays):
        raise Untraceable("arrays of several types")
    if out is None and not all(each.flags.c_contiguous for each in arrays):
        raise Untraceable("arrays with gaps, whose order the result has")
    shape = list(first.shape)
    shape[axis] = sum([each.shape[axis] for each in arrays])
    places = tuple([each.place for each in arrays])
    made = first.schedule.new(shape, first.dtype) if out is None else out.place
    if made.header.shape != tuple(shape) or made.header.dtype != first.dtype:
        raise Untraceable("an array that the others do not fit into")
    first.schedule.call(_concatenate, places, axis, made, reads=places, writes=[made])
    return StandIn(first.schedule, made)


def _broadcast(array: Any, shape: Any, subok: bool = False) -> StandIn:
    found: StandIn = array._window(np.broadcast_to(array.place.header, shape))
    return found


def _chosen(condition: Any, chosen: Any, other: Any) -> StandIn:
    """`np.where`, as two copies: the second one where the condition holds."""
    if type(condition) is not StandIn:
        raise Untraceable("a condition that is known")
    schedule = condition.schedule
    operands = [_place_of(each) for each in (chosen, other)]
    result = np.result_type(*[_type_of(each) for each in (chosen, other)])
    if any(getattr(each, "shape", ()) not in ((), condition.shape) for each in (chosen, other)):
        raise Untraceable("a choice among arrays of other shapes")
    headers = [condition.place, *_places(operands)]
    if not all(each.header.flags.c_contiguous for each in headers):
        raise Untraceable("a choice among arrays with gaps")
    made = schedule.new(condition.shape, result)
    where = (made, operands[0], "same_kind", condition.place)
    calls = ((_copyto, (made, operands[1]), None), (_copyto, where, None))
    schedule.launches.append(Launch(calls, headers, [made], SELECT, (condition.place, *operands)))
    return StandIn(schedule, made)


_FUNCTIONS: dict[Any, Callable[..., Any]] = {
    np.dot: _dot,
    np.copyto: _copy_into,
    np.empty_like: _like,
    np.zeros_like: _filled_like(0),
    np.ones_like: _filled_like(1),
    np.broadcast_to: _broadcast,
    np.concatenate: _joined,
    np.where: _chosen,
}
