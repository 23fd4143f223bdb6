"""Where loaded storages go: the tags that files carry, and `map_location` in all its forms."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from .._core.device import META, device, usable_device
from .._core.storage import UntypedStorage

Tagger = Callable[[Any], "str | None"]
Deserializer = Callable[[Any, str], Any]
Restore = Callable[[UntypedStorage, str], UntypedStorage]
_PACKAGES: list[tuple[int, Tagger, Deserializer]] = []


def register_package(priority: int, tagger: Tagger, deserializer: Deserializer) -> None:
    """Teach saving and loading about a kind of device.

    `tagger(storage)` gives the tag of a storage of that kind, None for others. `deserializer(storage, tag)` gives the
    storage moved to where the tag says, None for tags of others. Smaller priorities are asked first.

    Args:
        priority (int): entries of small numbers are asked first.
        tagger (Tagger): returns the tag of a storage, or None if it is of another kind of device.
        deserializer (Deserializer): `deserializer(storage, tag)` returns the storage there, or None.

    Example:
        >>> torch.serialization.register_package(1000, lambda storage: None, lambda storage, location: None)
    """
    _PACKAGES.append((priority, tagger, deserializer))
    _PACKAGES.sort(key=operator.itemgetter(0))


def validate_cuda_device(location: Any) -> int:
    """The ordinal of the CUDA device that `location` names, or an error that says how to load without it.

    Args:
        location: a tag such as "cuda:1".

    Returns:
        int: the ordinal.

    Raises:
        RuntimeError: there is no such device.
    """
    from .. import cuda

    named = device(location)
    if not cuda.is_available():
        raise RuntimeError(
            "Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False. If you are "
            "running on a CPU-only machine, please use torch.load with map_location=torch.device('cpu') to map your "
            "storages to the CPU."
        )
    index = 0 if named.index is None else named.index
    if index >= cuda.device_count():
        raise RuntimeError(
            f"Attempting to deserialize object on CUDA device {index} but torch.cuda.device_count() is "
            f"{cuda.device_count()}. Please use torch.load with map_location to map your storages "
            "to an existing device."
        )
    return index


def _tag_of(kind: str) -> Tagger:
    return lambda storage: str(storage.device) if storage.device.type == kind else None


def _cpu_tag(storage: UntypedStorage) -> str | None:
    return "cpu" if storage.device.type == "cpu" else None  # other programs know of one


def _to_cpu(storage: UntypedStorage, location: str) -> UntypedStorage | None:
    if location != "cpu" and not location.startswith("cpu:"):
        return None
    place = usable_device(location)
    return storage if place is storage.device else UntypedStorage(storage.nbytes(), device=place).copy_(storage)


def _to_meta(storage: UntypedStorage, location: str) -> UntypedStorage | None:
    return UntypedStorage(storage.nbytes(), device=META) if location == "meta" else None


def _to_cuda(storage: UntypedStorage, location: str) -> UntypedStorage | None:
    if not location.startswith("cuda"):
        return None
    moved = UntypedStorage(storage.nbytes(), device=device("cuda", validate_cuda_device(location)))
    return moved.copy_(storage)


register_package(10, _cpu_tag, _to_cpu)
register_package(20, _tag_of("cuda"), _to_cuda)
register_package(22, _tag_of("meta"), _to_meta)


def location_tag(storage: Any) -> str:
    """The tag that says where a storage was when it was saved.

    Args:
        storage: the storage.

    Returns:
        str: the tag.

    Example:
        >>> torch.serialization.location_tag(torch.ones(1).untyped_storage())
        'cpu'
    """
    for _, tagger, _ in _PACKAGES:
        tag = tagger(storage)
        if tag:
            return tag
    raise RuntimeError(f"don't know how to determine data location of {_type_name(storage)}")


def default_restore_location(storage: Any, location: str) -> Any:
    """The storage moved to where `location`, the tag of a file or a device's name, says.

    Args:
        storage: the storage.
        location (str): the tag.

    Returns:
        the storage there.

    Example:
        >>> torch.serialization.default_restore_location(torch.ones(1).untyped_storage(), "cpu").device
        device(type='cpu')
    """
    for _, _, deserializer in _PACKAGES:
        moved = deserializer(storage, location)
        if moved is not None:
            return moved
    raise RuntimeError(
        f"don't know how to restore data location of {_type_name(storage)} (tagged with {location}). Name a device "
        "that exists here: torch.load(..., map_location='cpu')"
    )


def _type_name(storage: Any) -> str:
    return f"torch.storage.{type(storage).__name__}"


def restorer(map_location: Any) -> Restore:
    """What `map_location` says as one function."""
    if map_location is None:
        return default_restore_location
    if isinstance(map_location, dict):
        return lambda storage, location: default_restore_location(storage, map_location.get(location, location))
    if isinstance(map_location, (str, bytes)):
        target = map_location.decode("ascii") if isinstance(map_location, bytes) else map_location
        return lambda storage, location: default_restore_location(storage, target)
    if isinstance(map_location, device):
        return lambda storage, location: default_restore_location(storage, str(map_location))
    if not callable(map_location):
        raise TypeError(
            f"'{type(map_location).__name__}' object is not callable: map_location must be a string, a torch.device, a "
            "dict, a function of a storage and its location, or None"
        )

    def by_user(storage: UntypedStorage, location: str) -> UntypedStorage:
        moved: UntypedStorage | None = map_location(storage, location)
        return default_restore_location(storage, location) if moved is None else moved

    return by_user


def goes_to_meta(map_location: Any, location: str) -> bool:
    """Whether a storage ends where there is no data, so that none need be read."""
    if isinstance(map_location, dict):
        return str(map_location.get(location, location)) == "meta"
    if map_location is None:
        return location == "meta"
    return isinstance(map_location, (str, device)) and str(map_location) == "meta"
