"""Batches of sequences of different lengths: padded, packed, and back."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from ..._core import dtype as dtypes
from ..._core.tensor import Tensor
from ..._dispatch.public.protocol import check_call
from ..._ops.create.from_python import as_tensor
from ..._ops.create.like import empty_like
from ..._ops.create.range import arange
from ..._ops.nn.image.pad import pad
from ..._ops.nn.packed import _pack_padded_sequence, _pad_packed_sequence
from ..._ops.reduce.sort import sort
from ..._ops.shape.join import stack

__all__ = [
    "PackedSequence",
    "invert_permutation",
    "pack_padded_sequence",
    "pack_sequence",
    "pad_packed_sequence",
    "pad_sequence",
    "unpack_sequence",
    "unpad_sequence",
]


class PackedSequence_(NamedTuple):
    """The parts of a packed sequence."""

    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None
    unsorted_indices: Tensor | None


class PackedSequence(PackedSequence_):
    """Sequences without padding: `data` has the rows of step after step, `batch_sizes` says how many each step has.

    Longer sequences come first. `sorted_indices` brought them into this order, `unsorted_indices` undoes it. Made by
    `pack_sequence` and `pack_padded_sequence`; recurrent modules take it in place of a tensor.

    Make one by `pack_padded_sequence` or `pack_sequence`; recurrent layers take it in place of a tensor.

    Args:
        data: the rows of the first step of all sequences, then those of the second step, and so on.
        batch_sizes (Tensor, optional): how many sequences reach each step.
        sorted_indices (Tensor, optional): how the sequences were sorted; None means that they were not.
        unsorted_indices (Tensor, optional): the permutation that undoes `sorted_indices`.

    Example:
        >>> packed = torch.nn.utils.rnn.pack_sequence([torch.ones(3, 2), torch.ones(1, 2)])
        >>> output, hidden = torch.nn.RNN(2, 4)(packed)
        >>> output.data.shape, output.batch_sizes
        (torch.Size([4, 4]), tensor([2, 1, 1]))
    """

    def __new__(
        cls,
        data: Any,
        batch_sizes: Tensor | None = None,
        sorted_indices: Tensor | None = None,
        unsorted_indices: Tensor | None = None,
    ) -> PackedSequence:
        if batch_sizes is None:
            if not isinstance(data, (list, tuple)) or len(data) != 2:
                raise AssertionError("Expected data to be a list or tuple of length 2: the rows and batch_sizes")
            data, batch_sizes = data
        elif batch_sizes.device.type != "cpu":
            raise ValueError(
                f"batch_sizes should always be on CPU, but it is on {batch_sizes.device}. A PackedSequence is made by "
                "pack_sequence or pack_padded_sequence, not by hand."
            )
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def _with(self, data: Tensor) -> PackedSequence:
        """A packed sequence of other rows with the lengths of this one; the order goes to the device of the rows."""
        if data is self.data:
            return self
        order = [each if each is None else each.to(data.device) for each in self[2:]]
        return type(self)(data, self.batch_sizes, *order)

    def to(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """`data` on another device or in another dtype; this very object if nothing changes."""
        return self._with(self.data.to(*args, **kwargs))

    def cuda(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """The sequences on a CUDA device."""
        return self._with(self.data.cuda(*args, **kwargs))

    def cpu(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """The sequences in main memory."""
        return self._with(self.data.cpu(*args, **kwargs))

    def pin_memory(self) -> PackedSequence:
        """The sequences in memory that a GPU can read by itself."""
        pinned = [each if each is None else each.pin_memory() for each in (self[0], *self[2:])]
        return type(self)(pinned[0], self.batch_sizes, *pinned[1:])

    def double(self) -> PackedSequence:
        """`data` as float64."""
        return self.to(dtype=dtypes.float64)

    def float(self) -> PackedSequence:
        """`data` as float32."""
        return self.to(dtype=dtypes.float32)

    def half(self) -> PackedSequence:
        """`data` as float16."""
        return self.to(dtype=dtypes.float16)

    def long(self) -> PackedSequence:
        """`data` as int64."""
        return self.to(dtype=dtypes.int64)

    def int(self) -> PackedSequence:
        """`data` as int32."""
        return self.to(dtype=dtypes.int32)

    def short(self) -> PackedSequence:
        """`data` as int16."""
        return self.to(dtype=dtypes.int16)

    def char(self) -> PackedSequence:
        """`data` as int8."""
        return self.to(dtype=dtypes.int8)

    def byte(self) -> PackedSequence:
        """`data` as uint8."""
        return self.to(dtype=dtypes.uint8)

    @property
    def is_cuda(self) -> bool:
        """Whether `data` is on a CUDA device."""
        return self.data.is_cuda

    def is_pinned(self) -> bool:
        """Whether `data` is in pinned memory."""
        return bool(self.data.is_pinned())


def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """The permutation that undoes `permutation`.

    Args:
        permutation (Tensor, optional): the permutation, as a vector of integers; None stays None.

    Returns:
        Tensor, optional: the inverse permutation.

    Example:
        >>> torch.nn.utils.rnn.invert_permutation(torch.tensor([2, 0, 1]))
        tensor([1, 2, 0])
    """
    if permutation is None:
        return None
    places = arange(permutation.numel(), device=permutation.device)
    return empty_like(permutation).scatter_(0, permutation, places)


def pack_padded_sequence(
    input: Tensor, lengths: Any, batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """The padded sequences of `input`, (length, batch, ...) or with `batch_first` (batch, length, ...), packed.

    `lengths` must not increase, unless `enforce_sorted` is False: then the sequences are sorted here, and what is made
    of them is brought back into their order.

    Args:
        input (Tensor): the padded sequences.
        lengths: the length of each sequence, as a tensor on the CPU or a list.
        batch_first (bool): whether the batch is the first dimension; otherwise it is the second, after the length.
            Default: `False`.
        enforce_sorted (bool): whether the caller has sorted the sequences, longest first; False sorts them here.
            Default: `True`.

    Returns:
        PackedSequence: the sequences without their padding.

    Example:
        >>> padded = torch.tensor([[1, 2, 3], [4, 0, 0]])
        >>> packed = torch.nn.utils.rnn.pack_padded_sequence(padded, [3, 1], batch_first=True)
        >>> packed.data, packed.batch_sizes
        (tensor([1, 4, 2, 3]), tensor([2, 1, 1]))
    """
    check_call("pack_padded_sequence", (input, lengths, batch_first), {})
    given = lengths.to(dtypes.int64) if isinstance(lengths, Tensor) else as_tensor(lengths, dtypes.int64, "cpu")
    order: Tensor | None = None
    if not enforce_sorted:
        given, order = sort(given, descending=True)
        order = order.to(input.device)
        input = input.index_select(0 if batch_first else 1, order)
    data, batch_sizes = _pack_padded_sequence(input, given, batch_first)
    return PackedSequence(data, batch_sizes, order, None)


def pad_packed_sequence(
    sequence: PackedSequence, batch_first: bool = False, padding_value: float = 0.0, total_length: int | None = None
) -> tuple[Tensor, Tensor]:
    """The sequences in one tensor, filled up with `padding_value`, and their lengths: undoes `pack_padded_sequence`.

    They are padded to the longest one, or to `total_length`.

    Args:
        sequence (PackedSequence): the packed sequences.
        batch_first (bool): whether the batch is the first dimension; otherwise it is the second, after the length.
            Default: `False`.
        padding_value (float): the value of the padding. Default: `0.0`.
        total_length (int, optional): the length of the result; None means that of the longest sequence.

    Returns:
        tuple[Tensor, Tensor]: the padded sequences, and the length of each.

    Example:
        >>> packed = torch.nn.utils.rnn.pack_sequence([torch.tensor([1, 2, 3]), torch.tensor([4])])
        >>> torch.nn.utils.rnn.pad_packed_sequence(packed, batch_first=True)
        (tensor([[1, 2, 3],
                [4, 0, 0]]), tensor([3, 1]))
    """
    longest = sequence.batch_sizes.shape[0]
    if total_length is not None and total_length < longest:
        raise ValueError(
            "Expected total_length to be at least the length of the longest sequence in input, but got "
            f"total_length={total_length} and max sequence length being {longest}"
        )
    length = longest if total_length is None else total_length
    padded, lengths = _pad_packed_sequence(sequence.data, sequence.batch_sizes, batch_first, padding_value, length)
    order = sequence.unsorted_indices
    if order is None:
        return padded, lengths
    return padded.index_select(0 if batch_first else 1, order), lengths[order.cpu()]


def pad_sequence(
    sequences: Any, batch_first: bool = False, padding_value: float = 0.0, padding_side: str = "right"
) -> Tensor:
    """Sequences, (length, ...) each, in one tensor (longest, batch, ...), or (batch, longest, ...) with `batch_first`.

    `padding_side` says on which side of the shorter ones `padding_value` stands.

    Args:
        sequences: (sequence of Tensors) the sequences.
        batch_first (bool): whether the batch is the first dimension; otherwise it is the second, after the length.
            Default: `False`.
        padding_value (float): the value of the padding. Default: `0.0`.
        padding_side (str): where the padding stands: "right" or "left". Default: `"right"`.

    Returns:
        Tensor: the padded sequences.

    Example:
        >>> torch.nn.utils.rnn.pad_sequence([torch.tensor([1, 2, 3]), torch.tensor([4])], batch_first=True)
        tensor([[1, 2, 3],
                [4, 0, 0]])
    """
    check_call("pad_sequence", (sequences, batch_first, padding_value, padding_side), {})
    if not isinstance(sequences, Iterable):
        raise RuntimeError(
            f"pad_sequence: Expected iterable for input sequences, but got arg of type: {type(sequences)}"
        )
    given: list[Any] = list(sequences)
    if not given:
        raise RuntimeError("received an empty list of sequences")
    for number, each in enumerate(given):
        if not isinstance(each, Tensor):
            raise TypeError(
                f"pad_sequence(): expected Tensor as element {number} in argument 0, but got {type(each).__name__}"
            )
    if padding_side not in ("left", "right"):
        raise RuntimeError(f"Expected padding_side to be one of left or right, but got {padding_side}.")
    longest = max(each.shape[0] for each in given)
    rest = [0] * (2 * (given[0].dim() - 1))
    padded = []
    for each in given:
        missing = longest - each.shape[0]
        sides = [missing, 0] if padding_side == "left" else [0, missing]
        padded.append(pad(each, [*rest, *sides], "constant", padding_value) if missing else each)
    return stack(padded, 0 if batch_first else 1)


def unpad_sequence(padded_sequences: Tensor, lengths: Tensor, batch_first: bool = False) -> list[Tensor]:
    """The sequences of a padded batch, without their padding: undoes `pad_sequence`.

    Args:
        padded_sequences (Tensor): the padded sequences.
        lengths (Tensor): the length of each sequence.
        batch_first (bool): whether the batch is the first dimension; otherwise it is the second, after the length.
            Default: `False`.

    Returns:
        list of Tensors: the sequences.

    Example:
        >>> padded = torch.tensor([[1, 2, 3], [4, 0, 0]])
        >>> torch.nn.utils.rnn.unpad_sequence(padded, torch.tensor([3, 1]), batch_first=True)
        [tensor([1, 2, 3]), tensor([4])]
    """
    batch = padded_sequences if batch_first else padded_sequences.transpose(0, 1)
    places = arange(batch.shape[1], device=lengths.device)
    return [each[places < length] for each, length in zip(batch, lengths, strict=True)]


def pack_sequence(sequences: Any, enforce_sorted: bool = True) -> PackedSequence:
    """Sequences, (length, ...) each, packed; longer ones first, unless `enforce_sorted` is False.

    Args:
        sequences: (sequence of Tensors) the sequences.
        enforce_sorted (bool): whether the caller has sorted the sequences, longest first; False sorts them here.
            Default: `True`.

    Returns:
        PackedSequence: the packed sequences.

    Example:
        >>> packed = torch.nn.utils.rnn.pack_sequence([torch.tensor([1, 2, 3]), torch.tensor([4])])
        >>> packed.data, packed.batch_sizes
        (tensor([1, 4, 2, 3]), tensor([2, 1, 1]))
    """
    given = list(sequences)
    lengths = [each.shape[0] for each in given]
    return pack_padded_sequence(pad_sequence(given), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """The sequences of a packed batch, one tensor each: undoes `pack_sequence`.

    Args:
        packed_sequences (PackedSequence): the packed sequences.

    Returns:
        list of Tensors: the sequences.

    Example:
        >>> packed = torch.nn.utils.rnn.pack_sequence([torch.tensor([1, 2, 3]), torch.tensor([4])])
        >>> torch.nn.utils.rnn.unpack_sequence(packed)
        [tensor([1, 2, 3]), tensor([4])]
    """
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)
