"""Calling modules with given parameters, and the parameters of several modules as one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._core.tensor import Tensor
from .._ops.shape.join import stack
from ..nn.modules.batchnorm import _BatchNorm
from ..nn.modules.module import Module
from ..nn.utils.stateless import _functional_call

Named = dict[str, Tensor]


def functional_call(
    module: Module,
    parameter_and_buffer_dicts: Named | Sequence[Named],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """The result of `module(*args, **kwargs)` with other tensors as its parameters and buffers.

    They come in one dictionary by their dotted names, or in several. Names that the module uses for one tensor stay
    tied unless `tie_weights` is False; with `strict`, every parameter and buffer must be given.

    >>> layer = flambeau.nn.Linear(1, 1)
    >>> weights = {"weight": flambeau.tensor([[2.0]]), "bias": flambeau.tensor([1.0])}
    >>> flambeau.func.functional_call(layer, weights, (flambeau.tensor([3.0]),))
    tensor([7.])

    Args:
        module (Module): the module.
        parameter_and_buffer_dicts (Named or sequence of Nameds): tensors by the names of `named_parameters()`, or
            several such dicts.
        args: the positional arguments: a tuple, or one value.
        kwargs (dict, optional): the keyword arguments.
        tie_weights (bool): whether names that share one tensor get the new one together. Default: `True`.
        strict (bool): whether all names must be given, and no others. Default: `False`.

    Returns:
        what the module returns.
    """
    if isinstance(parameter_and_buffer_dicts, dict):
        given = parameter_and_buffer_dicts
    elif isinstance(parameter_and_buffer_dicts, Sequence):
        if not all(isinstance(each, dict) for each in parameter_and_buffer_dicts):
            raise ValueError("Expected all elements of parameter_and_buffer_dicts to be dictionaries")
        keys = [key for each in parameter_and_buffer_dicts for key in each]
        repeated = sorted({key for key in keys if keys.count(key) > 1})
        if repeated:
            raise ValueError(f"{repeated} appeared in multiple dictionaries; behavior of functional call is ambiguous")
        given = {key: value for each in parameter_and_buffer_dicts for key, value in each.items()}
    else:
        raise ValueError(
            "Expected parameter_and_buffer_dicts to be a dict, or a list/tuple of dicts, but got "
            f"{type(parameter_and_buffer_dicts)}"
        )
    return _functional_call(module, given, args, kwargs, tie_weights=tie_weights, strict=strict)


def stack_module_state(models: Sequence[Module]) -> tuple[Named, Named]:
    """The parameters and the buffers of several models of one kind, each stacked along a new first dimension.

    Args:
        models (sequence of Modules): modules of one class and shape.

    Returns:
        two dicts of tensors by name: parameters, and buffers.

    Example:
        >>> models = [torch.nn.Linear(2, 3) for _ in range(4)]
        >>> parameters, buffers = torch.func.stack_module_state(models)
        >>> parameters["weight"].shape
        torch.Size([4, 3, 2])
    """
    if len(models) == 0:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if not (all(each.training for each in models) or all(not each.training for each in models)):
        raise RuntimeError("stack_module_state: Expected all models to have the same training/eval mode.")
    if not all(type(each) is type(models[0]) for each in models):
        raise RuntimeError("stack_module_state: Expected all models to be of the same class.")
    parameters = {
        name: _stacked([dict(model.named_parameters())[name] for model in models])
        for name, _ in models[0].named_parameters()
    }
    buffers = {
        name: _stacked([dict(model.named_buffers())[name] for model in models]) for name, _ in models[0].named_buffers()
    }
    return parameters, buffers


def _stacked(tensors: list[Any]) -> Tensor:
    """New leaves: the models' own parameters are not part of a graph that goes through them."""
    if not all(each.requires_grad is tensors[0].requires_grad for each in tensors):
        raise RuntimeError(
            "Expected each model to have parameters that all require_grad or none: `requires_grad` differs for one name"
        )
    return stack([each.detach() for each in tensors]).requires_grad_(tensors[0].requires_grad)


def replace_all_batch_norm_modules_(root: Module) -> Module:
    """Let batch normalizations in a module keep no running statistics: under `vmap` they could not be written.

    Args:
        root (Module): the module.

    Returns:
        Module: `root` itself.

    Example:
        >>> layer = torch.func.replace_all_batch_norm_modules_(torch.nn.BatchNorm1d(2))
        >>> layer.running_mean is None
        True
    """
    for module in root.modules():
        if isinstance(module, _BatchNorm) and module.track_running_stats:
            module.running_mean = module.running_var = module.num_batches_tracked = None
            module.track_running_stats = False
    return root
