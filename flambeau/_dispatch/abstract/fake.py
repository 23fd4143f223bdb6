"""What fake tensors refuse: they are said to be on a device, have a shape and a dtype, and no data."""

from __future__ import annotations

from typing import Any

from ..._core.device import is_fake


class DataDependentOutputException(RuntimeError):
    """A Python value would have to be made of elements that are not there; `func` is the operator."""

    def __init__(self, func: Any) -> None:
        super().__init__(
            f"{func}: a fake tensor has a shape and a dtype, but no elements that Python could look at. Compute with "
            "tensors instead, for example by torch.where, or run this part on real ones"
        )
        self.func = func


class FakeTensorDeviceMismatchError(RuntimeError):
    """Fake tensors that are said to be on two devices meet in an op."""


class DynamicOutputShapeException(RuntimeError):
    """The shape of a result depends on elements that are not there; `func` is the operator."""

    def __init__(self, func: Any) -> None:
        super().__init__(f"{func}: the shape of its result depends on elements, which a fake tensor does not have")
        self.func = func


def refuse_shape(name: str, place: Any) -> None:
    """Say that the shape of what the op `name` gives is unknown, if `place` is a fake device."""
    if is_fake(place):
        raise DynamicOutputShapeException(f"aten.{name}.default")
