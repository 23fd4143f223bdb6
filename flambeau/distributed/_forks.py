"""Connections at a fork: they belong to the process that made them.

A child has copies of all descriptors. Were they left open, the others would not notice when the process itself is gone,
and its port would stay taken, for as long as a worker of its `DataLoader` lives.
"""

from __future__ import annotations

import os
import weakref
from typing import Protocol


class Connected(Protocol):
    """Something that has connections, which a forked child must not use."""

    def close_in_child(self) -> None:
        """Close the copies of descriptors, without a word to anybody."""


_connected: weakref.WeakSet[Connected] = weakref.WeakSet()


def close_in_children(owner: Connected) -> None:
    """Let a forked process close its copies of the connections of `owner`."""
    _connected.add(owner)


def _after_fork() -> None:
    for owner in list(_connected):
        owner.close_in_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
