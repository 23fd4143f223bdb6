"""What goes wrong between processes, under the names of `torch.distributed`."""

from __future__ import annotations

__all__ = ["DistBackendError", "DistError", "DistNetworkError", "DistQueueEmptyError", "DistStoreError"]


class DistError(RuntimeError):
    """Something between processes went wrong.

    Example:
        >>> issubclass(dist.DistError, RuntimeError)
        True
    """


class DistBackendError(DistError):
    """A collective failed: a process is gone, waits too long, or does something else than the others.

    Example:
        >>> issubclass(dist.DistBackendError, dist.DistError)
        True
    """


class DistNetworkError(DistError):
    """No connection could be made, or it broke.

    Example:
        >>> issubclass(dist.DistNetworkError, dist.DistError)
        True
    """


class DistStoreError(DistError):
    """A store did not answer, or a key did not appear in time.

    Example:
        >>> issubclass(dist.DistStoreError, dist.DistError)
        True
    """


class DistQueueEmptyError(DistStoreError):
    """A queue of a store has nothing to give."""


for _each in (DistError, DistBackendError, DistNetworkError, DistStoreError, DistQueueEmptyError):
    _each.__module__ = "flambeau.distributed"
