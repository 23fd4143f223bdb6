"""`torch._check` and its kin: conditions that raise an error of a certain class."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..._core.process.caller import warn_user
from ..._core.subclasses import has_override
from ..._core.tensor import Tensor
from .overrides import run_override

Message = Callable[[], Any] | None


def _check_with(error_type: type[Exception], cond: Any, message: Message) -> None:
    if not isinstance(cond, bool):
        raise TypeError(f"cond must be a bool, but got {type(cond)}")
    if cond:
        return
    if message is None:
        raise error_type("Expected cond to be True, but got False.")
    if not callable(message):
        raise TypeError("message must be a callable")
    raise error_type(str(message()))


def _check(cond: Any, message: Message = None) -> None:
    """Raise a RuntimeError unless the condition holds; the message is a function that makes it."""
    _check_with(RuntimeError, cond, message)


def _check_is_size(i: Any, message: Message = None, *, max: Any = None) -> None:
    """Raise a RuntimeError unless the number can be a size."""
    warn_user("_check_is_size will be removed in PyTorch, too: write _check(i >= 0).", FutureWarning)
    _check(i >= 0, message)
    if max is not None:
        _check(i <= max, message)


def _check_index(cond: Any, message: Message = None) -> None:
    """Raise an IndexError unless the condition holds."""
    _check_with(IndexError, cond, message)


def _check_value(cond: Any, message: Message = None) -> None:
    """Raise a ValueError unless the condition holds."""
    _check_with(ValueError, cond, message)


def _check_type(cond: Any, message: Message = None) -> None:
    """Raise a TypeError unless the condition holds."""
    _check_with(TypeError, cond, message)


def _check_not_implemented(cond: Any, message: Message = None) -> None:
    """Raise a NotImplementedError unless the condition holds."""
    _check_with(NotImplementedError, cond, message)


def _check_tensor_all_with(error_type: type[Exception], cond: Any, message: Message = None) -> None:
    if not isinstance(cond, Tensor):
        raise TypeError(f"cond must be a tensor, but got {type(cond)}")
    if cond.dtype.name != "bool":
        raise TypeError(f"cond tensor must have dtype torch.bool, but got {cond.dtype}")
    _check_with(error_type, bool(cond.all().item()), message)


def _check_tensor_all(cond: Any, message: Message = None) -> None:
    """Raise a RuntimeError unless every element is True."""
    _check_tensor_all_with(RuntimeError, cond, message)


def _assert(condition: Any, message: str) -> Any:
    """Raise an AssertionError unless the condition, a tensor too, holds."""
    if type(condition) is not bool and has_override((condition,)):
        return run_override(_assert, (condition,), (condition, message), {})
    if not condition:
        raise AssertionError(message)
    return None


def _assert_async(input: Tensor, assert_msg: str | None = None) -> None:
    """Raise a RuntimeError if the tensor's one element is zero."""
    if input.numel() != 1:
        raise RuntimeError("Boolean value of Tensor with more than one value is ambiguous")
    if not input.item():
        raise RuntimeError(assert_msg or "Expected Tensor with single nonzero value, but got zero")
