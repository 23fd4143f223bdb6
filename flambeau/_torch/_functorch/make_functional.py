"""Modules as functions of their parameters, as `functorch` had them before `torch.func.functional_call`."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

from flambeau._core.tensor import Tensor
from flambeau._ops.shape.join import stack
from flambeau.func import functional_call
from flambeau.nn import Module

__all__ = [
    "FunctionalModule",
    "FunctionalModuleWithBuffers",
    "combine_state_for_ensemble",
    "make_functional",
    "make_functional_with_buffers",
]

Tensors = tuple[Tensor, ...]


class FunctionalModuleWithBuffers(Module):
    """`function(params, buffers, *args, **kwargs)` calls a module with these parameters and buffers."""

    def __init__(
        self, stateless_model: Module, param_names: Sequence[str] = (), buffer_names: Sequence[str] = ()
    ) -> None:
        super().__init__()
        self.stateless_model = stateless_model
        self.param_names, self.buffer_names = tuple(param_names), tuple(buffer_names)

    def forward(self, params: Sequence[Tensor], buffers: Sequence[Tensor], *args: Any, **kwargs: Any) -> Any:
        state = dict(zip((*self.param_names, *self.buffer_names), (*params, *buffers), strict=True))
        return functional_call(self.stateless_model, state, args, kwargs)


class FunctionalModule(Module):
    """`function(params, *args, **kwargs)` calls a module with these parameters."""

    def __init__(self, stateless_model: Module, param_names: Sequence[str] = ()) -> None:
        super().__init__()
        self.stateless_model = stateless_model
        self.param_names = tuple(param_names)

    def forward(self, params: Sequence[Tensor], *args: Any, **kwargs: Any) -> Any:
        return functional_call(self.stateless_model, dict(zip(self.param_names, params, strict=True)), args, kwargs)


def _apart(model: Module, disable_autograd_tracking: bool) -> tuple[Module, list[str], Tensors]:
    """A copy of a module without elements, the names of its parameters, and these."""
    names = [name for name, _ in model.named_parameters()]
    params: Tensors = tuple(model.parameters())
    if disable_autograd_tracking:
        params = tuple([each.detach() for each in params])
    return copy.deepcopy(model).to("meta"), names, params


def make_functional(model: Module, disable_autograd_tracking: bool = False) -> tuple[FunctionalModule, Tensors]:
    """A function of parameters and inputs that does what a module does, and the module's parameters.

    Args:
        model (Module): the module; it has no buffers.
        disable_autograd_tracking (bool): whether the parameters that are returned require no gradient. Default:
            `False`.

    Returns:
        The function `function(params, *args)` and the tuple of parameters.

    Raises:
        RuntimeError: the module has buffers; `make_functional_with_buffers` takes those.
    """
    if next(iter(model.buffers()), None) is not None:
        raise RuntimeError(
            "make_functional(model): `model` has buffers. Please use make_functional_with_buffers(model) instead."
        )
    empty, names, params = _apart(model, disable_autograd_tracking)
    return FunctionalModule(empty, names), params


def make_functional_with_buffers(
    model: Module, disable_autograd_tracking: bool = False
) -> tuple[FunctionalModuleWithBuffers, Tensors, Tensors]:
    """The function `function(params, buffers, *args)` of a module, its parameters, and its buffers."""
    empty, names, params = _apart(model, disable_autograd_tracking)
    buffers = dict(model.named_buffers())
    return FunctionalModuleWithBuffers(empty, names, tuple(buffers)), params, tuple(buffers.values())


def combine_state_for_ensemble(
    models: Sequence[Module],
) -> tuple[FunctionalModuleWithBuffers, Tensors, Tensors]:
    """One function for several modules of a class, with their parameters and buffers stacked: `vmap` runs them at once.

    Raises:
        RuntimeError: there are no modules, or they are of several classes, or some train and some do not.
    """
    if not models:
        raise RuntimeError("combine_state_for_ensemble: Expected at least one model, got 0.")
    if len({each.training for each in models}) > 1:
        raise RuntimeError("combine_state_for_ensemble: Expected all models to have the same training/eval mode.")
    if len({type(each) for each in models}) > 1:
        raise RuntimeError("combine_state_for_ensemble: Expected all models to be of the same class.")
    taken = [make_functional_with_buffers(each) for each in models]
    return taken[0][0], _stacked([each[1] for each in taken]), _stacked([each[2] for each in taken])


def _stacked(lists: Sequence[Tensors]) -> Tensors:
    return tuple([stack(list(each)) for each in zip(*lists, strict=True)])
