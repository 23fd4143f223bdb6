"""A device of one's own: the type "privateuseone" gets a name, and tensors, modules and storages get methods for it.

What computes there is a backend (`flambeau/_core/backend.py`), which the package with the device installs; without one
the device can be named, and a tensor on it is an error.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._core.device import DEVICE_TYPES, OWN_TYPE, own_name, rename_own_type
from .._core.device import device as device_class
from .._core.storage import UntypedStorage
from .._core.tensor import Tensor
from ..nn.modules.module import Module
from ..nn.utils.rnn import PackedSequence
from ..storage import TypedStorage

__all__ = ["generate_methods_for_privateuse1_backend", "rename_privateuse1_backend"]


def rename_privateuse1_backend(backend_name: str) -> None:
    """Call the device type "privateuseone" by the name of the package's own device; once in a process.

    `device("privateuseone")` is then `device(backend_name)`.
    """
    if not isinstance(backend_name, str):
        raise RuntimeError(f"_rename_privateuse1_backend expects a str, but got {type(backend_name).__name__}")
    if backend_name in DEVICE_TYPES and backend_name != OWN_TYPE:
        raise RuntimeError(f"Cannot register privateuse1 backend with in-tree device name: {backend_name}")
    if own_name() not in (OWN_TYPE, backend_name):
        raise RuntimeError(f"torch.register_privateuse1_backend() has already been set! Current backend: {own_name()}")
    if own_name() != backend_name:
        rename_own_type(backend_name)


def _index_of(device: Any) -> int | None:
    """The number of the device that a method is asked for; None for the one that is in use."""
    if device is None or isinstance(device, int):
        return device
    found = device_class(device)
    if found.type != own_name():
        raise RuntimeError(f"Invalid device, must be {own_name()} device")
    return found.index


def _add(owner: type, name: str, value: Any) -> None:
    if hasattr(owner, name):
        raise RuntimeError(
            f"The custom device module of {owner} has already been registered with {name}, or had a member of its name"
        )
    setattr(owner, name, value)


def _method(name: str, body: Callable[..., Any], doc: str) -> Callable[..., Any]:
    body.__name__ = body.__qualname__ = name
    body.__doc__ = doc
    return body


def _tensor_methods(name: str) -> None:
    def move(self: Tensor, device: Any = None, non_blocking: bool = False, **kwargs: Any) -> Tensor:
        move_to: Any = self.to
        moved: Tensor = move_to(device_class(name, _index_of(device)), non_blocking=non_blocking, **kwargs)
        return moved

    _add(Tensor, f"is_{name}", property(lambda self: self.device.type == name))
    _add(Tensor, name, _method(name, move, f"The tensor on a device of type {name}."))


def _module_method(name: str) -> None:
    def move(self: Module, device: Any = None) -> Module:
        return self._apply(lambda tensor: getattr(tensor, name)(device))

    if not hasattr(Tensor, name):
        raise RuntimeError(
            f"Can not automatically generate {name}() method for Module: Tensor has no method of this name, which "
            "for_tensor=True makes"
        )
    _add(Module, name, _method(name, move, f"Move the parameters and buffers to a device of type {name}."))


def _packed_methods(name: str) -> None:
    def move(self: PackedSequence, *args: Any, **kwargs: Any) -> PackedSequence:
        if not args and "device" not in kwargs:
            kwargs["device"] = device_class(name)
        return self.to(*args, **kwargs)

    _add(PackedSequence, f"is_{name}", property(lambda self: self.data.device.type == name))
    _add(PackedSequence, name, _method(name, move, f"The sequences on a device of type {name}."))


def _storage_methods(name: str) -> None:
    def move(self: UntypedStorage, device: Any = None, non_blocking: bool = False) -> UntypedStorage:
        return self.to(device=device_class(name, _index_of(device)), non_blocking=non_blocking)

    def move_typed(self: TypedStorage, device: Any = None, non_blocking: bool = False) -> Any:
        return self.to(device=device_class(name, _index_of(device)), non_blocking=non_blocking)

    for owner, body in ((UntypedStorage, move), (TypedStorage, move_typed)):
        _add(owner, f"is_{name}", property(lambda self: self.device.type == name))
        _add(owner, name, _method(name, body, f"The storage on a device of type {name}."))


def generate_methods_for_privateuse1_backend(
    for_tensor: bool = True,
    for_module: bool = True,
    for_packed_sequence: bool = True,
    for_storage: bool = False,
    unsupported_dtype: Any = None,
) -> None:
    """Give tensors, modules, packed sequences and storages the methods of the device: `x.is_NAME`, `x.NAME()`."""
    name = own_name()
    if for_tensor:
        _tensor_methods(name)
    if for_module:
        _module_method(name)
    if for_packed_sequence:
        _packed_methods(name)
    if for_storage:
        _storage_methods(name)
