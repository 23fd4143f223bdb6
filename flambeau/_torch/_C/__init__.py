"""What programs reach for in PyTorch's compiled module, under the names of `torch._C`: what exists here works."""

from __future__ import annotations

import itertools
import weakref
from typing import Any

from flambeau._core.device import device, layout, memory_format, own_name
from flambeau._core.dtype import dtype, finfo, iinfo
from flambeau._core.generator import Generator, default_generator
from flambeau._core.modes import THREAD
from flambeau._core.names.absent import Table
from flambeau._core.process.defaults import get_default_device as _get_default_device_object
from flambeau._core.size import Size
from flambeau._core.tensor import Tensor
from flambeau._dispatch.public.keys import DispatchKey, DispatchKeySet
from flambeau._dispatch.public.keys import ExcludeDispatchKeyGuard as _ExcludeDispatchKeyGuard
from flambeau._dispatch.public.overrides import DisableTorchFunction, DisableTorchFunctionSubclass, has_users_override
from flambeau._dispatch.public.overrides import disabled_torch_function as _disabled_torch_function_impl
from flambeau.autograd.grad_mode import set_grad_enabled
from flambeau.futures import Future

__all__ = [
    "DisableTorchFunction", "DisableTorchFunctionSubclass", "DispatchKey", "DispatchKeySet", "Future",
    "Generator", "Size", "TensorBase",
    "default_generator", "device", "dtype", "finfo", "iinfo", "layout", "memory_format",
]  # fmt: skip

TensorBase = _TensorBase = Tensor
_TensorMeta = type(Tensor)
_has_torch_function = has_users_override

__getattr__, __dir__ = (
    Table(__name__)
    .submodules("_autograd _distributed_c10d _distributed_rpc _fft _functions _functorch _linalg _nn _onnx _special")
    .submodules("_VariableFunctions")
    .elsewhere("PyTorchFileReader PyTorchFileWriter", "_serialization.records")
    .elsewhere("StorageBase", "storage")
    .elsewhere("Graph Node Value", "jit._graph")
    .returning(lambda: False, functions="_has_cuda _is_tracing")
    .returning(lambda: None, functions="_log_api_usage_once _jit_clear_class_registry")
    .returning(lambda: False, functions="_jit_set_profiling_executor "
               "_jit_set_profiling_mode _jit_set_texpr_fuser_enabled _jit_override_can_fuse_on_cpu "
               "_jit_override_can_fuse_on_gpu _jit_can_fuse_on_cpu _jit_can_fuse_on_gpu _jit_set_nvfuser_enabled "
               "_jit_set_nvfuser_guard_mode _are_functorch_transforms_active")
    .absent(
        "there is no C++ dispatcher: ops are Python functions",
        functions="_dispatch_has_kernel_for_dispatch_key _dispatch_keys _dispatch_tls_set_dispatch_key_included",
        classes="ScriptModule ScriptMethod ScriptFunction FunctionSchema",
    )
    .parts()
)  # fmt: skip


def _get_tracing_state() -> Any:
    """What hooks tell about the trace that is going on; None if there is none."""
    from flambeau.jit._trace import tracing_state

    return tracing_state()


def _is_cow_tensor(tensor: Tensor) -> bool:
    """Whether the memory will be copied at the next change: `_lazy_clone` copies at once, so none waits for it."""
    return False


def _has_torch_function_unary(value: Any) -> bool:
    return has_users_override((value,))


def _has_torch_function_variadic(*values: Any) -> bool:
    return has_users_override(values)


def _get_default_device() -> str:
    """The kind of device that tensors are made on."""
    return str(_get_default_device_object())


def _set_grad_enabled(enabled: bool) -> None:
    """Switch recording in this thread."""
    set_grad_enabled(enabled)


def _is_torch_function_enabled() -> bool:
    return not THREAD.modes.overrides_disabled


def _get_accelerator(check: bool | None = None) -> device:
    """The device that computes fastest: the CPU."""
    return device("cpu")


def _get_privateuse1_backend_name() -> str:
    """What a device of one's own is called."""
    return own_name()


def _set_math_sdp_allow_fp16_bf16_reduction(enabled: bool) -> None:
    """Whether attention may add up in half precision."""
    from flambeau.backends.cuda import allow_fp16_bf16_reduction_math_sdp

    allow_fp16_bf16_reduction_math_sdp(enabled)


_PASSES: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
_NUMBERS = itertools.count()


def _current_graph_task_id() -> int:
    """A number for the backward pass that is running; -1 outside of one."""
    running = THREAD.modes.backward_pass
    return -1 if running is None else _PASSES.setdefault(running, next(_NUMBERS))


def _current_graph_task_execution_order() -> list[Any]:
    """The nodes of the backward pass that is running, in the order in which it calls them: for hooks of its roots."""
    running = THREAD.modes.backward_pass
    if running is None:
        raise RuntimeError("_current_graph_task_execution_order should only be called during the backward pass")
    from flambeau.autograd.graph import execution_order

    return execution_order(running)
