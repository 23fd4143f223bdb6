"""Initial values of parameters. Each function fills its tensor in place, outside any graph, and returns it."""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Callable
from typing import Any, TypeVar

from .._core.tensor import Tensor
from .._core.text.inherited_docs import documented_like
from .._ops.create.like import empty_like
from ..autograd.grad_mode import no_grad

__all__ = [
    "calculate_gain",
    "constant",
    "constant_",
    "dirac",
    "dirac_",
    "eye",
    "eye_",
    "kaiming_normal",
    "kaiming_normal_",
    "kaiming_uniform",
    "kaiming_uniform_",
    "normal",
    "normal_",
    "ones_",
    "orthogonal",
    "orthogonal_",
    "sparse",
    "sparse_",
    "trunc_normal_",
    "uniform",
    "uniform_",
    "xavier_normal",
    "xavier_normal_",
    "xavier_uniform",
    "xavier_uniform_",
    "zeros_",
]

_GAINS = {
    **dict.fromkeys(("linear", "conv1d", "conv2d", "conv3d", "sigmoid"), 1),
    **dict.fromkeys(("conv_transpose1d", "conv_transpose2d", "conv_transpose3d"), 1),
    "tanh": 5.0 / 3,
    "relu": math.sqrt(2.0),
    "selu": 3.0 / 4,
}


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """Return the factor by which weights must grow to make up for what a nonlinearity takes away.

    Args:
        nonlinearity (str): the name of a function of `nn.functional`: "linear", "conv2d", "sigmoid", "tanh", "relu",
            "leaky_relu", "selu".
        param (float, optional): the slope of "leaky_relu" below zero; None means 0.01.

    Returns:
        float: the factor.

    Example:
        >>> torch.nn.init.calculate_gain("relu")
        1.4142135623730951
    """
    if isinstance(nonlinearity, str) and nonlinearity in _GAINS:
        return _GAINS[nonlinearity]
    if nonlinearity != "leaky_relu":
        raise ValueError(f"Unsupported nonlinearity {nonlinearity}")
    if param is None:
        param = 0.01
    elif isinstance(param, bool) or not isinstance(param, (int, float)):
        raise ValueError(f"negative_slope {param} not a valid number")
    return math.sqrt(2.0 / (1 + param**2))


Function = TypeVar("Function", bound=Callable[..., Any])


def _outside_the_graph(function: Function) -> Function:
    decorated: Function = no_grad()(function)
    return decorated


# ----- constants and simple distributions ---------------------------------------------------------------------------


@_outside_the_graph
def uniform_(tensor: Any, a: float = 0.0, b: float = 1.0, generator: Any = None) -> Any:
    """Fill a tensor with uniform numbers from [a, b).

    Args:
        tensor: the tensor to fill, in place.
        a (float): the smallest number. Default: `0.0`.
        b (float): the upper end, which is not drawn itself. Default: `1.0`.
        generator (Generator, optional): the source of random numbers; None means the default one.

    Returns:
        Tensor: `tensor` itself.

    Example:
        >>> _ = torch.manual_seed(0)
        >>> torch.nn.init.uniform_(torch.empty(3))
        tensor([0.4963, 0.7682, 0.0885])
    """
    return tensor.uniform_(a, b, generator=generator)


@documented_like(uniform_)
@_outside_the_graph
def normal_(tensor: Any, mean: float = 0.0, std: float = 1.0, generator: Any = None) -> Any:
    """Fill a tensor with normal numbers.

    Args:
        mean (float): the mean of the numbers. Default: `0.0`.
        std (float): the standard deviation of the numbers. Default: `1.0`.

    Example:
        >>> _ = torch.manual_seed(0)
        >>> torch.nn.init.normal_(torch.empty(3), std=0.1)
        tensor([ 0.1541, -0.0293, -0.2179])
    """
    return tensor.normal_(mean, std, generator=generator)


@_outside_the_graph
def trunc_normal_(
    tensor: Any, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0, generator: Any = None
) -> Any:
    """Fill a tensor with normal numbers, drawn again until they lie within [a, b].

    Args:
        tensor: the tensor to fill, in place.
        mean (float): the mean of the numbers. Default: `0.0`.
        std (float): the standard deviation of the numbers. Default: `1.0`.
        a (float): the smallest number. Default: `-2.0`.
        b (float): the largest number. Default: `2.0`.
        generator (Generator, optional): the source of random numbers; None means the default one.

    Returns:
        Tensor: `tensor` itself.

    Example:
        >>> weight = torch.nn.init.trunc_normal_(torch.empty(100), a=-1.0, b=1.0)
        >>> bool(weight.abs().max() <= 1)
        True
    """
    if mean < a - 2 * std or mean > b + 2 * std:
        warnings.warn(
            "mean is more than 2 std from [a, b] in nn.init.trunc_normal_. The distribution of values may be "
            "incorrect.",
            stacklevel=2,
        )
    low, high = (0.5 * (1 + math.erf((end - mean) / std / math.sqrt(2.0))) for end in (a, b))
    if high - low > 0.3:
        propose = functools.partial(_propose_normal, mean, std, a, b)
    else:
        propose = functools.partial(_propose_uniform, mean, std, a, b)
    _fill_by_rejection(tensor, propose, generator)
    return tensor


def _fill_by_rejection(tensor: Any, propose: Callable[[Any, Any], tuple[Any, Any]], generator: Any) -> None:
    """Draw for all elements until each has been accepted once."""
    values, accepted = propose(tensor, generator)
    tensor.copy_(values)
    while not accepted.all():
        values, now = propose(tensor, generator)
        tensor.copy_(values.where(~accepted, tensor))
        accepted |= now


def _propose_normal(mean: float, std: float, a: float, b: float, like: Any, generator: Any) -> tuple[Any, Any]:
    """Normal numbers: those within [a, b] are accepted."""
    values = empty_like(like).normal_(mean, std, generator=generator)
    return values, (values >= a) & (values <= b)


def _propose_uniform(mean: float, std: float, a: float, b: float, like: Any, generator: Any) -> tuple[Any, Any]:
    """Uniform numbers: each is accepted with the ratio of its density to the highest one within [a, b]."""
    values = empty_like(like).uniform_(a, b, generator=generator)
    chance = empty_like(like).uniform_(generator=generator)
    peak = min(max(mean, a), b)
    ratio = ((peak - mean) ** 2 - (values - mean) ** 2) / (2 * std**2)
    return values, ~(chance.log() > ratio)  # where the ratio is NaN too: nothing else would ever be accepted


@_outside_the_graph
def constant_(tensor: Any, val: float) -> Any:
    """Fill a tensor with one value.

    Args:
        tensor: the tensor to fill, in place.
        val (float): the value of every element.

    Returns:
        Tensor: `tensor` itself.

    Example:
        >>> torch.nn.init.constant_(torch.empty(2), 0.5)
        tensor([0.5000, 0.5000])
    """
    return tensor.fill_(val)


@documented_like(uniform_)
@_outside_the_graph
def ones_(tensor: Any) -> Any:
    """Fill a tensor with ones.

    Example:
        >>> torch.nn.init.ones_(torch.empty(2))
        tensor([1., 1.])
    """
    return tensor.fill_(1.0)


@documented_like(uniform_)
@_outside_the_graph
def zeros_(tensor: Any) -> Any:
    """Fill a tensor with zeros.

    Example:
        >>> torch.nn.init.zeros_(torch.empty(2))
        tensor([0., 0.])
    """
    return tensor.zero_()


@_outside_the_graph
def eye_(tensor: Any) -> Any:
    """Fill a matrix with the identity, so that a linear layer passes on as much of its input as it can.

    Args:
        tensor: the matrix to fill, in place.

    Returns:
        Tensor: `tensor` itself.

    Example:
        >>> torch.nn.init.eye_(torch.empty(2, 3))
        tensor([[1., 0., 0.],
                [0., 1., 0.]])
    """
    if tensor.ndimension() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    tensor.zero_()
    tensor.diagonal().fill_(1)
    return tensor


@_outside_the_graph
def dirac_(tensor: Any, groups: int = 1) -> Any:
    """Fill the weight of a convolution so that it passes on as many channels as it can.

    Args:
        tensor: the weight to fill, in place, of 3, 4 or 5 dimensions.
        groups (int): the number of groups of the convolution. Default: `1`.

    Returns:
        Tensor: `tensor` itself.

    Example:
        >>> weight = torch.nn.init.dirac_(torch.empty(1, 1, 3))
        >>> torch.nn.functional.conv1d(torch.tensor([[1.0, 2.0, 3.0]]), weight, padding=1)
        tensor([[1., 2., 3.]])
    """
    if tensor.ndimension() not in (3, 4, 5):
        raise ValueError("Only tensors with 3, 4, or 5 dimensions are supported")
    out_channels, in_channels, *kernel = tensor.shape
    if out_channels % groups != 0:
        raise ValueError("dim 0 must be divisible by groups")
    tensor.zero_()
    centre = tensor[(..., *[size // 2 for size in kernel])]
    for group in centre.view(groups, out_channels // groups, in_channels) if centre.numel() else ():
        group.diagonal().fill_(1)
    return tensor


# ----- by the number of inputs and outputs --------------------------------------------------------------------------


def _calculate_fan_in_and_fan_out(tensor: Tensor) -> tuple[int, int]:
    """How many inputs an output has, and how many outputs an input has, in a layer with this weight."""
    if tensor.dim() < 2:
        raise ValueError("Fan in and fan out can not be computed for tensor with fewer than 2 dimensions")
    receptive_field = math.prod(tensor.shape[2:])
    return tensor.size(1) * receptive_field, tensor.size(0) * receptive_field


def _calculate_correct_fan(tensor: Tensor, mode: str) -> int:
    modes = ["fan_in", "fan_out"]
    mode = mode.lower()
    if mode not in modes:
        raise ValueError(f"Mode {mode} not supported, please use one of {modes}")
    return _calculate_fan_in_and_fan_out(tensor)[modes.index(mode)]


@documented_like(uniform_)
def xavier_uniform_(tensor: Any, gain: float = 1.0, generator: Any = None) -> Any:
    """Fill a weight with uniform numbers of standard deviation `gain * sqrt(2 / (fan_in + fan_out))`, by Glorot.

    Args:
        gain (float): a factor of the standard deviation; see `calculate_gain`. Default: `1.0`.

    Example:
        >>> weight = torch.nn.init.xavier_uniform_(torch.empty(3, 3))
        >>> bool(weight.abs().max() <= 1)
        True
    """
    bound = math.sqrt(3.0) * _xavier_std(tensor, gain)
    return uniform_(tensor, -bound, bound, generator)


@documented_like(xavier_uniform_)
def xavier_normal_(tensor: Any, gain: float = 1.0, generator: Any = None) -> Any:
    """Fill a weight with normal numbers of standard deviation `gain * sqrt(2 / (fan_in + fan_out))`, by Glorot.

    Example:
        >>> weight = torch.nn.init.xavier_normal_(torch.empty(128, 128))
        >>> round(weight.std().item(), 2), round((2 / 256) ** 0.5, 2)
        (0.09, 0.09)
    """
    return normal_(tensor, 0.0, _xavier_std(tensor, gain), generator)


def _xavier_std(tensor: Tensor, gain: float) -> float:
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    return gain * math.sqrt(2.0 / float(fan_in + fan_out))


def kaiming_uniform_(
    tensor: Any, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", generator: Any = None
) -> Any:
    """Fill a weight with uniform numbers of standard deviation `gain / sqrt(fan)`, by He and others.

    Args:
        tensor: the tensor to fill, in place.
        a (float): the slope below zero of the "leaky_relu" that follows. Default: `0`.
        mode (str): "fan_in" keeps the size of activations in the forward pass, "fan_out" that of gradients in the
            backward pass. Default: `"fan_in"`.
        nonlinearity (str): the function that follows the layer, as in `calculate_gain`. Default: `"leaky_relu"`.
        generator (Generator, optional): the source of random numbers; None means the default one.

    Returns:
        Tensor: `tensor` itself.

    Example:
        >>> weight = torch.nn.init.kaiming_uniform_(torch.empty(256, 128), nonlinearity="relu")
        >>> bool(weight.abs().max() <= (6 / 128) ** 0.5)
        True
    """
    std = _kaiming_std(tensor, a, mode, nonlinearity)
    bound = math.sqrt(3.0) * std if std is not None else 0
    return tensor if std is None else uniform_(tensor, -bound, bound, generator)


@documented_like(kaiming_uniform_)
def kaiming_normal_(
    tensor: Any, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", generator: Any = None
) -> Any:
    """Fill a weight with normal numbers of standard deviation `gain / sqrt(fan)`, by He and others.

    Example:
        >>> weight = torch.nn.init.kaiming_normal_(torch.empty(256, 128), nonlinearity="relu")
        >>> round(weight.std().item(), 1), round((2 / 128) ** 0.5, 1)
        (0.1, 0.1)
    """
    std = _kaiming_std(tensor, a, mode, nonlinearity)
    return tensor if std is None else normal_(tensor, 0, std, generator)


def _kaiming_std(tensor: Tensor, a: float, mode: str, nonlinearity: str) -> float | None:
    """None for a tensor without elements."""
    if 0 in tensor.shape:
        warnings.warn("Initializing zero-element tensors is a no-op", stacklevel=3)
        return None
    return calculate_gain(nonlinearity, a) / math.sqrt(_calculate_correct_fan(tensor, mode))


# ----- matrices of a certain kind -----------------------------------------------------------------------------------


@_outside_the_graph
def orthogonal_(tensor: Any, gain: float = 1, generator: Any = None) -> Any:
    """Fill a matrix with random orthonormal rows or columns, times `gain`.

    Dimensions after the first count together as columns.

    Args:
        tensor: the tensor to fill, in place.
        gain (float): a factor of the standard deviation; see `calculate_gain`. Default: `1`.
        generator (Generator, optional): the source of random numbers; None means the default one.

    Returns:
        Tensor: `tensor` itself.

    Example:
        >>> weight = torch.nn.init.orthogonal_(torch.empty(2, 3))
        >>> (weight @ weight.T).round(decimals=3).abs()
        tensor([[1., 0.],
                [0., 1.]])
    """
    if tensor.ndimension() < 2:
        raise ValueError("Only tensors with 2 or more dimensions are supported")
    if tensor.numel() == 0:
        return tensor
    rows = tensor.size(0)
    columns = tensor.numel() // rows
    normal = tensor.new_empty((rows, columns)).normal_(0, 1, generator=generator)
    if rows < columns:
        normal = normal.t()
    from .._ops.linalg.decompose import linalg_qr as qr

    q, r = qr(normal)
    q = q * r.diagonal().sign()  # makes the distribution uniform
    if rows < columns:
        q = q.t()
    tensor.view_as(q).copy_(q)
    return tensor.mul_(gain)


@_outside_the_graph
def sparse_(tensor: Any, sparsity: float, std: float = 0.01, generator: Any = None) -> Any:
    """Fill a matrix with normal numbers, and with zeros in a part `sparsity` of each column.

    Args:
        tensor: the matrix to fill, in place.
        sparsity (float): what part of each column is zero.
        std (float): the standard deviation of the numbers. Default: `0.01`.
        generator (Generator, optional): the source of random numbers; None means the default one.

    Returns:
        Tensor: `tensor` itself.

    Example:
        >>> (torch.nn.init.sparse_(torch.empty(4, 2), sparsity=0.5) == 0).sum(dim=0)
        tensor([2, 2])
    """
    if tensor.ndimension() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    from .._ops.random.draws import randperm

    rows, columns = tensor.shape
    zeros = math.ceil(sparsity * rows)
    tensor.normal_(0, std, generator=generator)
    for column in range(columns):
        tensor[randperm(rows)[:zeros], column] = 0
    return tensor


# ----- the names of old ---------------------------------------------------------------------------------------------


def _deprecated(function: Callable[..., Any]) -> Callable[..., Any]:
    new_name = function.__name__
    old_name = new_name[:-1]

    @functools.wraps(function)
    def renamed(*args: Any, **kwargs: Any) -> Any:
        warnings.warn(
            f"`nn.init.{old_name}` is now deprecated in favor of `nn.init.{new_name}`.", FutureWarning, stacklevel=2
        )
        return function(*args, **kwargs)

    renamed.__name__ = renamed.__qualname__ = old_name
    return renamed


uniform = _deprecated(uniform_)
normal = _deprecated(normal_)
constant = _deprecated(constant_)
eye = _deprecated(eye_)
dirac = _deprecated(dirac_)
xavier_uniform = _deprecated(xavier_uniform_)
xavier_normal = _deprecated(xavier_normal_)
kaiming_uniform = _deprecated(kaiming_uniform_)
kaiming_normal = _deprecated(kaiming_normal_)
orthogonal = _deprecated(orthogonal_)
sparse = _deprecated(sparse_)


_no_grad_uniform_ = uniform_
_no_grad_normal_ = normal_


def _no_grad_trunc_normal_(tensor: Any, mean: float, std: float, a: float, b: float, generator: Any = None) -> Any:
    return trunc_normal_(tensor, mean, std, a, b, generator)
