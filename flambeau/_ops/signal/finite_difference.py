"""Derivatives of sampled functions by finite differences."""

from __future__ import annotations

from typing import Any

from ..._core.dtype import uint8
from ..._core.tensor import Tensor
from ..._dispatch.arguments.promotion import is_number
from ..._dispatch.public.registry import public
from ..shape.join import cat
from ..shape.parts import narrow
from ..shape.view import distinct_dims


def _along(coefficients: Any, ndim: int, dim: int) -> Any:
    return coefficients.reshape([-1 if each == dim else 1 for each in range(ndim)])


def _evenly_spaced(input: Any, dim: int, step: Any, edge_order: int) -> Tensor:
    size = input.shape[dim]

    def at(place: int) -> Tensor:
        return narrow(input, dim, place % size, 1)

    inside = (narrow(input, dim, 2, size - 2) - narrow(input, dim, 0, size - 2)) / step / 2
    if edge_order == 1:
        first, last = (at(1) - at(0)) / step, (at(-1) - at(-2)) / step
    else:
        first = (at(0) * -1.5 + at(1) * 2 - at(2) * 0.5) / step
        last = (at(-3) * 0.5 - at(-2) * 2 + at(-1) * 1.5) / step
    return cat([first, inside, last], dim)


def _at_coordinates(input: Any, dim: int, coordinates: Any, edge_order: int) -> Tensor:
    """Differences of second order at uneven coordinates, from the parabola through three neighbours."""
    size, ndim = input.shape[dim], input.dim()
    gaps = coordinates.diff()

    def at(place: int) -> Tensor:
        return narrow(input, dim, place % size, 1)

    def combined(values: Any, *coefficients: Any) -> Any:
        terms = [_along(each, ndim, dim) * value for each, value in zip(coefficients, values, strict=True)]
        return terms[0] + terms[1] + terms[2]

    before, after = gaps[:-1], gaps[1:]
    both = before + after
    neighbours = [narrow(input, dim, start, size - 2) for start in range(3)]
    inside = combined(
        neighbours, -after / (before * both), (after - before) / (before * after), before / (after * both)
    )
    if edge_order == 1:
        first = (at(1) - at(0)) / _along(gaps[:1], ndim, dim)
        last = (at(-1) - at(-2)) / _along(gaps[-1:], ndim, dim)
    else:
        a, b = gaps[:1], gaps[1:2]
        first = combined([at(0), at(1), at(2)], -(2 * a + b) / (a * (a + b)), (a + b) / (a * b), -a / (b * (a + b)))
        a, b = gaps[-2:-1], gaps[-1:]
        last = combined([at(-3), at(-2), at(-1)], b / (a * (a + b)), -(a + b) / (a * b), (2 * b + a) / (b * (a + b)))
    return cat([first, inside, last], dim)


def _spacings(input: Tensor, spacing: Any, dims: tuple[int, ...], all_dims: bool) -> list[Any]:
    """For each dimension a step or a tensor of coordinates."""
    if spacing is None:
        return [1] * len(dims)
    if is_number(spacing) or (isinstance(spacing, Tensor) and not spacing.dim()):
        return [spacing] * len(dims)
    if isinstance(spacing, Tensor) or not isinstance(spacing, (list, tuple)):
        raise TypeError(
            "gradient() received an invalid combination of arguments: spacing must be a number or a list of numbers "
            f"or of 1-D tensors, not {type(spacing).__name__}"
        )
    if len(spacing) != len(dims):
        if all_dims:
            raise RuntimeError(
                "torch.gradient expected spacing to be unspecified, a scalar, or a list of length equal to "
                f"'self.dim() = {input.dim()}', since dim argument was not given, but got a list of length "
                f"{len(spacing)}"
            )
        raise RuntimeError(
            "torch.gradient expected spacing to be unspecified, a scalar or it's spacing and dim arguments to have "
            f"the same length, but got a spacing argument of length {len(spacing)} and a dim argument of length "
            f"{len(dims)}."
        )
    for each, dim in zip(spacing, dims, strict=True):
        if isinstance(each, Tensor):
            _check_coordinates(input, each, dim)
    return list(spacing)


def _check_coordinates(input: Tensor, coordinates: Tensor, dim: int) -> None:
    if coordinates.device != input.device:
        raise RuntimeError(
            "torch.gradient expected each tensor to be on the same device, but got devices "
            f"{input.device} and {coordinates.device}!"
        )
    if coordinates.dim() != 1:
        raise RuntimeError(
            "torch.gradient expected each element of spacing to have one dimension, but got an element with "
            f"{coordinates.dim()} dimensions!"
        )
    if coordinates.shape[0] != input.shape[dim]:
        raise RuntimeError(
            f"torch.gradient expected as many coordinates as dimension {dim} has elements, {input.shape[dim]}, but "
            f"got {coordinates.shape[0]}"
        )


@public(method=False)
def gradient(input: Tensor, *, spacing: Any = None, dim: Any = None, edge_order: int = 1) -> tuple[Tensor, ...]:
    """The derivative along each of the dimensions `dim`, by default all, of a function given by samples.

    `spacing` is the distance between samples, one for all dimensions or one for each, or the samples' coordinates.
    """
    ndim = input.dim()
    dims = distinct_dims(range(ndim) if dim is None else [dim] if isinstance(dim, int) else list(dim), ndim)
    if input.dtype is uint8:
        raise RuntimeError("torch.gradient does not support uint8 input.")
    if edge_order not in (1, 2):
        raise RuntimeError(f"torch.gradient only supports edge_order=1 and edge_order=2, not {edge_order}.")
    spacings = _spacings(input, spacing, dims, dim is None)
    for each in dims:
        if input.shape[each] < edge_order + 1:
            raise RuntimeError(
                "torch.gradient expected each dimension size to be at least edge_order+1: dimension "
                f"{each} of shape {list(input.shape)} is smaller than {edge_order + 1}"
            )
    return tuple(
        _at_coordinates(input, each, step, edge_order)
        if isinstance(step, Tensor) and step.dim()
        else _evenly_spaced(input, each, step, edge_order)
        for each, step in zip(dims, spacings, strict=True)
    )
