"""Tables of what takes operators apart, under the names of `torch.export.decomp_utils`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["CustomDecompTable"]


class CustomDecompTable(dict[Any, Callable[..., Any]]):
    """Functions by the operators that they take apart, for `run_decompositions`.

    It starts empty, since graphs keep their operators unless a table says otherwise.

    Example:
        >>> table = torch.export.default_decompositions()
        >>> isinstance(table, torch.export.CustomDecompTable)
        True
    """

    def __init__(self) -> None:
        super().__init__()

    def copy(self) -> CustomDecompTable:
        """A table of the same functions."""
        made = CustomDecompTable()
        made.update(self)
        return made

    def materialize(self) -> dict[Any, Callable[..., Any]]:
        """The functions as a dict."""
        return dict(self)
