"""An optimizer whose steps are followed by averages of the models."""

from __future__ import annotations

from typing import Any

from ...optim.optimizer import Optimizer
from ..algorithms.model_averaging.averagers import ModelAverager

__all__ = ["PostLocalSGDOptimizer"]


class PostLocalSGDOptimizer(Optimizer):
    """Runs an optimizer, and lets an averager make the models of the processes one when it is time."""

    def __init__(self, optim: Optimizer, averager: ModelAverager) -> None:
        self.optim = optim
        self.param_groups, self.state = optim.param_groups, optim.state
        self.averager = averager

    def __repr__(self) -> str:
        return self.optim.__repr__()

    def state_dict(self) -> dict[str, Any]:
        """The state of the optimizer, and how many steps the averager has counted."""
        return {**self.optim.state_dict(), "step": self.averager.step}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continue where a state was taken; without a count of steps, the averager starts anew."""
        self.optim.load_state_dict(state_dict)
        self.param_groups, self.state = self.optim.param_groups, self.optim.state
        self.averager.step = state_dict.get("step", 0)

    def step(self, closure: Any = None) -> Any:
        """Train, and average if it is time. Nothing is returned, as in PyTorch: the loss of `closure` is lost."""
        self.optim.step(closure)
        self.averager.average_parameters(params=self.param_groups)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Set the gradients to None or to zeros."""
        self.optim.zero_grad(set_to_none=set_to_none)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Train a further group of parameters."""
        self.optim.add_param_group(param_group)
