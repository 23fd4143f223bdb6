"""`CubicSL`: the share of zeros rises quickly at first and slowly in the end."""

from __future__ import annotations

from typing import Any

from ..sparsifier.base_sparsifier import BaseSparsifier
from .base_scheduler import BaseScheduler

__all__ = ["CubicSL"]


class CubicSL(BaseScheduler):
    """From `init_sl` at step `init_t` to the group's own share, in `total_t` changes, one each `delta_t` steps."""

    def __init__(
        self,
        sparsifier: BaseSparsifier,
        init_sl: Any = 0.0,
        init_t: Any = 0,
        delta_t: Any = 10,
        total_t: Any = 100,
        initially_zero: Any = False,
        last_epoch: int = -1,
        verbose: bool = False,
    ) -> None:
        self.sparsifier = sparsifier
        self.init_sl = self._for_each_group(init_sl)
        self.init_t = self._for_each_group(init_t)
        self.delta_t = self._for_each_group(delta_t)
        self.total_t = self._for_each_group(total_t)
        self.initially_zero = self._for_each_group(initially_zero)
        super().__init__(sparsifier, last_epoch, verbose)

    @staticmethod
    def sparsity_compute_fn(
        s_0: float, s_f: float, t: int, t_0: int, dt: int, n: int, initially_zero: bool = False
    ) -> float:
        """The share at step `t` on the way from `s_0` to `s_f`, from step `t_0` on, in `n` times `dt` steps."""
        if initially_zero and t < t_0:
            return 0
        left = 1 - (t - t_0) / (dt * n)
        share = s_f + (s_0 - s_f) * left**3
        low, high = min(s_0, s_f), max(s_0, s_f)
        return max(low, min(high, share))

    def get_sl(self) -> list[float]:
        """The shares of this step."""
        parts = zip(
            self.init_sl, self.base_sl, self.init_t, self.delta_t, self.total_t, self.initially_zero, strict=True
        )
        return [
            self.sparsity_compute_fn(first, last, self.last_epoch, start, each, number, zero)
            for first, last, start, each, number, zero in parts
        ]
