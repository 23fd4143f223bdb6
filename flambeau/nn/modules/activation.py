"""Activation functions as modules.

Each is its function in `nn.functional` with its settings as attributes, which `__constants__` names.
"""

from __future__ import annotations

import warnings
from typing import Any, ClassVar

from ..._core.tensor import Tensor
from ..._core.text.inherited_docs import documented_like
from ..._ops.create.constants import empty
from ..._ops.pointwise.unary import sigmoid, tanh
from .. import functional as F
from .. import init
from ..parameter import Parameter
from .module import Module
from .multihead_attention import MultiheadAttention

__all__ = [
    "CELU",
    "ELU",
    "GELU",
    "GLU",
    "SELU",
    "Hardshrink",
    "Hardsigmoid",
    "Hardswish",
    "Hardtanh",
    "LeakyReLU",
    "LogSigmoid",
    "LogSoftmax",
    "Mish",
    "MultiheadAttention",
    "PReLU",
    "RReLU",
    "ReLU",
    "ReLU6",
    "SiLU",
    "Sigmoid",
    "Softmax",
    "Softmax2d",
    "Softmin",
    "Softplus",
    "Softshrink",
    "Softsign",
    "Tanh",
    "Tanhshrink",
    "Threshold",
]


class _Activation(Module):
    """Prints the constants as `name=value`, and `inplace` only if it is set."""

    __constants__: ClassVar[list[str]] = []

    def extra_repr(self) -> str:
        shown = [f"{name}={getattr(self, name)!r}" for name in self.__constants__ if name != "inplace"]
        return ", ".join([*shown, "inplace=True"] if getattr(self, "inplace", False) else shown)


class _InPlace(_Activation):
    """An activation whose one setting is whether it overwrites its input."""

    __constants__: ClassVar = ["inplace"]
    inplace: bool

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace


class _Exponential(_Activation):
    """An activation whose negative results go towards a limit, and that may overwrite its input."""

    __constants__: ClassVar = ["alpha", "inplace"]
    alpha: float
    inplace: bool

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.alpha = alpha
        self.inplace = inplace


class _Shrink(_Activation):
    """An activation whose one setting is the half-width of what it sets to zero."""

    __constants__: ClassVar = ["lambd"]
    lambd: float

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def extra_repr(self) -> str:
        return str(self.lambd)


class _AlongDim(_Activation):
    """An activation whose one setting is the dimension along which it normalises."""

    __constants__: ClassVar = ["dim"]
    dim: int | None

    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.__dict__.setdefault("dim", None)


# ----- rectifiers ---------------------------------------------------------------------------------------------------


class Threshold(_Activation):
    """Replaces elements that are not above a threshold by a value.

    `output = input if input > threshold else value`

    Args:
        threshold (float): elements above it stay.
        value (float): what replaces the others.
        inplace (bool): whether the module overwrites its input instead of making a new tensor. Default: `False`.

    Shape:
        input: any shape
        output: the shape of the input

    Example:
        >>> flambeau.nn.Threshold(0.5, -1.0)(flambeau.tensor([0.2, 0.5, 0.9]))
        tensor([-1.0000, -1.0000,  0.9000])
    """

    __constants__: ClassVar = ["threshold", "value", "inplace"]
    threshold: float
    value: float
    inplace: bool

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        super().__init__()
        self.threshold = threshold
        self.value = value
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.threshold(input, self.threshold, self.value, self.inplace)


@documented_like(Threshold)
class ReLU(_InPlace):
    """The larger of the input and 0, element by element.

    `output = max(0, input)`

    Example:
        >>> flambeau.nn.ReLU()(flambeau.tensor([-1.0, 2.0]))
        tensor([0., 2.])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.relu(input, self.inplace)


@documented_like(Threshold)
class RReLU(_Activation):
    """A leaky ReLU whose slope below 0 is random in training.

    In training each negative element is multiplied by a number drawn uniformly from `[lower, upper)`; in evaluation all
    of them by `(lower + upper) / 2`.

    Args:
        lower (float): the smallest slope. Default: `1 / 8`.
        upper (float): the largest slope. Default: `1 / 3`.

    Example:
        >>> flambeau.nn.RReLU(0.1, 0.3).eval()(flambeau.tensor([-10.0, 5.0]))
        tensor([-2.,  5.])
    """

    __constants__: ClassVar = ["lower", "upper", "inplace"]
    lower: float
    upper: float
    inplace: bool

    def __init__(self, lower: float = 1.0 / 8, upper: float = 1.0 / 3, inplace: bool = False) -> None:
        super().__init__()
        self.lower = lower
        self.upper = upper
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)


@documented_like(Threshold)
class Hardtanh(_Activation):
    """Clips the input to a range.

    `output = min(max(input, min_val), max_val)`

    Args:
        min_val (float): the lower end of the range. Default: `-1.0`.
        max_val (float): the upper end of the range. Default: `1.0`.
        min_value (float, optional): the deprecated name of `min_val`.
        max_value (float, optional): the deprecated name of `max_val`.

    Example:
        >>> flambeau.nn.Hardtanh(-2.0, 2.0)(flambeau.tensor([-3.0, 0.5, 4.0]))
        tensor([-2.0000,  0.5000,  2.0000])
    """

    __constants__: ClassVar = ["min_val", "max_val", "inplace"]
    min_val: float
    max_val: float
    inplace: bool

    def __init__(
        self,
        min_val: float = -1.0,
        max_val: float = 1.0,
        inplace: bool = False,
        min_value: float | None = None,
        max_value: float | None = None,
    ) -> None:
        super().__init__()
        for old, new, value in (("min_value", "min_val", min_value), ("max_value", "max_val", max_value)):
            if value is not None:
                warnings.warn(
                    f"keyword argument `{old}` is deprecated and renamed to `{new}`", FutureWarning, stacklevel=2
                )
        self.min_val = min_val if min_value is None else min_value
        self.max_val = max_val if max_value is None else max_value
        self.inplace = inplace
        assert self.max_val > self.min_val, f"max_val ({self.max_val}) must be greater than min_val ({self.min_val})"

    def forward(self, input: Tensor) -> Tensor:
        return F.hardtanh(input, self.min_val, self.max_val, self.inplace)


@documented_like(Threshold)
class ReLU6(Hardtanh):
    """Clips the input to the range from 0 to 6.

    `output = min(max(0, input), 6)`

    Example:
        >>> flambeau.nn.ReLU6()(flambeau.tensor([-1.0, 3.0, 8.0]))
        tensor([0., 3., 6.])
    """

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(0.0, 6.0, inplace)

    def extra_repr(self) -> str:
        return "inplace=True" if self.inplace else ""


@documented_like(Threshold)
class LeakyReLU(_Activation):
    """Multiplies negative elements by a small slope and keeps the others.

    `output = input if input > 0 else negative_slope * input`

    Args:
        negative_slope (float): the factor of negative elements. Default: `0.01`.

    Example:
        >>> flambeau.nn.LeakyReLU(0.1)(flambeau.tensor([-10.0, 5.0]))
        tensor([-1.,  5.])
    """

    __constants__: ClassVar = ["inplace", "negative_slope"]
    negative_slope: float
    inplace: bool

    def __init__(self, negative_slope: float = 1e-2, inplace: bool = False) -> None:
        super().__init__()
        self.negative_slope = negative_slope
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.leaky_relu(input, self.negative_slope, self.inplace)


class PReLU(_Activation):
    """A leaky ReLU that learns its slope: one for all channels, or one for each.

    `output = input if input > 0 else weight * input`

    Args:
        num_parameters (int): how many slopes there are: 1, or the number of channels, which are dimension 1 of the
            input. Default: `1`.
        init (float): the value with which the slopes start. Default: `0.25`.
        device (device, optional): where the parameters and buffers lie; None means the default device.
        dtype (dtype, optional): the dtype of the parameters and buffers; None means the default dtype.

    Shape:
        input: any shape; (N, C, ...) with more than one slope
        output: the shape of the input

    Attributes:
        weight (Parameter): the slopes, (num_parameters,)

    Raises:
        RuntimeError: the input has another number of channels than `num_parameters`, where that is not 1.

    Example:
        >>> layer = flambeau.nn.PReLU()
        >>> layer(flambeau.tensor([-4.0, 4.0])).tolist()
        [-1.0, 4.0]
        >>> layer.weight.tolist()
        [0.25]
    """

    __constants__: ClassVar = ["num_parameters"]
    num_parameters: int
    weight: Tensor

    def __init__(self, num_parameters: int = 1, init: float = 0.25, device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        self.num_parameters = num_parameters
        self.init = init
        self.weight = Parameter(empty(num_parameters, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set all slopes to the initial one."""
        init.constant_(self.weight, self.init)

    def forward(self, input: Tensor) -> Tensor:
        return F.prelu(input, self.weight)


@documented_like(Threshold)
class ELU(_Exponential):
    """Keeps positive elements and lets negative ones fall smoothly towards a limit.

    `output = input if input > 0 else alpha * (exp(input) - 1)`

    Args:
        alpha (float): how far below zero the limit is. Default: `1.0`.

    Example:
        >>> flambeau.nn.ELU()(flambeau.tensor([-1.0, 0.0, 2.0]))
        tensor([-0.6321,  0.0000,  2.0000])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.elu(input, self.alpha, self.inplace)


@documented_like(ELU)
class CELU(_Exponential):
    """An exponential linear unit whose derivative has no jump, whatever `alpha` is.

    `output = max(0, input) + min(0, alpha * (exp(input / alpha) - 1))`

    Example:
        >>> flambeau.nn.CELU(2.0)(flambeau.tensor([-2.0, 0.0, 2.0]))
        tensor([-1.2642,  0.0000,  2.0000])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.celu(input, self.alpha, self.inplace)


@documented_like(Threshold)
class SELU(_InPlace):
    """An exponential linear unit, scaled so that activations keep zero mean and unit variance from layer to layer.

    `output = scale * (max(0, input) + min(0, alpha * (exp(input) - 1)))` with `scale` about 1.0507 and `alpha` about
    1.6733.

    Example:
        >>> flambeau.nn.SELU()(flambeau.tensor([-1.0, 0.0, 2.0]))
        tensor([-1.1113,  0.0000,  2.1014])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.selu(input, self.inplace)


# ----- smooth ones --------------------------------------------------------------------------------------------------


class Sigmoid(Module):
    """The logistic function of each element, between 0 and 1.

    `output = 1 / (1 + exp(-input))`

    Shape:
        input: any shape
        output: the shape of the input

    Example:
        >>> flambeau.nn.Sigmoid()(flambeau.tensor([-2.0, 0.0, 2.0]))
        tensor([0.1192, 0.5000, 0.8808])
    """

    def forward(self, input: Tensor) -> Tensor:
        return sigmoid(input)


class Tanh(Module):
    """The hyperbolic tangent of each element, between -1 and 1.

    Shape:
        input: any shape
        output: the shape of the input

    Example:
        >>> flambeau.nn.Tanh()(flambeau.tensor([-1.0, 0.0, 1.0]))
        tensor([-0.7616,  0.0000,  0.7616])
    """

    def forward(self, input: Tensor) -> Tensor:
        return tanh(input)


class LogSigmoid(Module):
    """The logarithm of the logistic function, exact for large negative elements too.

    `output = log(1 / (1 + exp(-input)))`

    Shape:
        input: any shape
        output: the shape of the input

    Example:
        >>> flambeau.nn.LogSigmoid()(flambeau.tensor([-100.0, 0.0, 2.0]))
        tensor([-100.0000,   -0.6931,   -0.1269])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.logsigmoid(input)


class Softsign(Module):
    """Divides each element by one more than its absolute value.

    `output = input / (1 + abs(input))`

    Shape:
        input: any shape
        output: the shape of the input

    Example:
        >>> flambeau.nn.Softsign()(flambeau.tensor([-1.0, 0.0, 3.0]))
        tensor([-0.5000,  0.0000,  0.7500])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.softsign(input)


class Tanhshrink(Module):
    """The difference between each element and its hyperbolic tangent.

    `output = input - tanh(input)`

    Shape:
        input: any shape
        output: the shape of the input

    Example:
        >>> flambeau.nn.Tanhshrink()(flambeau.tensor([-1.0, 0.0, 1.0]))
        tensor([-0.2384,  0.0000,  0.2384])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.tanhshrink(input)


@documented_like(Threshold)
class SiLU(_InPlace):
    """Multiplies each element by its logistic function; also known as swish.

    `output = input * sigmoid(input)`

    Example:
        >>> flambeau.nn.SiLU()(flambeau.tensor([-1.0, 0.0, 2.0]))
        tensor([-0.2689,  0.0000,  1.7616])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.silu(input, self.inplace)


@documented_like(Threshold)
class Mish(_InPlace):
    """A smooth activation that is a little negative left of zero.

    `output = input * tanh(log(1 + exp(input)))`

    Example:
        >>> flambeau.nn.Mish()(flambeau.tensor([-1.0, 0.0, 2.0]))
        tensor([-0.3034,  0.0000,  1.9440])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.mish(input, self.inplace)


class GELU(_Activation):
    """Multiplies each element by the probability that a standard normal variable is smaller.

    `output = input * 0.5 * (1 + erf(input / sqrt(2)))`, or with `approximate="tanh"` a formula in tanh that comes close
    to it.

    Args:
        approximate (str): `"none"` for the exact function, `"tanh"` for the approximation. Default: `"none"`.

    Shape:
        input: any shape
        output: the shape of the input

    Example:
        >>> flambeau.nn.GELU()(flambeau.tensor([-1.0, 0.0, 2.0]))
        tensor([-0.1587,  0.0000,  1.9545])
    """

    __constants__: ClassVar = ["approximate"]
    approximate: str

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, input: Tensor) -> Tensor:
        return F.gelu(input, approximate=self.approximate)


class Softplus(_Activation):
    """A smooth version of ReLU.

    `output = log(1 + exp(beta * input)) / beta`; the input itself where `beta * input > threshold`.

    Args:
        beta (float): how sharp the bend at zero is. Default: `1.0`.
        threshold (float): above it the function is taken as linear, which avoids overflow. Default: `20.0`.

    Shape:
        input: any shape
        output: the shape of the input

    Example:
        >>> flambeau.nn.Softplus()(flambeau.tensor([-1.0, 0.0, 30.0]))
        tensor([ 0.3133,  0.6931, 30.0000])
    """

    __constants__: ClassVar = ["beta", "threshold"]
    beta: float
    threshold: float

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__()
        self.beta = beta
        self.threshold = threshold

    def forward(self, input: Tensor) -> Tensor:
        return F.softplus(input, self.beta, self.threshold)


class GLU(_Activation):
    """Multiplies the first half of the input by the sigmoid of the second half: a gated linear unit.

    Args:
        dim (int): the dimension that is halved. Default: `-1`.

    Shape:
        input: (*, 2n, *), with 2n along `dim`
        output: (*, n, *)

    Raises:
        RuntimeError: the size of `dim` is odd.

    Example:
        >>> flambeau.nn.GLU()(flambeau.tensor([1.0, 2.0, 0.0, 100.0]))
        tensor([0.5000, 2.0000])
    """

    __constants__: ClassVar = ["dim"]
    dim: int

    def __init__(self, dim: int = -1) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        return F.glu(input, self.dim)


# ----- hard ones ----------------------------------------------------------------------------------------------------


class _Silent(_InPlace):
    """An activation that does not print whether it overwrites its input."""

    def extra_repr(self) -> str:
        return ""


@documented_like(Threshold)
class Hardsigmoid(_Silent):
    """A sigmoid of straight lines.

    `output = min(max(0, input + 3), 6) / 6`

    Example:
        >>> flambeau.nn.Hardsigmoid()(flambeau.tensor([-4.0, 0.0, 1.5]))
        tensor([0.0000, 0.5000, 0.7500])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.hardsigmoid(input, self.inplace)


@documented_like(Threshold)
class Hardswish(_Silent):
    """Multiplies each element by its `Hardsigmoid`: a cheap form of `SiLU`.

    `output = input * min(max(0, input + 3), 6) / 6`

    Example:
        >>> flambeau.nn.Hardswish()(flambeau.tensor([-4.0, 0.0, 1.5]))
        tensor([-0.0000, 0.0000, 1.1250])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.hardswish(input, self.inplace)


class Hardshrink(_Shrink):
    """Replaces elements near zero by 0 and keeps the others.

    `output = input if abs(input) > lambd else 0`

    Args:
        lambd (float): how near zero is near. Default: `0.5`.

    Shape:
        input: any shape
        output: the shape of the input

    Example:
        >>> flambeau.nn.Hardshrink()(flambeau.tensor([-1.0, 0.3, 0.7]))
        tensor([-1.0000,  0.0000,  0.7000])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.hardshrink(input, self.lambd)


class Softshrink(_Shrink):
    """Moves each element towards zero by `lambd`; what would pass zero becomes 0.

    `output = sign(input) * max(abs(input) - lambd, 0)`

    Args:
        lambd (float): by how much; not negative. Default: `0.5`.

    Shape:
        input: any shape
        output: the shape of the input

    Raises:
        RuntimeError: `lambd` is negative; raised by the call.

    Example:
        >>> flambeau.nn.Softshrink()(flambeau.tensor([-1.0, 0.3, 2.0]))
        tensor([-0.5000,  0.0000,  1.5000])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.softshrink(input, self.lambd)


# ----- normalising ones ---------------------------------------------------------------------------------------------


class Softmax(_AlongDim):
    """Makes positive numbers that sum to 1 along a dimension.

    `output = exp(input) / sum(exp(input), dim)`

    Args:
        dim (int, optional): the dimension along which results sum to 1; None guesses it, with a warning.

    Shape:
        input: any shape
        output: the shape of the input

    Raises:
        IndexError: `dim` is not a dimension of the input.

    Example:
        >>> flambeau.nn.Softmax(dim=1)(flambeau.tensor([[0.0, 0.0, 0.0, 0.0]]))
        tensor([[0.2500, 0.2500, 0.2500, 0.2500]])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.softmax(input, self.dim, _stacklevel=5)


class LogSoftmax(_AlongDim):
    """The logarithm of the softmax, computed without forming the softmax.

    `output = input - log(sum(exp(input), dim))`

    Args:
        dim (int, optional): the dimension to normalise along; None guesses it, with a warning.

    Shape:
        input: any shape
        output: the shape of the input

    Example:
        >>> flambeau.nn.LogSoftmax(dim=0)(flambeau.tensor([1.0, 1.0]))
        tensor([-0.6931, -0.6931])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.log_softmax(input, self.dim, _stacklevel=5)


@documented_like(Softmax)
class Softmin(_AlongDim):
    """The softmax of the negated input: the smallest element gets the largest share.

    `output = exp(-input) / sum(exp(-input), dim)`

    Example:
        >>> flambeau.nn.Softmin(dim=0)(flambeau.tensor([1.0, 1.0]))
        tensor([0.5000, 0.5000])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.softmin(input, self.dim, _stacklevel=5)


class Softmax2d(Module):
    """The softmax over the channels of images, at each pixel.

    Shape:
        input: (N, C, H, W) or (C, H, W)
        output: the shape of the input

    Raises:
        ValueError: the input has neither 3 nor 4 dimensions; raised by the call.

    Example:
        >>> flambeau.nn.Softmax2d()(flambeau.zeros(4, 1, 2)).sum(0)
        tensor([[1., 1.]])
    """

    def forward(self, input: Tensor) -> Tensor:
        if input.dim() not in (3, 4):
            raise ValueError(f"Softmax2d: expected input to be 3D or 4D, got {input.dim()}D instead")
        return F.softmax(input, -3, _stacklevel=5)
