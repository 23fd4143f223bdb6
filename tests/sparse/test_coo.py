"""Sparse tensors by coordinates: making them, looking into them, arithmetic, errors."""

from __future__ import annotations

import copy
import io
import pickle
import warnings
from typing import Any

import numpy as np
import pytest
import torch as pytorch

import flambeau
from tests.support.differential import outcome

from .both import matrix, same


@same
def test_construction(T: Any) -> Any:
    make = T.sparse_coo_tensor
    return [
        matrix(T),
        matrix(T, coalesced=True),
        make([[0, 2]], [1, 2]),
        make([[0, 2]], [[1.0, 2.0], [3.0, 4.0]]),
        make([[0, 2]], [1, 2], (4,), dtype=T.float64),
        make(T.zeros(0, 2, dtype=T.int64), T.tensor([1.0, 2.0]), ()),
        make(T.zeros(2, 0, dtype=T.int64), T.zeros(0), (2, 3)),
        make(T.zeros(1, 0, dtype=T.int64), T.zeros(0, 4), (0, 4)),
        make((2, 3)),
        make(size=(2, 3), dtype=T.int32),
        make(T.tensor([[1, 0]], dtype=T.int32), [True, False]),
        make([[0, 1]], [1.0, 2.0], is_coalesced=True),
        make([[1]], [5.0], (3,), requires_grad=True),
        make([[0, 1]], [float("nan"), float("inf")]),
    ]


@same
def test_what_they_say_of_themselves(T: Any) -> Any:
    s = T.sparse_coo_tensor([[0, 2]], [[1.0, 2.0], [3.0, 4.0]], (3, 2))
    return [
        (s.layout, s.is_sparse, s.is_sparse_csr, s.dtype, s.shape, s.size(1), s.dim(), s.ndim, s.numel(), len(s)),
        (s._nnz(), s.sparse_dim(), s.dense_dim(), s.is_coalesced(), s.coalesce().is_coalesced(), s.device),
        (s._indices(), s._values(), s.coalesce().indices(), s.coalesce().values()),
        (s.requires_grad, s.is_leaf, s.grad, s.is_floating_point(), s.is_complex(), s.element_size(), s.type()),
        (T.ones(2).sparse_dim(), T.ones(2).dense_dim(), T.ones(2).is_sparse, T.ones(2).to_dense()),
        T.is_tensor(s),
    ]


@same
def test_repr(T: Any) -> Any:
    s = matrix(T)
    return [
        repr(s),
        repr(s.coalesce()),
        repr(s.double()),
        repr(s.to(T.int64)),
        repr(T.sparse_coo_tensor(size=(2, 3), dtype=T.int64)),
        repr(T.sparse_coo_tensor([[0]], [[1.0, 2.0]], (3, 2), requires_grad=True)),
        repr(s.clone().requires_grad_().coalesce()),
        repr(T.arange(1.0, 41.0).to_sparse()),
        repr(T.sparse_coo_tensor(T.arange(2000).reshape(2, 1000), T.ones(1000))),
        repr(T.tensor([1 + 2j, 0]).to_sparse()),
    ]


@same
def test_conversions(T: Any) -> Any:
    dense = T.tensor([[0.0, 3.0, 0.0], [0.0, 0.0, 0.0], [4.0, 5.0, 0.0]])
    s = matrix(T)
    return [
        dense.to_sparse(),
        dense.to_sparse(1),
        dense.to_sparse_coo(),
        dense.t().to_sparse(),
        T.tensor(3.0).to_sparse(),
        T.zeros(2, 3).to_sparse(),
        T.tensor([True, False]).to_sparse(),
        T.tensor([0, 3], dtype=T.int8).to_sparse().to_dense(),
        T.tensor([float("nan"), 0.0]).to_sparse(),
        s.to_dense(),
        s.to_sparse(),
        T.sparse_coo_tensor([[0, 0]], [True, True], (2,)).to_dense(),
        T.sparse_coo_tensor([[0, 0]], [100, 100], (2,), dtype=T.int8).to_dense(),
        s.to(T.float64),
        s.to(T.float32) is s,
        s.to(T.float32, copy=True),
        s.half(),
        s.to("cpu") is s,
        s.coalesce().bool(),
        dense.sparse_mask(dense.to_sparse()),
        T.ones(2, 3).sparse_mask(s.coalesce()),
        s.clone(),
        s.coalesce().detach(),
        T.zeros_like(s),
        T.empty_like(s.coalesce()),
    ]


@same
def test_arithmetic(T: Any) -> Any:
    s, c = matrix(T), matrix(T, coalesced=True)
    other = T.sparse_coo_tensor([[0, 1], [1, 0]], [10.0, 20.0], (2, 3)).coalesce()
    dense = T.arange(6.0).reshape(2, 3)
    return [
        c + other,
        c - other,
        c + c,
        T.add(c, other, alpha=3),
        (s + other.neg()).coalesce(),
        dense + s,
        dense - s,
        T.add(dense, s, alpha=0.5),
        dense.double() + s,
        (dense.to(T.int64) + c.to(T.int64)).dtype,
        -c,
        c * 2,
        2 * c,
        c * 2.5,
        c.to(T.int64) * 2.5,
        c / 2,
        c * T.tensor(3.0),
        c * other,
        (s * other).to_dense(),
        c * dense,
        dense * c,
        (c * T.tensor([1.0, 2.0, 3.0])).to_dense(),
        c.sqrt(),
        s.sin(),
        T.tanh(c),
        c.abs(),
        c**2,
        c.pow(3),
        T.relu(-c),
        c.sign(),
        c.norm(),
        s.norm(1),
        s.any(),
    ]


@same
def test_in_place(T: Any) -> Any:
    s = matrix(T)
    values = matrix(T, coalesced=True)
    values.values().add_(1)
    dense = T.ones(2, 3)
    same_dense = dense.add_(s, alpha=-2.0) is dense
    half = T.ones(2, 3, dtype=T.float64).add_(s)
    product = matrix(T)
    product.mul_(2).div_(4)
    total = matrix(T, coalesced=True)
    total.add_(matrix(T, coalesced=True), alpha=0.5)
    copied = T.zeros_like(s).copy_(matrix(T))
    emptied = matrix(T).zero_()
    subtracted = T.ones(2, 3)
    subtracted -= s
    shared = s.detach()
    s.mul_(3)
    return [values, dense, same_dense, half, product, total, copied, emptied, subtracted, shared]


@same
def test_shapes_and_elements(T: Any) -> Any:
    s, c = matrix(T), matrix(T, coalesced=True)
    hybrid = T.sparse_coo_tensor([[0, 2], [1, 1]], [[1.0, 2.0], [3.0, 4.0]], (3, 2, 2))
    return [
        c.t(),
        c.transpose(0, -1),
        c.T,
        hybrid.transpose(0, 1),
        c[0],
        c[-1, 0],
        s[1, 0],
        hybrid[0],
        hybrid[2, 1],
        hybrid.select(1, 1),
        s.clone().sparse_resize_((4, 5), 2, 0),
        s.clone().sparse_resize_and_clear_((4, 5), 1, 1),
        T.sparse_coo_tensor([[0]], [4.0], (1,)).item(),
    ]


@same
def test_reductions(T: Any) -> Any:
    s = matrix(T)
    hybrid = T.sparse_coo_tensor([[0, 2, 0], [1, 1, 1]], T.arange(6.0).reshape(3, 2), (3, 2, 2))
    total = T.sparse.sum
    return [
        s.sum(),
        s.sum(0),
        total(s),
        total(s, 0),
        total(s, dim=1),
        total(s, (0, 1)),
        total(s, dtype=T.float64),
        total(hybrid, 0),
        total(hybrid, 2),
        total(hybrid, (0, 2)),
        total(hybrid, (0, 1)),
        total(T.sparse_coo_tensor(size=(2, 3))),
        s.to(T.int32).sum(),
        T.sparse.softmax(s, 1),
        T.sparse.softmax(s.double(), 0),
        T.sparse.log_softmax(s, 1),
        T.sparse.softmax(hybrid, 0),
        T.sparse.softmax(hybrid, 2),
        T.sparse.softmax(T.sparse_coo_tensor([[0, 0], [0, 1]], [-float("inf"), 0.0], (2, 2)), 1),
    ]


@same
def test_errors(T: Any) -> Any:
    s = matrix(T)
    dense = T.ones(2, 3)
    make = T.sparse_coo_tensor
    return [
        outcome(s.indices, "Cannot get indices on an uncoalesced tensor, please call .coalesce() first"),
        outcome(s.values, "Cannot get values on an uncoalesced tensor"),
        outcome(dense.coalesce, "coalesce expected sparse coordinate tensor layout but got Strided"),
        outcome(dense.indices, "indices expected sparse coordinate tensor layout but got Strided"),
        outcome(dense.values, "values expected sparse tensor layout but got Strided"),
        outcome(dense._indices),
        outcome(dense._nnz),
        outcome(s.crow_indices, "crow_indices expected sparse row compressed tensor layout but got Sparse"),
        outcome(lambda: s + dense, "add(sparse, dense) is not supported. Use add(dense, sparse) instead."),
        outcome(lambda: s + 1, "add(sparse, dense) is not supported"),
        outcome(lambda: dense + s.t(), "add: expected 'self' and 'other' to have same size"),
        outcome(lambda: s / dense, "Sparse division requires a scalar or zero-dim dense tensor divisor"),
        outcome(lambda: make([[0, 1]], [1.0]), "indices and values must have same nnz"),
        outcome(lambda: make([[0, 1]], [1.0, 2.0], (2, 3)), "'len(size) == sparse_dim + dense_dim' is not satisfied"),
        outcome(s.numpy, "can't convert Sparse layout tensor to numpy. Use Tensor.to_dense() first."),
        outcome(s.tolist, "Cannot access data pointer"),
        outcome(s.data_ptr, "Cannot access data pointer of Tensor that doesn't have storage"),
        outcome(s.untyped_storage, "Cannot access storage of SparseTensorImpl"),
        outcome(lambda: s.nbytes, "nbytes is not defined for sparse tensors"),
        outcome(lambda: bool(s), "Boolean value of Tensor with more than one value is ambiguous"),
        outcome(lambda: T.ones(2).to_sparse(3), "sparse_dim"),
        outcome(lambda: T.sparse.mm(s, T.ones(2, 2)), "Expected dim 0 size 3, got 2"),
        outcome(lambda: T.sparse.sum(s, (0, 0)), "appears multiple times in the list of dims"),
    ]


@pytest.mark.parametrize("name", ["exp", "cos", "sigmoid", "mean", "ones_like", "rand_like", "lgamma", "flip", "std"])
def test_what_is_not_implemented_says_so_as_in_pytorch(name: str) -> None:
    arguments = {"flip": ((0,),)}.get(name, ())

    def run(T: Any) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with pytest.raises(NotImplementedError, match="Could not run 'aten::") as caught:
                getattr(T, name)(matrix(T), *arguments)
        return caught.value

    run(pytorch)
    assert "SparseCPU" in str(run(flambeau))
    assert "to_dense" in str(run(flambeau))


def test_no_op_takes_a_sparse_tensor_for_a_dense_one() -> None:
    """Every method of one argument gives a sparse tensor's true result or an error, never something else."""
    from flambeau._dispatch.public.registry import METHODS, load_all

    load_all()
    s = matrix(flambeau, coalesced=True)
    dense = s.to_dense()
    checked = 0
    for name in sorted(METHODS):
        if name.startswith("__") or name.endswith("_") or name in ("new", "record_stream"):
            continue
        if isinstance(METHODS[name], property):
            continue
        try:
            result = getattr(s.clone(), name)()
        except (RuntimeError, TypeError, ValueError, IndexError, AssertionError):
            continue
        if isinstance(result, flambeau.Tensor) and result.layout is flambeau.strided and result.shape == dense.shape:
            expected = getattr(dense, name)()
            assert flambeau.equal(result, expected), name
            checked += 1
    assert checked


@same
def test_a_dense_tensor_does_not_become_sparse(T: Any) -> Any:
    dense, s = T.ones(2, 3), matrix(T)
    return [
        outcome(lambda: dense.set_(s), "Could not run 'aten::set_"),
        outcome(lambda: setattr(dense, "data", s), "incompatible tensor type"),
        outcome(lambda: setattr(s, "data", dense), "incompatible tensor type"),
        outcome(lambda: T.mm(s, 2)),
        s.data,
        T.nn.Parameter(s).is_sparse,
        dense,
    ]


def test_numpy_cannot_read_one() -> None:
    s = matrix(flambeau)
    for action in (lambda: np.asarray(s), lambda: np.add(s, 1), lambda: np.sum(s._array), lambda: s._array + 1):
        with pytest.raises((NotImplementedError, TypeError)):
            action()


def test_places_outside_are_refused() -> None:
    make = flambeau.sparse_coo_tensor
    with pytest.raises(RuntimeError, match="size is inconsistent with indices: for dim 1, size is 2 but found index 2"):
        make([[0, 1], [0, 2]], [1.0, 2.0], (2, 2))
    with pytest.raises(RuntimeError, match="found negative index -1 for dim 0"):
        make([[-1]], [1.0], (2,))
    with pytest.raises(RuntimeError, match="is_coalesced=True"):
        make([[0, 0]], [1.0, 2.0], (2,), is_coalesced=True)


def test_copies_and_pickles() -> None:
    s = matrix(flambeau).requires_grad_()
    for made in (copy.deepcopy(s), pickle.loads(pickle.dumps(s)), copy.copy(s)):
        assert repr(made) == repr(s)
        assert made is not s
    deep = copy.deepcopy(s)
    deep._values().zero_()
    assert s.to_dense().sum() == 12


@pytest.mark.parametrize("legacy", [False, True])
@pytest.mark.parametrize("weights_only", [False, True])
def test_files_both_ways(legacy: bool, weights_only: bool) -> None:
    def content(T: Any) -> Any:
        c = matrix(T, coalesced=True)
        return {"s": matrix(T), "c": c, "r": c.to_sparse_csr(), "e": T.sparse_coo_tensor(size=(2, 3))}

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for writer, reader in ((pytorch, flambeau), (flambeau, pytorch), (flambeau, flambeau)):
            file = io.BytesIO()
            writer.save(content(writer), file, _use_new_zipfile_serialization=not legacy)
            file.seek(0)
            loaded = reader.load(file, weights_only=weights_only)
            assert {key: repr(value) for key, value in loaded.items()} == {
                key: repr(value) for key, value in content(writer).items()
            }


def test_a_file_with_places_outside_is_refused() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        bad = pytorch.sparse_coo_tensor([[7]], [1.0], (2,), check_invariants=False)
        file = io.BytesIO()
        pytorch.save(bad, file)
    file.seek(0)
    with pytest.raises(RuntimeError, match="size is inconsistent with indices"):
        flambeau.load(file)
