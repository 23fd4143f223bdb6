"""What the compiler raises."""

from __future__ import annotations


class TorchDynamoException(RuntimeError):
    """An error of the compiler."""


class InvalidBackend(TorchDynamoException):
    """A backend that there is not."""


class Unsupported(TorchDynamoException):
    """Code that cannot be compiled."""
