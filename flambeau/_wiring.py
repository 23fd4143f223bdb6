"""Fills the slots of `_core/slots.py`, by which lower folders call upper ones; these are imported when called."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from ._core.process.collector import collector_paused
from ._core.slots import SLOTS

_FUNCTIONS = {
    "usable_cuda_device": "_backends.cuda.runtime.detection:usable",
    "cuda_is_present": "_backends.cuda.runtime.detection:is_present",
    "pinned_copy": "_backends.cuda.memory.pinned:pinned_copy",
    "is_pinned": "_backends.cuda.memory.pinned:is_pinned",
    "load_family": "_ops:load",
    "legacy_tensor": "_ops.create.constants:legacy_tensor",
    "tensor_of_number": "_ops.create.constants:tensor",
    "derivatives_by_plan": "_dispatch.gradients.fused_derivatives:by_plan",
    "sum_over": "_ops.reduce.reductions:sum_over",
    "converted": "_ops.tensor.convert:converted",
    "to_copy": "_ops.tensor.convert:_to_copy",
    "zeros_like": "_ops.create.like:zeros_like",
    "dispatch_by_class": "_dispatch.public.class_dispatch:watch",
    "operator_body": "ops._bodies:body_of",
    "is_compiling": "compiler._marks:is_compiling",
    "ask_for_members": "_core.overridden_members:ask_for_members",
    "retyped_like": "_core.subclasses:retyped_like",
    "tensor_repr": "_core.text.printing:tensor_repr",
    "tensor_html": "_core.text.html:tensor_html",
    "out_of_memory": "_core.text.memory_errors:out_of_memory",
    "run_on_sparse": "_ops.sparse.dispatch:run",
    "distributed_function": "distributed:__getattr__",
    "run_function_on_mesh": "distributed.tensor._running:run_function",
    "run_op_on_mesh": "distributed.tensor._running:run_op",
    "run_on_quantized": "_ops.quantized.dispatch:run",
    "as_strided": "_ops.shape.strided:as_strided_op",
    "window_of": "_ops.shape.complex_view:window_of",
    "as_kind": "_ops.shape.conjugate:as_kind",
    "regenerate_view_history": "_dispatch.changes.history:regenerate_view_history",
    "backward": "autograd:backward",
    "backward_from": "autograd:backward_from",
    "gradients": "autograd:grad",
    "vmap": "func:vmap",
    "accumulate": "autograd.engine:accumulate",
    "propagate_tangents": "autograd.forward_ad:propagate",
    "adopt_tangent": "autograd.forward_ad:adopt_tangent",
    "compiled_forward": "_dynamo.eval_frame:CompiledForward",
    "graph_of": "_dynamo.backends:graph_of",
    "aot_eager": "_dynamo.backends.debugging:aot_eager",
    "compiler_options": "_dynamo.backends:compiler_options",
    "bytes_of_tensors": "safetensors:save",
    "tensors_of_bytes": "safetensors:load",
    "call_module": "_dynamo.eval_frame:call_module",
    "compiled_module": "_dynamo.eval_frame:compiled_module",
    "scripted_module": "jit._scripting.modules:scripted",
    "save_scripted": "jit._saving:save",
    "load_scripted": "jit._loading:load",
    "tree_flatten": "utils._pytree:tree_flatten",
    "tree_map_only": "utils._pytree:tree_map_only",
    "tree_unflatten": "utils._pytree:tree_unflatten",
    "rank_and_size": "distributed._world:rank_and_size",
    "pytorch_reduced": "_serialization.pytorch_pickles:reduced",
    "storage_as_bytes": "storage:_as_bytes",
}
"""For each slot the module and the name of the function that belongs there."""


def _on_first_call(slot: str, place: str) -> Callable[..., Any]:
    """A function that puts the one at `place` into the slot in its stead."""

    def call(*args: Any, **kwargs: Any) -> Any:
        module, name = place.split(":")
        with collector_paused():
            function = getattr(importlib.import_module(f"{__package__}.{module}"), name)
        setattr(SLOTS, slot, function)
        return function(*args, **kwargs)

    return call


def fill() -> None:
    """Fill every slot."""
    for slot, place in _FUNCTIONS.items():
        setattr(SLOTS, slot, _on_first_call(slot, place))
