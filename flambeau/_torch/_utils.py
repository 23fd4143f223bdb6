"""Helpers under the names of `torch._utils`."""

from __future__ import annotations

import sys
import traceback
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from flambeau._core.device import device as device_class
from flambeau._core.dtype import dtype as dtype_class
from flambeau._core.slots import SLOTS
from flambeau._core.tensor import Tensor
from flambeau._serialization.rebuild import rebuild_meta_tensor as _rebuild_meta_tensor_no_storage
from flambeau._serialization.rebuild import rebuild_parameter as _rebuild_parameter
from flambeau._serialization.rebuild import rebuild_parameter_with_state as _rebuild_parameter_with_state
from flambeau._serialization.rebuild import rebuild_quantized as _rebuild_qtensor
from flambeau._serialization.rebuild import rebuild_sparse as _rebuild_sparse_tensor
from flambeau._serialization.rebuild import rebuild_tensor as _rebuild_tensor
from flambeau._serialization.rebuild import rebuild_tensor_v2 as _rebuild_tensor_v2
from flambeau._serialization.rebuild import rebuild_tensor_v3 as _rebuild_tensor_v3

__all__ = [
    "ExceptionWrapper", "KeyErrorMessage", "_rebuild_meta_tensor_no_storage", "_rebuild_parameter",
    "_rebuild_parameter_with_state", "_rebuild_qtensor", "_rebuild_sparse_tensor", "_rebuild_tensor",
    "_rebuild_tensor_v2", "_rebuild_tensor_v3", "classproperty", "is_compiling", "render_call",
]  # fmt: skip

Function = TypeVar("Function", bound=Callable[..., Any])


def is_compiling() -> bool:
    """Whether this code is part of a compiled function, as `compiler.is_compiling`."""
    return SLOTS.is_compiling()


class KeyErrorMessage(str):
    """The text of a KeyError, printed as it is: a KeyError shows the `repr` of its text."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


class ExceptionWrapper:
    """An error on its way from one thread or process to another, with its traceback as text."""

    def __init__(self, exc_info: Any = None, where: str = "in background") -> None:
        kind, error, trace = sys.exc_info() if exc_info is None else exc_info
        self.exc_type: Any = kind
        self.exc_msg = "".join(traceback.format_exception(kind, error, trace))
        self.where = where

    def reraise(self) -> None:
        """Raise it again where it has arrived."""
        message = f"Caught {self.exc_type.__name__} {self.where}.\nOriginal {self.exc_msg}"
        if self.exc_type is KeyError:
            message = KeyErrorMessage(message)
        elif getattr(self.exc_type, "message", None):
            raise self.exc_type(message=message)
        try:
            error = self.exc_type(message)
        except Exception:  # a class that cannot be made from a text alone
            raise RuntimeError(message) from None
        raise error


class classproperty:
    """A property of a class rather than of its instances."""

    def __init__(self, func: Any) -> None:
        self._function = func if isinstance(func, (classmethod, staticmethod)) else classmethod(func)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self._function.__get__(instance, type(instance) if owner is None else owner)()


def _flatten_dense_tensors(tensors: Sequence[Tensor]) -> Tensor:
    """The elements of tensors end to end."""
    from flambeau import cat

    return cat([each.reshape(-1) for each in tensors]) if len(tensors) != 1 else tensors[0].reshape(-1)


def _unflatten_dense_tensors(flat: Tensor, tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Windows on such elements in the shapes of the tensors."""
    parts = flat.split([each.numel() for each in tensors])
    return tuple(part.view(each.shape) for part, each in zip(parts, tensors, strict=True))


def _take_tensors(tensors: Sequence[Tensor], size_limit: int) -> Iterator[list[Tensor]]:
    """Groups of tensors of one type with about so many bytes each."""
    groups: defaultdict[str, tuple[list[Tensor], int]] = defaultdict(lambda: ([], 0))
    for tensor in tensors:
        kind = str(tensor.type())
        group, size = groups[kind]
        extent = tensor.numel() * tensor.element_size()
        if group and size + extent > size_limit:
            yield group
            group, size = [], 0
        group.append(tensor)
        groups[kind] = group, size + extent
    yield from (group for group, _ in groups.values() if group)


def _import_dotted_name(name: str) -> Any:
    """What a dotted name stands for, once its first part is imported."""
    first, *parts = name.split(".")
    found: Any = __import__(first)
    for part in parts:
        found = getattr(found, part)
    return found


def _type(self: Any, dtype: Any = None, non_blocking: bool = False, **kwargs: Any) -> Any:
    """The type of a storage or tensor as text, or a copy of it of another type."""
    return self.type(dtype)


def _get_device_module(device_type: str) -> Any:
    """The module about a type of device: `torch.cuda` for "cuda"."""
    import flambeau

    found = getattr(flambeau, device_type, None)
    if found is None:
        raise RuntimeError(
            f"Device '{device_type}' does not have a corresponding module registered as 'torch.{device_type}'."
        )
    return found


def _get_available_device_type() -> str | None:
    """The kind of accelerator there is."""
    return None


def _get_all_device_indices() -> list[int] | None:
    """The ordinals of the accelerators."""
    return None


def _get_device_index(device: Any, optional: bool = False, allow_cpu: bool = False) -> int:
    """The ordinal that a device names; -1 for the CPU."""
    if isinstance(device, int):
        return device
    found = device_class(device) if isinstance(device, str) else device
    if isinstance(found, device_class):
        if found.type == "cpu" and not allow_cpu:
            raise ValueError(f"Expected a non cpu device, but got: {found}")
        return -1 if found.type == "cpu" else found.index if found.index is not None else 0
    if optional:
        from flambeau.accelerator import NONE_AVAILABLE

        raise RuntimeError(NONE_AVAILABLE.format(name="current_device_index"))
    raise ValueError(f"Expected a torch.device with a specified index or an integer, but got:{device}")


def _element_size(dtype: dtype_class) -> int:
    """How many bytes an element takes."""
    return dtype.itemsize


def render_call(fn: Any, args: Any, kwargs: Any) -> str:
    """A call as text."""
    from flambeau.overrides import resolve_name

    name = resolve_name(fn) or str(fn)
    return f"{name}({', '.join([*map(repr, args), *(f'{key}={value!r}' for key, value in kwargs.items())])})"


def get_current_device_index() -> int:
    """The ordinal of the accelerator in use, -1 without one."""
    return -1
