"""`BaseScheduler`: changes the share of zeros as the steps go on."""

from __future__ import annotations

from typing import Any

from ..sparsifier.base_sparsifier import BaseSparsifier

__all__ = ["BaseScheduler"]


class BaseScheduler:
    """Sets `sparsity_level` of each group of a sparsifier: subclasses say in `get_sl` to what."""

    def __init__(self, sparsifier: BaseSparsifier, last_epoch: int = -1, verbose: bool = False) -> None:
        if not isinstance(sparsifier, BaseSparsifier):
            raise TypeError(f"{type(sparsifier).__name__} is not an instance of torch.ao.pruning.BaseSparsifier")
        self.sparsifier = sparsifier
        self.base_sl = [group["sparsity_level"] for group in sparsifier.groups]
        self.last_epoch = last_epoch
        self._step_count = 0
        self.verbose = verbose
        self._get_sl_called_within_step = False
        self.step()

    def state_dict(self) -> dict[str, Any]:
        """Everything but the sparsifier."""
        return {key: value for key, value in vars(self).items() if key != "sparsifier"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over a state."""
        vars(self).update(state_dict)

    def get_last_sl(self) -> list[float]:
        """The shares of the last step."""
        return self._last_sl

    def get_sl(self) -> list[float]:
        """The shares of this step, one for each group."""
        raise NotImplementedError

    def print_sl(self, is_verbose: bool, group: int, sl: float, epoch: int | None = None) -> None:
        """Say what a share is, if that is wanted."""
        if is_verbose:
            when = "" if epoch is None else f"Epoch {epoch:5d}: "
            print(f"{when}adjusting sparsity level of group {group} to {sl:.4e}.")  # noqa: T201  (that was asked for)

    def __repr__(self) -> str:
        return f"{type(self).__name__} (\nSparsifier {self.sparsifier}\n    base_sl: {self.base_sl}\n)"

    def step(self, epoch: int | None = None) -> None:
        """Go on by one step."""
        self._step_count += 1
        self._get_sl_called_within_step = True
        try:
            self.last_epoch += 1
            values = self.get_sl()
        finally:
            self._get_sl_called_within_step = False
        for number, (group, share) in enumerate(zip(self.sparsifier.groups, values, strict=True)):
            group["sparsity_level"] = share
            self.print_sl(self.verbose, number, share, epoch)
        self._last_sl = [group["sparsity_level"] for group in self.sparsifier.groups]
        self.sparsifier.enable_mask_update = True

    def _for_each_group(self, value: Any) -> list[Any]:
        """A value for each group, from one for all or a list of them."""
        number = len(self.sparsifier.groups)
        if not isinstance(value, (list, tuple)):
            return [value] * number
        if len(value) != number:
            raise ValueError(f"Expected value of length {number}, got {len(value)}")
        return list(value)
