"""Devices, layouts and memory formats: small interned values that tensors carry."""

from __future__ import annotations

import os
from typing import Any, ClassVar

from .backend import backend_of_array, is_installed, rename_backend
from .slots import SLOTS

DEVICE_TYPES = ("cpu", "cuda", "meta", "mps", "xpu", "xla", "mkldnn", "vulkan", "hpu", "mtia", "privateuseone", "ipu")
"""The names that `device(...)` accepts. Tensors live on `cpu` and `meta`, and on accelerators where one is found."""
OWN_TYPE = "privateuseone"
"""The type that a package may give a backend and a name of its own."""


class device:
    """Where a tensor's elements are: `device("cpu")`, `device("cuda:1")`, `device("cuda", 1)`, `device(1)`.

    Args:
        type: "cpu", "cuda", "meta", a string with an index such as "cuda:1", an index, or a device.
        index (int, optional): which device of that type; None means the current one.

    Example:
        >>> device = torch.device("cuda", 1)
        >>> device, device.type, device.index
        (device(type='cuda', index=1), 'cuda', 1)
    """

    __slots__ = ("dataless", "index", "type")
    type: str
    index: int | None
    dataless: bool
    """Whether tensors there have no data: on `meta`, and on the fake form of any other device."""
    _interned: ClassVar[dict[tuple[str, int | None], device]] = {}
    _own_name: ClassVar[str] = OWN_TYPE
    """What devices of the type `OWN_TYPE` are called."""

    def __new__(cls, type: Any = None, index: int | None = None) -> device:
        if isinstance(type, device):
            if index is not None:
                raise TypeError("device(): the index is given twice: the first argument is a device already")
            return type
        if isinstance(type, int) and not isinstance(type, bool):
            if type >= 2**63:
                raise ValueError(f"Overflow when unpacking long long: {type} is no number of a device")
            if type < 0:
                raise RuntimeError(f"Device index must not be negative, got {type}")
            type, index = "cuda", type  # the legacy form: a bare number is an accelerator's ordinal
        if isinstance(type, bytes):
            type = type.decode(errors="replace")
        if not isinstance(type, str):
            raise TypeError(f"device(): argument 'type' must be str, int or device, not {_class_name(type)}")
        if ":" in type:
            if index is not None:
                raise RuntimeError(
                    f"type (string) must not include an index because index was passed explicitly: {type}"
                )
            type, _, ordinal = type.partition(":")
            if not ordinal.isdigit() or (len(ordinal) > 1 and ordinal[0] == "0"):
                raise RuntimeError(
                    f"Invalid device string: '{type}:{ordinal}'. Write a type and a number, as in 'cuda:0'"
                )
            index = int(ordinal)
        if type not in DEVICE_TYPES and type != cls._own_name:
            if not type:
                raise RuntimeError("Device string must not be empty")
            if not type.isalpha():
                raise RuntimeError(
                    f"Invalid device string: '{type}'. Write a type and perhaps a number, as in 'cuda:0'"
                )
            raise RuntimeError(
                f"Expected one of {', '.join(DEVICE_TYPES)} device type at start of device string: {type}"
            )
        if index is not None and index < 0:
            raise RuntimeError(f"Device index must be -1 or non-negative, got {index}")
        return cls._intern(cls._own_name if type == OWN_TYPE else type, index)

    @classmethod
    def _intern(cls, type: str, index: int | None) -> device:
        found = cls._interned.get((type, index))
        if found is None:
            found = object.__new__(cls)
            object.__setattr__(found, "type", type)
            object.__setattr__(found, "index", index)
            object.__setattr__(found, "dataless", type == "meta")
            found = cls._interned.setdefault((type, index), found)
        return found

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"attribute '{name}' of 'torch.device' objects is not writable")

    __delattr__ = __setattr__  # type: ignore[assignment]  # it refuses before it looks for a value

    def __repr__(self) -> str:
        return (
            f"device(type='{self.type}')" if self.index is None else f"device(type='{self.type}', index={self.index})"
        )

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __reduce__(self) -> tuple[Any, ...]:
        return device, ((self.type,) if self.index is None else (self.type, self.index))

    def __copy__(self) -> device:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> device:
        return self

    def __enter__(self) -> device:
        from .process.defaults import push_default_device

        push_default_device(self)
        return self

    def __exit__(self, *exception: object) -> None:
        from .process.defaults import pop_default_device

        pop_default_device()


def _class_name(value: object) -> str:
    return value.__class__.__name__


def own_name() -> str:
    """What devices of the type `OWN_TYPE` are called."""
    return device._own_name


def rename_own_type(name: str) -> None:
    """Call devices of the type `OWN_TYPE` otherwise, those included that exist."""
    before, device._own_name = device._own_name, name
    rename_backend(before, name)
    for (kind, index), found in list(device._interned.items()):
        if kind == before:
            object.__setattr__(found, "type", name)
            device._interned[name, index] = device._interned.pop((kind, index))


CPU = device("cpu")
META = device("meta")
_FAKES: dict[device, device] = {}


def fake_device(real: device) -> device:
    """The fake form of a device: tensors there are said to be on the device, and have no data."""
    if real.dataless:
        return real
    found = _FAKES.get(real)
    if found is None:
        found = object.__new__(device)
        for name, value in (("type", real.type), ("index", real.index), ("dataless", True)):
            object.__setattr__(found, name, value)
        found = _FAKES.setdefault(real, found)
    return found


def is_fake(place: device) -> bool:
    """Whether a device is the fake form of another."""
    return place.dataless and place is not META


def shown_device(place: device) -> device:
    """The device that a tensor says it is on."""
    return device(place.type, place.index) if place.dataless else place


CPU_VARIABLE = "FLAMBEAU_CPU_DEVICES"


def _cpu_devices() -> int:
    text = os.environ.get(CPU_VARIABLE, "1")
    if not text.isdecimal() or not int(text):
        raise ValueError(f"the environment variable {CPU_VARIABLE} must be a number from 1 on, not {text!r}")
    return int(text)


CPU_DEVICES = _cpu_devices()
"""How many devices the CPU plays: with more than one, `cpu:1`, `cpu:2`, ... are devices apart, as those of several
accelerators are, so that programs for such machines can be tried on any. `cpu:0` is the CPU itself."""


class layout:
    """How a tensor's elements are arranged: `strided`, or one of the sparse layouts.

    Args:
        name (str): its name.

    Example:
        >>> torch.ones(2).layout, torch.ones(2).to_sparse().layout
        (torch.strided, torch.sparse_coo)
    """

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __reduce__(self) -> tuple[Any, ...]:
        return _layout_named, (self.name,)

    def __deepcopy__(self, memo: dict[int, Any]) -> layout:
        return self


class memory_format:
    """The order of a dense tensor's dimensions in memory.

    Args:
        name (str): its name.

    Example:
        >>> torch.ones(1, 2, 3, 3).to(memory_format=torch.channels_last).stride()
        (18, 1, 6, 2)
    """

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __reduce__(self) -> tuple[Any, ...]:
        return _memory_format_named, (self.name,)

    def __deepcopy__(self, memo: dict[int, Any]) -> memory_format:
        return self


LAYOUTS = {
    name: layout(name)
    for name in ("strided", "sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc", "jagged", "_mkldnn")
}
MEMORY_FORMATS = {
    name: memory_format(name) for name in ("contiguous_format", "preserve_format", "channels_last", "channels_last_3d")
}
strided = LAYOUTS["strided"]
contiguous_format = MEMORY_FORMATS["contiguous_format"]
preserve_format = MEMORY_FORMATS["preserve_format"]
channels_last = MEMORY_FORMATS["channels_last"]
channels_last_3d = MEMORY_FORMATS["channels_last_3d"]


def _layout_named(name: str) -> layout:
    return LAYOUTS[name]


def _memory_format_named(name: str) -> memory_format:
    return MEMORY_FORMATS[name]


def usable_device(value: Any) -> device:
    """`value` as a device that this installation can hold tensors on, or PyTorch's error for a missing one."""
    found = value if type(value) is device else device(value)
    if found.type == "meta":
        return META  # there is one, whatever its ordinal
    if found.dataless:
        return found
    if found.type == "cpu":
        if not found.index or CPU_DEVICES == 1:
            return CPU  # where there is one, its ordinal says nothing
        if found.index < CPU_DEVICES:
            return found
        raise RuntimeError(f"invalid device ordinal: {found}: with {CPU_VARIABLE}={CPU_DEVICES} the last is one less")
    if found.type == "cuda":
        return SLOTS.usable_cuda_device(found)
    if is_installed(found.type):
        return found
    raise NotImplementedError(
        f"Could not run an operation on device '{found}': this Flambeau has the devices cpu and meta"
    )


def device_of_array(array: Any) -> device:
    """The device that an array is on."""
    backend = backend_of_array(array)
    return usable_device(device(backend.device_type, backend.ordinal_of(array)))
