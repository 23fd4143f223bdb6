"""Sequences of different lengths without their padding: step after step, the rows that each step still has."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._core.backend import read
from ..._core.dtype import LEGACY_NAMES, int64
from ..._core.tensor import Tensor
from ..._dispatch.dispatch import Array, primitive
from ..._dispatch.host_read import elements
from ..._dispatch.public.registry import public
from ..create.constants import tensor as tensor_of


def _rows(sizes: tuple[int, ...], length: int, batch: int, like: Array) -> Array:
    """Where the rows are that steps and samples have, of all `length * batch`, on the device of `like`."""
    counts = np.zeros(length, np.int64)
    counts[: len(sizes)] = sizes
    return np.array(np.flatnonzero(np.arange(batch) < counts[:, None]), like=like)


def _of_padded(grad: Tensor, input_sym_sizes: tuple[int, ...], sizes: tuple[int, ...]) -> Tensor:
    length, batch, *_ = input_sym_sizes
    return _padded(grad, sizes, length, batch, 0)


@primitive("PackPaddedSequenceBackward0", input=_of_padded)
def _packed(input: Array, sizes: tuple[int, ...]) -> Array:
    length, batch, *rest = input.shape
    return input.reshape(length * batch, *rest)[_rows(sizes, length, batch, input)]


@primitive("PadPackedSequenceBackward0", data=lambda grad, sizes: _packed(grad, sizes))
def _padded(data: Array, sizes: tuple[int, ...], length: int, batch: int, padding: Any) -> Array:
    result = np.full((length * batch, *data.shape[1:]), padding, data.dtype, like=data)
    result[_rows(sizes, length, batch, data)] = data
    return result.reshape(length, batch, *data.shape[1:])


@public(method=False)
def _pack_padded_sequence(input: Tensor, lengths: Tensor, batch_first: bool) -> tuple[Tensor, Tensor]:
    """The rows of padded sequences, step after step, and how many each step has. `lengths` must not increase."""
    if lengths.dim() != 1 or lengths.dtype is not int64 or lengths.device.type != "cpu":
        raise RuntimeError(
            f"'lengths' argument should be a 1D CPU int64 tensor, but got {lengths.dim()}D {lengths.device.type} "
            f"{LEGACY_NAMES[lengths.dtype]} tensor"
        )
    if input.numel() == 0:
        raise RuntimeError("Cannot pack empty tensors.")
    steps = input.transpose(0, 1) if batch_first else input
    if steps.dim() < 2:
        raise IndexError("Dimension out of range: a padded batch has at least 2 dimensions")
    counts = elements(lengths)
    if len(counts) != steps.shape[1]:
        raise RuntimeError(
            f"Expected `len(lengths)` to be equal to batch_size, but got {len(counts)} (batch_size={steps.shape[1]})"
        )
    if read(counts.min() <= 0):
        raise RuntimeError(
            "Length of all samples has to be greater than 0, but found an element in 'lengths' that is <= 0"
        )
    if read((counts[1:] > counts[:-1]).any()):
        raise RuntimeError(
            "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. You can pass "
            "`enforce_sorted=False` to pack_padded_sequence and/or pack_sequence to sidestep this requirement."
        )
    if counts[0] > steps.shape[0]:
        raise RuntimeError(
            f"Expected lengths of at most {steps.shape[0]}, the length of the padded sequences, but got {counts[0]}"
        )
    sizes = (counts > np.arange(counts[0])[:, None]).sum(1)
    return _packed(steps, tuple(sizes.tolist())), tensor_of(sizes)


@public(method=False)
def _pad_packed_sequence(
    data: Tensor, batch_sizes: Tensor, batch_first: bool, padding_value: Any, total_length: int
) -> tuple[Tensor, Tensor]:
    """Padded sequences of the rows of packed ones, and their lengths; at least `total_length` steps long."""
    if batch_sizes.dim() != 1 or batch_sizes.dtype is not int64 or batch_sizes.device.type != "cpu":
        raise RuntimeError("Expected batch_sizes to be a 1D CPU int64 tensor")
    sizes = elements(batch_sizes)
    length = len(sizes)
    if 0 < total_length < length:
        raise RuntimeError(
            "Expected total_length to be at least the length of the longest sequence in input, but got "
            f"total_length={total_length} and max sequence length being {length}"
        )
    if sizes.sum() != data.shape[0]:
        raise RuntimeError(
            f"Expected batch_sizes to add up to the {data.shape[0]} rows of data, but they are {sizes.tolist()}"
        )
    batch = int(sizes[0])
    steps = _padded(data, tuple(sizes.tolist()), max(length, total_length), batch, padding_value)
    lengths = (sizes > np.arange(batch)[:, None]).sum(1)
    return steps.transpose(0, 1) if batch_first else steps, tensor_of(lengths)
