"""The names by which files call things: PyTorch's, for whatever Flambeau has under another."""

from __future__ import annotations

import functools
import importlib
import pickle
from typing import Any

from .._core import qscheme as schemes
from .._core.device import LAYOUTS, MEMORY_FORMATS, device, layout, memory_format
from .._core.dtype import NAMES, dtype
from .._core.generator import Generator
from .._core.hooks import RemovableHandle
from .._core.size import Size
from .._core.storage import UntypedStorage
from .._core.tensor import Tensor
from .._core.typed_storage import TypedStorage
from .._dispatch.public.return_types import named
from . import rebuild
from .storage_types import UNTYPED, StorageType

PACKAGE = __name__.partition(".")[0]
_PYTHON_2_MODULES = {"__builtin__": "builtins", "copy_reg": "copyreg"}
_PYTHON_2_NAMES = {"xrange": "range", "unicode": "str", "long": "int"}
_TENSORS = ("Float", "Double", "Half", "BFloat16", "Byte", "Char", "Short", "Int", "Long", "Bool")
_STORAGES = (*_TENSORS, "ComplexFloat", "ComplexDouble", "QInt8", "QUInt8", "QInt32", "QUInt4x2", "QUInt2x4")
_NAMESPACES = ("", ".nn.functional", ".special", ".linalg", ".fft")

REBUILDERS = {
    "torch._utils._rebuild_tensor": rebuild.rebuild_tensor,
    "torch._utils._rebuild_tensor_v2": rebuild.rebuild_tensor_v2,
    "torch._utils._rebuild_tensor_v3": rebuild.rebuild_tensor_v3,
    "torch._utils._rebuild_meta_tensor_no_storage": rebuild.rebuild_meta_tensor,
    "torch._utils._rebuild_parameter": rebuild.rebuild_parameter,
    "torch._utils._rebuild_parameter_with_state": rebuild.rebuild_parameter_with_state,
    "torch._utils._rebuild_sparse_tensor": rebuild.rebuild_sparse,
    "torch._utils._rebuild_qtensor": rebuild.rebuild_quantized,
    "torch._utils._rebuild_device_tensor_from_numpy": rebuild.rebuild_from_numpy,
    "torch._utils._rebuild_device_tensor_from_cpu_tensor": rebuild.rebuild_from_cpu_tensor,
    "torch._tensor._rebuild_from_type_v2": rebuild.rebuild_from_type_v2,
    "torch._tensor._rebuild_from_type": rebuild.rebuild_from_type,
    "torch.serialization._get_layout": rebuild.layout_named,
    "torch.autograd.variable.Variable": rebuild.variable,
    "torch.nn.backends.thnn._get_thnn_function_backend": rebuild.old_backend,
}
"""The functions that make tensors; older spellings of the same are in ALIASES."""

ALIASES = {
    "torch.tensor._rebuild_from_type": "torch._tensor._rebuild_from_type",
    "torch._C.Size": "torch.Size",
    "torch._C.device": "torch.device",
    "torch._C.Generator": "torch.Generator",
    "torch._C._VariableFunctionsClass": "torch",
    "torch._C._VariableFunctions": "torch",
    "torch._tensor.Tensor": "torch.Tensor",
    "torch.tensor.Tensor": "torch.Tensor",
    "torch.nn.Parameter": "torch.nn.parameter.Parameter",
    "torch.UntypedStorage": "torch.storage.UntypedStorage",
    "torch._UntypedStorage": "torch.storage.UntypedStorage",
    "torch.storage._UntypedStorage": "torch.storage.UntypedStorage",
    "torch.storage._TypedStorage": "torch.storage.TypedStorage",
}


def canonical_name(module: str, name: str) -> str:
    """One dotted name for all spellings of the same thing."""
    if module == PACKAGE or module.startswith(PACKAGE + "."):
        module = "torch" + module[len(PACKAGE) :]
    module = _PYTHON_2_MODULES.get(module, module)
    if module == "builtins":
        name = _PYTHON_2_NAMES.get(name, name)
    full = f"{module}.{name}"
    if full.startswith("torch.cuda.") and name.endswith(("Storage", "Tensor")):
        full = f"torch.{name}"
    full = full.replace("torch._C._nn.", "torch.nn.functional.")
    return ALIASES.get(full, full)


@functools.cache
def torch_objects() -> dict[str, Any]:
    """What files of tensors refer to, by name: classes, dtypes, and the functions that make tensors."""
    from .._ops.tensor.legacy import TENSOR_TYPES
    from ..nn.parameter import Buffer, Parameter, UninitializedBuffer, UninitializedParameter

    found: dict[str, Any] = {
        "torch.Size": Size,
        "torch.Tensor": Tensor,
        "torch.device": device,
        "torch.Generator": Generator,
        "torch.utils.hooks.RemovableHandle": RemovableHandle,
        "torch.storage.UntypedStorage": StorageType(UNTYPED),
        "torch.storage.TypedStorage": TypedStorage,
        **{f"torch.{name}Storage": StorageType(f"{name}Storage") for name in _STORAGES},
        **{f"torch.{name}Tensor": TENSOR_TYPES[f"{name}Tensor"] for name in _TENSORS},
        **{f"torch.{each.name}": each for each in NAMES.values()},
        **{f"torch.{name}": each for name, each in vars(schemes).items() if isinstance(each, schemes.qscheme)},
        **{f"torch.{name}": each for name, each in (LAYOUTS | MEMORY_FORMATS).items()},
        **REBUILDERS,
    }
    for cls in (Buffer, Parameter, UninitializedBuffer, UninitializedParameter):
        found[f"torch.nn.parameter.{cls.__name__}"] = cls
    return found


@functools.cache
def _names_of_objects() -> dict[int, str]:
    names = {id(value): name for name, value in torch_objects().items() if not isinstance(value, StorageType)}
    names[id(UntypedStorage)] = "torch.storage.UntypedStorage"
    names[id(Generator)] = "torch._C.Generator"
    return names


def torch_name(value: Any, name: str | None = None) -> tuple[str, str] | None:
    """The module and name by which PyTorch knows `value`; None for what is none of Flambeau's."""
    if isinstance(value, StorageType):
        return ("torch.storage", UNTYPED) if value.name == UNTYPED else ("torch", value.name)
    if isinstance(value, (dtype, layout, memory_format)):
        return "torch", value.name
    known = _names_of_objects().get(id(value))
    if known is not None:
        module, _, last = known.rpartition(".")
        return module, last
    module = str(getattr(value, "__module__", None) or "")
    qualified = name or str(getattr(value, "__qualname__", ""))
    if (module != PACKAGE and not module.startswith(PACKAGE + ".")) or "." in qualified:
        return None
    if "._" not in module:
        return "torch" + module[len(PACKAGE) :], qualified
    parent = module.partition("._")[0][len(PACKAGE) :]
    for place in (parent, *_NAMESPACES):  # what stands in the engine room is known by its public name
        if getattr(importlib.import_module(PACKAGE + place), qualified, None) is value:
            return "torch" + place, qualified
    return None


def object_named(module: str, name: str) -> Any:
    """Flambeau's object for a name of PyTorch's; for files that are trusted, since it imports what they name."""
    full = canonical_name(module, name)
    if full == "torch":
        return importlib.import_module(PACKAGE)
    known = torch_objects()
    if full in known:
        return known[full]
    place, _, last = full.rpartition(".")
    if place == "torch.return_types":
        return lambda values, extra=None: named(
            getattr(importlib.import_module(f"{PACKAGE}.return_types"), last), values
        )
    found: Any
    try:
        found = importlib.import_module(PACKAGE + place[len("torch") :])
        for part in (name if "." in name else last).split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError) as error:
        raise pickle.UnpicklingError(
            f"the file refers to {full}, for which Flambeau has no counterpart. If its class is not needed, load the "
            "state dict instead of the whole object."
        ) from error
    return found
