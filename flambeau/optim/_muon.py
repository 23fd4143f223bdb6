"""Muon."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

from .._core.tensor import Tensor
from ._options import chosen, kept, run_on
from ._update import as_scalar, number, update_alike
from .optimizer import Group, GroupOptimizer, ParamsT, check_lr

__all__ = ["Muon", "muon"]


class Muon(GroupOptimizer):
    """Momentum for matrices, each update replaced by a nearby orthogonal matrix.

    Made for the hidden layers of a network: give biases, embeddings and the like to `AdamW`. With
    `adjust_lr_fn="match_rms_adamw"` learning rates are those of `AdamW` (https://arxiv.org/abs/2502.16982). See
    https://kellerjordan.github.io/posts/muon/.

    Args:
        params (iterable of Tensors or dicts): the parameters to optimise, or dicts of parameter groups with options of
            their own.
        lr (float): the learning rate: the factor of every update. Default: `0.001`.
        weight_decay (float): by what part of themselves, times the learning rate, parameters shrink at each step.
            Default: `0.1`.
        momentum (float): how much of the previous update is kept. Default: `0.95`.
        nesterov (bool): whether to look ahead: the update is the gradient plus the momentum that follows from it.
            Default: `True`.
        ns_coefficients (tuple[float, float, float]): the three coefficients of the Newton-Schulz iteration that makes
            an update orthogonal. Default: `(3.4445, -4.775, 2.0315)`.
        eps (float): a small number that is added to the denominator, so that it is never zero. Default: `1e-07`.
        ns_steps (int): how many of these iterations are done. Default: `5`.
        adjust_lr_fn (str, optional): how the learning rate follows the matrix's shape: "original" or
            "match_rms_adamw".

    Example:
        >>> weight = torch.ones(2, 2, requires_grad=True)
        >>> optimizer = torch.optim.Muon([weight], lr=0.1, weight_decay=0.0)
        >>> (weight * torch.eye(2)).sum().backward()
        >>> optimizer.step()
        >>> weight.shape, bool(weight[0, 0] < 1)
        (torch.Size([2, 2]), True)
    """

    _ADDED_OPTIONS: ClassVar[dict[str, Any]] = {}

    def __init__(
        self,
        params: ParamsT,
        lr: float = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = (3.4445, -4.7750, 2.0315),
        eps: float = 1e-7,
        ns_steps: int = 5,
        adjust_lr_fn: str | None = None,
    ) -> None:
        check_lr(lr, "Learning rate should be >= 0 but is: {}")
        if not momentum >= 0.0:
            raise ValueError(f"momentum should be >= 0 but is: {momentum}")
        if not weight_decay >= 0.0:
            raise ValueError(f"weight decay should be >= 0 but is: {weight_decay}")
        if adjust_lr_fn not in (None, "original", "match_rms_adamw"):
            raise ValueError(
                f"Adjust learning rate function {adjust_lr_fn} is not supported: 'original' and 'match_rms_adamw' are"
            )
        defaults = chosen(locals(), "lr weight_decay momentum nesterov ns_coefficients eps ns_steps adjust_lr_fn")
        super().__init__(params, defaults)
        for group in self.param_groups:
            for param in group["params"]:
                if param.ndim != 2:
                    raise ValueError(
                        f"Muon only supports 2D parameters whereas we found a parameter with size: {param.shape}"
                    )

    def _initial_state(self, param: Any, group: Group) -> dict[str, Any]:
        from .._ops.create.like import zeros_like

        return {"momentum_buffer": zeros_like(param.grad)}

    def _update(self, group: Group) -> None:
        params, grads, states = self._gather(group)
        if any(each.is_complex() for each in params):
            raise RuntimeError("Muon does not support complex parameters")
        run_on(muon, group, params, grads, *kept(states, "momentum_buffer"), has_complex=False)


def muon(
    params: list[Tensor],
    grads: list[Tensor],
    muon_momentum_bufs: list[Tensor],
    *,
    foreach: bool | None = None,
    lr: float,
    weight_decay: float,
    momentum: float,
    nesterov: bool,
    ns_coefficients: tuple[float, float, float],
    ns_steps: int,
    eps: float,
    adjust_lr_fn: str | None,
    has_complex: bool,
) -> None:
    """One step of `Muon` for each parameter."""
    if foreach:
        raise RuntimeError("Foreach is not supported for Muon yet")
    if has_complex:
        raise ValueError("Complex parameters are not supported")
    lr = as_scalar(lr)
    for grad in grads:
        if grad.ndim != 2:
            raise ValueError(f"Param gradient must be a 2D matrix, it has shape {list(grad.shape)}")

    def rule(_: Any, params: Any, grads: Any, buffers: Any) -> None:
        buffers.lerp_(grads, 1 - momentum)
        updates = grads.lerp(buffers, momentum) if nesterov else buffers
        directions = _orthogonalized(updates, ns_coefficients, ns_steps, eps)
        params.mul_(1 - lr * weight_decay)
        params.add_(directions, alpha=number(-lr * _learning_rate_factor(adjust_lr_fn, params.shape[1:])))

    update_alike(rule, None, params, grads, muon_momentum_bufs)


def _orthogonalized(updates: Any, coefficients: tuple[float, float, float], steps: int, eps: float) -> Any:
    """A stack of matrices with all singular values brought near one: a polynomial iteration in half precision."""
    if steps >= 100:
        raise ValueError(f"Number of steps must be less than 100 for computational efficiency, ns_steps is {steps}")
    if len(coefficients) != 3:
        raise ValueError(f"Coefficients must be a tuple of exactly 3 values, they are {coefficients}")
    linear, cubic, quintic = coefficients
    matrices = updates.bfloat16()
    tall = matrices.shape[1] > matrices.shape[2]
    if tall:
        matrices = matrices.mT
    matrices = matrices / matrices.norm(dim=(1, 2), keepdim=True).clamp(min=eps)
    for _ in range(steps):
        gram = matrices @ matrices.mT
        polynomial = gram.baddbmm(gram, gram, beta=cubic, alpha=quintic)
        matrices = matrices.baddbmm(polynomial, matrices, beta=linear)
    return matrices.mT if tall else matrices


def _learning_rate_factor(adjust: str | None, shape: Sequence[int]) -> float:
    """The factor of the learning rate that makes updates of matrices of all shapes equally large."""
    if adjust == "match_rms_adamw":
        return 0.2 * math.sqrt(max(shape))
    return math.sqrt(max(1, shape[0] / shape[1]))
