"""The updates of all optimizers as functions of lists of tensors."""

from __future__ import annotations

import math
from typing import Any

from .._core.tensor import Tensor
from .adadelta import adadelta
from .adagrad import adagrad
from .adam import adam
from .adamax import adamax
from .adamw import adamw
from .asgd import asgd
from .nadam import nadam
from .radam import radam
from .rmsprop import rmsprop
from .rprop import rprop
from .sgd import sgd

__all__ = [
    "adadelta",
    "adagrad",
    "adam",
    "adamax",
    "adamw",
    "asgd",
    "nadam",
    "radam",
    "rmsprop",
    "rprop",
    "sgd",
    "sparse_adam",
]


def sparse_adam(
    params: list[Tensor],
    grads: list[Tensor],
    exp_avgs: list[Tensor],
    exp_avg_sqs: list[Tensor],
    state_steps: list[int],
    *,
    eps: float,
    beta1: float,
    beta2: float,
    lr: float,
    maximize: bool,
) -> None:
    """One step of `SparseAdam` for each parameter: only the elements that the gradients name are read and changed."""
    sparse: Any
    for param, sparse, mean, square, step in zip(params, grads, exp_avgs, exp_avg_sqs, state_steps, strict=True):
        sparse = sparse.coalesce()
        where = tuple(sparse._indices())
        grad = -sparse._values() if maximize else sparse._values()
        if grad.numel() == 0:
            continue
        means = mean[where].lerp_(grad, 1 - beta1)
        squares = square[where].lerp_(grad * grad, 1 - beta2)
        mean[where] = means
        square[where] = squares
        size = lr * math.sqrt(1 - beta2**step) / (1 - beta1**step)
        param[where] = param[where].addcdiv_(means, squares.sqrt().add_(eps), value=-size)
