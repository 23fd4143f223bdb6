"""What the compiler raises."""

from __future__ import annotations

from ..compiler._errors import TorchDynamoException, Unsupported


class BackendCompilerFailed(TorchDynamoException):
    """A backend failed."""


class RecompileLimitExceeded(Unsupported):
    """A function was compiled too often."""


class TensorifyScalarRestartAnalysis(TorchDynamoException):
    """A function has to be looked at again."""
