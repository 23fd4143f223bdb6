"""`fork` and `wait`: outside of compiled code, PyTorch too runs what is forked at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..futures import Future


def fork(func: Callable[..., Any], *args: Any, **kwargs: Any) -> Future[Any]:
    """Call the function; its result comes in a future."""
    result: Future[Any] = Future()
    result.set_result(func(*args, **kwargs))
    return result


def wait(future: Future[Any]) -> Any:
    """The result of what was forked."""
    return future.wait()
