"""Calls on the stack of another thread: Python counts how deep the calls of each thread are nested."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable
from typing import TypeVar

from ..modes import THREAD

R = TypeVar("R")


def on_another_stack(run: Callable[[], R]) -> R:
    """`run()` on a thread of its own, in the modes of this one, which waits for it."""
    modes, context = THREAD.modes, contextvars.copy_context()
    results: list[R] = []
    errors: list[BaseException] = []

    def body() -> None:
        THREAD.modes = modes
        try:
            results.append(context.run(run))
        except BaseException as error:  # the caller's to handle
            errors.append(error)

    thread = threading.Thread(target=body, name="another stack")
    thread.start()
    try:
        thread.join()
    finally:
        thread.join()  # an interrupt does not end the call, which uses the modes of this thread
    if errors:
        raise errors[0]
    return results[0]
