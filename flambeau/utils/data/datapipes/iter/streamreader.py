"""The step that reads open files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .._decorator import functional_datapipe
from ..datapipe import IterDataPipe

__all__ = ["StreamReaderIterDataPipe"]


@functional_datapipe("read_from_stream")
class StreamReaderIterDataPipe(IterDataPipe[Any]):
    """Each path with the content of its stream, at once or in pieces of `chunk` bytes; then the stream is closed."""

    def __init__(self, datapipe: IterDataPipe[Any], chunk: int | None = None) -> None:
        self.datapipe = datapipe
        self.chunk = chunk

    def __iter__(self) -> Iterator[Any]:
        for path, stream in self.datapipe:
            while content := stream.read(self.chunk):
                yield path, content
            if hasattr(stream, "close"):
                stream.close()
