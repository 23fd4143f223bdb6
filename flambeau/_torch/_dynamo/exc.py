"""What the compiler raises."""

from __future__ import annotations

from flambeau.compiler._errors import InvalidBackend, TorchDynamoException, Unsupported, UserError, UserErrorType

__all__ = [
    "BackendCompilerFailed", "InvalidBackend", "RecompileLimitExceeded", "TensorifyScalarRestartAnalysis",
    "TorchDynamoException", "Unsupported", "UserError", "UserErrorType",
]  # fmt: skip


class BackendCompilerFailed(TorchDynamoException):
    """A backend failed."""


class RecompileLimitExceeded(Unsupported):
    """A function was compiled too often."""


class TensorifyScalarRestartAnalysis(TorchDynamoException):
    """A function has to be looked at again."""
