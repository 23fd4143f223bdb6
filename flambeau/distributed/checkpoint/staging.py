"""Copies of a state that is to be written while training goes on."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from ..._core.tensor import Tensor
from ...accelerator import is_available
from ...utils._pytree import tree_map

__all__ = ["AsyncStager", "BlockingAsyncStager", "DefaultStager", "StagingOptions"]

State = dict[str, Any]


def _copied(state_dict: State, pinned: bool = False) -> State:
    def copy(value: Any) -> Any:
        if not isinstance(value, Tensor):
            return value
        made = value.detach().cpu().clone()
        return made.pin_memory() if pinned else made

    copied: State = tree_map(copy, state_dict)
    return copied


@runtime_checkable
class AsyncStager(Protocol):
    """What makes such copies."""

    _synchronize_after_execute: bool = True

    @property
    def should_synchronize_after_execute(self) -> bool:
        """Whether `async_save` waits for the copy before it returns."""
        return self._synchronize_after_execute

    def stage(self, state_dict: State) -> Future[State] | State:
        """A copy that later changes of the state do not reach."""
        raise NotImplementedError(f"{type(self).__name__} must implement stage method")

    def synchronize_staging(self) -> None:
        """Wait until the copy is made."""

    def close(self) -> None:
        """Give back what the copies took."""
        raise NotImplementedError(f"{type(self).__name__} must implement close method")


class BlockingAsyncStager(AsyncStager):
    """Copies in the memory of the CPU, made before `stage` returns."""

    _synchronize_after_execute: bool = False

    def __init__(self, cache_staged_state_dict: bool = False, type_check: bool = False) -> None:
        self.cache_staged_state_dict, self.type_check = cache_staged_state_dict, type_check

    def stage(self, state_dict: State) -> State:
        """The copy; in pinned memory if it is to be kept."""
        return _copied(state_dict, self.cache_staged_state_dict)

    def synchronize_staging(self) -> None:
        """Nothing: the copy is made."""

    def close(self) -> None:
        """Nothing: nothing is kept."""


@dataclass
class StagingOptions:
    """How copies are made. Pinned memory and copies that are not waited for need a GPU."""

    use_pinned_memory: bool = True
    use_shared_memory: bool = True
    use_async_staging: bool = True
    use_non_blocking_copy: bool = True


_DEFAULTS = StagingOptions()


class DefaultStager(AsyncStager):
    """Copies in the memory of the CPU, made in another thread or before `stage` returns."""

    _synchronize_after_execute: bool = False

    def __init__(self, config: StagingOptions = _DEFAULTS) -> None:
        self._config = config
        if self._config.use_non_blocking_copy and not is_available():
            raise AssertionError("Non-blocking copy requires that the current accelerator is available.")
        self._pool = ThreadPoolExecutor(1, "flambeau staging") if self._config.use_async_staging else None
        self._running: Future[State] | None = None

    def stage(self, state_dict: State, **kwargs: Any) -> State | Future[State]:
        """The copy, or what will have it."""
        if self._pool is None:
            return _copied(state_dict, self._config.use_pinned_memory)
        self._running = self._pool.submit(_copied, state_dict, self._config.use_pinned_memory)
        return self._running

    def synchronize_staging(self) -> None:
        """Wait until the copy is made."""
        if self._running is not None:
            self._running.result()

    def close(self) -> None:
        """End the thread that copies states."""
        if self._pool is not None:
            self._pool.shutdown(wait=True)
