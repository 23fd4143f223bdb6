"""What is written and read: everything. The one choice is whether names may be missing."""

from __future__ import annotations

__all__ = ["DefaultLoadPlanner", "DefaultSavePlanner"]


class DefaultSavePlanner:
    """All values, under the names of the keys that lead to them.

    Example:
        >>> type(dist.checkpoint.DefaultSavePlanner()).__name__
        'DefaultSavePlanner'
    """


class DefaultLoadPlanner:
    """All values that the state asks for.

    Args:
        flatten_state_dict (bool): not used. Default: `True`.
        flatten_sharded_tensors (bool): not used. Default: `True`.
        allow_partial_load (bool): whether values may be missing in the folder. Default: `False`.

    Example:
        >>> dist.checkpoint.DefaultLoadPlanner(allow_partial_load=True).allow_partial_load
        True
    """

    def __init__(
        self, flatten_state_dict: bool = True, flatten_sharded_tensors: bool = True, allow_partial_load: bool = False
    ) -> None:
        self.allow_partial_load = allow_partial_load
