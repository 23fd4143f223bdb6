"""What is written and read: everything. The one choice is whether names may be missing."""

from __future__ import annotations

__all__ = ["DefaultLoadPlanner", "DefaultSavePlanner"]


class DefaultSavePlanner:
    """All values, under the names of the keys that lead to them."""


class DefaultLoadPlanner:
    """All values that the state asks for."""

    def __init__(
        self, flatten_state_dict: bool = True, flatten_sharded_tensors: bool = True, allow_partial_load: bool = False
    ) -> None:
        self.allow_partial_load = allow_partial_load
