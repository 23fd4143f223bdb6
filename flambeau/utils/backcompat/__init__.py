"""Warnings about very old programs, under the names of `torch.utils.backcompat`."""

from __future__ import annotations

from collections.abc import Callable


class Warning:
    """A warning that can be switched on; the behaviours that they are about are gone."""

    def __init__(self, setter: Callable[[bool], None], getter: Callable[[], bool]) -> None:
        self.setter, self.getter = setter, getter

    def set_enabled(self, value: bool) -> None:
        """Switch it on or off."""
        self.setter(value)

    def get_enabled(self) -> bool:
        """Whether it is on."""
        return self.getter()

    enabled = property(get_enabled, set_enabled)


def _switch() -> Warning:
    state = [False]
    return Warning(lambda value: state.__setitem__(0, value), lambda: state[0])


broadcast_warning = _switch()
keepdim_warning = _switch()
