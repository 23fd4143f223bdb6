"""Methods and attributes that say what a tensor is, as functions that a subclass may run its own way.

They are too short to look at each call whether somebody wants to run them. So a subclass that has a
`__torch_function__` of its own gets members of its own, which ask it; plain tensors keep the short ones.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .modes import THREAD
from .subclasses import disabled_torch_function
from .tensor import Tensor

_METHODS = (
    "__array__", "__bool__", "__complex__", "__contains__", "__deepcopy__", "__dir__", "__dlpack__",
    "__dlpack_device__", "__float__", "__format__", "__index__", "__int__", "__len__", "__reduce_ex__", "__repr__",
    "__reversed__", "_is_view", "backward", "data_ptr", "dim", "element_size", "get_device", "is_inference",
    "ndimension", "nelement", "new_tensor", "numel", "register_hook", "requires_grad_", "retain_grad", "size",
    "storage_offset", "stride", "untyped_storage",
)  # fmt: skip
_ATTRIBUTES = (
    "H", "T", "_backward_hooks", "_base", "_version", "data", "device", "dtype", "grad", "grad_dtype", "grad_fn",
    "imag", "is_cpu", "is_cuda", "is_ipu", "is_leaf", "is_maia", "is_meta", "is_mkldnn", "is_mps", "is_mtia",
    "is_nested", "is_quantized", "is_sparse", "is_sparse_csr", "is_vulkan", "is_xla", "is_xpu", "itemsize", "layout",
    "mH", "mT", "name", "nbytes", "ndim", "output_nr", "real", "requires_grad", "retains_grad", "shape",
)  # fmt: skip


def ask_for_members(cls: type) -> None:
    """Give a new subclass of `Tensor` the members that ask its `__torch_function__`, if it has one of its own."""
    own = vars(cls).get("__torch_function__")
    if own is None or getattr(own, "__func__", own) is disabled_torch_function:
        return
    if cls.__module__.partition(".")[0] == __name__.partition(".")[0]:
        return  # the package's own classes have members of their own where they need them
    for name in _METHODS:
        if _is_tensors(cls, name):
            setattr(cls, name, _method(name))
    for name in _ATTRIBUTES:
        if _is_tensors(cls, name):
            setattr(cls, name, _attribute(name))


def _is_tensors(cls: type, name: str) -> bool:
    """Whether a member is the one that all tensors have."""
    return next(vars(each)[name] for each in cls.__mro__ if name in vars(each)) is vars(Tensor).get(name)


def _asked(tensor: Any, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if THREAD.modes.overrides_disabled:
        return function(*args, **kwargs)
    cls = type(tensor)
    result = cls.__torch_function__(function, (cls,), args, kwargs)
    if result is NotImplemented:
        raise TypeError(f"no implementation found for {function.__name__!r} on types that implement "
                        f"__torch_function__: [{cls.__name__}]")  # fmt: skip
    return result


@functools.cache
def _method(name: str) -> Callable[..., Any]:
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return _asked(self, getattr(Tensor, name), (self, *args), kwargs)  # now: it may be loaded at its first use

    method.__name__ = method.__qualname__ = name
    return method


@functools.cache
def _attribute(name: str) -> property:
    def get(self: Any) -> Any:
        return _asked(self, _descriptor(name).__get__, (self,), {})

    def put(self: Any, value: Any) -> None:
        _asked(self, _descriptor(name).__set__, (self, value), {})

    def drop(self: Any) -> None:
        _asked(self, _descriptor(name).__delete__, (self,), {})

    return property(get, put, drop)


@functools.cache
def _descriptor(name: str) -> Any:
    """What gives the attribute to all tensors: found at the first use, since it may be loaded then."""
    found = getattr(Tensor, name)
    return found if isinstance(found, property) else property(lambda _: found)
