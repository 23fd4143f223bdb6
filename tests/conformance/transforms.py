"""Transforms of the derivatives of an op, beside PyTorch's.

Where the two differ, finite differences of PyTorch's own function tell which is right.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import torch as pytorch

from .checks import Outcome, arguments, report
from .compare import tensors_in
from .entries import Entry
from .gradients import Differentiable, as_theirs, compare, near, supported

_LARGEST = 64
"""Elements of an input, and of the results, of which whole matrices of derivatives are compared."""
_FIRST, _SECOND = 1e-7, 1e-6


def _total(function: Differentiable, first: Any) -> Any:
    results = function([first, *[each.detach() for each in function.inputs[1:]]])
    return sum([each.abs().sum() if each.is_complex() else each.sum() for each in results])


def _first_result(function: Differentiable, first: Any) -> Any:
    return function([first, *[each.detach() for each in function.inputs[1:]]])[0]


def _point(function: Differentiable) -> Any:
    return function.inputs[0].detach()


def _twice(function: Differentiable) -> Any:
    return function.library.stack([_point(function)] * 2)


def jvp(function: Differentiable) -> list[Any]:
    point = _point(function)
    way = function.weights([point], 3)[0]
    return list(function.library.func.jvp(functools.partial(_first_result, function), (point,), (way,)))


def jacrev(function: Differentiable) -> list[Any]:
    return [function.library.func.jacrev(functools.partial(_first_result, function))(_point(function))]


def jacfwd(function: Differentiable) -> list[Any]:
    return [function.library.func.jacfwd(functools.partial(_first_result, function))(_point(function))]


def hessian(function: Differentiable) -> list[Any]:
    return [function.library.func.hessian(functools.partial(_total, function))(_point(function))]


def vmap_of_grad(function: Differentiable) -> list[Any]:
    func = function.library.func
    return [func.vmap(func.grad(functools.partial(_total, function)))(_twice(function))]


def grad_of_vmap(function: Differentiable) -> list[Any]:
    func = function.library.func
    return [func.grad(lambda batch: func.vmap(functools.partial(_total, function))(batch).sum())(_twice(function))]


def vmap_of_vmap(function: Differentiable) -> list[Any]:
    func, batch = function.library.func, _twice(function)
    inner = func.vmap(func.vmap(functools.partial(_first_result, function)))
    return [inner(function.library.stack([batch, batch]))]


TRANSFORMS = {
    "jvp": jvp,
    "jacrev": jacrev,
    "jacfwd": jacfwd,
    "hessian": hessian,
    "vmap of grad": vmap_of_grad,
    "grad of vmap": grad_of_vmap,
    "vmap of vmap": vmap_of_vmap,
}


def _as_measured(
    theirs: Differentiable, ours: Differentiable, transform: Callable[[Differentiable], Any], found: list[Any]
) -> bool:
    """Whether a derivative is what finite differences of PyTorch's function show, along one direction.

    A second derivative is measured on PyTorch's first. Where PyTorch's own two modes disagree, either is right: several
    elements in one place, of which its backward gives a gradient to each.
    """
    if transform not in _MEASURED:
        return False
    point = _point(theirs)
    way = theirs.weights([point], 3)[0]
    if point.is_complex():
        return False
    if transform is hessian:
        base: Callable[[Any], Any] = theirs.library.func.grad(functools.partial(_total, theirs))
    else:
        base = functools.partial(_first_result, theirs)
    step = 1e-6
    slopes = [(base(point + step * way) - base(point - step * way)).detach() / (2 * step)]
    if transform in (jvp, jacfwd):
        slopes.append(_along(way, theirs.library.func.jacrev(base)(point)))
    if transform is jvp:
        value, tangent = map(as_theirs, found)
        return near(base(point).detach(), value) and any(near(slope, tangent) for slope in slopes)
    return any(near(slope, _along(way, as_theirs(found[0]))) for slope in slopes)


def _along(way: pytorch.Tensor, matrix: pytorch.Tensor) -> pytorch.Tensor:
    """A matrix of derivatives times a direction."""
    return (matrix * way).detach().sum(tuple(range(matrix.ndim - way.ndim, matrix.ndim)))


_MEASURED = (jvp, jacrev, jacfwd, hessian)
"""Those whose results along one direction are the slope of a function of one point."""


def transformed(transform: Any, entry: Entry, dtype: pytorch.dtype) -> Iterator[Outcome]:
    base = _SECOND if transform is hessian else _FIRST
    for sample in entry.samples(dtype, requires_grad=True):
        inputs = [each for each in tensors_in(arguments(sample)) if each.requires_grad]
        small = inputs and inputs[0].numel() <= _LARGEST and inputs[0].layout is pytorch.strided
        if small and supported(entry, sample, transform):
            yield report(sample, compare, entry, sample, transform, base, _as_measured)
