"""The switches of `save` and `load`: `config.save.compute_crc32`, `config.load.mmap`.

They are the switches that the functions of `flambeau.serialization` turn.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

from ..._serialization.settings import SWITCHES

__all__ = ["load", "patch", "save"]


class _Group:
    """Settings that are attributes of the one object that `save` and `load` ask."""

    def __init__(self, **names: str) -> None:
        vars(self)["_names"] = names

    def __getattr__(self, name: str) -> Any:
        if name not in self._names:
            raise AttributeError(f"{__name__} has no setting {name!r}")
        return getattr(SWITCHES, self._names[name])

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self._names:
            raise AttributeError(f"{__name__} has no setting {name!r}")
        setattr(SWITCHES, self._names[name], value)


load: Any = _Group(
    mmap="mmap", endianness="endianness", mmap_flags="mmap_flags", calculate_storage_offsets="storage_offsets"
)
"""Options of `load`; `calculate_storage_offsets` is PyTorch's way of reading faster, and changes nothing here."""
save: Any = _Group(compute_crc32="crc32", use_pinned_memory_for_d2h="pinned", storage_alignment="alignment")
"""Options of `save`; `use_pinned_memory_for_d2h` is a matter of speed on GPUs."""


@contextlib.contextmanager
def patch(name: str | dict[str, Any] | None = None, value: Any = None, **changes: Any) -> Iterator[None]:
    """Set options, such as "save.compute_crc32", inside a block; what was set before returns afterwards."""
    wanted = {**(name if isinstance(name, dict) else {} if name is None else {name: value}), **changes}
    places = {each: each.partition(".")[::2] for each in wanted}
    before = {each: getattr(globals()[group], last) for each, (group, last) in places.items()}
    _set(places, wanted)
    try:
        yield
    finally:
        _set(places, before)


def _set(places: Mapping[str, tuple[str, ...]], values: dict[str, Any]) -> None:
    for each, (group, last) in places.items():
        setattr(globals()[group], last, values[each])
