"""What the compiler raises."""

from __future__ import annotations

from typing import Any


class TorchDynamoException(RuntimeError):
    """An error of the compiler."""


class InvalidBackend(TorchDynamoException):
    """A backend that there is not."""


class WrongProgram(TorchDynamoException):
    """A program does something else than the call that it stands for."""

    def __init__(self, message: str, difference: Any = None) -> None:
        super().__init__(message)
        self.difference = difference
        """Where they part, for `minify`; None: they do not do the same ops."""


class Unsupported(TorchDynamoException):
    """Code that cannot be compiled."""
