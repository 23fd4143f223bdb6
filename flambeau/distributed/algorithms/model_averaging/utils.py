"""The mean of parameters over processes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ...._core.tensor import Tensor
from ...._ops.shape.join import cat
from ....autograd.grad_mode import no_grad
from ....nn.parameter import Parameter
from ... import _calls
from ..._world import ProcessGroup, group_of

__all__ = ["average_parameters", "average_parameters_or_parameter_groups", "get_params_to_average"]

Parameters = Iterable[Parameter] | Iterable[dict[str, Any]]


def average_parameters(params: Iterator[Any], process_group: ProcessGroup) -> None:
    """Make each parameter the mean over the processes of a group; they travel as one."""
    group = group_of(process_group)
    given = [each.data for each in params]
    if not given:
        return
    with no_grad():
        flat = cat([each.reshape(-1) for each in given]).div_(group.size())
        _calls.all_reduce(flat, group=group)
        for each, mean in zip(given, flat.split([each.numel() for each in given]), strict=True):
            each.copy_(mean.view(each.shape))


def get_params_to_average(params: Parameters) -> list[Tensor]:
    """The parameters that were trained: those with a gradient, of a list or of the groups of an optimizer."""
    found: list[Tensor] = []
    for each in params:
        if isinstance(each, Tensor):
            found += [each] if each.grad is not None else []
        elif isinstance(each, dict):
            found += [param for param in each["params"] if param.grad is not None]
        else:
            raise NotImplementedError(f"Parameter input of type {type(each)} is not supported")
    return found


def average_parameters_or_parameter_groups(params: Parameters, process_group: ProcessGroup) -> None:
    """Make each trained parameter the mean over the processes of a group."""
    average_parameters(iter(get_params_to_average(params)), process_group)
