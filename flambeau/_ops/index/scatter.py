"""scatter: values written, added or reduced into a tensor at given positions along a dimension."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from ..._backends import arrays
from ..._core.backend import is_array
from ..._core.process.caller import warn_user_once
from ..._core.tensor import Tensor
from ..._dispatch.arguments.autocast_rules import WIDEST, on
from ..._dispatch.arguments.scalar import fitting
from ..._dispatch.dispatch import Array
from ..._dispatch.public.registry import public
from ..shape.view import wrap_dim
from .copy_then_write import change, publish_change, writing
from .gather import check_index_tensor, check_positions, positions_along
from .reductions_at import UFUNCS, gradient_of_source, gradient_of_target, neutral, reduce_at


def _check_sizes(input: Tensor, dim: int, index: Tensor, src: Tensor | None) -> None:
    given, shape = index._array.shape, input._array.shape
    if (given == shape and (src is None or src._array.shape == shape)) or index._array.size == 0:
        return
    given, shape = given or (1,), shape or (1,)
    fits = all(each == dim or size <= shape[each] for each, size in enumerate(given))
    if src is None:
        if not fits:
            raise RuntimeError(
                f"Expected index {list(given)} to be no larger than self {list(shape)} apart from dimension {dim}"
            )
        return
    values = src._array.shape or (1,)
    if len(values) != len(given):
        missing = src._array.ndim
        if fits and 0 < missing < len(given) and all(size <= has for size, has in zip(given, values, strict=False)):
            wrap_dim(missing, missing)  # PyTorch compares sizes one by one, and looks for one that is not there
        raise RuntimeError(
            f"Index tensor must have the same number of dimensions as src tensor: {len(given)} and {src._array.ndim}"
        )
    if not fits or any(size > has for size, has in zip(given, values, strict=True)):
        raise RuntimeError(
            f"Expected index {list(given)} to be no larger than self {list(shape)} apart from dimension {dim} and to "
            f"be no larger size than src {list(values)}"
        )


def _checked(name: str, input: Tensor, dim: int, index: Tensor, src: Tensor | None) -> int:
    dim = wrap_dim(dim, input._array.ndim)
    check_index_tensor("scatter", input, index)
    if src is not None:
        if not isinstance(src, Tensor):
            raise TypeError(f"{name}(): argument 'src' must be Tensor, not {type(src).__name__}")
        if src._kind.dtype is not input._kind.dtype:
            raise RuntimeError(
                f"scatter(): Expected self.dtype to be equal to src.dtype, but they are {input.dtype} and {src.dtype}"
            )
    _check_sizes(input, dim, index, src)
    return dim


def _placed(target: Any, dim: int, index: Any, values: Any) -> tuple[Any, Any, Any]:
    """Target, NumPy key and values of a scatter; `values` may be a number."""
    if target.ndim == 0:
        target = target.reshape(1)
    if index.ndim == 0:
        index = index.reshape(1)
    check_positions(index, target.shape[dim], dim)
    if is_array(values):
        values = values.reshape(values.shape or (1,))[tuple([slice(size) for size in index.shape])]
    return target, positions_along(index, dim), values


@writing(
    "ScatterBackward0",
    self=lambda grad, dim, index: grad.scatter(dim, index, 0),
    src=lambda grad, dim, index: grad.gather(dim, index),
)
def _scatter_src(self: Array, dim: int, index: Array, src: Array) -> None:
    if index.size and not arrays.scattered(self, dim, index, src, "write"):
        target, key, values = _placed(self, dim, index, src)
        target[key] = values


@writing("ScatterBackward1", self=lambda grad, dim, index: grad.scatter(dim, index, 0))
def _scatter_value(self: Array, dim: int, index: Array, value: Any) -> None:
    if index.size:
        target, key, _ = _placed(self, dim, index, value)
        target[key] = value


def _no_derivative(grad: Tensor) -> NoReturn:
    raise RuntimeError(
        "derivative for aten::scatter with reduce= is not implemented: use scatter_add or scatter_reduce, "
        "which have one"
    )


@writing("NotImplemented", self=_no_derivative, src=_no_derivative)
def _scatter_src_reduce(self: Array, dim: int, index: Array, src: Array, reduce: str) -> None:
    if index.size:
        reduce_at(*_placed(self, dim, index, src), "sum" if reduce == "add" else "prod")


@writing("NotImplemented", self=_no_derivative)
def _scatter_value_reduce(self: Array, dim: int, index: Array, value: Any, reduce: str) -> None:
    if index.size:
        reduce_at(*_placed(self, dim, index, value), "sum" if reduce == "add" else "prod")


@writing("ScatterAddBackward0", self=lambda grad: grad, src=lambda grad, dim, index: grad.gather(dim, index))
def _scatter_add(self: Array, dim: int, index: Array, src: Array) -> None:
    if index.size and not arrays.scattered(self, dim, index, src, "add"):
        reduce_at(*_placed(self, dim, index, src), "sum")


def _scatter_call(
    input: Tensor, dim: int, index: Tensor, src: Any = None, value: Any = None, reduce: str | None = None
) -> Any:
    """Which primitive a call of `scatter` means, and its arguments."""
    if reduce is not None and isinstance(src, Tensor):
        warn_user_once(
            "The reduce argument of torch.scatter with Tensor src is deprecated and will be removed in a future "
            "PyTorch release: use torch.scatter_reduce, which has more reductions."
        )
    if reduce is not None and reduce not in ("add", "multiply"):
        raise RuntimeError(f"reduce argument must be either add or multiply, got {reduce!r}.")
    number = src if src is not None else value
    if number is None:
        raise TypeError(
            "scatter() received an invalid combination of arguments: it needs src, a Tensor, or value, a number"
        )
    if isinstance(number, Tensor):
        dim = _checked("scatter", input, dim, index, number)
        return (
            (_scatter_src, dim, index, number) if reduce is None else (_scatter_src_reduce, dim, index, number, reduce)
        )
    dim = _checked("scatter", input, dim, index, None)
    number = fitting(number, input._kind.dtype)
    return (
        (_scatter_value, dim, index, number) if reduce is None else (_scatter_value_reduce, dim, index, number, reduce)
    )


@public(out=True)
def scatter(
    input: Tensor, dim: int, index: Tensor, src: Any = None, *, value: Any = None, reduce: str | None = None
) -> Tensor:
    """A copy of `input` with `src` (a tensor or a number) written at the positions `index` along `dim`."""
    op, *rest = _scatter_call(input, dim, index, src, value, reduce)
    scattered: Tensor = op(input, *rest)
    return scattered


@public()
def scatter_(
    input: Tensor, dim: int, index: Tensor, src: Any = None, *, value: Any = None, reduce: str | None = None
) -> Tensor:
    """In-place form of `scatter`."""
    op, *rest = _scatter_call(input, dim, index, src, value, reduce)
    return change(op, "scatter", input, *rest)


def _scatter_add_arguments(input: Tensor, dim: int, index: Tensor, src: Tensor) -> tuple[Any, ...]:
    return _checked("scatter_add", input, dim, index, src), index, src


@public(out=True, autocast=on(cuda=WIDEST))
def scatter_add(input: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    """A copy of `input` with `src` added at the positions `index` along `dim`."""
    return _scatter_add(input, *_scatter_add_arguments(input, dim, index, src))


publish_change(_scatter_add, "scatter_add", _scatter_add_arguments)


# ----- reductions ---------------------------------------------------------------------------------------------------


def _ways(dim: int, index: Tensor, reduce: str, include_self: bool) -> dict[str, Any]:
    return {
        "pick": lambda tensor: tensor.gather(dim, index),
        "add": lambda tensor, values: tensor.scatter_add(dim, index, values),
        "again": lambda start, values: start.scatter_reduce(dim, index, values, reduce, include_self=include_self),
        "cleared": lambda tensor: tensor.scatter(dim, index, 0),
    }


def _scatter_reduce_self(
    grad: Tensor, self: Tensor, dim: int, index: Tensor, src: Any, reduce: str, include_self: bool, result: Tensor
) -> Any:
    return gradient_of_target(grad, self, src, result, reduce, include_self, **_ways(dim, index, reduce, include_self))


def _scatter_reduce_src(
    grad: Tensor, self: Tensor, dim: int, index: Tensor, src: Any, reduce: str, include_self: bool, result: Tensor
) -> Any:
    return gradient_of_source(grad, self, src, result, reduce, include_self, **_ways(dim, index, reduce, include_self))


@writing("ScatterReduceBackward0", self=_scatter_reduce_self, src=_scatter_reduce_src)
def _scatter_reduce(self: Array, dim: int, index: Array, src: Array, reduce: str, include_self: bool) -> None:
    if not index.size:
        return
    how = UFUNCS.get(reduce)
    if how and (include_self or arrays.scattered(self, dim, index, _neutral_elements(self, index, reduce), "write")):
        if arrays.scattered(self, dim, index, src, how):
            return
        include_self = True
    reduce_at(*_placed(self, dim, index, src), reduce, include_self)


def _neutral_elements(target: Array, index: Array, reduce: str) -> Array:
    return np.broadcast_to(np.asarray(neutral(reduce, target.dtype), target.dtype), index.shape)


def _scatter_reduce_call(
    input: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, *, include_self: bool = True
) -> tuple[Any, ...]:
    if reduce not in ("sum", "prod", "mean", "amax", "amin"):
        raise RuntimeError(f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}.")
    dim = _checked("scatter_reduce", input, dim, index, src)
    return dim, index, src, reduce, bool(include_self)


@public(out=True)
def scatter_reduce(
    input: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """A copy of `input` with `src` reduced into it ("sum", "prod", "mean", "amax", "amin") at positions along `dim`."""
    arguments = _scatter_reduce_call(input, dim, index, src, reduce, include_self=include_self)
    return _scatter_reduce(input, *arguments)


publish_change(_scatter_reduce, "scatter_reduce", _scatter_reduce_call)
