"""The switches of saving and loading, and who may turn them."""

from __future__ import annotations

import contextlib
import enum
import mmap
import sys
import threading
from collections.abc import Iterator

MAP_PRIVATE: int = getattr(mmap, "MAP_PRIVATE", 2)
MAP_SHARED: int = getattr(mmap, "MAP_SHARED", 1)


class LoadEndianness(enum.Enum):
    """The byte order to assume of archives that do not say theirs.

    Example:
        >>> [each.name for each in torch.serialization.LoadEndianness]
        ['NATIVE', 'LITTLE', 'BIG']
    """

    NATIVE = 1
    LITTLE = 2
    BIG = 3


class _Switches:
    def __init__(self) -> None:
        self.endianness: LoadEndianness | None = None
        self.mmap_flags = MAP_PRIVATE
        self.crc32 = True
        self.mmap = False
        self.alignment = 64
        self.storage_offsets = self.pinned = False


class _ThreadSwitches(threading.local):
    skip_data = False


SWITCHES = _Switches()
_THREAD = _ThreadSwitches()


def get_default_load_endianness() -> LoadEndianness | None:
    """The byte order assumed of archives that do not say theirs; None means little-endian.

    Returns:
        LoadEndianness, optional: the byte order.

    Example:
        >>> torch.serialization.get_default_load_endianness() is None
        True
    """
    return SWITCHES.endianness


def set_default_load_endianness(endianness: LoadEndianness | None) -> None:
    """Choose the byte order assumed of archives that do not say theirs, as those before PyTorch 2.1 do not.

    Args:
        endianness (LoadEndianness, optional): the byte order; None means little-endian.

    Example:
        >>> torch.serialization.set_default_load_endianness(None)
    """
    if endianness is not None and not isinstance(endianness, LoadEndianness):
        raise TypeError(
            "Invalid argument type in function set_default_load_endianness: a LoadEndianness or None is expected, not "
            f"{type(endianness).__name__}"
        )
    SWITCHES.endianness = endianness


def assumed_byteorder() -> str:
    """The byte order of an archive that does not say it."""
    chosen = SWITCHES.endianness
    if chosen is LoadEndianness.BIG:
        return "big"
    return sys.byteorder if chosen is LoadEndianness.NATIVE else "little"


def mmap_flags() -> int:
    """MAP_PRIVATE or MAP_SHARED: whether changes of tensors loaded with `mmap=True` stay out of the file."""
    return SWITCHES.mmap_flags


def get_default_mmap_options() -> int:
    """The flags with which `load(mmap=True)` maps a file.

    Returns:
        int: the flags.

    Example:
        >>> import mmap
        >>> torch.serialization.get_default_mmap_options() == mmap.MAP_PRIVATE
        True
    """
    return SWITCHES.mmap_flags


class set_default_mmap_options:
    """Choose `mmap.MAP_PRIVATE`, the default, or `mmap.MAP_SHARED` for `load(mmap=True)`; also for a `with` block.

    Changes of tensors loaded with MAP_SHARED go to the file, but its CRC-32 stays: load it with `mmap=True` afterwards.

    Args:
        flags (int): the flags.

    Example:
        >>> import mmap
        >>> with torch.serialization.set_default_mmap_options(mmap.MAP_SHARED):
        ...     torch.serialization.get_default_mmap_options() == mmap.MAP_SHARED
        True
    """

    def __init__(self, flags: int) -> None:
        if flags not in (MAP_PRIVATE, MAP_SHARED):
            raise ValueError(
                "Invalid argument in function set_default_mmap_options, expected mmap.MAP_PRIVATE or mmap.MAP_SHARED, "
                f"but got {flags}"
            )
        self.before = SWITCHES.mmap_flags
        SWITCHES.mmap_flags = flags

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exception: object) -> None:
        SWITCHES.mmap_flags = self.before


def get_crc32_options() -> bool:
    """Whether `save` computes the CRC-32 of every record, and `load` checks it.

    Returns:
        bool: whether it does.

    Example:
        >>> torch.serialization.get_crc32_options()
        True
    """
    return SWITCHES.crc32


def set_crc32_options(compute_crc32: bool) -> None:
    """Choose whether `save` computes the CRC-32 of every record and `load` checks it, by which damage is found.

    Args:
        compute_crc32 (bool): whether it does.

    Example:
        >>> torch.serialization.set_crc32_options(True)
    """
    SWITCHES.crc32 = bool(compute_crc32)


def skips_data() -> bool:
    """Whether the contents of storages are left out."""
    return _THREAD.skip_data


@contextlib.contextmanager
def skip_data(materialize_fake_tensors: bool = False) -> Iterator[None]:
    """In this block, `save` writes zeros for the contents of storages, and `load` does not read them.

    Args:
        materialize_fake_tensors (bool): whether fake tensors are written as zeros too. Default: `False`.

    Returns:
        a context manager.

    Example:
        >>> import io
        >>> with torch.serialization.skip_data():
        ...     torch.save(torch.ones(2), file := io.BytesIO())
        >>> _ = file.seek(0)
        >>> torch.load(file)
        tensor([0., 0.])
    """
    before = _THREAD.skip_data
    _THREAD.skip_data = True
    try:
        yield
    finally:
        _THREAD.skip_data = before
