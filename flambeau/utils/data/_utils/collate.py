"""From a list of samples to a batch: tensors stacked, numbers made tensors, containers kept.

`default_collate_fn_map` says what is done with each type of sample; `collate` takes any such map.
"""

from __future__ import annotations

import collections.abc
import re
from collections.abc import Callable
from typing import Any

import numpy as np

import flambeau as torch

from ...._core.tensor import Tensor
from . import shared
from .pin_memory import rebuilt

CollateMap = dict[Any, Callable[..., Any]]

_NO_TENSOR = "SUO"
"""NumPy's kinds of elements that no tensor has: bytes, text, objects."""
np_str_obj_array_pattern = re.compile(r"[SaUO]")
"""Matches the first letter of an array type's name if no tensor has such elements."""
default_collate_err_msg_format = (
    "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {}"
)


def default_convert(data: Any) -> Any:
    """`data` with its NumPy arrays and scalars, at any depth of containers, as tensors. Makes no batch.

    Args:
        data: the value.

    Returns:
        the value with tensors.

    Example:
        >>> import numpy
        >>> torch.utils.data.default_convert([numpy.ones(2), "text"])
        [tensor([1., 1.], dtype=torch.float64), 'text']
    """
    if isinstance(data, Tensor):
        return data
    if isinstance(data, (np.ndarray, np.generic)):
        return data if data.dtype.kind in _NO_TENSOR else torch.as_tensor(data)
    if isinstance(data, collections.abc.Mapping):
        return rebuilt(data, {key: default_convert(value) for key, value in data.items()})
    if isinstance(data, tuple) and not hasattr(data, "_fields"):
        return [default_convert(each) for each in data]
    if isinstance(data, collections.abc.Sequence) and not isinstance(data, (str, bytes)):
        return rebuilt(data, [default_convert(each) for each in data])
    return data


def collate(batch: Any, *, collate_fn_map: CollateMap | None = None) -> Any:
    """The samples of `batch` as one batch, by the functions that `collate_fn_map` has for their types.

    A key of the map is a type or a tuple of types. A sample's own type comes first, then the first key that it is an
    instance of. Samples of other types must be containers, whose parts are collated one by one.
    """
    sample = batch[0]
    kind = type(sample)
    if collate_fn_map is not None:
        function = collate_fn_map.get(kind)
        if function is None:
            function = next((each for key, each in collate_fn_map.items() if isinstance(sample, key)), None)
        if function is not None:
            return function(batch, collate_fn_map=collate_fn_map)
    if isinstance(sample, collections.abc.Mapping):
        parts = {key: collate([each[key] for each in batch], collate_fn_map=collate_fn_map) for key in sample}
        return rebuilt(sample, parts)
    if isinstance(sample, tuple) and hasattr(sample, "_fields"):
        return rebuilt(sample, [collate(each, collate_fn_map=collate_fn_map) for each in zip(*batch, strict=True)])
    if isinstance(sample, collections.abc.Sequence):
        return _collate_sequences(batch, collate_fn_map)
    raise TypeError(default_collate_err_msg_format.format(kind))


def _collate_sequences(batch: Any, collate_fn_map: CollateMap | None) -> Any:
    sample = batch[0]
    sizes = [len(each) for each in batch]
    if any(size != sizes[0] for size in sizes):
        raise RuntimeError(f"each element in list of batch should be of equal size, but the sizes are {sizes}")
    columns = [collate(each, collate_fn_map=collate_fn_map) for each in zip(*batch, strict=True)]
    return columns if isinstance(sample, tuple) else rebuilt(sample, columns)


def collate_tensor_fn(batch: Any, *, collate_fn_map: CollateMap | None = None) -> Tensor:
    """A stack of tensors, made in shared memory if a worker process makes it."""
    first = batch[0]
    shape = first._array.shape
    total = first._array.nbytes * len(batch)
    if total >= shared.SMALL and shared.in_worker_process() and all(_alike(each, first, shape) for each in batch):
        # Straight into the memory that the main process will see: nothing is copied on the way to it.
        array = shared.shared_array((len(batch), *shape), first._array.dtype)
        for row, tensor in zip(array, batch, strict=True):
            row[...] = tensor._array
        return Tensor._from_parts((array, first._kind, [0, None]))
    return torch.stack(batch, 0)


def _alike(tensor: Any, first: Tensor, shape: tuple[int, ...]) -> bool:
    return (
        type(tensor) is Tensor
        and tensor._kind is first._kind
        and tensor._array.shape == shape
        and not tensor.requires_grad
        and tensor._kind.is_cpu
    )


def collate_numpy_array_fn(batch: Any, *, collate_fn_map: CollateMap | None = None) -> Any:
    """A stack of NumPy arrays as a tensor."""
    if batch[0].dtype.kind in _NO_TENSOR:
        raise TypeError(default_collate_err_msg_format.format(batch[0].dtype))
    return collate([torch.as_tensor(each) for each in batch], collate_fn_map=collate_fn_map)


def collate_numpy_scalar_fn(batch: Any, *, collate_fn_map: CollateMap | None = None) -> Tensor:
    """A tensor of NumPy scalars."""
    return torch.as_tensor(batch)


def collate_float_fn(batch: Any, *, collate_fn_map: CollateMap | None = None) -> Tensor:
    """A float64 tensor of Python floats."""
    return torch.tensor(batch, dtype=torch.float64)


def collate_int_fn(batch: Any, *, collate_fn_map: CollateMap | None = None) -> Tensor:
    """A tensor of Python ints."""
    return torch.tensor(batch)


def collate_str_fn(batch: Any, *, collate_fn_map: CollateMap | None = None) -> Any:
    """Text and bytes stay as they are."""
    return batch


default_collate_fn_map: CollateMap = {
    Tensor: collate_tensor_fn,
    np.ndarray: collate_numpy_array_fn,
    (np.bool_, np.number, np.object_): collate_numpy_scalar_fn,
    float: collate_float_fn,
    int: collate_int_fn,
    str: collate_str_fn,
    bytes: collate_str_fn,
}


def default_collate(batch: Any) -> Any:
    """A batch of samples: tensors are stacked, arrays and numbers become tensors, text stays, containers are kept.

    >>> default_collate([{"x": 1, "name": "a"}, {"x": 2, "name": "b"}])
    {'x': tensor([1, 2]), 'name': ['a', 'b']}

    Args:
        batch: a list of samples.

    Returns:
        the batch.
    """
    return collate(batch, collate_fn_map=default_collate_fn_map)
