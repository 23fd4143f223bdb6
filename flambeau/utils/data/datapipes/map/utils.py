"""The start of a pipe that is read by index: a sequence, or a mapping."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from ..datapipe import MapDataPipe

__all__ = ["SequenceWrapperMapDataPipe"]


class SequenceWrapperMapDataPipe(MapDataPipe[Any]):
    """The items of a sequence or a mapping, of which it keeps a copy."""

    def __init__(self, sequence: Sequence[Any] | Mapping[Any, Any], deepcopy: bool = True) -> None:
        self.sequence = sequence
        if deepcopy:
            try:
                self.sequence = copy.deepcopy(sequence)
            except TypeError:
                warnings.warn(
                    "The input sequence can not be deepcopied, please be aware of in-place modification would affect "
                    "source data",
                    stacklevel=2,
                )

    def __getitem__(self, index: Any) -> Any:
        return self.sequence[index]

    def __len__(self) -> int:
        return len(self.sequence)
