"""Objects that have a state."""

from __future__ import annotations

from typing import Any, Protocol, TypeVar, runtime_checkable

__all__ = ["Stateful", "StatefulT"]


@runtime_checkable
class Stateful(Protocol):
    """What has a state that can be asked for and set.

    Args:
        *args, **kwargs: a protocol: classes with `state_dict` and `load_state_dict` have it.

    Example:
        >>> isinstance(torch.nn.Linear(2, 2), dist.checkpoint.Stateful)
        True
    """

    def state_dict(self) -> dict[str, Any]:
        """The object's state, which a checkpoint keeps."""

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over a state."""


StatefulT = TypeVar("StatefulT", bound=Stateful)
