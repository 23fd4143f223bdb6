"""Bad input: each call raises the exception type of PyTorch, with the words that users search for."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

import flambeau
from tests.support.differential import differential, outcome

Call = Callable[[Any], Any]

WRONG_SHAPES: dict[str, tuple[Call, str]] = {
    "matmul inner": (lambda T: T.ones(2, 3) @ T.ones(2, 3), "mat1 and mat2 shapes cannot be multiplied (2x3 and 2x3)"),
    "matmul vector": (lambda T: T.ones(2, 3) @ T.ones(2), "size mismatch"),
    "matmul vectors": (lambda T: T.ones(2) @ T.ones(3), "inconsistent tensor size, expected tensor [2] and src [3]"),
    "matmul zero-dim": (lambda T: T.tensor(1.0) @ T.ones(2), "both arguments to matmul need to be at least 1D"),
    "matmul batches": (lambda T: T.ones(2, 3, 4) @ T.ones(5, 4, 3), "must match the size of tensor b (5)"),
    "mm dims": (lambda T: T.mm(T.ones(2, 3, 4), T.ones(4, 2)), "must be a matrix"),
    "mm second": (lambda T: T.mm(T.ones(2, 3), T.ones(3)), "must be a matrix"),
    "bmm dims": (lambda T: T.bmm(T.ones(2, 3), T.ones(3, 2)), "must be a 3D tensor"),
    "baddbmm vector": (lambda T: T.baddbmm(T.ones(2, 2, 2), T.ones(4), T.ones(2, 2, 2)), "Dimension out of range"),
    "addbmm matrix": (lambda T: T.addbmm(T.ones(2, 2), T.ones(2, 2, 2), T.ones(2, 2)), "Dimension out of range"),
    "addbmm first": (lambda T: T.addbmm(T.ones(2, 2), T.ones(2, 2), T.ones(2, 2, 2)), "must be a 3D tensor"),
    "scatter vector": (
        lambda T: T.ones(3, 3).scatter(0, T.zeros(2, 2, dtype=T.long), T.ones(9)),
        "Dimension out of range",
    ),
    "scatter short vector": (
        lambda T: T.ones(3, 3).scatter_add(0, T.zeros(2, 2, dtype=T.long), T.ones(1)),
        "same number of dimensions",
    ),
    "scatter number": (
        lambda T: T.ones(3, 3).scatter_reduce(0, T.zeros(2, 2, dtype=T.long), T.tensor(1.0), "sum"),
        "same number of dimensions",
    ),
    "bmm batches": (lambda T: T.bmm(T.ones(2, 3, 4), T.ones(3, 4, 2)), "Expected size for first two dimensions"),
    "mv": (lambda T: T.mv(T.ones(2, 3), T.ones(2)), "size mismatch, got input (2), mat (2x3), vec (2)"),
    "dot": (lambda T: T.dot(T.ones(2, 2), T.ones(2)), "1D tensors expected"),
    "outer": (lambda T: T.outer(T.ones(2, 2), T.ones(2)), "1-D"),
    "addmm": (lambda T: T.addmm(T.ones(3), T.ones(2, 3), T.ones(2, 3)), "cannot be multiplied"),
    "cat sizes": (lambda T: T.cat([T.ones(2, 3), T.ones(2, 4)]), "Sizes of tensors must match except in dimension 0"),
    "cat dims": (
        lambda T: T.cat([T.ones(2), T.ones(2, 2)]),
        "Tensors must have same number of dimensions: got 1 and 2",
    ),
    "cat zero-dim": (lambda T: T.cat([T.tensor(1), T.tensor(2)]), "zero-dimensional tensor (at position 0)"),
    "cat nothing": (lambda T: T.cat([]), "expected a non-empty list of Tensors"),
    "cat far": (lambda T: T.cat([T.ones(2)], 1), "Dimension out of range"),
    "stack sizes": (
        lambda T: T.stack([T.ones(2), T.ones(3)]),
        "stack expects each tensor to be equal size, but got [2]",
    ),
    "stack nothing": (lambda T: T.stack([]), "expects a non-empty TensorList"),
    "stack far": (lambda T: T.stack([T.ones(2)], 3), "Dimension out of range"),
    "where": (lambda T: T.where(T.ones(2) > 0, T.ones(3), T.ones(3)), "must match"),
    "gather dims": (
        lambda T: T.gather(T.ones(2, 2), 0, T.zeros(2, dtype=T.int64)),
        "must have the same number of dimensions",
    ),
    "gather size": (
        lambda T: T.gather(T.ones(2, 2), 0, T.zeros(2, 3, dtype=T.int64)),
        "Size does not match at dimension 1",
    ),
    "scatter dims": (
        lambda T: T.zeros(2, 2).scatter(0, T.zeros(2, dtype=T.int64), T.ones(2)),
        "same number of dimensions",
    ),
    "masked_select": (lambda T: T.masked_select(T.ones(2), T.ones(3) > 0), "must match"),
    "masked_fill value": (
        lambda T: T.ones(2).masked_fill(T.ones(2) > 0, T.ones(2)),
        "only supports a 0-dimensional value tensor",
    ),
    "index_select dims": (
        lambda T: T.ones(2, 2).index_select(0, T.zeros(1, 1, dtype=T.int64)),
        "Index is supposed to be a vector",
    ),
    "index_add": (
        lambda T: T.ones(2, 2).index_add(0, T.tensor([0]), T.ones(1, 3)),
        "source tensor shape must match self tensor shape",
    ),
    "item": (lambda T: T.ones(3).item(), "a Tensor with 3 elements cannot be converted to Scalar"),
    "backward": (
        lambda T: T.ones(2, requires_grad=True).backward(),
        "grad can be implicitly created only for scalar outputs",
    ),
    "softmax far": (
        lambda T: T.softmax(T.ones(2), 1),
        "Dimension out of range (expected to be in range of [-1, 0], but got 1)",
    ),
    "sum far": (lambda T: T.ones(2).sum(1), "Dimension out of range (expected to be in range of [-1, 0], but got 1)"),
    "sum twice": (lambda T: T.ones(2, 2).sum((0, 0)), "dim 0 appears multiple times in the list of dims"),
    "sort far": (lambda T: T.ones(2).sort(2), "Dimension out of range"),
    "cumsum far": (lambda T: T.ones(2).cumsum(-2), "Dimension out of range"),
    "topk": (lambda T: T.ones(2).topk(3), "selected index k out of range"),
    "kthvalue": (lambda T: T.ones(2).kthvalue(0), "selected number k out of range for dimension 0"),
    "flip": (lambda T: T.ones(2).flip(1), "Dimension out of range"),
    "flip twice": (lambda T: T.ones(2).flip(0, 0), "appears multiple times in the list of dims"),
    "roll": (lambda T: T.ones(2, 2).roll((1, 2), 0), "shifts and dimensions must align"),
    "repeat": (lambda T: T.ones(2, 2).repeat(2), "Number of dimensions of repeat dims can not be smaller"),
    "repeat negative": (lambda T: T.ones(2).repeat(-1), ""),
    "tile": (lambda T: T.ones(2).tile((-1,)), ""),
    "diag": (lambda T: T.diag(T.ones(1, 2, 3)), ""),
    "tril": (lambda T: T.tril(T.ones(3)), "must have at least 2 dimensions"),
    "einsum": (lambda T: T.einsum("ij,jk->ik", T.ones(2, 3), T.ones(2, 3)), "does not broadcast"),
    "einsum operands": (
        lambda T: T.einsum("ij,jk->ik", T.ones(2, 3)),
        "fewer operands were provided than specified in the equation",
    ),
    "einsum letters": (lambda T: T.einsum("i->j", T.ones(2)), "output subscript j does not appear in the equation"),
    "cross": (lambda T: T.cross(T.ones(2), T.ones(2)), "no dimension of size 3 in input"),
    "trace": (lambda T: T.trace(T.ones(2)), "expected a matrix"),
    "bincount": (lambda T: T.bincount(T.ones(2, 2, dtype=T.int64)), "only supports 1-d non-negative integral inputs"),
    "meshgrid": (lambda T: T.meshgrid(T.ones(2, 2), indexing="ij"), "Expected 0D or 1D tensor in the tensor list"),
    "histc": (lambda T: T.histc(T.ones(2), 0), "bins must be > 0"),
}

WRONG_DTYPES: dict[str, tuple[Call, str]] = {
    "mean int": (lambda T: T.arange(3).mean(), "could not infer output dtype"),
    "std int": (lambda T: T.arange(3).std(), "std and var only support floating point and complex dtypes"),
    "softmax int": (lambda T: T.softmax(T.arange(3), 0), "not implemented for 'Long'"),
    "bitwise float": (lambda T: T.ones(2) & T.ones(2), "not implemented for 'Float'"),
    "invert float": (lambda T: ~T.ones(2), "only implemented on integer and Boolean-type tensors"),
    "shift float": (lambda T: T.gcd(T.ones(2), T.ones(2)), "not implemented for 'Float'"),
    "where condition": (
        lambda T: T.where(T.ones(2), T.ones(2), T.ones(2)),
        "expected condition to be a boolean tensor",
    ),
    "mask": (lambda T: T.ones(2).masked_fill(T.ones(2), 1), "masked_fill_ only supports boolean masks"),
    "masked_select": (lambda T: T.ones(2).masked_select(T.ones(2)), "expected BoolTensor"),
    "index_select": (lambda T: T.ones(2).index_select(0, T.ones(1)), "Expected dtype int32 or int64 for index"),
    "gather": (lambda T: T.ones(2).gather(0, T.ones(2)), "Expected dtype int32/int64 for index"),
    "scatter": (lambda T: T.ones(2).scatter(0, T.ones(2), 1.0), "Expected"),
    "take": (lambda T: T.ones(2).take(T.ones(1)), "Expected a long tensor for index"),
    "matmul": (lambda T: T.ones(2, 2) @ T.ones(2, 2).long(), "expected m1 and m2 to have the same dtype"),
    "dot": (lambda T: T.dot(T.ones(2), T.ones(2).double()), "same dtype"),
    "complex order": (lambda T: T.tensor([1j]) < T.tensor([2j]), "not implemented for 'ComplexFloat'"),
    "complex maximum": (lambda T: T.maximum(T.tensor([1j]), T.tensor([2j])), "not implemented for complex tensors"),
    "complex sort": (lambda T: T.tensor([1j]).sort(), "omplex"),
    "complex floor": (lambda T: T.tensor([1j]).floor(), "not supported for complex inputs"),
    "complex max": (lambda T: T.tensor([1j]).max(), ""),
    "complex clamp": (lambda T: T.tensor([1j]).clamp(0, 1), "clamp is not supported for complex types"),
    "bool neg": (lambda T: -T.tensor([True]), "Negation, the `-` operator, on a bool tensor is not supported"),
    "bool sub": (lambda T: T.tensor([True]) - T.tensor([True]), "Subtraction, the `-` operator"),
    "backward int": (lambda T: T.ones(2, requires_grad=True).long().sum().backward(), "does not require grad"),
    "grad int": (
        lambda T: T.arange(3).requires_grad_(),
        "only Tensors of floating point dtype can require gradients",
    ),
    "multinomial": (lambda T: T.multinomial(T.tensor([1, 2]), 1), "multinomial only supports floating-point dtypes"),
    "bernoulli": (lambda T: T.bernoulli(T.tensor([2.0])), "p_in >= 0 && p_in <= 1"),
    "int alpha": (lambda T: T.arange(3).add(1, alpha=0.5), "alpha must not be a floating point number"),
    "bool alpha": (lambda T: T.arange(3).add(1, alpha=True), "Boolean alpha only supported for Boolean results"),
    "norm int": (lambda T: T.arange(3).norm(), ""),
    "randn int": (lambda T: T.randn(2, dtype=T.int64), ""),
    "rand int": (lambda T: T.rand(2, dtype=T.int64), ""),
    "one dtype": (lambda T: T.zeros(2, dtype=int).sum(dtype="float32"), ""),
    "index_add": (lambda T: T.ones(2).index_add(0, T.tensor([0]), T.ones(1).double()), "same scalar type"),
    "index_put": (lambda T: T.ones(2).index_put((T.tensor([0]),), T.tensor(1)), "source and destination dtypes match"),
    "conj item": (lambda T: int(T.tensor(1 + 1j)), ""),
}

WRONG_ARGUMENTS: dict[str, tuple[Call, str]] = {
    "add text": (lambda T: T.ones(2) + "a", "unsupported operand type(s) for +"),
    "add none": (lambda T: T.ones(2) + None, "unsupported operand type(s) for +"),
    "add list": (lambda T: T.ones(2) + [1, 2], "unsupported operand type(s) for +"),
    "mul text": (lambda T: T.ones(2) * "a", ""),
    "radd text": (lambda T: "a" + T.ones(2), ""),
    "sub dict": (lambda T: T.ones(2) - {}, "unsupported operand type(s) for -"),
    "matmul number": (lambda T: T.ones(2) @ 2, ""),
    "add nothing": (lambda T: T.ones(2).add(), ""),
    "exp extra": (lambda T: T.exp(T.ones(2), 2), "exp()"),
    "exp number": (lambda T: T.exp(2.0), "must be Tensor, not float"),
    "exp list": (lambda T: T.exp([1.0]), "must be Tensor, not list"),
    "exp nothing": (lambda T: T.exp(), "missing 1 required positional argument"),
    "unknown keyword": (lambda T: T.ones(2).sum(axes=0), ""),
    "unknown keyword 2": (lambda T: T.cat([T.ones(1)], colour=1), "colour"),
    "sum text": (lambda T: T.ones(2).sum("a"), ""),
    "sum float dim": (lambda T: T.ones(2).sum(0.5), ""),
    "transpose one": (lambda T: T.ones(2, 2).transpose(0), ""),
    "view text": (lambda T: T.ones(2).view("a"), ""),
    "reshape float": (lambda T: T.ones(2).reshape(1.0, 2), ""),
    "permute text": (lambda T: T.ones(2, 2).permute("a", 0), ""),
    "cat tensor": (lambda T: T.cat(T.ones(2)), "must be tuple of Tensors, not Tensor"),
    "cat numbers": (lambda T: T.cat([1, 2]), "expected Tensor as element 0 in argument 0, but got int"),
    "stack none": (lambda T: T.stack(None), ""),
    "unknown method": (lambda T: T.ones(2).frobnicate(), "object has no attribute 'frobnicate'"),
    "unknown function": (lambda T: T.frobnicate, "has no attribute 'frobnicate'"),
    "where one": (lambda T: T.where(T.ones(2) > 0, 1), ""),
    "clamp nothing": (lambda T: T.ones(2).clamp(), "At least one of 'min' or 'max' must not be None"),
    "div mode": (
        lambda T: T.div(T.ones(2), 2, rounding_mode="x"),
        "rounding_mode to be one of None, 'trunc', or 'floor'",
    ),
    "pow none": (lambda T: T.ones(2) ** None, ""),
    "call tensor": (lambda T: T.ones(2)(1), "not callable"),
    "zeros dtype": (lambda T: T.zeros(2, dtype=3), ""),
    "manual_seed": (lambda T: T.manual_seed("a"), ""),
    "randint empty": (lambda T: T.randint(3, 3, (2,)), "random_ expects 'from' to be less than 'to'"),
    "randint no size": (lambda T: T.randint(3), ""),
    "randperm negative": (lambda T: T.randperm(-1), ""),
    "normal negative": (lambda T: T.normal(0.0, -1.0, (2,)), "std >= 0"),
    "uniform": (lambda T: T.ones(2).uniform_(2, 1), ""),
    "norm text": (lambda T: T.norm(T.ones(2), p="x"), ""),
    "quantile": (lambda T: T.quantile(T.ones(2), 2.0), "in the range [0, 1]"),
    "from_numpy": (lambda T: T.from_numpy(3), "expected np.ndarray (got int)"),
    "as_tensor none": (lambda T: T.as_tensor(None), "Could not infer dtype of NoneType"),
    "grad attribute": (lambda T: setattr(T.ones(2), "grad", 3), "assigned grad expected to be a Tensor or None"),
    "grad shape": (
        lambda T: setattr(T.ones(2, requires_grad=True), "grad", T.ones(3)),
        "attempting to assign a gradient of size '[3]' to a tensor of size '[2]'",
    ),
    "grad dtype": (
        lambda T: setattr(T.ones(2, requires_grad=True), "grad", T.ones(2).double()),
        "attempting to assign a gradient with dtype 'double'",
    ),
    "requires_grad result": (
        lambda T: setattr(T.ones(2, requires_grad=True) * 1, "requires_grad", False),
        "you can only change requires_grad flags of leaf variables",
    ),
    "requires_grad text": (lambda T: setattr(T.ones(2), "requires_grad", "yes"), ""),
    "deepcopy result": (lambda T: copy.deepcopy(T.ones(2, requires_grad=True) * 1), "deepcopy protocol"),
    "einsum none": (lambda T: T.einsum("i"), "at least one operand"),
    "split text": (lambda T: T.ones(2).split("a"), ""),
    "narrow missing": (lambda T: T.ones(2).narrow(0, 0), ""),
    "set data": (lambda T: setattr(T.ones(2), "data", 3), "Variable data has to be a tensor, but got int"),
    "no grad": (
        lambda T: T.ones(2).sum().backward(),
        "element 0 of tensors does not require grad and does not have a grad_fn",
    ),
    "meshgrid indexing": (lambda T: T.meshgrid(T.ones(2), indexing="ab"), "indexing"),
    "searchsorted": (lambda T: T.bucketize(T.ones(2), "x"), ""),
    "unique text": (lambda T: T.unique("a"), ""),
    "trace number": (lambda T: T.trace(2.0), "must be Tensor, not float"),
    "gather list": (lambda T: T.ones(2).gather(0, [0]), "must be Tensor, not list"),
    "isclose": (lambda T: T.isclose(T.ones(2), T.ones(2), rtol=-1.0), "rtol must be greater than or equal to zero"),
}

OUT_OF_RANGE: dict[str, tuple[Call, str]] = {
    "index_select": (lambda T: T.ones(2).index_select(0, T.tensor([2])), "index out of range in self"),
    "gather": (lambda T: T.ones(2).gather(0, T.tensor([2])), "index 2 is out of bounds for dimension 0 with size 2"),
    "scatter": (
        lambda T: T.ones(2).scatter(0, T.tensor([5]), 1.0),
        "index 5 is out of bounds for dimension 0 with size 2",
    ),
    "take": (lambda T: T.ones(2).take(T.tensor([2])), "out of range"),
    "index_fill": (lambda T: T.ones(2).index_fill(0, T.tensor([2]), 1.0), "out of bounds"),
    "index_copy": (lambda T: T.ones(2).index_copy(0, T.tensor([2]), T.ones(1)), "out of bounds"),
    "index_add": (lambda T: T.ones(2).index_add(0, T.tensor([2]), T.ones(1)), "out of range"),
    "index_put": (
        lambda T: T.ones(2).index_put((T.tensor([2]),), T.tensor(1.0)),
        "index 2 is out of bounds for dimension 0 with size 2",
    ),
    "unbind": (lambda T: T.ones(2).unbind(1), "Dimension out of range"),
    "size": (lambda T: T.ones(2).size(1), "Dimension out of range"),
    "squeeze": (lambda T: T.ones(2).squeeze(1), "Dimension out of range"),
    "too long int": (lambda T: T.tensor(2**64), ""),
    "masked_scatter": (
        lambda T: T.ones(3).masked_scatter(T.ones(3) > 0, T.ones(2)),
        "umber of elements of source < number of ones",
    ),
    "multinomial": (
        lambda T: T.multinomial(T.ones(2), 3),
        "cannot sample n_sample > prob_dist.size(-1) samples without replacement",
    ),
}


@differential
@pytest.mark.parametrize("name", WRONG_SHAPES)
def test_wrong_shapes(T: Any, name: str) -> Any:
    call, phrase = WRONG_SHAPES[name]
    return outcome(lambda: call(T), phrase)


@differential
@pytest.mark.parametrize("name", WRONG_DTYPES)
def test_wrong_dtypes(T: Any, name: str) -> Any:
    call, phrase = WRONG_DTYPES[name]
    return outcome(lambda: call(T), phrase)


@differential
@pytest.mark.parametrize("name", WRONG_ARGUMENTS)
def test_wrong_arguments(T: Any, name: str) -> Any:
    call, phrase = WRONG_ARGUMENTS[name]
    return outcome(lambda: call(T), phrase)


@differential
@pytest.mark.parametrize("name", OUT_OF_RANGE)
def test_out_of_range(T: Any, name: str) -> Any:
    call, phrase = OUT_OF_RANGE[name]
    return outcome(lambda: call(T), phrase)


@differential
def test_a_failed_call_changes_nothing(T: Any) -> Any:
    tensor, leaf = T.arange(4.0), T.ones(2, requires_grad=True)
    attempts = [
        outcome(lambda: tensor.add_(T.ones(3)), "must match"),
        outcome(lambda: tensor.copy_(T.ones(3)), "must match"),
        outcome(lambda: tensor.__setitem__(9, 1.0), "out of bounds"),
        outcome(lambda: tensor.view(3), "invalid"),
        outcome(lambda: tensor.add_(T.tensor([1j])), "can't be cast"),
        outcome(lambda: leaf.mul_(2), "leaf Variable"),
    ]
    return attempts, tensor, tensor._version, leaf


def test_a_failed_index_put_changes_nothing() -> None:
    tensor = flambeau.arange(4.0)
    with pytest.raises(IndexError, match="out of bounds"):  # PyTorch has written the first element by then
        tensor.index_put_((flambeau.tensor([0, 9]),), flambeau.tensor(5.0))
    assert tensor.tolist() == [0, 1, 2, 3]
    assert tensor._version == 0
