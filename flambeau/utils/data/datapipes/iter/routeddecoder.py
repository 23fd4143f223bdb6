"""The step that decodes files by their endings."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Sized
from typing import Any

from .._decorator import functional_datapipe
from ..datapipe import IterDataPipe
from ..utils.common import validate_pathname_binary_tuple
from ..utils.decoder import Decoder, basichandlers, extension_extract_fn, imagehandler

__all__ = ["RoutedDecoderIterDataPipe"]


@functional_datapipe("routed_decode")
class RoutedDecoderIterDataPipe(IterDataPipe[Any]):
    """Each path with what the first handler that knows its ending makes of its stream."""

    def __init__(
        self,
        datapipe: Iterable[tuple[str, Any]],
        *handlers: Callable[..., Any],
        key_fn: Callable[[str], str] = extension_extract_fn,
    ) -> None:
        super().__init__()
        warnings.warn(
            "`RoutedDecoderIterDataPipe()` and its functional API `.routed_decode()` are deprecated since 1.12 and "
            "will be removed in 1.13.",
            FutureWarning,
            stacklevel=3,
        )
        self.datapipe = datapipe
        self.decoder = Decoder(*(handlers or (basichandlers, imagehandler("torch"))), key_fn=key_fn)

    def add_handler(self, *handler: Callable[..., Any]) -> None:
        """Handlers to be asked after those that are there."""
        self.decoder.add_handler(*handler)

    def __iter__(self) -> Iterator[Any]:
        for data in self.datapipe:
            validate_pathname_binary_tuple(data)
            path = data[0]
            yield path, self.decoder(data)[path]

    def __len__(self) -> int:
        if isinstance(self.datapipe, Sized):
            return len(self.datapipe)
        raise TypeError(f"{type(self).__name__} instance doesn't have valid length")
