"""Shapes by name: flatten, movedim, broadcast_to and their like, `T` and `H`, and shape changes in place."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

from ..._core.arrays.quick import joint_shape
from ..._core.modes import THREAD
from ..._core.size import Size
from ..._core.subclasses import of_same_class
from ..._core.tensor import Tensor
from ..._dispatch.arguments.autocast_rules import in_full
from ..._dispatch.arguments.broadcast import expandable, sum_to_shape
from ..._dispatch.axes import ELEMENTS
from ..._dispatch.changes.history import end_change, leave_graph
from ..._dispatch.changes.inplace import check_writable
from ..._dispatch.dispatch import Array, Primitive, primitive
from ..._dispatch.gradients.variants import variant
from ..._dispatch.public.registry import export, export_method, public
from . import view as views
from .conjugate import conj
from .parts import _slice, slice_bounds
from .strided import _as_strided, strided_arguments
from .view import _expand, _permute, as_shape, distinct_dims, infer_size, reshaped, wrap_dim


@public(function=False)
def view_as(input: Tensor, other: Tensor) -> Tensor:
    """`input` in the shape of `other`; shares memory."""
    return input.view(other._array.shape)


@public(function=False)
def reshape_as(input: Tensor, other: Tensor) -> Tensor:
    """`input` in the shape of `other`: a view where the strides allow it."""
    return input.reshape(other._array.shape)


@public(function=False)
def expand_as(input: Tensor, other: Tensor) -> Tensor:
    """`input` stretched to the shape of `other`."""
    return input.expand(other._array.shape)


@public(function=False)
def sum_to_size(input: Tensor, *size: Any) -> Tensor:
    """`input` summed over the dimensions in which a tensor of this size would be stretched to the shape of `input`."""
    if not size:
        raise TypeError('sum_to_size() missing 1 required positional arguments: "size"')
    wanted, given = as_shape(size), input._array.shape
    if not expandable(wanted, given):
        raise RuntimeError(f"size {{{list(wanted)}}} is not expandable to size {{{list(given)}}}.")
    wide = in_full(input) if wanted != given else input
    return sum_to_shape(wide, wanted) if wanted else wide.sum()


@public("ops.aten.slice", function=False, method=False, name="slice")
def _aten_slice(input: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1) -> Tensor:
    """`input[start:end:step]` along `dim`; shares memory."""
    if not input._array.ndim:
        raise IndexError("slice() cannot be applied to a 0-dim tensor.")
    dim = wrap_dim(dim, input._array.ndim)
    bounds = slice_bounds(input._array.shape[dim], start, end, step)
    return _slice(input, dim, *bounds, step)


@public()
def flatten(input: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """The dimensions from `start_dim` to `end_dim` as one: a view where the strides allow it."""
    shape = input._array.shape
    start, end = wrap_dim(start_dim, len(shape)), wrap_dim(end_dim, len(shape))
    if start > end:
        raise RuntimeError(
            f"flatten() has invalid args: start_dim cannot come after end_dim (start_dim={start_dim}, "
            f"end_dim={end_dim})"
        )
    if not shape:
        return reshaped(input, (1,))
    if start == end:
        return input
    merged = 1
    for size in shape[start : end + 1]:
        merged *= size
    return reshaped(input, (*shape[:start], merged, *shape[end + 1 :]))


@public()
def unflatten(input: Tensor, dim: int, sizes: Any) -> Tensor:
    """One dimension as several, whose sizes multiply up to its own; shares memory."""
    dim = wrap_dim(dim, input._array.ndim)
    shape, wanted = input._array.shape, as_shape((sizes,))
    if not wanted:
        raise RuntimeError("unflatten: sizes must be non-empty")
    if not shape:
        raise RuntimeError("unflatten: dimension specified as 0 but tensor has no dimensions")
    try:
        wanted = infer_size(wanted, shape[dim])
    except RuntimeError as error:
        raise RuntimeError(
            f"unflatten: Provided sizes {list(wanted)} don't multiply up to the size of dim {dim} ({shape[dim]}) in "
            f"the input tensor of shape {list(shape)}: {error}"
        ) from None
    return input.view((*shape[:dim], *wanted, *shape[dim + 1 :]))


@public()
def ravel(input: Tensor) -> Tensor:
    """All elements in one dimension: a view of a contiguous tensor, else a copy."""
    contiguous = input if input._array.flags.c_contiguous else views._contiguous_clone(input)
    return reshaped(contiguous, (input._array.size,))


@public("moveaxis")
def movedim(input: Tensor, source: Any, destination: Any) -> Tensor:
    """`input` with the dimensions `source` moved to `destination`, the others in their order; shares memory."""
    if isinstance(source, int) != isinstance(destination, int):
        raise TypeError(
            "movedim() received an invalid combination of arguments: source and destination must both be int or both "
            f"be tuple of ints, got {type(source).__name__} and {type(destination).__name__}"
        )
    if isinstance(source, int):
        source, destination = (source,), (destination,)
    if len(source) != len(destination):
        raise RuntimeError(
            "movedim: Invalid source or destination dims: source "
            f"({list(source)} dims) should contain the same number of dims as destination ({list(destination)} dims)"
        )
    ndim = input._array.ndim
    sources = _moved_dims(source, ndim, "source")
    destinations = _moved_dims(destination, ndim, "destination")
    if not ndim:
        return _alias(input)
    order = [dim for dim in range(ndim) if dim not in sources]
    for place, dim in sorted(zip(destinations, sources, strict=True)):
        order.insert(place, dim)
    return input.permute(order)


def _moved_dims(dims: Sequence[int], ndim: int, word: str) -> list[int]:
    wrapped = [wrap_dim(each, ndim) for each in dims]
    if len(set(wrapped)) != len(wrapped):
        raise RuntimeError(f"movedim: repeated dim in `{word}` ({list(dims)})")
    return wrapped


@primitive("AliasBackward0", axes=ELEMENTS, view=True, self=lambda grad: grad)
def _alias(self: Array) -> Array:
    return self.view()


@primitive(None, axes=ELEMENTS, view=True)
def _detach(self: Array) -> Array:
    return self


@public()
def detach(input: Tensor) -> Tensor:
    """A tensor on this memory outside the graph; in-place changes of one are seen, and counted, by the other."""
    kind, counter = input._kind, input._counter
    if counter is not None and kind in THREAD.modes.direct:  # no kernel runs in either way
        return Tensor._from_parts((input._array, kind, counter))
    result: Tensor = _detach(input)
    result._view = None
    if result._counter is None:
        result._let_changes_count()
    return result


@public()
def detach_(input: Tensor) -> Tensor:
    """Take the tensor out of the graph: it becomes a leaf that needs no gradient."""
    if input._view is not None:
        raise RuntimeError(
            "Can't detach views in-place. Use detach() instead: the view would still be a part of its base, which "
            "stays in the graph."
        )
    leave_graph(input)
    return input


# ----- broadcasting -------------------------------------------------------------------------------------------------


@public(method=False)
def broadcast_to(input: Tensor, size: Any) -> Tensor:
    """`input` stretched to `size` by the rules of broadcasting; shares memory."""
    return input.expand(size)


@public(function=False, name="broadcast_to")
def _method_broadcast_to(input: Tensor, *size: Any) -> Tensor:
    """`input` stretched to `size` by the rules of broadcasting; shares memory."""
    return broadcast_to(input, as_shape(size))


def broadcast_shapes(*shapes: Any) -> Size:
    """The shape to which all `shapes` broadcast."""
    for shape in shapes:
        if shape is not None and not isinstance(shape, (int, Sequence)):
            raise RuntimeError(
                f"Input shapes should be of type ints, a tuple of ints, or a list of ints, got {type(shape).__name__}"
            )
    full = [(shape,) if isinstance(shape, int) else tuple(shape) for shape in shapes if shape is not None]
    result = [1] * max(map(len, full), default=0)
    for number, shape in enumerate(full):
        for position in range(-1, -1 - len(shape), -1):
            if shape[position] < 0:
                raise ValueError(f"Attempting to broadcast a dimension with negative length! (shape {shape})")
            if shape[position] in (1, result[position]):
                continue
            if result[position] != 1:
                raise RuntimeError(
                    f"Attempting to broadcast a dimension of length {shape[position]} at {position}! Mismatching "
                    f"argument at index {number} had {shape}; but expected shape should be broadcastable to {result}"
                )
            result[position] = shape[position]
    return Size(result)


export(broadcast_shapes, "broadcast_shapes")


def common_shape(tensors: Sequence[Tensor]) -> tuple[int, ...]:
    """The shape to which all `tensors` broadcast, or the error of elementwise ops."""
    shape: tuple[int, ...] = ()
    for tensor in tensors:
        shape = joined(shape, tensor._array.shape)
    return shape


def joined(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    """The shape to which two shapes broadcast, or the error of elementwise ops."""
    try:
        return joint_shape(a, b)
    except ValueError:
        raise _mismatch(a, b) from None


def _mismatch(a: tuple[int, ...], b: tuple[int, ...]) -> RuntimeError:
    ndim = max(len(a), len(b))
    for position in range(-1, -ndim - 1, -1):
        sizes = [shape[position] if len(shape) >= -position else 1 for shape in (a, b)]
        if sizes[0] != sizes[1] and 1 not in sizes:
            return RuntimeError(
                f"The size of tensor a ({sizes[0]}) must match the size of tensor b ({sizes[1]}) at non-singleton "
                f"dimension {ndim + position}: shapes {list(a)} and {list(b)}"
            )
    return RuntimeError(f"shapes {list(a)} and {list(b)} do not broadcast")


def tensor_list(tensors: tuple[Any, ...]) -> tuple[Any, ...]:
    """The tensors in `*tensors` arguments, given one by one or as one sequence."""
    if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)):
        tensors = tuple(tensors[0])
    for position, each in enumerate(tensors):
        if not isinstance(each, Tensor):
            raise TypeError(f"expected Tensor as element {position} in argument 0, but got {type(each).__name__}")
    return tensors


@public(method=False)
def broadcast_tensors(*tensors: Tensor) -> tuple[Tensor, ...]:
    """All `tensors` stretched to their common shape."""
    given = tensor_list(tensors)
    shape = common_shape(given)
    return tuple([each if each._array.shape == shape else _expand(each, shape) for each in given])


def _grow_1d(tensor: Tensor) -> Tensor:
    return tensor if tensor._array.ndim else reshaped(tensor, (1,))


def _grow_2d(tensor: Tensor) -> Tensor:
    ndim = tensor._array.ndim
    if ndim == 0:
        return reshaped(tensor, (1, 1))
    return tensor.unsqueeze(0) if ndim == 1 else tensor


def _grow_3d(tensor: Tensor) -> Tensor:
    ndim = tensor._array.ndim
    if ndim == 0:
        return reshaped(tensor, (1, 1, 1))
    if ndim == 1:
        return tensor.unsqueeze(0).unsqueeze(-1)
    return tensor.unsqueeze(-1) if ndim == 2 else tensor


def _grown(tensors: tuple[Any, ...], grow: Callable[[Tensor], Tensor]) -> Any:
    if len(tensors) == 1 and isinstance(tensors[0], Tensor):
        return grow(tensors[0])
    return tuple([grow(each) for each in tensor_list(tensors)])


@public(method=False)
def atleast_1d(*tensors: Tensor) -> Any:
    """Each tensor with at least one dimension."""
    return _grown(tensors, _grow_1d)


@public(method=False)
def atleast_2d(*tensors: Tensor) -> Any:
    """Each tensor with at least two dimensions; a new first one where there is one."""
    return _grown(tensors, _grow_2d)


@public(method=False)
def atleast_3d(*tensors: Tensor) -> Any:
    """Each tensor with at least three dimensions; a new last one where there are two."""
    return _grown(tensors, _grow_3d)


# ----- transposes as attributes -------------------------------------------------------------------------------------


def _reversed(tensor: Tensor) -> Tensor:
    """The tensor with its dimensions in reverse order; meant for matrices."""
    ndim = tensor._array.ndim
    if ndim == 0:
        _warn("Tensor.T is deprecated on 0-D tensors. This function is the identity in these cases.")
    elif ndim != 2:
        _warn(
            "The use of `x.T` on tensors of dimension other than 2 to reverse their shape is deprecated and it will "
            "throw an error in a future release. Write x.mT to transpose matrices, or x.permute(...) to reverse "
            "dimensions."
        )
    return of_same_class(tensor, _permute(tensor, tuple(range(ndim - 1, -1, -1))))


def _warn(message: str, depth: int = 1) -> None:
    """Warn the caller `depth` frames above the function that calls this."""
    warnings.warn(message, UserWarning, stacklevel=2 + depth)


def _matrix_transpose(tensor: Tensor) -> Tensor:
    """The transpose of a matrix or of each matrix in a batch."""
    ndim = tensor._array.ndim
    if ndim < 2:
        if ndim:
            raise RuntimeError(f"tensor.mT is only supported on matrices or batches of matrices. Got {ndim}-D tensor.")
        _warn("Tensor.mT is deprecated on 0-D tensors. This function is the identity in these cases.")
        return tensor
    return tensor.transpose(ndim - 2, ndim - 1)


def _adjoint(tensor: Tensor, word: str, depth: int) -> Tensor:
    ndim = tensor._array.ndim
    if ndim == 0:
        _warn(f"{word} is deprecated on 0-D tensors. Consider using x.conj().", depth)
        return of_same_class(tensor, conj(tensor))
    if ndim == 1:
        raise RuntimeError(f"{word} is only supported on matrices or batches of matrices. Got {ndim}-D tensor.")
    return of_same_class(tensor, conj(tensor.transpose(ndim - 2, ndim - 1)))


@public()
def adjoint(input: Tensor) -> Tensor:
    """The conjugate transpose of a matrix or of each matrix in a batch."""
    return _adjoint(input, "tensor.adjoint()", 3)


def _batched_conjugate_transpose(tensor: Tensor) -> Tensor:
    """The conjugate transpose of a matrix or of each matrix in a batch."""
    return _adjoint(tensor, "tensor.mH", 2)


def _conjugate_transpose(tensor: Tensor) -> Tensor:
    """The conjugate transpose of a matrix."""
    ndim = tensor._array.ndim
    if ndim not in (0, 2):
        advice = " For batches of matrices, consider using tensor.mH" if ndim > 2 else ""
        raise RuntimeError(f"tensor.H is only supported on matrices (2-D tensors). Got {ndim}-D tensor.{advice}")
    return _adjoint(tensor, "Tensor.H", 2)


for _name, _getter in (
    ("T", _reversed),
    ("mT", _matrix_transpose),
    ("H", _conjugate_transpose),
    ("mH", _batched_conjugate_transpose),
):
    export_method(property(_getter, doc=_getter.__doc__), _name)


# ----- in place: the tensor itself gets another shape or other strides ----------------------------------------------


def reshape_in_place(target: Tensor, op: Primitive[..., Tensor], *args: Any) -> Tensor:
    """Give the tensor object itself the geometry and the history that `op` gives a view of it."""
    check_writable(target)
    if target._is_wrapper:
        target._become(op(target, *args))
        return target
    source = Tensor._from_parts(target._parts())
    edge = target._edge() if THREAD.modes.grad else None
    if edge is not None:
        source._requires_grad = True
        source._grad_fn = target._grad_fn
        source._output_nr = target._output_nr
    if target._extra is not None and target._extra.tangents:
        source._get_extra().tangents = target._extra.tangents
    result = op(source, *args)
    target._will_change_shape()
    target._array = result._array
    end_change(target)
    if result._extra is not None and result._extra.tangents:
        target._get_extra().tangents = result._extra.tangents
    if result._grad_fn is not None:
        target._requires_grad = True
        target._grad_fn = result._grad_fn
        target._output_nr = result._output_nr
        if target._view is not None and target._counter is not None:
            target._view.version = target._counter[0]
    return target


_t_in_place = variant(views._t, "t_", "TBackward1")
_transpose_in_place = variant(views._transpose, "transpose_", "TransposeBackward1")
_squeeze_all_in_place = variant(views._squeeze_all, "squeeze_all_", "SqueezeBackward3")
_squeeze_dim_in_place = variant(views._squeeze_dim, "squeeze_dim_", "SqueezeBackward4")
_squeeze_dims_in_place = variant(views._squeeze_dims, "squeeze_dims_", "SqueezeBackward5")
_unsqueeze_in_place = variant(views._unsqueeze, "unsqueeze_", "UnsqueezeBackward1")
_as_strided_in_place = variant(_as_strided, "as_strided_", "AsStridedBackward1")


@public(function=False)
def t_(input: Tensor) -> Tensor:
    """Transpose the matrix `input` itself."""
    if input._array.ndim > 2:
        raise RuntimeError(f"t_() expects a tensor with <= 2 dimensions, but self is {input._array.ndim}D")
    return reshape_in_place(input, _t_in_place)


@public(function=False)
def transpose_(input: Tensor, dim0: int, dim1: int) -> Tensor:
    """Exchange two dimensions of `input` itself."""
    ndim = input._array.ndim
    return reshape_in_place(input, _transpose_in_place, wrap_dim(dim0, ndim), wrap_dim(dim1, ndim))


@public(function=False)
def swapdims_(input: Tensor, dim0: int, dim1: int) -> Tensor:
    """Exchange two dimensions of `input` itself."""
    return transpose_(input, dim0, dim1)


@public(function=False)
def swapaxes_(input: Tensor, axis0: int, axis1: int) -> Tensor:
    """Exchange two dimensions of `input` itself."""
    return transpose_(input, axis0, axis1)


@public(function=False)
def squeeze_(input: Tensor, dim: Any = None, *more: int) -> Tensor:
    """Drop dimensions of size 1 of `input` itself."""
    if more:
        dim = (dim, *more)
    ndim = input._array.ndim
    if dim is None:
        return reshape_in_place(input, _squeeze_all_in_place)
    if isinstance(dim, (tuple, list)):
        return reshape_in_place(input, _squeeze_dims_in_place, distinct_dims(dim, ndim))
    return reshape_in_place(input, _squeeze_dim_in_place, wrap_dim(dim, ndim))


@public(function=False)
def unsqueeze_(input: Tensor, dim: int) -> Tensor:
    """Give `input` itself a new dimension of size 1."""
    return reshape_in_place(input, _unsqueeze_in_place, wrap_dim(dim, input._array.ndim + 1))


@public()
def as_strided_(input: Tensor, size: Any, stride: Any, storage_offset: int | None = None) -> Tensor:
    """Give `input` itself another size, other strides and another offset on its storage."""
    return reshape_in_place(input, _as_strided_in_place, *strided_arguments(input, size, stride, storage_offset))
