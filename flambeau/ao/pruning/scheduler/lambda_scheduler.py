"""`LambdaSL`: the share of zeros as a function of the step."""

from __future__ import annotations

from collections.abc import Callable

from ..sparsifier.base_sparsifier import BaseSparsifier
from .base_scheduler import BaseScheduler

__all__ = ["LambdaSL"]


class LambdaSL(BaseScheduler):
    """The initial share times what a function of the step says, one for all groups or one for each."""

    def __init__(
        self,
        sparsifier: BaseSparsifier,
        sl_lambda: Callable[[int], float] | list[Callable[[int], float]],
        last_epoch: int = -1,
        verbose: bool = False,
    ) -> None:
        number = len(sparsifier.groups)
        if isinstance(sl_lambda, (list, tuple)):
            if len(sl_lambda) != number:
                raise ValueError(f"Expected {number} lr_lambdas, but got {len(sl_lambda)}")
            self.sl_lambdas = list(sl_lambda)
        else:
            self.sl_lambdas = [sl_lambda] * number
        super().__init__(sparsifier, last_epoch, verbose)

    def get_sl(self) -> list[float]:
        """The shares of this step."""
        return [base * each(self.last_epoch) for each, base in zip(self.sl_lambdas, self.base_sl, strict=True)]
