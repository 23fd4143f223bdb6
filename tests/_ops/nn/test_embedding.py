"""embedding, embedding_bag, one_hot: values, padding, renormalisation, derivatives, errors."""

from __future__ import annotations

from typing import Any

import pytest

import flambeau

from ...support.differential import differential, outcome


def _table(T: Any, rows: int = 5, width: int = 3, dtype: Any = None) -> Any:
    return (T.linspace(-2, 3, rows * width).reshape(rows, width) * 1.3).to(dtype or T.float32)


INDICES = [[1, 3, 1], [0, 4, 3]]


@differential
def test_embedding(T: Any) -> Any:
    F, weight, indices = T.nn.functional, _table(T), T.tensor(INDICES)
    return (
        F.embedding(indices, weight),
        F.embedding(indices.int().t(), weight.t().contiguous().t()),
        F.embedding(T.tensor(2), weight),
        F.embedding(T.empty(0, 2, dtype=T.int64), weight),
        F.embedding(indices, weight.half()),
        F.embedding(indices, weight.long()),
        F.embedding(indices.to("meta"), weight.to("meta")),
        T.embedding(weight, indices, 1, True),
    )


@pytest.mark.parametrize("padding_idx", [None, 1, -2])
@pytest.mark.parametrize("scale_grad_by_freq", [False, True])
@differential
def test_gradient_of_embedding(T: Any, padding_idx: int | None, scale_grad_by_freq: bool) -> Any:
    weight = _table(T, dtype=T.float64).requires_grad_()
    result = T.nn.functional.embedding(T.tensor(INDICES), weight, padding_idx, scale_grad_by_freq=scale_grad_by_freq)
    grad = T.linspace(1, 2, 18, dtype=T.float64).reshape(2, 3, 3).requires_grad_()
    (first,) = T.autograd.grad(result, weight, grad, create_graph=True)
    node = result.grad_fn
    padding = None if padding_idx is None else node._saved_padding_idx
    return result, first, padding, node._saved_weight_sym_argsize_0, node._saved_scale_grad_by_freq


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("norm_type", [1.0, 2.0, float("inf")])
@differential(tolerance=1e-6)
def test_max_norm_changes_the_weight(T: Any, dtype: str, norm_type: float) -> Any:
    weight = _table(T, dtype=getattr(T, dtype))
    parameter = _table(T).requires_grad_()
    indices = T.tensor([0, 2, 2])
    return (
        T.nn.functional.embedding(indices, weight, max_norm=1.0, norm_type=norm_type),
        weight,
        weight._version,
        T.nn.functional.embedding(indices, parameter, max_norm=1.0),
        parameter._version,
        T.embedding_renorm_(_table(T), indices, 0.5, norm_type),
    )


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("padding_idx", [None, 3])
@differential
def test_embedding_bag(T: Any, mode: str, padding_idx: int | None) -> Any:
    F, weight = T.nn.functional, _table(T).requires_grad_()
    flat, offsets = T.tensor([1, 3, 1, 0, 4]), T.tensor([0, 0, 3])
    results = [
        F.embedding_bag(T.tensor(INDICES), weight, mode=mode, padding_idx=padding_idx),
        F.embedding_bag(flat, weight, offsets, mode=mode, padding_idx=padding_idx),
        F.embedding_bag(flat.int(), weight, T.tensor([0, 2, 5]).int(), mode=mode, include_last_offset=True),
        F.embedding_bag(T.empty(0, dtype=T.int64), weight, T.tensor([0, 0]), mode=mode),
    ]
    grads = [T.autograd.grad((each * each.detach()).sum(), weight)[0] for each in results]
    return results, grads, F.embedding_bag(flat, weight.detach().half(), offsets, mode=mode)


@differential
def test_sample_weights_and_frequencies(T: Any) -> Any:
    F, weight = T.nn.functional, _table(T).requires_grad_()
    samples = T.tensor([[0.5, -1.0, 2.0], [1.0, 0.0, 3.0]], requires_grad=True)
    weighted = F.embedding_bag(T.tensor(INDICES), weight, mode="sum", per_sample_weights=samples, padding_idx=1)
    scaled = F.embedding_bag(T.tensor([[1, 3, 1], [3, 0, 0]]), weight, mode="mean", scale_grad_by_freq=True)
    return (
        weighted,
        T.autograd.grad((weighted * weighted.detach()).sum(), (weight, samples)),
        T.autograd.grad((scaled * scaled.detach()).sum(), weight),
    )


def test_derivatives_of_bags() -> None:
    weight = _table(flambeau, dtype=flambeau.float64).requires_grad_()
    samples = flambeau.linspace(0.5, 2, 6, dtype=flambeau.float64).reshape(2, 3).requires_grad_()
    indices = flambeau.tensor(INDICES)

    def op(weight: Any, samples: Any) -> Any:
        return flambeau.nn.functional.embedding_bag(indices, weight, mode="sum", per_sample_weights=samples)

    assert flambeau.autograd.gradcheck(op, (weight, samples))
    assert flambeau.autograd.gradgradcheck(op, (weight, samples))


def test_sparse_gradients_hold_what_dense_ones_do() -> None:
    weight = _table(flambeau).requires_grad_()
    indices = flambeau.tensor(INDICES)
    F = flambeau.nn.functional
    for run in (F.embedding, F.embedding_bag):
        gradients = [
            flambeau.autograd.grad(run(indices, weight, sparse=sparse).sin().sum(), weight)[0]
            for sparse in (True, False)
        ]
        assert gradients[0].is_sparse
        assert not gradients[1].is_sparse
        flambeau.testing.assert_close(gradients[0].to_dense(), gradients[1])


@differential
def test_one_hot(T: Any) -> Any:
    F, indices = T.nn.functional, T.tensor([[0, 2], [1, 1]])
    return (
        F.one_hot(indices),
        F.one_hot(indices, 4),
        F.one_hot(T.tensor(1)),
        F.one_hot(T.empty(0, dtype=T.int64), 3),
        F.one_hot(indices.to("meta"), 3),
        outcome(lambda: F.one_hot(indices.to("meta")), "cannot be called on meta tensors"),
        outcome(lambda: F.one_hot(indices, 2), "Class values must be smaller than num_classes"),
        outcome(lambda: F.one_hot(indices.int()), "only applicable to index tensor"),
    )


@differential
def test_errors(T: Any) -> Any:
    F, weight, indices = T.nn.functional, _table(T), T.tensor([0, 1, 2])
    offsets = T.tensor([0, 2])
    bag = F.embedding_bag
    return (
        outcome(lambda: F.embedding(indices.float(), weight), "to have one of the following scalar types: Long, Int"),
        outcome(lambda: F.embedding(T.tensor([5]), weight), "index out of range in self"),
        outcome(lambda: F.embedding(T.tensor([-1]), weight), "index out of range in self"),
        outcome(lambda: F.embedding(indices, weight, padding_idx=5), "Padding_idx must be within num_embeddings"),
        outcome(lambda: F.embedding(indices, weight[0]), "'weight' must be 2-D"),
        outcome(lambda: bag(indices, weight), "offsets has to be a 1D Tensor but got None"),
        outcome(lambda: bag(indices[None], weight, offsets), "if input is 2D, then offsets has to be None"),
        outcome(lambda: bag(indices, weight, offsets, mode="product"), "mode has to be one of sum, mean or max"),
        outcome(lambda: bag(indices, weight, offsets + 1), "offsets[0] has to be 0"),
        outcome(lambda: bag(indices, weight, T.tensor([0, 9])), "offsets[-1] can not be greater than input's length"),
        outcome(lambda: bag(T.tensor([7]), weight, offsets[:1]), "which is not in the valid range"),
        outcome(lambda: bag(indices, weight, offsets, padding_idx=9), "padding_idx must be within the number of"),
        outcome(
            lambda: bag(indices, weight, offsets, mode="max", scale_grad_by_freq=True), "max mode does not support"
        ),
        outcome(
            lambda: bag(indices, weight, offsets, per_sample_weights=T.ones(3)), "is only supported for mode='sum'"
        ),
        outcome(lambda: bag(indices, weight, offsets, mode="sum", per_sample_weights=T.ones(2)), "the same shape as"),
        outcome(lambda: bag(indices, weight.long(), offsets), "Half, BFloat16, Float, Double"),
    )
