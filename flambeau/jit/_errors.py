"""The error and the warning of TorchScript, which the files of this package raise."""

from __future__ import annotations


class TracerWarning(Warning):
    """What recording a run may miss: values that Python looked at, results that differ from call to call.

    Example:
        >>> issubclass(torch.jit.TracerWarning, Warning)
        True
    """

    __module__ = "flambeau.jit"

    @staticmethod
    def ignore_lib_warnings() -> None:
        """Be silent about such warnings in the package itself: it gives them in the name of the user's line."""


class Error(Exception):
    """An error raised by TorchScript's interpreter.

    Example:
        >>> issubclass(torch.jit.Error, RuntimeError)
        False
    """

    __module__ = "flambeau.jit"
