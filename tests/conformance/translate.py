"""PyTorch's objects as Flambeau's: tensors, functions, and the functions of PyTorch's operator database.

The database names its operators by PyTorch's own functions, or by small Python functions that call them. A builtin
becomes the function of the same name; a Python function of the database is made again around globals in which
`torch` is Flambeau.
"""

from __future__ import annotations

import ctypes
import dataclasses
import functools
import importlib
import types
from collections.abc import Callable
from typing import Any

import torch as pytorch
from torch.testing._internal.opinfo.core import OpInfo

import flambeau

Function = Callable[..., Any]


class Missing(Exception):
    """Flambeau has no object of that name."""


_HOMES = {
    "torch": "",
    "torch.functional": "",
    "torch._tensor": "Tensor",
    "torch._C._nn": "nn.functional",
    "torch._C._fft": "fft",
    "torch._C._linalg": "linalg",
    "torch._C._special": "special",
    "torch._C._sparse": "sparse",
    "torch.masked._ops": "masked",
    "torch.signal.windows.windows": "signal.windows",
    "torch._ops.aten": "ops.aten",
}
"""Where Flambeau keeps what PyTorch defines in a module; elsewhere, under the module's own name."""

_PREFIXES = {
    "torch._C._fft": "fft_",
    "torch._C._linalg": "linalg_",
    "torch._C._sparse": "sparse_",
    "torch._C._special": "special_",
}
_OTHER_NAMES = {"log_sigmoid": "logsigmoid", "_sparse_mm": "mm"}
_REBUILT = ("torch.testing._internal", "torch.nn.init")
"""Python functions of these modules are made again; others have a namesake."""


def named(path: str) -> Any:
    """The object of Flambeau at a dotted path."""
    path = path.strip(".")
    try:
        return functools.reduce(getattr, path.split("."), flambeau) if path else flambeau
    except AttributeError:
        raise Missing(f"flambeau.{path}") from None


def seeded(op: Function, *args: Any, **kwargs: Any) -> Any:
    """What the database's `wrapper_set_seed` does: the same numbers in every call."""
    flambeau.manual_seed(42)
    return op(*args, **kwargs)


def identity(value: Any, *args: Any, **kwargs: Any) -> Any:
    return value


_REPLACED: dict[str, Function] = {"wrapper_set_seed": seeded}


@functools.cache
def _function(function: Function) -> Function:
    """Flambeau's counterpart of a function of PyTorch."""
    module = getattr(function, "__module__", None)
    name = getattr(function, "__name__", "")
    if name in _REPLACED:
        return _REPLACED[name]
    if isinstance(function, types.FunctionType) and module is not None and module.startswith(_REBUILT):
        return _rebuilt(function)
    if isinstance(function, (types.MethodDescriptorType, types.WrapperDescriptorType)):
        result = named(f"Tensor.{name}")
    elif module is None:
        raise Missing(name)
    else:
        if module == "torch._ops.aten":
            name = name.partition(".")[0]
        name = name.removeprefix(_PREFIXES.get(module, ""))
        home = _HOMES.get(module, module.removeprefix("torch."))
        result = named(f"{home}.{_OTHER_NAMES.get(name, name)}")
    return result  # type: ignore[no-any-return]


def _names(code: types.CodeType) -> set[str]:
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names |= _names(constant)
    return names


def _rebuilt(function: types.FunctionType) -> Function:
    """`function` with PyTorch's names in its globals, defaults and closure replaced by Flambeau's."""
    known = function.__globals__
    globals_ = {name: _quietly(known[name]) for name in _names(function.__code__) if name in known}
    globals_["__builtins__"] = known["__builtins__"]
    closure = None
    if function.__closure__ is not None:
        closure = tuple(types.CellType(_quietly(cell.cell_contents)) for cell in function.__closure__)
    defaults = function.__defaults__ and tuple(map(_quietly, function.__defaults__))
    made = types.FunctionType(function.__code__, globals_, function.__name__, defaults, closure)
    made.__kwdefaults__ = function.__kwdefaults__ and {
        name: _quietly(value) for name, value in function.__kwdefaults__.items()
    }
    return made


def _quietly(value: Any) -> Any:
    """The translation, or a stand-in that complains only when it is called: not every global is used."""
    try:
        return translate(value)
    except Missing as error:
        reason = str(error)

        def missing(*args: Any, **kwargs: Any) -> Any:
            raise Missing(reason)

        return missing


class _Operator:
    """An entry of the database inside one of its functions: called as Flambeau's, asked for its name as it is."""

    def __init__(self, info: OpInfo) -> None:
        self._info = info

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return _function(self._info.op)(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._info, name)


def tensor(value: pytorch.Tensor, memory: dict[int, Any] | None = None) -> flambeau.Tensor:
    """A tensor with the same values, strides, offset and `requires_grad`; equal storages become one storage."""
    if value.layout is not pytorch.strided:
        return _sparse(value)
    dtype = getattr(flambeau, str(value.dtype).removeprefix("torch."))
    if value.is_meta:
        result = flambeau.empty_strided(tuple(value.shape), value.stride(), dtype=dtype, device="meta")
        return result.requires_grad_(value.requires_grad)
    conj, neg = value.is_conj(), value.is_neg()  # signs that are still to be taken: the memory is without them
    plain = value.detach()
    plain = plain.conj() if conj else plain
    plain = pytorch._neg_view(plain) if neg else plain
    storage = plain.untyped_storage()
    memory = {} if memory is None else memory
    if storage.data_ptr() not in memory:
        memory[storage.data_ptr()] = _copied(storage)
    result = flambeau.empty(0, dtype=dtype)
    result.set_(memory[storage.data_ptr()], plain.storage_offset(), tuple(plain.shape), plain.stride())
    result = (flambeau._neg_view(result) if neg else result).detach()
    result = (result.conj() if conj else result).detach()
    return result.requires_grad_(value.requires_grad)


def _sparse(value: pytorch.Tensor) -> flambeau.Tensor:
    """A sparse tensor with the same elements at the same places."""
    plain = value.detach()
    shape = tuple(value.shape)
    if value.layout is pytorch.sparse_coo:
        made = flambeau.sparse_coo_tensor(tensor(plain._indices()), tensor(plain._values()), shape)
        made._coalesced_(value.is_coalesced())
        return made.requires_grad_(value.requires_grad)
    if value.layout in (pytorch.sparse_csr, pytorch.sparse_bsr):
        places = plain.crow_indices(), plain.col_indices()
    elif value.layout in (pytorch.sparse_csc, pytorch.sparse_bsc):
        places = plain.ccol_indices(), plain.row_indices()
    else:
        raise Missing(f"tensors of layout {value.layout}")
    parts = map(tensor, (*places, plain.values()))
    layout = getattr(flambeau, str(value.layout).removeprefix("torch."))
    made = flambeau.sparse_compressed_tensor(*parts, shape, layout=layout)
    return made.requires_grad_(value.requires_grad)


def _copied(storage: pytorch.UntypedStorage) -> Any:
    if storage.nbytes() == 0:
        return flambeau.empty(0, dtype=flambeau.uint8).untyped_storage()
    data = bytearray(ctypes.string_at(storage.data_ptr(), storage.nbytes()))
    return flambeau.frombuffer(data, dtype=flambeau.uint8).untyped_storage()


def translate(value: Any, memory: dict[int, Any] | None = None) -> Any:
    """Flambeau's counterpart of any value: a tensor, a dtype, a function, a container of them; or the value itself."""
    if isinstance(value, pytorch.Tensor):
        return tensor(value, memory)
    if value is None or isinstance(value, (bool, int, float, complex, str, slice, type(Ellipsis))):
        return value
    if isinstance(value, pytorch.Size):
        return flambeau.Size(value)
    if isinstance(value, (list, tuple)):
        items = [translate(item, memory) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    if isinstance(value, dict):
        return {key: translate(item, memory) for key, item in value.items()}
    if isinstance(value, (pytorch.dtype, pytorch.layout, pytorch.memory_format)):
        return named(str(value).removeprefix("torch."))
    if isinstance(value, pytorch.device):
        return flambeau.device(str(value))
    if isinstance(value, types.ModuleType) and value.__name__.partition(".")[0] == "torch":
        return named(value.__name__.removeprefix("torch").removeprefix(".")) if _public(value) else value
    if isinstance(value, functools.partial):
        return functools.partial(_function(value.func), *translate(value.args), **translate(value.keywords))
    if isinstance(value, OpInfo):
        return _Operator(value)
    if value is pytorch.Tensor:
        return flambeau.Tensor
    if isinstance(value, pytorch.Generator):
        made = flambeau.Generator()
        made.set_state(tensor(value.get_state()))
        return made
    if isinstance(value, pytorch.nn.Module):
        return _module(value)
    if dataclasses.is_dataclass(value) and _of_pytorch(type(value)) and not isinstance(value, type):
        cls = type(value)
        made_by = getattr(importlib.import_module(cls.__module__.replace("torch", "flambeau", 1)), cls.__name__)
        return made_by(**{each.name: translate(getattr(value, each.name)) for each in dataclasses.fields(value)})
    if callable(value) and _of_pytorch(value) and not isinstance(value, type):
        return _function(value)
    return value


def _module(value: pytorch.nn.Module) -> Any:
    """Flambeau's counterpart of a layer: its settings, its members and what is in them."""
    cls = getattr(importlib.import_module(type(value).__module__.replace("torch", "flambeau", 1)), type(value).__name__)
    layer = cls.__new__(cls)
    flambeau.nn.Module.__init__(layer)
    own = {name: each for name, each in vars(value).items() if name not in vars(layer)}
    vars(layer).update(translate(own), training=value.training)
    for name, parameter in value._parameters.items():
        made = None if parameter is None else flambeau.nn.Parameter(translate(parameter.detach()))
        layer.register_parameter(name, made)
    for name, buffer in value._buffers.items():
        layer.register_buffer(name, translate(buffer), name not in value._non_persistent_buffers_set)
    for name, child in value._modules.items():
        layer.add_module(name, translate(child))
    return layer


def _public(module: types.ModuleType) -> bool:
    return not module.__name__.startswith("torch.testing._internal")


def _of_pytorch(function: Any) -> bool:
    if isinstance(function, (types.MethodDescriptorType, types.WrapperDescriptorType)):
        return issubclass(function.__objclass__, pytorch._C.TensorBase)
    return (getattr(function, "__module__", None) or "").partition(".")[0] == "torch"
