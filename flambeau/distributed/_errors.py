"""What goes wrong between processes, under the names of `torch.distributed`."""

from __future__ import annotations

__all__ = ["DistBackendError", "DistError", "DistNetworkError", "DistQueueEmptyError", "DistStoreError"]


class DistError(RuntimeError):
    """Something between processes went wrong."""


class DistBackendError(DistError):
    """A collective failed: a process is gone, waits too long, or does something else than the others."""


class DistNetworkError(DistError):
    """No connection could be made, or it broke."""


class DistStoreError(DistError):
    """A store did not answer, or a key did not appear in time."""


class DistQueueEmptyError(DistStoreError):
    """A queue of a store has nothing to give."""


for _each in (DistError, DistBackendError, DistNetworkError, DistStoreError, DistQueueEmptyError):
    _each.__module__ = "flambeau.distributed"
