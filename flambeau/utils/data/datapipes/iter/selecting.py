"""The step that drops samples."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from .._decorator import functional_datapipe
from ..datapipe import IterDataPipe
from ..utils.common import check_picklable, validate_input_col

__all__ = ["FilterIterDataPipe"]


@functional_datapipe("filter")
class FilterIterDataPipe(IterDataPipe[Any]):
    """The samples for which `filter_fn`, of the sample or of its columns `input_col`, is true."""

    def __init__(self, datapipe: IterDataPipe[Any], filter_fn: Callable[..., Any], input_col: Any = None) -> None:
        super().__init__()
        self.datapipe = datapipe
        check_picklable(filter_fn)
        self.filter_fn = filter_fn
        self.input_col = input_col
        validate_input_col(filter_fn, input_col)

    def _keeps(self, data: Any) -> bool:
        if self.input_col is None:
            kept = self.filter_fn(data)
        elif isinstance(self.input_col, (list, tuple)):
            kept = self.filter_fn(*(data[column] for column in self.input_col))
        else:
            kept = self.filter_fn(data[self.input_col])
        if not isinstance(kept, bool):
            raise ValueError("Boolean output is required for `filter_fn` of FilterIterDataPipe, got", type(kept))
        return bool(kept)

    def __iter__(self) -> Iterator[Any]:
        for data in self.datapipe:
            if self._keeps(data):
                yield data
