"""Dispatch keys, under PyTorch's names: for which tensors and in which modes an operator's function is meant.

There is no C++ dispatcher. The names say to `torch.library` where a function belongs: to a device, to derivatives, to
autocast, to shapes without data; a set of them says what a region leaves out.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable
from typing import Any

from ..arguments.autocast import is_autocast_enabled, set_autocast_enabled

_MODES = (
    "Undefined CompositeExplicitAutogradNonFunctional CompositeExplicitAutograd "
    "CompositeImplicitAutogradNestedTensor CompositeImplicitAutograd AutogradNestedTensor AutogradOther Autograd "
    "Conjugate ZeroTensor Negative BackendSelect ADInplaceOrView PythonTLSSnapshot Python "
    "FuncTorchDynamicLayerFrontMode FuncTorchDynamicLayerBackMode FuncTorchBatchedDecomposition FuncTorchBatched "
    "FuncTorchVmapMode FuncTorchGradWrapper PythonDispatcher PreDispatch Functionalize AutocastCPU AutocastMPS "
    "AutocastXPU AutocastHPU AutocastIPU AutocastCUDA AutocastPrivateUse1"
)
_DEVICES = "CPU CUDA HIP XLA MPS IPU XPU HPU VE Lazy MTIA MAIA PrivateUse1 PrivateUse2 PrivateUse3 Meta"
_BY_DEVICE = {
    "Dense": "",
    "Quantized": "Quantized",
    "Sparse": "Sparse",
    "SparseCsr": "SparseCsr",
    "NestedTensor": "NestedTensor",
    "AutogradFunctionality": "Autograd",
}
"""What there is a key of for each device, and how such a key begins."""


def _names() -> list[str]:
    names = _MODES.split()
    for kind, prefix in _BY_DEVICE.items():
        names += [
            kind,
            f"StartOf{kind}Backends",
            *(prefix + device for device in _DEVICES.split()),
            f"EndOf{kind}Backends",
        ]
    return names


_enumeration: Any = enum.Enum
DispatchKey: Any = _enumeration("DispatchKey", _names(), module="torch._C")


def key_name(key: Any) -> str:
    """The name of a key that is given as such or by its name; a ValueError if there is none of it."""
    name = key.name if isinstance(key, DispatchKey) else str(key)
    if name and name not in DispatchKey.__members__:
        raise ValueError(f"Could not parse dispatch key: {name}")
    return name


def _priority(key: Any) -> tuple[int, int]:
    name = key.name
    if name.startswith(("Autocast", "Python", "FuncTorch", "Functionalize", "PreDispatch")):
        return 2, key.value
    return (1 if name.startswith(("Autograd", "ADInplace")) else 0), key.value


class DispatchKeySet:
    """Some dispatch keys."""

    def __init__(self, keys: Any = ()) -> None:
        listed = keys if isinstance(keys, Iterable) else (keys,)
        self._names = frozenset(key_name(each) for each in listed)

    def has(self, key: Any) -> bool:
        """Whether the key is one of them."""
        return key_name(key) in self._names

    def add(self, key: Any) -> DispatchKeySet:
        """The keys of this set, and one more."""
        return self | DispatchKeySet(key)

    def remove(self, key: Any) -> DispatchKeySet:
        """The keys of this set without one."""
        return self - DispatchKeySet(key)

    def raw_repr(self) -> int:
        """The set as a number, a bit for each key. Which bit is which key is Flambeau's own affair."""
        return sum(1 << DispatchKey[name].value for name in self._names)

    @staticmethod
    def from_raw_repr(number: int) -> DispatchKeySet:
        """The set that `raw_repr` gave as a number."""
        return DispatchKeySet([each for each in DispatchKey if number >> each.value & 1])

    def highestPriorityTypeId(self) -> Any:
        """The key of those here that comes first in a call: modes before derivatives, those before devices."""
        if not self._names:
            return DispatchKey["Undefined"]
        return max((DispatchKey[name] for name in self._names), key=_priority)

    def __iter__(self) -> Any:
        return (DispatchKey[name] for name in sorted(self._names))

    def __or__(self, other: DispatchKeySet) -> DispatchKeySet:
        return DispatchKeySet([*self, *other])

    def __and__(self, other: DispatchKeySet) -> DispatchKeySet:
        return DispatchKeySet([each for each in self if other.has(each)])

    def __sub__(self, other: DispatchKeySet) -> DispatchKeySet:
        return DispatchKeySet([each for each in self if not other.has(each)])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DispatchKeySet) and self._names == other._names

    def __hash__(self) -> int:
        return hash(self._names)

    def __repr__(self) -> str:
        return f"DispatchKeySet({', '.join(sorted(self._names))})"


class ExcludeDispatchKeyGuard:
    """In its region what the keys stand for does not happen: autocast of the devices that they name."""

    def __init__(self, keys: DispatchKeySet) -> None:
        left = [each.name for each in keys if not each.name.startswith("Autocast")]
        if left:
            raise NotImplementedError(
                f"_ExcludeDispatchKeyGuard: Flambeau can leave out autocast, not {', '.join(left)}: there is no C++ "
                "dispatcher"
            )
        self._devices = [each.name.removeprefix("Autocast").lower() for each in keys]
        self._before: dict[str, bool] = {}

    def __enter__(self) -> None:
        self._before = {device: is_autocast_enabled(device) for device in self._devices}
        for device, on in self._before.items():
            if on:
                set_autocast_enabled(device, False)

    def __exit__(self, *error: object) -> None:
        for device, on in self._before.items():
            if on:
                set_autocast_enabled(device, True)
