"""Gradients kept within bounds, by their norm or by their values."""

from __future__ import annotations

import functools
import math
import operator
import warnings
from collections.abc import Generator, Iterable
from typing import Any

from ... import linalg
from ..._core.tensor import Tensor
from ..._core.text.memory_errors import memory_reported
from ..._dispatch.abstract.list_rules import change_at_once
from ..._ops.create.constants import tensor
from ..._ops.pointwise.binary import maximum, minimum
from ..._ops.reduce.norm import list_norms
from ..._ops.shape.join import stack
from ...autograd.grad_mode import no_grad

__all__ = ["clip_grad_norm", "clip_grad_norm_", "clip_grad_value_", "clip_grads_with_norm_", "get_total_norm"]

Tensors = Tensor | Iterable[Tensor]


def _listed(tensors: Tensors) -> list[Any]:
    return [tensors] if isinstance(tensors, Tensor) else list(tensors)


def _gradients(parameters: Tensors) -> list[Any]:
    return [gradient for each in _listed(parameters) if (gradient := each.grad) is not None]


def _check_foreach(tensors: list[Any], foreach: bool | None) -> None:
    """`foreach` asks for ops on whole lists, which every dense tensor allows; it changes no result."""
    if foreach:
        for each in tensors:
            if each.is_sparse:
                raise RuntimeError(
                    f"foreach=True was passed, but can't use the foreach API on {each.device.type} tensors that are "
                    "sparse"
                )


def get_total_norm(
    tensors: Tensors, norm_type: float = 2.0, error_if_nonfinite: bool = False, foreach: bool | None = None
) -> Tensor:
    """The norm of all tensors together, as if they were one vector.

    >>> flambeau.nn.utils.get_total_norm([flambeau.tensor([3.0]), flambeau.tensor([4.0])])
    tensor(5.)

    Args:
        tensors (Tensors): (iterable of Tensors or Tensor) the tensors.
        norm_type (float): the order of the norm; `inf` takes the largest element. Default: `2.0`.
        error_if_nonfinite (bool): whether a norm of NaN or infinity raises an error. Default: `False`.
        foreach (bool, optional): whether to treat all tensors together; both give the same numbers, and None chooses.

    Returns:
        Tensor: the norm, as a tensor without dimensions.
    """
    with no_grad(), memory_reported():
        found = _listed(tensors)
        norm_type = float(norm_type)
        if not found:
            return tensor(0.0)
        _check_foreach(found, foreach)
        if any([each._is_wrapper for each in found]):  # noqa: C419 (few, quicker)
            total = _norm_of_parts(found, norm_type)
        else:
            norms = list_norms(found) if norm_type == 2 else [linalg.vector_norm(each, norm_type) for each in found]
            place = norms[0]._kind.device
            together = [each if each._kind.device is place else each.to(norms[0].device) for each in norms]
            total = linalg.vector_norm(stack(together), norm_type)
        if error_if_nonfinite and not total.isfinite().item():
            raise RuntimeError(
                f"The total norm of order {norm_type} for gradients from `parameters` is non-finite, so it cannot be "
                "clipped. To disable this error and scale the gradients by the non-finite norm anyway, set "
                "`error_if_nonfinite=False`"
            )
        return total


def _norm_of_parts(tensors: list[Any], norm_type: float) -> Tensor:
    """The norm of tensors that are distributed over processes, or some of which are."""
    norms: list[Any] = [linalg.vector_norm(each, norm_type) for each in tensors]
    if not all(each._is_wrapper for each in norms):
        norms = [each.full_tensor() if each._is_wrapper else each for each in norms]
    if math.isinf(norm_type):
        extreme: Tensor = functools.reduce(maximum if norm_type > 0 else minimum, norms)
        return extreme
    total: Tensor = functools.reduce(operator.add, [each**norm_type for each in norms]) ** (1 / norm_type)
    return total


def clip_grads_with_norm_(
    parameters: Tensors, max_norm: float, total_norm: Tensor, foreach: bool | None = None
) -> None:
    """Scale the gradients of `parameters`, in place, by `max_norm / total_norm` if that is below one.

    Args:
        parameters (iterable of Tensors or Tensor): the parameters whose gradients are changed; those without a
            gradient are left out.
        max_norm (float): the largest norm that gradients may have together.
        total_norm (Tensor): the norm of all gradients together, from `get_total_norm`.
        foreach (bool, optional): whether to treat all tensors together; both give the same numbers, and None chooses.

    Example:
        >>> weight = torch.tensor([3.0, 4.0], requires_grad=True)
        >>> weight.grad = torch.tensor([3.0, 4.0])
        >>> norm = torch.nn.utils.get_total_norm([weight.grad])
        >>> torch.nn.utils.clip_grads_with_norm_([weight], max_norm=1.0, total_norm=norm)
        >>> weight.grad
        tensor([0.6000, 0.8000])
    """
    _scale(_gradients(parameters), float(max_norm), total_norm, foreach)


def _scale(gradients: list[Any], limit: float, total_norm: Tensor, foreach: bool | None) -> None:
    if not gradients:
        return
    with no_grad(), memory_reported():
        _check_foreach(gradients, foreach)
        # No look at the values: the factor is always multiplied in, and is one where nothing is to be clipped.
        factor = (limit / (total_norm + 1e-6)).clamp(max=1.0)
        if not change_at_once("mul_", gradients, [((factor,), {})] * len(gradients)):
            for each in gradients:
                each.mul_(factor.to(each.device))


def clip_grad_norm_(
    parameters: Tensors,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Scale the gradients of `parameters`, in place, so that their norm together is at most `max_norm`.

    Returns the norm before.

    >>> weight = flambeau.ones(2, requires_grad=True)
    >>> weight.grad = flambeau.tensor([3.0, 4.0])
    >>> flambeau.nn.utils.clip_grad_norm_([weight], max_norm=1.0)
    tensor(5.)
    >>> weight.grad
    tensor([0.6000, 0.8000])

    Args:
        parameters (iterable of Tensors or Tensor): the parameters whose gradients are changed; those without a
            gradient are left out.
        max_norm (float): the largest norm that gradients may have together.
        norm_type (float): the order of the norm; `inf` takes the largest element. Default: `2.0`.
        error_if_nonfinite (bool): whether a norm of NaN or infinity raises an error. Default: `False`.
        foreach (bool, optional): whether to treat all tensors together; both give the same numbers, and None chooses.

    Returns:
        Tensor: the norm before, as a tensor without dimensions.
    """
    found = _listed(parameters)
    if not found and isinstance(parameters, Generator):  # most likely it was read to its end before
        warnings.warn("`parameters` is an empty generator, no gradient clipping will occur.", stacklevel=2)
    gradients = _gradients(found)
    total = get_total_norm(gradients, norm_type, error_if_nonfinite, foreach)
    _scale(gradients, float(max_norm), total, foreach)
    return total


def clip_grad_norm(
    parameters: Tensors,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Deprecated: use `clip_grad_norm_`, which does the same.

    Args:
        parameters (iterable of Tensors or Tensor): the parameters whose gradients are changed; those without a
            gradient are left out.
        max_norm (float): the largest norm that gradients may have together.
        norm_type (float): the order of the norm; `inf` takes the largest element. Default: `2.0`.
        error_if_nonfinite (bool): whether a norm of NaN or infinity raises an error. Default: `False`.
        foreach (bool, optional): whether to treat all tensors together; both give the same numbers, and None chooses.

    Returns:
        Tensor: the norm before, as a tensor without dimensions.
    """
    warnings.warn(
        "`torch.nn.utils.clip_grad_norm` is now deprecated in favor of `torch.nn.utils.clip_grad_norm_`.",
        FutureWarning,
        stacklevel=2,
    )
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite, foreach)


def clip_grad_value_(parameters: Tensors, clip_value: float, foreach: bool | None = None) -> None:
    """Bring every element of the gradients of `parameters`, in place, between `-clip_value` and `clip_value`.

    Args:
        parameters (iterable of Tensors or Tensor): the parameters whose gradients are changed; those without a
            gradient are left out.
        clip_value (float): the largest absolute value of an element.
        foreach (bool, optional): whether to treat all tensors together; both give the same numbers, and None chooses.

    Example:
        >>> weight = torch.tensor([1.0, 2.0], requires_grad=True)
        >>> (weight**3).sum().backward()
        >>> torch.nn.utils.clip_grad_value_(weight, 5.0)
        >>> weight.grad
        tensor([3., 5.])
    """
    clip_value = float(clip_value)
    with no_grad(), memory_reported():
        gradients = _gradients(parameters)
        _check_foreach(gradients, foreach)
        bounds = {"min": -clip_value, "max": clip_value}
        if not gradients:
            raise RuntimeError("clip_grad_value_: none of the parameters has a gradient")
        if not change_at_once("clamp_", gradients, [((), bounds)] * len(gradients)):
            for each in gradients:
                each.clamp_(**bounds)
