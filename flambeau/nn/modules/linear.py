"""Linear layers: `Linear`, `Bilinear`, their lazy forms, and `Identity`."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from ..._core.tensor import Tensor
from ..._ops.create.constants import empty
from .. import functional as F
from .. import init
from ..parameter import Parameter, UninitializedParameter
from .lazy import LazyModuleMixin
from .module import Module

__all__ = ["Bilinear", "Identity", "LazyLinear", "Linear"]


class Identity(Module):
    """Gives its input back; it takes any arguments and ignores them.

    It stands for a layer that is left out.

    Args:
        *args: ignored.
        **kwargs: ignored.

    Shape:
        input: any shape
        output: the shape of the input

    Example:
        >>> flambeau.nn.Identity(54, unused=True)(flambeau.tensor([1.0, 2.0]))
        tensor([1., 2.])
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, input: Tensor) -> Tensor:
        return input


class Linear(Module):
    """Multiplies the last dimension of the input by a learned matrix and adds a bias.

    `output = input @ weight.T + bias`

    Both parameters start uniformly distributed within `1 / sqrt(in_features)`.

    Args:
        in_features (int): the size of the input's last dimension.
        out_features (int): the size of the output's last dimension.
        bias (bool): whether the module learns a bias that it adds to the result. Default: `True`.
        device (device, optional): where the parameters and buffers lie; None means the default device.
        dtype (dtype, optional): the dtype of the parameters and buffers; None means the default dtype.

    Shape:
        input: (*, in_features)
        output: (*, out_features)

    Attributes:
        weight (Parameter): (out_features, in_features)
        bias (Parameter or None): (out_features,)

    Raises:
        RuntimeError: the last dimension of the input is not `in_features`.

    Example:
        >>> layer = flambeau.nn.Linear(20, 30)
        >>> layer(flambeau.ones(128, 20)).shape
        torch.Size([128, 30])
        >>> layer.weight.shape
        torch.Size([30, 20])
    """

    __constants__: ClassVar = ["in_features", "out_features"]
    in_features: int
    out_features: int
    weight: Tensor
    bias: Tensor | None

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        self.in_features = in_features
        self.out_features = out_features
        self.weight = Parameter(empty((out_features, in_features), device=device, dtype=dtype))
        if bias:
            self.bias = Parameter(empty(out_features, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw weight and bias anew, uniformly within 1 / sqrt(in_features)."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            fan_in, _ = init._calculate_fan_in_and_fan_out(self.weight)
            bound = 1 / math.sqrt(fan_in) if fan_in > 0 else 0
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input: Tensor) -> Tensor:
        return F.linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


class NonDynamicallyQuantizableLinear(Linear):
    """`Linear` under the name that `MultiheadAttention` prints for its output projection."""


class Bilinear(Module):
    """A learned bilinear form of two inputs for each output feature.

    `output[k] = input1 @ weight[k] @ input2 + bias[k]`

    Args:
        in1_features (int): the size of the first input's last dimension; positive.
        in2_features (int): the size of the second input's last dimension.
        out_features (int): the size of the output's last dimension.
        bias (bool): whether the module learns a bias that it adds to the result. Default: `True`.
        device (device, optional): where the parameters and buffers lie; None means the default device.
        dtype (dtype, optional): the dtype of the parameters and buffers; None means the default dtype.

    Shape:
        input1: (*, in1_features)
        input2: (*, in2_features)
        output: (*, out_features)

    Attributes:
        weight (Parameter): (out_features, in1_features, in2_features)
        bias (Parameter or None): (out_features,)

    Raises:
        ValueError: `in1_features` is not positive.

    Example:
        >>> layer = flambeau.nn.Bilinear(20, 30, 40)
        >>> layer(flambeau.ones(128, 20), flambeau.ones(128, 30)).shape
        torch.Size([128, 40])
    """

    __constants__: ClassVar = ["in1_features", "in2_features", "out_features"]
    in1_features: int
    in2_features: int
    out_features: int
    weight: Tensor
    bias: Tensor | None

    def __init__(
        self,
        in1_features: int,
        in2_features: int,
        out_features: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if in1_features <= 0:
            raise ValueError(f"in1_features must be > 0, but got (in1_features={in1_features})")
        self.in1_features = in1_features
        self.in2_features = in2_features
        self.out_features = out_features
        self.weight = Parameter(empty((out_features, in1_features, in2_features), device=device, dtype=dtype))
        if bias:
            self.bias = Parameter(empty(out_features, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw weight and bias anew, uniformly within 1 / sqrt(in1_features)."""
        bound = 1 / math.sqrt(self.weight.size(1))
        init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input1: Tensor, input2: Tensor) -> Tensor:
        return F.bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self) -> str:
        return (
            f"in1_features={self.in1_features}, in2_features={self.in2_features}, "
            f"out_features={self.out_features}, bias={self.bias is not None}"
        )


class LazyLinear(LazyModuleMixin, Linear):
    """A `Linear` that takes `in_features` from its first input.

    Until then its parameters have no shape; after the first call the module is a `Linear`.

    Args:
        out_features (int): the size of the output's last dimension.
        bias (bool): whether the module learns a bias that it adds to the result. Default: `True`.
        device (device, optional): where the parameters and buffers lie; None means the default device.
        dtype (dtype, optional): the dtype of the parameters and buffers; None means the default dtype.

    Shape:
        input: (*, in_features)
        output: (*, out_features)

    Example:
        >>> layer = flambeau.nn.LazyLinear(3)
        >>> layer(flambeau.ones(2, 5)).shape
        torch.Size([2, 3])
        >>> layer
        Linear(in_features=5, out_features=3, bias=True)
    """

    cls_to_become = Linear
    weight: UninitializedParameter
    bias: UninitializedParameter | None

    def __init__(self, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None) -> None:
        # A layer without elements costs nothing; its weight and bias are then replaced.
        super().__init__(0, 0, False)
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        self.out_features = out_features
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        if not self.has_uninitialized_params() and self.in_features != 0:
            super().reset_parameters()

    def initialize_parameters(self, input: Tensor) -> None:
        """Take the input features from the last dimension of `input`."""
        features = input.shape[-1]
        if self.has_uninitialized_params():
            self.in_features = features
            self.weight.materialize((self.out_features, features))
            if self.bias is not None:
                self.bias.materialize((self.out_features,))
            self.reset_parameters()
        elif self.in_features == 0:
            loaded = self.weight.size(-1)  # from a state dict
            assert features == loaded, (
                f"The in_features inferred from input: {features} is not equal to in_features from self.weight: "
                f"{loaded}"
            )
            self.in_features = features
