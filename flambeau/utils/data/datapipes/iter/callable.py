"""Steps that apply a function to samples, and that join the samples of a batch."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sized
from typing import Any

from ..._utils.collate import default_collate
from .._decorator import functional_datapipe
from ..datapipe import IterDataPipe
from ..utils.common import check_picklable, validate_input_col

__all__ = ["CollatorIterDataPipe", "MapperIterDataPipe"]


@functional_datapipe("map")
class MapperIterDataPipe(IterDataPipe[Any]):
    """`fn` of each sample, or of its columns `input_col`: it replaces them, or goes to `output_col` (-1: appended).

    >>> from flambeau.utils.data.datapipes.iter import IterableWrapper
    >>> list(IterableWrapper([(1, 2), (3, 4)]).map(str, input_col=1))
    [(1, '2'), (3, '4')]
    """

    def __init__(
        self, datapipe: IterDataPipe[Any], fn: Callable[..., Any], input_col: Any = None, output_col: Any = None
    ) -> None:
        super().__init__()
        check_picklable(fn)
        self.datapipe = datapipe
        self.fn = fn
        self.input_col = input_col
        if input_col is None and output_col is not None:
            raise ValueError("`output_col` must be None when `input_col` is None.")
        if isinstance(output_col, (list, tuple)):
            if len(output_col) > 1:
                raise ValueError("`output_col` must be a single-element list or tuple")
            output_col = output_col[0]
        self.output_col = output_col
        validate_input_col(fn, input_col)

    def _apply_fn(self, data: Any) -> Any:
        if self.input_col is None:
            return self.fn(data)
        columns = self.input_col if isinstance(self.input_col, (list, tuple)) else (self.input_col,)
        result = self.fn(*(data[column] for column in columns))
        changed: Any = dict(data) if isinstance(data, dict) else list(data)
        if self.output_col is None:
            changed[columns[0]] = result
            for column in sorted(columns[1:], reverse=True):  # from the end: the places of the others stay
                del changed[column]
        elif self.output_col == -1:
            changed.append(result)
        else:
            changed[self.output_col] = result
        return tuple(changed) if isinstance(data, tuple) else changed

    def __iter__(self) -> Iterator[Any]:
        for data in self.datapipe:
            yield self._apply_fn(data)

    def __len__(self) -> int:
        if isinstance(self.datapipe, Sized):
            return len(self.datapipe)
        raise TypeError(f"{type(self).__name__} instance doesn't have valid length")


@functional_datapipe("collate")
class CollatorIterDataPipe(MapperIterDataPipe):
    """Batches of samples become tensors, by `default_collate` or another function."""

    def __init__(
        self,
        datapipe: IterDataPipe[Any],
        conversion: Callable[..., Any] | None = default_collate,
        collate_fn: Callable[..., Any] | None = None,
    ) -> None:
        function = collate_fn if collate_fn is not None else conversion
        if not callable(function):
            function = functools.partial(_refuse_columns, function)
        super().__init__(datapipe, fn=function)


def _refuse_columns(conversion: Any, batch: Any) -> Any:
    raise RuntimeError("Only supports one DataFrame per batch: functions of columns are for tables")
