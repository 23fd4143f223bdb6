"""Adam for sparse gradients."""

from __future__ import annotations

from typing import Any, ClassVar

from .._core.tensor import Tensor
from .._core.text.inherited_docs import documented_like
from . import _functional
from ._update import as_scalar, number
from .optimizer import Group, GroupOptimizer, ParamsT, check_betas, zeros_of

__all__ = ["SparseAdam"]


@documented_like(GroupOptimizer)
class SparseAdam(GroupOptimizer):
    """`Adam` that leaves alone, averages included, what a sparse gradient does not name; dense ones are refused.

    Example:
        >>> table = torch.nn.Embedding(4, 2, sparse=True)
        >>> optimizer = torch.optim.SparseAdam(table.parameters(), lr=0.1)
        >>> before = table.weight.detach().clone()
        >>> table(torch.tensor([1])).sum().backward()
        >>> optimizer.step()
        >>> (table.weight != before).any(dim=1)         # only the row that was used has moved
        tensor([False,  True, False, False])
    """

    _ADDED_OPTIONS: ClassVar[dict[str, Any]] = {"maximize": False}
    _NUMBERS = ()

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        maximize: bool = False,
    ) -> None:
        if isinstance(lr, Tensor) and lr.numel() != 1:
            raise ValueError(f"Tensor lr must be 1-element, it has shape {list(lr.shape)}")
        if not lr > 0.0:
            raise ValueError(f"Invalid learning rate: {lr}")
        if not eps > 0.0:
            raise ValueError(f"Invalid epsilon value: {eps}")
        check_betas(betas)
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "maximize": maximize})
        places = [
            ([number, position], param)
            for number, group in enumerate(self.param_groups)
            for position, param in enumerate(group["params"])
        ]
        sparse = [place for place, param in places if param.is_sparse]
        if sparse:
            raise ValueError(f"Sparse params at indices {sparse}: SparseAdam requires dense parameter tensors")
        complex_ones = [place for place, param in places if param.is_complex()]
        if complex_ones:
            raise ValueError(
                f"Complex params at indices {complex_ones}: SparseAdam does not support complex parameters"
            )

    def _update(self, group: Group) -> None:
        params: list[Tensor] = [each for each in group["params"] if each.grad is not None]
        grads: list[Any] = [each.grad for each in params]
        for grad in grads:
            if not grad.is_sparse:
                raise RuntimeError(
                    "SparseAdam does not support dense gradients, please consider Adam instead: "
                    f"a gradient of shape {list(grad.shape)} is dense"
                )
        states = [self.state[each] for each in params]
        for param, state in zip(params, states, strict=True):
            if not state:
                state.update(step=0, exp_avg=zeros_of(param), exp_avg_sq=zeros_of(param))
            state["step"] += 1
        beta1, beta2 = group["betas"]
        _functional.sparse_adam(
            params,
            grads,
            [each["exp_avg"] for each in states],
            [each["exp_avg_sq"] for each in states],
            [each["step"] for each in states],
            eps=group["eps"],
            beta1=beta1,
            beta2=beta2,
            lr=number(as_scalar(group["lr"])),
            maximize=group["maximize"],
        )
