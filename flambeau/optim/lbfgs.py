"""L-BFGS."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._core.tensor import Tensor
from ..autograd.grad_mode import enable_grad, no_grad
from ._update import as_real, as_scalar, number
from ._wolfe import Point, strong_wolfe
from .optimizer import Optimizer, ParamsT, check_lr

__all__ = ["LBFGS"]


class LBFGS(Optimizer):
    """Newton's method, with the curvature estimated from the last `history_size` steps.

    `step` evaluates the closure several times: up to `max_eval`, in up to `max_iter` iterations. All parameters are one
    group. `line_search_fn` is None or "strong_wolfe".

    Args:
        params (iterable of Tensors or dicts): the parameters to optimise, or dicts of parameter groups with options of
            their own.
        lr (float or Tensor): the learning rate: the factor of every update. Default: `1`.
        max_iter (int): how many iterations one call of `step` may take. Default: `20`.
        max_eval (int, optional): how often one call of `step` may run the closure; None means `1.25 * max_iter`.
        tolerance_grad (float): the size of the largest gradient at which `step` stops. Default: `1e-07`.
        tolerance_change (float): the change of the loss or of the parameters at which `step` stops. Default: `1e-09`.
        history_size (int): how many past steps the estimate of the curvature uses. Default: `100`.
        line_search_fn (str, optional): "strong_wolfe" searches a good length for each step; None takes `lr`.

    Raises:
        ValueError: there is more than one parameter group.

    Example:
        >>> weight = torch.tensor([4.0], requires_grad=True)
        >>> optimizer = torch.optim.LBFGS([weight], line_search_fn="strong_wolfe")
        >>> def closure():
        ...     optimizer.zero_grad()
        ...     loss = (weight - 1).square().sum()
        ...     loss.backward()
        ...     return loss
        >>> loss = optimizer.step(closure)
        >>> weight
        tensor([1.], requires_grad=True)
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:
        check_lr(lr)
        defaults = {
            "lr": lr,
            "max_iter": max_iter,
            "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
            "tolerance_grad": tolerance_grad,
            "tolerance_change": tolerance_change,
            "history_size": history_size,
            "line_search_fn": line_search_fn,
        }
        super().__init__(params, defaults)
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")

    @property
    def _params(self) -> list[Any]:
        own: list[Any] = self.param_groups[0]["params"]
        return own

    def _flat_grad(self) -> Tensor:
        from .._ops.shape.join import cat

        parts = []
        for param in self._params:
            grad = param.new_zeros(param.shape) if param.grad is None else param.grad.to_dense().resolve_conj()
            parts.append(grad)
        return cat([each.reshape(-1) for each in as_real(parts)], 0)

    def _move(self, size: Any, direction: Any) -> None:
        """Add `size * direction` to the parameters."""
        start = 0
        for real in as_real(self._params):
            end = start + real.numel()
            real.add_(direction[start:end].view_as(real), alpha=number(size))
            start = end

    def step(self, closure: Callable[[], Any]) -> Any:  # type: ignore[override]  # it cannot do without one
        """Search for a minimum, beginning where the parameters are; returns the loss there."""
        with no_grad():
            return self._search(closure)

    def _search(self, closure: Callable[[], Any]) -> Any:
        def evaluate() -> Any:
            with enable_grad():
                return closure()

        group = self.param_groups[0]
        line_search, max_iter = group["line_search_fn"], group["max_iter"]
        state = self.state[self._params[0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)
        first_loss = evaluate()
        evaluations = 1
        state["func_evals"] += 1
        here = Point(0, float(first_loss), self._flat_grad())
        if here.flat(group["tolerance_grad"]):
            return first_loss
        memory = _Memory(state, group["history_size"])
        lr = as_scalar(group["lr"])
        for iteration in range(1, max_iter + 1):
            state["n_iter"] += 1
            memory.choose_direction(here.grad, state["n_iter"] == 1)
            before = memory.note(here)
            size = min(1.0, 1.0 / here.grad.abs().sum()) * lr if state["n_iter"] == 1 else lr
            slope = here.grad.dot(memory.direction)
            memory.size = size
            if slope > -group["tolerance_change"]:
                break
            used = 0
            if line_search is not None:
                if line_search != "strong_wolfe":
                    raise RuntimeError(f"only 'strong_wolfe' is supported, line_search_fn is {line_search!r}")
                here, used = self._line_search(evaluate, here, slope, memory, group["max_eval"] - evaluations)
                self._move(memory.size, memory.direction)
            else:
                self._move(size, memory.direction)
                if iteration != max_iter:
                    here = Point(0, float(evaluate()), self._flat_grad())
                    used = 1
            evaluations += used
            state["func_evals"] += used
            if (
                iteration == max_iter
                or evaluations >= group["max_eval"]
                or here.flat(group["tolerance_grad"])
                or (memory.direction * memory.size).abs().max() <= group["tolerance_change"]
                or abs(here.loss - before) < group["tolerance_change"]
            ):
                break
        memory.store(state)
        return first_loss

    def _line_search(
        self, evaluate: Callable[[], Any], here: Point, slope: Any, memory: _Memory, evaluations: int
    ) -> tuple[Point, int]:
        """Find a good step along the direction, and leave the parameters where they were."""
        start = [param.clone() for param in self._params]

        def look(size: Any) -> Point:
            self._move(size, memory.direction)
            loss = float(evaluate())
            grad = self._flat_grad()
            for param, value in zip(self._params, start, strict=True):
                param.copy_(value)
            return Point(size, loss, grad, grad.dot(memory.direction))

        begin = Point(0, here.loss, here.grad.clone(), slope)
        found, used = strong_wolfe(look, begin, memory.size, memory.direction, evaluations)
        memory.size = found.size
        return found, used


class _Memory:
    """The last steps and changes of the gradient, from which the next direction is computed."""

    def __init__(self, state: dict[str, Any], length: int) -> None:
        self.length = length
        self.direction: Any = state.get("d")
        self.size: Any = state.get("t")
        self.changes: list[Any] = state.get("old_dirs") or []
        self.steps: list[Any] = state.get("old_stps") or []
        self.inverses: list[Any] = state.get("ro") or []
        self.scale: Any = state.get("H_diag", 1)
        self.grad: Any = state.get("prev_flat_grad")
        self.loss: Any = state.get("prev_loss")
        self.factors: list[Any] | None = state.get("al")

    def choose_direction(self, grad: Any, first: bool) -> None:
        """Down the gradient at first, then as the remembered curvature says."""
        if first:
            self.direction = -grad
            return
        change = grad - self.grad
        step = self.direction * self.size
        product = change.dot(step)
        if product > 1e-10:
            if len(self.changes) == self.length:
                for each in (self.changes, self.steps, self.inverses):
                    each.pop(0)
            self.changes.append(change)
            self.steps.append(step)
            self.inverses.append(1.0 / product)
            self.scale = product / change.dot(change)
        if self.factors is None:
            self.factors = [None] * self.length
        result = -grad
        for i in reversed(range(len(self.changes))):
            factor = self.factors[i] = self.steps[i].dot(result) * self.inverses[i]
            result.add_(self.changes[i], alpha=-factor.item())
        result = result * self.scale
        for i, change in enumerate(self.changes):
            factor = self.factors[i] - change.dot(result) * self.inverses[i]
            result.add_(self.steps[i], alpha=factor.item())
        self.direction = result

    def note(self, here: Point) -> float:
        """Remember where the next step begins; returns the loss there."""
        if self.grad is None:
            self.grad = here.grad.clone()
        else:
            self.grad.copy_(here.grad)
        self.loss = here.loss
        return here.loss

    def store(self, state: dict[str, Any]) -> None:
        """Put everything where the next `step`, or a checkpoint, finds it."""
        if self.factors is not None:
            state["al"] = self.factors
        state.update(
            d=self.direction,
            t=self.size,
            old_dirs=self.changes,
            old_stps=self.steps,
            ro=self.inverses,
            H_diag=self.scale,
            prev_flat_grad=self.grad,
            prev_loss=self.loss,
        )
