"""Activation functions as modules.

Each is its function in `nn.functional` with its settings as attributes, which `__constants__` names.
"""

from __future__ import annotations

import warnings
from typing import Any, ClassVar

from ..._core.tensor import Tensor
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
    """`input` where it is above `threshold`, elsewhere `value`."""

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


class ReLU(_InPlace):
    """The larger of `input` and 0.

    >>> flambeau.nn.ReLU()(flambeau.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.relu(input, self.inplace)


class RReLU(_Activation):
    """A leaky ReLU whose slope below 0 is drawn from [lower, upper) in training, and their mean in evaluation."""

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


class Hardtanh(_Activation):
    """`input` clipped to [min_val, max_val]."""

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


class ReLU6(Hardtanh):
    """`input` clipped to [0, 6]."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(0.0, 6.0, inplace)

    def extra_repr(self) -> str:
        return "inplace=True" if self.inplace else ""


class LeakyReLU(_Activation):
    """`input` where it is positive, elsewhere `negative_slope * input`."""

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
    """A leaky ReLU that learns its slope: one for all channels, or one for each."""

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


class ELU(_Activation):
    """`input` where it is positive, elsewhere `alpha * (exp(input) - 1)`."""

    __constants__: ClassVar = ["alpha", "inplace"]
    alpha: float
    inplace: bool

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.alpha = alpha
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.elu(input, self.alpha, self.inplace)


class CELU(_Activation):
    """`max(0, input) + min(0, alpha * (exp(input / alpha) - 1))`."""

    __constants__: ClassVar = ["alpha", "inplace"]
    alpha: float
    inplace: bool

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.alpha = alpha
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.celu(input, self.alpha, self.inplace)


class SELU(_InPlace):
    """ELU, scaled so that activations keep zero mean and unit variance."""

    def forward(self, input: Tensor) -> Tensor:
        return F.selu(input, self.inplace)


# ----- smooth ones --------------------------------------------------------------------------------------------------


class Sigmoid(Module):
    """`1 / (1 + exp(-input))`."""

    def forward(self, input: Tensor) -> Tensor:
        return sigmoid(input)


class Tanh(Module):
    """The hyperbolic tangent."""

    def forward(self, input: Tensor) -> Tensor:
        return tanh(input)


class LogSigmoid(Module):
    """`log(1 / (1 + exp(-input)))`."""

    def forward(self, input: Tensor) -> Tensor:
        return F.logsigmoid(input)


class Softsign(Module):
    """`input / (1 + |input|)`."""

    def forward(self, input: Tensor) -> Tensor:
        return F.softsign(input)


class Tanhshrink(Module):
    """`input - tanh(input)`."""

    def forward(self, input: Tensor) -> Tensor:
        return F.tanhshrink(input)


class SiLU(_InPlace):
    """`input * sigmoid(input)`."""

    def forward(self, input: Tensor) -> Tensor:
        return F.silu(input, self.inplace)


class Mish(_InPlace):
    """`input * tanh(softplus(input))`."""

    def forward(self, input: Tensor) -> Tensor:
        return F.mish(input, self.inplace)


class GELU(_Activation):
    """`input` times the normal distribution function of it, or the tanh approximation of that."""

    __constants__: ClassVar = ["approximate"]
    approximate: str

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, input: Tensor) -> Tensor:
        return F.gelu(input, approximate=self.approximate)


class Softplus(_Activation):
    """`log(1 + exp(beta * input)) / beta`, and `input` itself where `beta * input` is above `threshold`."""

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
    """The first half along `dim`, times the sigmoid of the second half."""

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


class Hardsigmoid(_Silent):
    """`relu6(input + 3) / 6`."""

    def forward(self, input: Tensor) -> Tensor:
        return F.hardsigmoid(input, self.inplace)


class Hardswish(_Silent):
    """`input * relu6(input + 3) / 6`."""

    def forward(self, input: Tensor) -> Tensor:
        return F.hardswish(input, self.inplace)


class Hardshrink(_Shrink):
    """`input` where its size is above `lambd`, elsewhere 0."""

    def forward(self, input: Tensor) -> Tensor:
        return F.hardshrink(input, self.lambd)


class Softshrink(_Shrink):
    """`input` moved by `lambd` towards 0, and 0 where it would pass it."""

    def forward(self, input: Tensor) -> Tensor:
        return F.softshrink(input, self.lambd)


# ----- normalising ones ---------------------------------------------------------------------------------------------


class Softmax(_AlongDim):
    """`exp(input)`, divided by its sum along `dim`.

    >>> flambeau.nn.Softmax(dim=0)(flambeau.zeros(4))
    tensor([0.2500, 0.2500, 0.2500, 0.2500])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.softmax(input, self.dim, _stacklevel=5)


class LogSoftmax(_AlongDim):
    """The logarithm of the softmax."""

    def forward(self, input: Tensor) -> Tensor:
        return F.log_softmax(input, self.dim, _stacklevel=5)


class Softmin(_AlongDim):
    """The softmax of `-input`."""

    def forward(self, input: Tensor) -> Tensor:
        return F.softmin(input, self.dim, _stacklevel=5)


class Softmax2d(Module):
    """The softmax over the channels of images, with or without a batch."""

    def forward(self, input: Tensor) -> Tensor:
        if input.dim() not in (3, 4):
            raise ValueError(f"Softmax2d: expected input to be 3D or 4D, got {input.dim()}D instead")
        return F.softmax(input, -3, _stacklevel=5)
