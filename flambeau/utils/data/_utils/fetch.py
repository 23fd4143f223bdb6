"""How one batch is taken from a dataset; the same code runs in the main process and in workers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class _BaseDatasetFetcher:
    """Takes batches from a dataset. `failing` says, after an error, what was being loaded."""

    def __init__(self, dataset: Any, auto_collation: bool, collate_fn: Callable[[Any], Any], drop_last: bool) -> None:
        self.dataset = dataset
        self.auto_collation = auto_collation
        self.collate_fn = collate_fn
        self.drop_last = drop_last
        self.failing = ""

    def fetch(self, possibly_batched_index: Any) -> Any:
        """The batch at an index, or at a list of indices."""
        raise NotImplementedError

    def skip(self, possibly_batched_index: Any) -> None:
        """Leave out a batch that an earlier run has had."""


class _MapDatasetFetcher(_BaseDatasetFetcher):
    def fetch(self, possibly_batched_index: Any) -> Any:
        if not self.auto_collation:
            self.failing = f"index {possibly_batched_index!r} of the dataset"
            data = self.dataset[possibly_batched_index]
        elif callable(getattr(self.dataset, "__getitems__", None)):
            self.failing = f"indices {possibly_batched_index!r} of the dataset"
            data = self.dataset.__getitems__(possibly_batched_index)
        else:
            data = self._one_by_one(possibly_batched_index)
        self.failing = f"the batch of indices {possibly_batched_index!r}, in collate_fn"
        return self.collate_fn(data)

    def _one_by_one(self, indices: Any) -> list[Any]:
        dataset = self.dataset
        data = []
        index: Any = None
        try:
            for index in indices:
                data.append(dataset[index])
        except BaseException:
            self.failing = f"index {index!r} of the dataset, in the batch {indices!r}"
            raise
        return data


class _IterableDatasetFetcher(_BaseDatasetFetcher):
    def __init__(self, dataset: Any, auto_collation: bool, collate_fn: Callable[[Any], Any], drop_last: bool) -> None:
        super().__init__(dataset, auto_collation, collate_fn, drop_last)
        self.failing = "the first sample: iter(dataset) failed"
        self.dataset_iter = iter(dataset)
        self.taken = 0
        self.ended = False

    def _take(self, possibly_batched_index: Any) -> Any:
        self.failing = f"sample {self.taken} of the iterator"
        if not self.auto_collation:
            data = next(self.dataset_iter)
            self.taken += 1
            return data
        samples = []
        for _ in possibly_batched_index:
            try:
                samples.append(next(self.dataset_iter))
            except StopIteration:
                self.ended = True
                break
            self.taken += 1
            self.failing = f"sample {self.taken} of the iterator"
        if not samples or (self.drop_last and len(samples) < len(possibly_batched_index)):
            raise StopIteration
        return samples

    def fetch(self, possibly_batched_index: Any) -> Any:
        if self.ended:
            raise StopIteration
        data = self._take(possibly_batched_index)
        self.failing = f"the batch that ends before sample {self.taken} of the iterator, in collate_fn"
        return self.collate_fn(data)

    def skip(self, possibly_batched_index: Any) -> None:
        if not self.ended:
            try:
                self._take(possibly_batched_index)
            except StopIteration:
                self.ended = True
