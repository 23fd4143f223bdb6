"""Flambeau: PyTorch's programming model and API, written in Python.

`import flambeau as torch` and go on as before.
"""

from __future__ import annotations

import importlib
import math
import sys as _sys
from importlib.machinery import PathFinder as _PathFinder
from os import environ as _environ
from os import path as _path
from typing import Any

from ._core.process.collector import collector_paused as _collector_paused

with _collector_paused():
    from ._backends.cpu import lowerings as _cpu_lowerings
    from ._core.backend import backend_of as _backend_of
    from ._core.device import LAYOUTS, MEMORY_FORMATS, device, layout, memory_format
    from ._core.dtype import NAMES, dtype, finfo, iinfo, set_default_dtype
    from ._core.process.caller import is_warn_always_enabled, set_warn_always
    from ._core.process.defaults import get_default_device, set_default_device
    from ._core.release import RELEASE as _RELEASE
    from ._core.size import Size
    from ._core.storage import UntypedStorage
    from ._core.tensor import Tensor
    from ._dispatch.gradients.fused_derivatives import fused as _fused
    from ._dispatch.public import catalogue
    from ._dispatch.public.overrides import DisableTorchFunctionSubclass
    from ._dispatch.public.registry import in_namespace as _in_namespace
    from ._dispatch.public.registry import public_function as _public_function
    from ._wiring import fill as _fill_slots

_cpu_lowerings.push()
_fill_slots()
_backend_of("cpu").in_one_pass = _fused

__version__ = _RELEASE

__path__.append(_path.join(__path__[0], "_torch"))  # PyTorch's private modules: see `_torch/__init__.py`


class _NamesOnly:
    """Finds the modules of this package that have no file: see `_core/names/names_only.py`.

    It stands in front of the finder of files, which takes a folder for a module even if all that is left in it is what
    Python compiled of an older version.
    """

    @staticmethod
    def find_spec(fullname: str, path: Any = None, target: Any = None) -> Any:
        if not fullname.startswith(f"{__name__}."):
            return None
        spec = _PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.origin is not None:
            return spec
        from ._core.names.names_only import spec_of

        return spec_of(fullname) or spec


_finders = _sys.meta_path
_finders.insert(_finders.index(_PathFinder) if _PathFinder in _finders else len(_finders), _NamesOnly())
del _finders

inf = math.inf
nan = math.nan
pi = math.pi
e = math.e
newaxis = None

globals().update(NAMES)
globals().update(LAYOUTS)
globals().update(MEMORY_FORMATS)

_AUTOCAST = (
    "autocast_decrement_nesting",
    "autocast_increment_nesting",
    "clear_autocast_cache",
    "get_autocast_dtype",
    "is_autocast_cache_enabled",
    "is_autocast_enabled",
    "set_autocast_cache_enabled",
    "set_autocast_dtype",
    "set_autocast_enabled",
)
_OLDER_AUTOCAST = (
    "get_autocast_cpu_dtype",
    "get_autocast_gpu_dtype",
    "get_autocast_ipu_dtype",
    "get_autocast_xla_dtype",
    "is_autocast_cpu_enabled",
    "is_autocast_ipu_enabled",
    "is_autocast_xla_enabled",
    "set_autocast_cpu_dtype",
    "set_autocast_cpu_enabled",
    "set_autocast_gpu_dtype",
    "set_autocast_ipu_dtype",
    "set_autocast_ipu_enabled",
    "set_autocast_xla_dtype",
    "set_autocast_xla_enabled",
)
_SETTINGS = {
    "get_default_dtype": "_core.dtype",
    "promote_types": "_core.dtype",
    "get_num_threads": "_dispatch.public.settings",
    "set_num_threads": "_dispatch.public.settings",
    "is_anomaly_check_nan_enabled": "autograd.anomaly_mode",
    "is_anomaly_enabled": "autograd.anomaly_mode",
    "is_grad_enabled": "autograd.grad_mode",
    "is_inference_mode_enabled": "autograd.grad_mode",
}
_COMPILED = frozenset((*_AUTOCAST, *_OLDER_AUTOCAST, *_SETTINGS))
"""Names below that are compiled functions in PyTorch: as attributes of classes they are no methods."""
_LATER = {
    **_SETTINGS,
    **dict.fromkeys(_AUTOCAST, "_dispatch.arguments.autocast"),
    **dict.fromkeys(_OLDER_AUTOCAST, "amp._deprecated"),
    "are_deterministic_algorithms_enabled": "_dispatch.public.settings",
    "get_deterministic_debug_mode": "_dispatch.public.settings",
    "is_deterministic_algorithms_warn_only_enabled": "_dispatch.public.settings",
    "set_deterministic_debug_mode": "_dispatch.public.settings",
    "use_deterministic_algorithms": "_dispatch.public.settings",
    "enable_grad": "autograd.grad_mode",
    "inference_mode": "autograd.grad_mode",
    "no_grad": "autograd.grad_mode",
    "set_grad_enabled": "autograd.grad_mode",
    "autocast": "amp.autocast_mode",
    "Generator": "_core.generator",
    "default_generator": "_core.generator",
    "set_printoptions": "_core.text.printing",
    "reproducible": "utils._reproducible",
    "TypedStorage": "_core.typed_storage",
    "load": "serialization",
    "save": "serialization",
    "stand_in_for_torch": "_stand_in",
    "summary": "utils.summary",
    "vmap": "func",
}
_OF_PYTORCH = frozenset({
    "_C", "_VF", "__config__", "__future__", "_classes", "_compile", "_custom_ops", "_decomp", "_dynamo",
    "_environment", "_functorch", "_guards", "_higher_order_ops", "_inductor", "_jit_internal", "_library",
    "_linalg_utils", "_lobpcg", "_logging", "_lowrank", "_operators", "_prims_common", "_refs", "_sources",
    "_subclasses", "_tensor", "_tensor_str", "_utils", "_utils_internal", "_vmap_internals", "classes", "functorch",
})  # fmt: skip
"""Modules that only programs written for PyTorch import; their files are in `_torch`."""
_SUBPACKAGES = frozenset({
    "accelerator", "amp", "ao", "autograd", "backends", "compiler", "cpu", "cuda",
    "distributed", "distributions", "export", "fft", "func", "functional", "futures", "fx", "hub", "jit", "library",
    "linalg", "masked", "models", "monitor", "mps", "mtia", "multiprocessing", "nested", "nn", "numa", "onnx", "ops",
    "optim", "overrides", "package", "profiler", "quantization", "quasirandom", "random", "return_types", "safetensors",
    "serialization", "signal", "sparse", "special", "storage", "testing", "torch_version", "types", "utils", "version",
    "xpu",
    *_OF_PYTORCH,
})  # fmt: skip


def __getattr__(name: str) -> Any:
    # Subpackages load on first use: importing the package stays quick.
    if name in _SUBPACKAGES:
        with _collector_paused():
            return importlib.import_module(f"flambeau.{name}")
    if name in _LATER:
        value = getattr(importlib.import_module(f"flambeau.{_LATER[name]}"), name)
        globals()[name] = _in_namespace(value) if name in _COMPILED else value
        return globals()[name]
    if "autograd" not in globals():  # with the first op, so that a debugger steps from `backward()` into no import
        importlib.import_module("flambeau.autograd")
    try:
        found = _public_function("", name)  # made on first use too, then kept
    except KeyError:
        try:
            found = importlib.import_module("flambeau._rare_names").find(name)
        except KeyError:
            raise AttributeError(f"module 'flambeau' has no attribute {name!r}") from None
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    further = importlib.import_module("flambeau._rare_names").names()
    return sorted({*globals(), *_LATER, *_SUBPACKAGES, *further, *catalogue.FUNCTIONS[""]})


if _environ.get("FLAMBEAU_REPRODUCIBLE"):
    importlib.import_module("flambeau.utils._reproducible")
