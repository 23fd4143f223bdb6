"""What the compiler raises."""

from __future__ import annotations

import enum
import os
from typing import Any

from .._core.process.caller import warn_user


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


class GraphBreak(BaseException):
    """Ends a call before a statement that no program can have; what catches every `Exception` lets it pass."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class ForbiddenCallable(TorchDynamoException, AssertionError):
    """A function runs that must not be part of compiled code."""


class ConstraintViolationError(TorchDynamoException):
    """A size is not one of those that somebody has said it to be."""


class UserErrorType(enum.Enum):
    """What is wrong with a program that somebody wants to export."""

    DYNAMIC_CONTROL_FLOW = 1
    ANTI_PATTERN = 2
    STANDARD_LIBRARY = 3
    CONSTRAINT_VIOLATION = 4
    DYNAMIC_DIM = 5
    INVALID_INPUT = 6
    INVALID_OUTPUT = 7
    UNSUPPORTED_ALIASED_MUTATED_DYNAMIC_INPUTS = 8


class UserError(TorchDynamoException):
    """What was asked for cannot be exported."""

    def __init__(self, error_type: UserErrorType, msg: str) -> None:
        super().__init__(msg)
        self.error_type, self.message = error_type, msg


def report_fault(what: str, error: Exception) -> str:
    """Warn that the compiler failed at something, after which calls run eagerly; the reason, in one sentence.

    With `FLAMBEAU_COMPILE_FAULTS=raise` in the environment the error itself is raised.
    """
    if os.environ.get("FLAMBEAU_COMPILE_FAULTS") == "raise":
        raise error
    place = error.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    where = "" if place is None else f" ({os.path.basename(place.tb_frame.f_code.co_filename)}:{place.tb_lineno})"
    reason = f"the compiler failed at {what}: {type(error).__name__}: {error}{where}"
    warn_user(f"torch.compile: {reason}. Calls run eagerly.")
    return reason
