"""Classes of errors that PyTorch names."""

from __future__ import annotations


class AcceleratorError(RuntimeError):
    """An error of an accelerator.

    Example:
        >>> issubclass(torch.AcceleratorError, RuntimeError)
        True
    """


class OutOfMemoryError(RuntimeError):
    """No memory is left on a device.

    Example:
        >>> issubclass(torch.OutOfMemoryError, RuntimeError)
        True
    """


class FatalError(Exception):
    """An error after which a process must not go on.

    Example:
        >>> issubclass(torch.FatalError, Exception)
        True
    """


for _each in (AcceleratorError, OutOfMemoryError, FatalError):
    _each.__module__ = "flambeau"
