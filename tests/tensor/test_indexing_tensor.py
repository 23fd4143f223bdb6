"""Indexing: reads, writes, gradients and errors, for every kind of index."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy
import pytest

from tests.support.differential import differential, outcome

Index = Callable[[Any], Any]

# Indices into a tensor of shape (4, 3, 5).
INDICES: dict[str, Index] = {
    "int": lambda T: 1,
    "negative": lambda T: -1,
    "two ints": lambda T: (1, -1),
    "three ints": lambda T: (3, 2, 4),
    "numpy int": lambda T: numpy.int64(2),
    "0-d tensor": lambda T: T.tensor(2),
    "0-d uint8 as int": lambda T: T.tensor(2, dtype=T.int32),
    "slice": lambda T: slice(1, 3),
    "slice step": lambda T: slice(None, None, 2),
    "slice negative": lambda T: slice(-3, -1),
    "slice beyond": lambda T: slice(2, 100),
    "slice empty": lambda T: slice(3, 1),
    "slice of tensors": lambda T: slice(T.tensor(1), T.tensor(3)),
    "slices": lambda T: (slice(1), slice(1, None), slice(0, 5, 3)),
    "full slice": lambda T: slice(None),
    "ellipsis": lambda T: ...,
    "ellipsis last": lambda T: (..., 1),
    "ellipsis middle": lambda T: (0, ..., slice(1, 4)),
    "ellipsis of nothing": lambda T: (0, 1, ..., 2),
    "None": lambda T: None,
    "None first": lambda T: (None, 1),
    "None inside": lambda T: (slice(None), None, 1, None),
    "None and ellipsis": lambda T: (..., None),
    "empty tuple": lambda T: (),
    "list": lambda T: [0, 2],
    "list negative": lambda T: [-1, 0, -4],
    "list repeated": lambda T: [1, 1, 1],
    "empty list": lambda T: [],
    "tuple in tuple": lambda T: ((0, 1), 2),
    "tensor": lambda T: T.tensor([3, 0]),
    "tensor int32": lambda T: T.tensor([3, 0], dtype=T.int32),
    "tensor 2-d": lambda T: T.tensor([[0, 1], [2, 3]]),
    "tensor empty": lambda T: T.tensor([], dtype=T.int64),
    "numpy array": lambda T: numpy.array([1, 2]),
    "two tensors": lambda T: (T.tensor([0, 3]), T.tensor([2, 0])),
    "two tensors broadcast": lambda T: (T.tensor([[0], [3]]), T.tensor([2, 0])),
    "three tensors": lambda T: (T.tensor([0, 1]), T.tensor([1, 2]), T.tensor([4, 0])),
    "tensors apart": lambda T: (T.tensor([0, 1]), slice(None), T.tensor([4, 0])),
    "tensors apart with None": lambda T: (T.tensor([0, 1]), None, T.tensor([2, 0])),
    "slice then tensor": lambda T: (slice(1, 3), T.tensor([0, 2])),
    "slice then tensors": lambda T: (slice(1, 3), T.tensor([0, 2]), T.tensor([1, 1])),
    "int and tensor": lambda T: (1, T.tensor([0, 2])),
    "tensor and int": lambda T: (T.tensor([0, 2]), 1),
    "int slice tensor": lambda T: (1, slice(None), T.tensor([0, 2])),
    "tensor slice int": lambda T: (T.tensor([0, 2]), slice(None), 1),
    "ellipsis tensor": lambda T: (..., T.tensor([0, 2])),
    "tensor ellipsis": lambda T: (T.tensor([0, 2]), ...),
    "last list": lambda T: (slice(None), slice(None), [4, 0, 2]),
    "lists": lambda T: ([0, 1], [2, 2]),
    "0-d and 1-d tensors": lambda T: (T.tensor(1), T.tensor([0, 2])),
    "0-d and slice": lambda T: (slice(None), T.tensor(1)),
    "mask whole": lambda T: T.arange(60).view(4, 3, 5) % 7 == 0,
    "mask rows": lambda T: T.tensor([True, False, True, True]),
    "mask two dims": lambda T: T.arange(12).view(4, 3) % 2 == 0,
    "mask list": lambda T: [True, False, False, True],
    "mask numpy": lambda T: numpy.array([False, True, False, True]),
    "mask none set": lambda T: T.zeros(4, dtype=T.bool),
    "mask later": lambda T: (slice(None), T.tensor([True, False, True])),
    "mask last": lambda T: (..., T.tensor([True, False, True, False, True])),
    "mask and tensor": lambda T: (T.tensor([True, False, True, False]), T.tensor([0, 2])),
    "mask and slice": lambda T: (T.tensor([True, False, True, False]), slice(1, 3)),
    "mask and int": lambda T: (T.tensor([True, False, True, False]), 1),
    "mask two": lambda T: (T.tensor([True, False, True, False]), T.tensor([True, False, True])),
    "mask 0-d true": lambda T: T.tensor(True),
    "mask 0-d false": lambda T: T.tensor(False),
    "True": lambda T: True,
    "False": lambda T: False,
    "True inside": lambda T: (slice(None), True),
    "tensor and None": lambda T: (T.tensor([0, 2]), None),
    "None and tensor": lambda T: (None, T.tensor([0, 2])),
}


@differential
@pytest.mark.parametrize("name", INDICES)
def test_reading(T: Any, name: str) -> Any:
    tensor = T.arange(60).view(4, 3, 5)
    result = tensor[INDICES[name](T)]
    return result, result.untyped_storage().data_ptr() == tensor.untyped_storage().data_ptr(), result.stride()


@differential
@pytest.mark.parametrize("name", INDICES)
def test_reading_a_transposed_tensor(T: Any, name: str) -> Any:
    tensor = T.arange(60).view(5, 3, 4).permute(2, 1, 0)
    return tensor[INDICES[name](T)].contiguous()


@differential
@pytest.mark.parametrize("name", INDICES)
def test_writing_a_number(T: Any, name: str) -> Any:
    tensor = T.arange(60).view(4, 3, 5)
    tensor[INDICES[name](T)] = -7
    return tensor, tensor._version


@differential
@pytest.mark.parametrize("name", INDICES)
def test_writing_a_tensor_of_the_same_shape(T: Any, name: str) -> Any:
    tensor = T.zeros(4, 3, 5)
    index = INDICES[name](T)
    shape = tensor[index].shape
    values = T.arange(1.0, shape.numel() + 1).view(shape)
    if name == "list repeated":
        values = T.ones(shape)  # which of several values wins is not specified
    tensor[index] = values
    return tensor


@differential
@pytest.mark.parametrize("name", INDICES)
def test_writing_converts_and_broadcasts(T: Any, name: str) -> Any:
    tensor = T.zeros(4, 3, 5, dtype=T.int32)
    # Slices and masks convert the value; indices that go through index_put refuse another dtype.
    written = outcome(lambda: tensor.__setitem__(INDICES[name](T), T.tensor(2.75)))
    return written, tensor


@differential
@pytest.mark.parametrize("name", INDICES)
def test_gradient_of_reading(T: Any, name: str) -> Any:
    leaf = T.arange(60.0).view(4, 3, 5).requires_grad_()
    result = leaf[INDICES[name](T)]
    (result * T.arange(1.0, result.numel() + 1).view(result.shape)).sum().backward()
    return result.shape, leaf.grad


@differential
@pytest.mark.parametrize("name", INDICES)
def test_gradient_of_writing(T: Any, name: str) -> Any:
    leaf = T.arange(60.0).view(4, 3, 5).requires_grad_()
    value = T.tensor(2.0, requires_grad=True)
    tensor = leaf * 2
    tensor[INDICES[name](T)] = value
    (tensor * T.arange(60.0).view(4, 3, 5)).sum().backward()
    return tensor.detach(), leaf.grad, value.grad


@differential
@pytest.mark.parametrize("value", [True, 3, 2.9, 1j, float("inf"), numpy.float32(1.5)], ids=str)
@pytest.mark.parametrize("name", ["bool", "uint8", "int64", "float16", "float32", "complex64"])
def test_writing_numbers_of_another_kind(T: Any, name: str, value: Any) -> Any:
    def write() -> Any:
        tensor = T.zeros(3, dtype=getattr(T, name))
        tensor[1] = value
        tensor[T.tensor([2])] = value
        return tensor

    return outcome(write)


WRITES: dict[str, Callable[[Any], Any]] = {
    "row": lambda T: T.tensor([1, 2, 3]),
    "column": lambda T: T.tensor([[1], [2]]),
    "whole": lambda T: T.arange(6).view(2, 3),
    "leading ones": lambda T: T.ones(1, 1, 2, 3),
    "one": lambda T: T.tensor([5]),
    "0-d": lambda T: T.tensor(5.5),
    "floats": lambda T: T.tensor([1.9, -1.9, 0.5]),
    "bools": lambda T: T.tensor([True, False, True]),
    "numpy": lambda T: numpy.array([1, 2, 3]),
    "list": lambda T: [1, 2, 3],
    "wrong": lambda T: T.ones(4),
    "too many": lambda T: T.ones(2, 2, 3),
    "none": lambda T: None,
    "text": lambda T: "x",
    "empty": lambda T: T.ones(0),
}


@differential
@pytest.mark.parametrize("name", WRITES)
@pytest.mark.parametrize("place", ["all", "mask", "tensor"])
def test_what_may_be_written(T: Any, place: str, name: str) -> Any:
    def write() -> Any:
        tensor = T.zeros(2, 3, dtype=T.int64)
        index = {"all": slice(None), "mask": T.ones(2, dtype=T.bool), "tensor": T.tensor([0, 1])}[place]
        tensor[index] = WRITES[name](T)
        return tensor

    return outcome(write)


@differential
def test_writing_overlapping_views(T: Any) -> Any:
    tensor = T.arange(6)
    tensor[1:] = tensor[:-1].clone()
    matrix = T.arange(4).view(2, 2)
    matrix[:] = matrix.t().clone()
    mine = T.arange(4.0)
    mine[:2] += 10
    mine[T.tensor([0, 3])] *= 2
    mine[mine > 100] -= 1
    return tensor, matrix, mine, mine._version


@differential
def test_written_views_change_their_base(T: Any) -> Any:
    base = T.zeros(3, 4)
    base[1][2] = 1
    base[:, 0][1] = 2
    base[T.tensor([0])][0] = 9  # a copy: lost
    base.t()[3] = 5
    return base


ERRORS: dict[str, tuple[Callable[[Any, Any], Any], str]] = {
    "beyond": (lambda T, x: x[4], "index 4 is out of bounds for dimension 0 with size 4"),
    "below": (lambda T, x: x[-5], "index -5 is out of bounds for dimension 0 with size 4"),
    "second": (lambda T, x: x[0, 3], "index 3 is out of bounds for dimension 1 with size 3"),
    "too many": (lambda T, x: x[0, 0, 0, 0], "too many indices for tensor of dimension 3"),
    "tensor beyond": (lambda T, x: x[T.tensor([4])], "index 4 is out of bounds for dimension 0 with size 4"),
    "tensor below": (lambda T, x: x[:, T.tensor([-4])], "index -4 is out of bounds for dimension"),
    "list beyond": (lambda T, x: x[[0, 9]], "index 9 is out of bounds for dimension 0 with size 4"),
    "float": (lambda T, x: x[1.0], "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables"),
    "text": (lambda T, x: x["a"], ""),
    "float tensor": (
        lambda T, x: x[T.tensor([1.0])],
        "tensors used as indices must be long, int, byte or bool tensors",
    ),
    "mask length": (lambda T, x: x[T.ones(3, dtype=T.bool)], "The shape of the mask [3] at index 0 does not match"),
    "mask shape": (
        lambda T, x: x[T.ones(4, 2, dtype=T.bool)],
        "at index 1 does not match the shape of the indexed tensor",
    ),
    "mask dims": (lambda T, x: x[T.ones(4, 3, 5, 1, dtype=T.bool)], "too many indices"),
    "not broadcast": (
        lambda T, x: x[T.tensor([0, 1]), T.tensor([0, 1, 2])],
        "indexing tensors could not be broadcast together",
    ),
    "negative step": (lambda T, x: x[::-1], "step must be greater than zero"),
    "zero step": (lambda T, x: x[::0], "step cannot be zero"),
    "float slice": (lambda T, x: x[0.5:2], ""),
    "0-d": (lambda T, x: x[0, 0, 0][0], "invalid index of a 0-dim tensor"),
    "two ellipses": (lambda T, x: x[0, ..., 0, ..., 0, 0], ""),
    "dict": (lambda T, x: x[{}], ""),
    "empty": (lambda T, x: x[:0][0], "index 0 is out of bounds for dimension 0 with size 0"),
    "iteration of 0-d": (lambda T, x: iter(x[0, 0, 0]), "iteration over a 0-d tensor"),
    "len of 0-d": (lambda T, x: len(x[0, 0, 0]), "len() of a 0-d tensor"),
    "set beyond": (lambda T, x: x.__setitem__(4, 1), "index 4 is out of bounds for dimension 0 with size 4"),
    "set shape": (lambda T, x: x.__setitem__(0, T.ones(2)), ""),
    "set mask shape": (lambda T, x: x.__setitem__(x > 3, T.ones(2)), "shape mismatch"),
    "set mask length": (lambda T, x: x.__setitem__(T.ones(3, dtype=T.bool), 1), "does not match"),
    "delete": (lambda T, x: x.__delitem__(0), ""),
    "set leaf": (lambda T, x: T.ones(2, requires_grad=True).__setitem__(0, 1.0), "a leaf Variable that requires grad"),
    "set complex": (lambda T, x: x.__setitem__(0, 1j), ""),
}


@differential
@pytest.mark.parametrize("name", ERRORS)
def test_errors(T: Any, name: str) -> Any:
    action, phrase = ERRORS[name]
    return outcome(lambda: action(T, T.arange(60).view(4, 3, 5)), phrase)


@differential
def test_zero_size_and_zero_dim(T: Any) -> Any:
    scalar, empty = T.tensor(3.0), T.zeros(0, 3)
    scalar_written = T.tensor(1.0)
    scalar_written[...] = 4
    scalar_masked = T.tensor(1.0)
    scalar_masked[T.tensor(True)] = 6
    scalar_empty = T.tensor(1.0)
    scalar_empty[()] = 5
    return {
        "ellipsis": scalar[...],
        "tuple": scalar[()],
        "None": scalar[None],
        "mask": scalar[T.tensor(True)],
        "no mask": scalar[T.tensor(False)],
        "written": (scalar_written, scalar_masked, scalar_empty),
        "empty rows": empty[:, 1],
        "empty mask": empty[T.zeros(0, dtype=T.bool)],
        "empty tensor": empty[T.zeros(0, dtype=T.int64)],
        "empty columns": empty[:, T.tensor([2, 0])],
        "nonzero": T.zeros(2, 0).nonzero(),
    }


@differential
def test_byte_masks_still_work(T: Any) -> Any:
    return T.arange(4)[T.tensor([1, 0, 1, 0], dtype=T.uint8)]


@differential
def test_negative_indices_in_tensors(T: Any) -> Any:
    tensor = T.arange(5)
    tensor[T.tensor([-1, -5])] = 100
    return tensor, tensor[T.tensor([[-1], [0]])]


# --- the functions beside the brackets --------------------------------------------------------------------------

FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "index_select": lambda T, x: x.index_select(1, T.tensor([2, 0, 2])),
    "index_select int32": lambda T, x: T.index_select(x, 0, T.tensor([1], dtype=T.int32)),
    "take": lambda T, x: x.take(T.tensor([[0, 5], [-1, 2]])),
    "gather": lambda T, x: x.gather(1, T.tensor([[0, 2], [1, 1], [3, 0]])),
    "gather 0": lambda T, x: T.gather(x, 0, T.tensor([[2, 1, 0, 0]])),
    "take_along_dim": lambda T, x: T.take_along_dim(x, x.argsort(1, descending=True), 1),
    "masked_select": lambda T, x: x.masked_select(x > 4),
    "masked_select broadcast": lambda T, x: T.masked_select(x, T.tensor([True, False, True, False])),
    "masked_fill": lambda T, x: x.masked_fill(x > 4, -1.0),
    "masked_fill tensor": lambda T, x: x.masked_fill(T.tensor([True, False, False, True]), T.tensor(9.0)),
    "masked_scatter": lambda T, x: x.masked_scatter(x > 7, T.arange(12.0)),
    "scatter": lambda T, x: x.scatter(1, T.tensor([[0, 2], [1, 3], [3, 0]]), T.ones(3, 2) * 50),
    "scatter number": lambda T, x: x.scatter(0, T.tensor([[2, 0, 1, 1]]), 7.0),
    "scatter_add": lambda T, x: x.scatter_add(1, T.tensor([[0, 0], [1, 1], [3, 3]]), T.ones(3, 2)),
    "index_add": lambda T, x: x.index_add(0, T.tensor([0, 0, 2]), T.ones(3, 4), alpha=2),
    "index_copy": lambda T, x: x.index_copy(1, T.tensor([3, 0]), T.zeros(3, 2)),
    "index_fill": lambda T, x: x.index_fill(1, T.tensor([3, -4]), -2.0),
    "index_put": lambda T, x: x.index_put((T.tensor([0, 2]), T.tensor([1, 1])), T.tensor([5.0, 6.0])),
    "index_put accumulate": lambda T, x: x.index_put((T.tensor([1, 1]),), T.tensor(1.0), accumulate=True),
    "select_scatter": lambda T, x: x.select_scatter(T.zeros(4), 0, 1),
    "slice_scatter": lambda T, x: x.slice_scatter(T.zeros(3, 2), 1, 0, 4, 2),
    "diagonal_scatter": lambda T, x: x.diagonal_scatter(T.zeros(3)),
    "where": lambda T, x: T.where(x > 5, x, T.tensor(0.0)),
    "flip": lambda T, x: x.flip(0, 1),
    "roll": lambda T, x: x.roll((1, -1), (0, 1)),
    "rot90": lambda T, x: T.rot90(x),
    "repeat_interleave": lambda T, x: x.repeat_interleave(T.tensor([1, 0, 2]), 0),
    "nonzero": lambda T, x: x.nonzero(),
    "argwhere": lambda T, x: T.argwhere(x > 9),
}


@differential
@pytest.mark.parametrize("name", FUNCTIONS)
def test_index_functions(T: Any, name: str) -> Any:
    leaf = T.arange(12.0).view(3, 4).requires_grad_()
    result = FUNCTIONS[name](T, leaf)
    if not result.requires_grad:
        return result
    (result * T.arange(1.0, result.numel() + 1).view(result.shape)).sum().backward()
    return result, leaf.grad


@differential
def test_nonzero_as_tuple(T: Any) -> Any:
    tensor = T.tensor([[0, 1], [2, 0]])
    return (
        T.nonzero(tensor, as_tuple=True),
        T.where(tensor > 0),
        tensor[tensor.nonzero(as_tuple=True)],
        T.tensor(3).nonzero(),
    )


def _with_strides(tensor: Any) -> Any:
    return tensor, tensor.stride(), tensor._is_view(), tensor.storage_offset()


_NEW: list[Any] = [
    None, (None, None), (..., None), (slice(None), None), (None, slice(1, None)), (slice(1), None, 0, None),
    (0, None, ..., slice(2)), (None, -1, None, 0), (slice(None), None, 7), (None, slice(9, None)),
]  # fmt: skip


@pytest.mark.parametrize("needs", [False, True])
@differential
def test_strides_of_new_dimensions(T: Any, needs: bool) -> Any:
    """They are those of `unsqueeze` at the time when None is reached, with a graph and without one."""
    whole = T.arange(24.0).reshape(2, 3, 4).requires_grad_(needs)
    given = whole, whole.transpose(0, 2), whole[:, ::2], whole[0, 0, 0]
    return [outcome(lambda x=x, index=index: _with_strides(x[index])) for x in given for index in _NEW]


@differential
def test_new_dimensions_around_positions(T: Any) -> Any:
    x, rows, columns = T.arange(24.0).reshape(4, 3, 2), T.tensor([3, 0, 3]), T.tensor([[2], [0]])
    indices = [
        (None, rows), (rows, None), (None, None, rows, columns, None), (rows, columns, None, None), (None, rows, None),
        (None, T.tensor(1)), (None, T.tensor([4])), (rows, None, rows), (None, columns), (None,) * 3,
    ]  # fmt: skip
    return [outcome(lambda index=index: _with_strides(x[index])) for index in indices]
