"""What PyTorch's compiler raises: nothing here does."""

from __future__ import annotations


class TorchDynamoException(RuntimeError):
    """An error of the compiler."""


class Unsupported(TorchDynamoException):
    """Code that cannot be compiled."""


class BackendCompilerFailed(TorchDynamoException):
    """A backend failed."""


class RecompileLimitExceeded(Unsupported):
    """A function was compiled too often."""


class TensorifyScalarRestartAnalysis(TorchDynamoException):
    """A function has to be looked at again."""
