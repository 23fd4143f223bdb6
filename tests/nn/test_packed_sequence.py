"""Packed and padded sequences: the functions of `nn.utils.rnn`, and recurrent networks on them."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

import flambeau
from flambeau.autograd import gradgradcheck

from ..support.differential import differential, outcome

SIDES = pytest.mark.parametrize("batch_first", [False, True])
ORDERS = pytest.mark.parametrize("enforce_sorted", [True, False])


def _batch(T: Any, batch_first: bool) -> Any:
    x = T.linspace(-1, 1, 40, dtype=T.float64).reshape(5, 4, 2)
    return x.transpose(0, 1) if batch_first else x


def _lengths(enforce_sorted: bool) -> list[int]:
    return [5, 3, 3, 1] if enforce_sorted else [3, 1, 5, 3]


def _plain(value: Any) -> Any:
    if isinstance(value, (tuple, list)):
        return [_plain(each) for each in value]
    return value if value is None else value.detach()


@SIDES
@ORDERS
@differential
def test_there_and_back(T: Any, batch_first: bool, enforce_sorted: bool) -> Any:
    rnn, x = T.nn.utils.rnn, _batch(T, batch_first).requires_grad_()
    packed = rnn.pack_padded_sequence(x, T.tensor(_lengths(enforce_sorted)), batch_first, enforce_sorted)
    padded, lengths = rnn.pad_packed_sequence(packed, batch_first, padding_value=7.0)
    longer, _ = rnn.pad_packed_sequence(packed, batch_first, total_length=8)
    (padded * padded.detach()).sum().backward()
    return packed.data, _plain(list(packed)), _plain([padded, lengths, longer]), x.grad


@ORDERS
@differential
def test_lists_of_sequences(T: Any, enforce_sorted: bool) -> Any:
    rnn = T.nn.utils.rnn
    sequences = [T.arange(6.0 * each).reshape(each, 3, 2) for each in _lengths(enforce_sorted)]
    packed = rnn.pack_sequence(sequences, enforce_sorted)
    padded = rnn.pad_sequence(sequences, True)
    lengths = T.tensor(_lengths(enforce_sorted))
    return (
        list(packed),
        rnn.unpack_sequence(packed),
        rnn.pad_sequence(sequences),
        rnn.pad_sequence(sequences, True, -1.0, "left"),
        rnn.pad_sequence([T.arange(3), T.arange(1)], padding_value=5),
        rnn.pad_sequence(T.arange(6.0).reshape(2, 3)),
        rnn.unpad_sequence(padded, lengths, True),
        rnn.unpad_sequence(padded.transpose(0, 1).contiguous(), lengths),
        rnn.invert_permutation(T.tensor([2, 0, 1])),
        rnn.invert_permutation(None),
    )


@pytest.mark.parametrize("name", ["RNN", "LSTM", "GRU"])
@ORDERS
@differential(tolerance=1e-5)
def test_networks(T: Any, name: str, enforce_sorted: bool) -> Any:
    found = []
    for options in ({}, {"bidirectional": True, "dropout": 0.4}, {"batch_first": True, "bias": False}):
        model = getattr(T.nn, name)(2, 3, 2, **options)
        x = _batch(T, False).float().requires_grad_()
        packed = T.nn.utils.rnn.pack_padded_sequence(x, _lengths(enforce_sorted), enforce_sorted=enforce_sorted)
        state = T.randn(4 if "bidirectional" in options else 2, 4, 3).requires_grad_()
        output, last = model(packed, (state, state.cos()) if name == "LSTM" else state)
        fresh, _ = model(packed)
        ends = last if name == "LSTM" else (last,)
        (output.data.pow(2).sum() + sum((each * each).sum() for each in ends)).backward()
        grads = [each.grad for each in (x, state, *model.parameters())]
        found.append(_plain([list(output), ends, list(fresh), grads]))
    return found


@differential
def test_conversions(T: Any) -> Any:
    packed = T.nn.utils.rnn.pack_sequence([T.ones(1, 2), T.ones(3, 2)], enforce_sorted=False)
    names = ("double", "float", "half", "long", "int", "short", "char", "byte")
    whole = T.nn.utils.rnn.PackedSequence((packed.data, packed.batch_sizes), None, packed.sorted_indices)
    return (
        [str(getattr(packed, name)().data.dtype) for name in names],
        [packed.to(T.float32) is packed, packed.cpu() is packed, packed.float() is packed, packed.to("cpu") is packed],
        list(packed.to(dtype=T.float64)),
        list(packed.to("meta").data.shape),
        (packed.is_cuda, packed.is_pinned(), packed._fields),
        list(whole),
        str(packed).replace("\n", ""),
    )


def test_copies_and_pickles() -> None:
    packed = flambeau.nn.utils.rnn.pack_sequence([flambeau.ones(1), flambeau.ones(3)], enforce_sorted=False)
    for twin in (copy.deepcopy(packed), pickle.loads(pickle.dumps(packed))):
        assert type(twin) is type(packed)
        flambeau.testing.assert_close(tuple(twin), tuple(packed))


def test_packing_has_second_derivatives() -> None:
    x = flambeau.randn(4, 2, 2, dtype=flambeau.float64).requires_grad_()

    def there_and_back(x: Any) -> Any:
        packed = flambeau.nn.utils.rnn.pack_padded_sequence(x, [4, 2])
        return flambeau.nn.utils.rnn.pad_packed_sequence(packed)[0] ** 3

    assert gradgradcheck(there_and_back, x)


@differential
def test_refused(T: Any) -> Any:
    rnn, x = T.nn.utils.rnn, T.zeros(5, 2, 3)
    packed = rnn.pack_padded_sequence(x, [5, 2])
    return (
        outcome(
            lambda: rnn.pack_padded_sequence(x, [2, 5]), "must be sorted in decreasing order when `enforce_sorted`"
        ),
        outcome(lambda: rnn.pack_padded_sequence(x, [5, 0]), "Length of all samples has to be greater than 0"),
        outcome(lambda: rnn.pack_padded_sequence(x, [5]), "Expected `len(lengths)` to be equal to batch_size, but got"),
        outcome(lambda: rnn.pack_padded_sequence(x[:, :0], []), "Cannot pack empty tensors"),
        outcome(lambda: T._pack_padded_sequence(x, T.tensor([5.0, 1.0]), False), "should be a 1D CPU int64 tensor"),
        outcome(lambda: rnn.pad_packed_sequence(packed, total_length=4), "but got total_length=4 and max sequence"),
        outcome(lambda: rnn.pad_sequence([]), "received an empty list of sequences"),
        outcome(lambda: rnn.pad_sequence(3), "Expected iterable for input sequences"),
        outcome(lambda: rnn.pad_sequence([3]), "but got int"),
        outcome(lambda: rnn.pad_sequence([x], padding_side="top"), "Expected padding_side to be one of left or right"),
        outcome(lambda: rnn.PackedSequence(x), "Expected data to be a list or tuple of length 2"),
        outcome(lambda: rnn.PackedSequence(x, T.ones(1, device="meta")), "batch_sizes should always be on CPU"),
        outcome(lambda: T.nn.GRU(3, 4)(rnn.pack_sequence([T.ones(2, 2)])), "must be equal to input_size"),
        outcome(lambda: T.nn.GRU(3, 4)(packed, T.zeros(1, 3, 4)), "Expected hidden size (1, 2, 4), got [1, 3, 4]"),
    )


def test_lengths_beyond_the_sequence() -> None:
    with pytest.raises(RuntimeError, match="lengths of at most 3"):
        flambeau.nn.utils.rnn.pack_padded_sequence(flambeau.zeros(3, 2), [4, 1])
    with pytest.raises(RuntimeError, match="add up to the 3 rows"):
        flambeau._pad_packed_sequence(flambeau.zeros(3, 2), flambeau.tensor([1, 1]), False, 0.0, -1)
