"""A small convolutional network for 28x28 digits, written on plain tensors.

Images are laid out as (batch, height, width, channels): a convolution is then one matrix product whose result needs no
transposition. Read it top down; `step into` any line with a debugger, including the backward pass.
"""

from __future__ import annotations

import math

import flambeau as torch
from flambeau import Tensor

KERNEL = 5


def conv2d(images: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Valid 5x5 convolution: (batch, h, w, c) to (batch, h - 4, w - 4, channels of `weight`)."""
    windows = images.unfold(1, KERNEL, 1).unfold(2, KERNEL, 1)  # (batch, h - 4, w - 4, c, 5, 5), a view
    batch, height, width = windows.shape[:3]
    columns = windows.reshape(batch * height * width, -1)
    return (columns @ weight + bias).view(batch, height, width, -1)


def max_pool2d(images: Tensor) -> Tensor:
    """The largest value of each 2x2 block."""
    batch, height, width, channels = images.shape
    return images.view(batch, height // 2, 2, width // 2, 2, channels).amax(dim=(2, 4))


def cross_entropy(scores: Tensor, labels: Tensor) -> Tensor:
    """Mean negative log-likelihood of the right class."""
    log_probabilities = scores.log_softmax(dim=1)
    return -log_probabilities.gather(1, labels.unsqueeze(1)).mean()


def uniform_parameter(*shape: int, fan_in: int) -> Tensor:
    """A leaf tensor drawn from U(-1/sqrt(fan_in), 1/sqrt(fan_in))."""
    bound = 1 / math.sqrt(fan_in)
    return torch.empty(*shape).uniform_(-bound, bound).requires_grad_()


class ConvNet:
    """Two convolutions with max pooling, then two linear layers; 21,840 parameters."""

    def __init__(self) -> None:
        window = KERNEL * KERNEL
        self.conv1_weight = uniform_parameter(window, 10, fan_in=window)
        self.conv1_bias = uniform_parameter(10, fan_in=window)
        self.conv2_weight = uniform_parameter(10 * window, 20, fan_in=10 * window)
        self.conv2_bias = uniform_parameter(20, fan_in=10 * window)
        self.fc1_weight = uniform_parameter(320, 50, fan_in=320)
        self.fc1_bias = uniform_parameter(50, fan_in=320)
        self.fc2_weight = uniform_parameter(50, 10, fan_in=50)
        self.fc2_bias = uniform_parameter(10, fan_in=50)

    def parameters(self) -> list[Tensor]:
        """Every tensor that training changes."""
        return list(vars(self).values())

    def __call__(self, images: Tensor) -> Tensor:
        """Scores of the ten classes for images of shape (batch, 28, 28, 1)."""
        x = max_pool2d(conv2d(images, self.conv1_weight, self.conv1_bias).relu())  # (batch, 12, 12, 10)
        x = max_pool2d(conv2d(x, self.conv2_weight, self.conv2_bias).relu())  # (batch, 4, 4, 20)
        x = (x.view(x.size(0), -1) @ self.fc1_weight + self.fc1_bias).relu()
        return x @ self.fc2_weight + self.fc2_bias


class SGD:
    """Stochastic gradient descent with momentum."""

    def __init__(self, parameters: list[Tensor], lr: float, momentum: float) -> None:
        self.parameters = parameters
        self.velocities = [torch.zeros_like(parameter) for parameter in parameters]
        self.lr = lr
        self.momentum = momentum

    @torch.no_grad()
    def step(self) -> None:
        """Move each parameter against its gradient, then clear the gradient."""
        for parameter, velocity in zip(self.parameters, self.velocities, strict=True):
            assert parameter.grad is not None
            velocity.mul_(self.momentum).add_(parameter.grad)
            parameter.sub_(velocity, alpha=self.lr)
            parameter.grad = None
