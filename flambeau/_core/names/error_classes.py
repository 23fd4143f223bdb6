"""Classes of errors that PyTorch names."""

from __future__ import annotations


class AcceleratorError(RuntimeError):
    """An error of an accelerator."""


class OutOfMemoryError(RuntimeError):
    """No memory is left on a device."""


class FatalError(Exception):
    """An error after which a process must not go on."""


for _each in (AcceleratorError, OutOfMemoryError, FatalError):
    _each.__module__ = "flambeau"
