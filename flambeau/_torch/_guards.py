"""`torch._guards`: what code that may be traced asks about the tracing."""

from __future__ import annotations

from typing import Any

from flambeau._core.modes import THREAD
from flambeau._torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from flambeau.utils._pytree import tree_leaves

__all__ = ["TracingContext", "active_fake_mode", "detect_fake_mode"]


def active_fake_mode() -> FakeTensorMode | None:
    """The innermost `FakeTensorMode` that is entered."""
    return next((each for each in reversed(THREAD.modes.interpreters) if isinstance(each, FakeTensorMode)), None)


def detect_fake_mode(inputs: Any = None) -> FakeTensorMode | None:
    """The mode of the fake tensors among some inputs, or the one that is entered.

    Args:
        inputs: tensors in containers of any kind.

    Returns:
        FakeTensorMode: the mode; None where there is none.
    """
    found = [each.fake_mode for each in tree_leaves(inputs) if isinstance(each, FakeTensor)]
    entered = active_fake_mode()
    modes = [*([] if entered is None else [entered]), *found]
    for other in modes[1:]:
        if other is not modes[0]:
            raise AssertionError("fake mode from the inputs doesn't match the mode that is entered, or each other's")
    return modes[0] if modes else None


class TracingContext:
    """What PyTorch's compiler keeps while it traces; Flambeau keeps it elsewhere, so that there never is one."""

    @staticmethod
    def try_get() -> None:
        """The context of the trace that is going on: None."""

    @staticmethod
    def get() -> TracingContext:
        """The context of the trace that is going on, of which there is none."""
        raise RuntimeError("TracingContext.get() must be called within an ongoing trace.")
