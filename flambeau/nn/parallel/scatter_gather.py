"""Arguments cut into parts for several devices, and their results joined: through any nest of containers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..._core.device import device
from ..._core.tensor import Tensor
from ._devices import DeviceLike, as_device
from ._functions import Gather, Scatter

__all__ = ["gather", "scatter", "scatter_kwargs"]


def _is_namedtuple(value: Any) -> bool:
    return isinstance(value, tuple) and hasattr(value, "_asdict") and hasattr(value, "_fields")


def scatter(inputs: Any, target_gpus: Sequence[DeviceLike], dim: int = 0) -> Any:
    """`inputs` once for each device, with the tensors in it cut along `dim`; what is no tensor goes to every device.

    A tensor that is too short for all devices gives fewer parts, and so does everything around it.

    Args:
        inputs: tensors, or tuples, lists and dicts of them.
        target_gpus (sequence of DeviceLikes): the devices.
        dim (int): the dimension along which tensors are cut and joined. Default: `0`.

    Returns:
        a tuple with a part of the inputs for each device.

    Example:
        >>> torch.nn.parallel.scatter(torch.arange(4), ["cpu", "cpu"])
        (tensor([0, 1]), tensor([2, 3]))
    """
    return _scattered(inputs, [as_device(each) for each in target_gpus], dim)


def _scattered(value: Any, places: list[device], dim: int) -> Any:
    if isinstance(value, Tensor):
        return Scatter.apply(places, None, dim, value)
    if isinstance(value, (tuple, list, dict)) and len(value):
        members = value.items() if isinstance(value, dict) else value
        parts = zip(*(_scattered(each, places, dim) for each in members), strict=False)
        if _is_namedtuple(value):
            return [type(value)(*part) for part in parts]
        if isinstance(value, dict):
            return [type(value)(part) for part in parts]
        return [part if isinstance(value, tuple) else list(part) for part in parts]
    return [value for _ in places]


def scatter_kwargs(
    inputs: tuple[Any, ...], kwargs: dict[str, Any] | None, target_gpus: Sequence[DeviceLike], dim: int = 0
) -> tuple[tuple[Any, ...], tuple[dict[str, Any], ...]]:
    """Positional and keyword arguments for each device; as many of the one as of the other."""
    positional = list(scatter(inputs, target_gpus, dim)) if inputs else []
    named = list(scatter(kwargs, target_gpus, dim)) if kwargs else []
    count = max(len(positional), len(named))
    positional += [()] * (count - len(positional))
    named += [{} for _ in range(count - len(named))]
    return tuple(positional), tuple(named)


def gather(outputs: Any, target_device: DeviceLike, dim: int = 0) -> Any:
    """The results of several devices as one on `target_device`: tensors are joined along `dim`.

    Args:
        outputs: one result for each device: tensors, or tuples, lists and dicts of them.
        target_device (DeviceLike): where the joined tensors lie.
        dim (int): the dimension along which tensors are cut and joined. Default: `0`.

    Returns:
        one result of the same structure.

    Example:
        >>> torch.nn.parallel.gather([torch.ones(1), torch.zeros(2)], "cpu")
        tensor([1., 0., 0.])
    """
    return _gathered(list(outputs), target_device, dim)


def _gathered(values: Sequence[Any], place: DeviceLike, dim: int) -> Any:
    first = values[0]
    if isinstance(first, Tensor):
        return Gather.apply(place, dim, *values)
    if first is None:
        return None
    if isinstance(first, dict):
        if any(len(each) != len(first) for each in values):
            raise ValueError("All dicts must have the same number of keys")
        made: Any = type(first)
        return made((key, _gathered([each[key] for each in values], place, dim)) for key in first)
    members = (_gathered(group, place, dim) for group in zip(*values, strict=True))
    return type(first)._make(members) if _is_namedtuple(first) else type(first)(members)
