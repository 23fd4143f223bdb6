"""How ops and public functions run on distributed tensors, by the rules of the ops."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from ..._core.modes import THREAD
from ..._core.tensor import Tensor
from ..._dispatch.op import Op
from ..._dispatch.public.overrides import original_of
from ._dtensor import MESH_LEVEL, DTensor, made
from ._layout import Layout
from ._rules.carrying import carry_out
from ._rules.choice import Call
from ._rules.families import plan_of
from ._rules.functions import FUNCTIONS
from .placement_types import Replicate


def run_op(op: Op, args: Sequence[Any]) -> Any:
    """An op whose arguments may be distributed tensors: what this process computes of it, by the op's rule."""
    operands = distributed_operands(args)
    if not operands:
        return op(*args)
    call = Call(op, list(args), _as_distributed(op, args, operands[0]))
    plan = plan_of(call)
    if callable(plan):
        with MESH_LEVEL:
            return plan(*call.args)
    return carry_out(call, plan)


def run_function(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A public function that was given distributed tensors; a few have a rule as a whole."""
    rule = FUNCTIONS.get(original_of(func).__name__)
    if rule is not None:
        result = rule(*args, **kwargs)
        if result is not NotImplemented:
            return result
    if MESH_LEVEL in THREAD.modes.interpreters:
        return func(*args, **kwargs)
    with MESH_LEVEL:
        return func(*args, **kwargs)


def distributed_operands(values: Sequence[Any]) -> list[DTensor]:
    """The distributed tensors among the arguments, those in lists included."""
    found: list[DTensor] = []
    for each in values:
        if isinstance(each, DTensor):
            found.append(each)
        elif type(each) in (list, tuple):
            found += distributed_operands(each)
    return found


def _as_distributed(op: Op, args: Sequence[Any], beside: DTensor) -> list[DTensor]:
    """The tensors among the arguments, plain numbers as tensors that all processes have."""
    found: list[DTensor] = []
    for each in args:
        if type(each) in (list, tuple):
            found += _as_distributed(op, each, beside)
        elif isinstance(each, DTensor):
            if each.device_mesh != beside.device_mesh:
                raise RuntimeError(f"{op.name}: the tensors are on different meshes: {each.device_mesh}")
            found.append(each)
        elif isinstance(each, Tensor):
            if each.ndim and not IMPLICIT.allowed:
                raise RuntimeError(
                    f"{op.name} got mixed torch.Tensor and DTensor, need to convert all torch.Tensor to DTensor before "
                    "calling distributed operators! distribute_tensor and DTensor.from_local do it"
                )
            mesh = beside.device_mesh
            found.append(made(each, Layout(tuple(each.shape), mesh, tuple([Replicate()] * mesh.ndim)), each.stride()))
    return found


class _Implicit(threading.local):
    """Whether plain tensors beside distributed ones are taken to be the same on all processes."""

    allowed = False


IMPLICIT = _Implicit()
