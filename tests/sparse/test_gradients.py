"""Derivatives through sparse tensors, and sparse gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import flambeau
from tests.support.differential import outcome

from .both import matrix, same

Function = Callable[[Any, Any], Any]


def _sum(result: Any) -> Any:
    """A number that depends on every element in its own way."""
    if str(result.layout) != "torch.strided":
        result = result.to_dense()
    weights = (result.detach() * 0 + 1).cumsum(0)
    return (result * weights).sum()


FUNCTIONS: dict[str, Function] = {
    "to_dense": lambda T, s: s.to_dense(),
    "to_dense, whole gradient": lambda T, s: s.to_dense(masked_grad=False),
    "coalesce": lambda T, s: s.coalesce(),
    "values": lambda T, s: s.coalesce().values(),
    "scaled": lambda T, s: s * 2,
    "divided": lambda T, s: s / 4,
    "negated": lambda T, s: -s,
    "converted": lambda T, s: s.double(),
    "clone": lambda T, s: s.clone(),
    "sum": lambda T, s: s.sum(),
    "sparse sum": lambda T, s: T.sparse.sum(s),
    "sparse sum along 0": lambda T, s: T.sparse.sum(s, 0),
    "sparse sum along 1": lambda T, s: T.sparse.sum(s, 1),
    "added to a dense one": lambda T, s: T.ones(2, 3) + s,
    "times a dense one": lambda T, s: s * T.arange(6.0).reshape(2, 3),
    "mm": lambda T, s: s @ T.arange(6.0).reshape(3, 2),
    "sparse mm": lambda T, s: T.sparse.mm(s, T.arange(6.0).reshape(3, 2)),
    "dense and sparse": lambda T, s: T.sparse.mm(T.arange(4.0).reshape(2, 2), s),
    "addmm": lambda T, s: T.sparse.addmm(T.ones(2, 2), s, T.arange(6.0).reshape(3, 2), beta=2.0, alpha=3.0),
    "softmax": lambda T, s: T.sparse.softmax(s, 1),
    "log_softmax": lambda T, s: T.sparse.log_softmax(s, 0),
    "transposed": lambda T, s: s.t(),
    "sum of two": lambda T, s: s + s * 3,
}


@pytest.mark.parametrize("name", FUNCTIONS)
@same
def test_gradients_of_sparse_leaves(T: Any, name: str) -> Any:
    s = matrix(T, coalesced=True).detach().clone().requires_grad_()
    result = FUNCTIONS[name](T, s)
    _sum(result).backward()
    return result.shape, result.layout, s.grad.layout, s.grad.to_dense()


@same
def test_products_of_sparse_matrices(T: Any) -> Any:
    left = matrix(T, coalesced=True).detach().clone().requires_grad_()
    right = T.sparse_coo_tensor([[0, 2, 1], [1, 0, 1]], [1.0, 2.0, 5.0], (3, 2)).coalesce().requires_grad_()
    result = T.sparse.mm(left, right)
    T.sparse.sum(result).backward()
    return result.detach().coalesce(), left.grad.to_dense(), right.grad.to_dense()


@same
def test_gradients_of_values_and_of_dense_operands(T: Any) -> Any:
    values = T.tensor([3.0, 4.0, 5.0], requires_grad=True)
    s = T.sparse_coo_tensor(T.tensor([[0, 1, 1], [2, 0, 0]]), values, (2, 3))
    dense = T.arange(6.0).reshape(3, 2).requires_grad_()
    (T.sparse.mm(s, dense) ** 2).sum().backward()
    matrix_ = T.tensor([[1.0, 0.0], [0.0, 2.0]], requires_grad=True)
    (matrix_.to_sparse() * 3).to_dense().sum().backward()
    rows = T.tensor([[1.0, 0.0], [3.0, 2.0]], requires_grad=True)
    (rows.to_sparse_csr() @ T.arange(4.0).reshape(2, 2)).sum().backward()
    slices = T.tensor([[1.0, 0.0], [0.0, 0.0]], requires_grad=True)
    (slices.to_sparse(1).to_dense() * T.arange(4.0).reshape(2, 2)).sum().backward()
    coalesced = T.tensor([3.0, 4.0, 5.0], requires_grad=True)
    (T.sparse_coo_tensor(T.tensor([[0, 1, 1]]), coalesced, (2,)).coalesce().values() ** 2).sum().backward()
    return values.grad, dense.grad, matrix_.grad, rows.grad.to_dense(), slices.grad, coalesced.grad


def test_second_derivatives() -> None:
    indices = flambeau.tensor([[0, 1, 1], [2, 0, 1]])
    values = flambeau.tensor([3.0, 4.0, 5.0], dtype=flambeau.float64, requires_grad=True)
    dense = flambeau.randn(3, 2, dtype=flambeau.float64, requires_grad=True)

    def product(values: Any, dense: Any) -> Any:
        s = flambeau.sparse_coo_tensor(indices, values, (2, 3))
        return flambeau.sparse.mm(s, dense).sin() + (s * 2).to_dense().square().sum()

    def functions(values: Any) -> Any:
        s = flambeau.sparse_coo_tensor(indices, values, (2, 3)).coalesce()
        return flambeau.sparse.softmax(s.sin(), 1).to_dense(), flambeau.sparse.sum(s * s, 1).to_dense()

    for function, inputs in ((product, (values, dense)), (functions, (values,))):
        assert flambeau.autograd.gradcheck(function, inputs)
        assert flambeau.autograd.gradgradcheck(function, inputs)


def test_complex_derivatives() -> None:
    indices = flambeau.tensor([[0, 1], [1, 0]])
    values = flambeau.randn(2, dtype=flambeau.complex128, requires_grad=True)
    dense = flambeau.randn(2, 2, dtype=flambeau.complex128, requires_grad=True)

    def function(values: Any, dense: Any) -> Any:
        s = flambeau.sparse_coo_tensor(indices, values, (2, 2))
        return flambeau.sparse.mm(s, dense) + (s * dense * (1 + 2j)).to_dense()

    assert flambeau.autograd.gradcheck(function, (values, dense))


# ----- gradients that are sparse -----------------------------------------------------------------------------------


@same
def test_embedding(T: Any) -> Any:
    weight = T.arange(8.0).reshape(4, 2).requires_grad_()
    indices = T.tensor([[1, 3], [1, 0]])
    embedding, bag = T.nn.functional.embedding, T.nn.functional.embedding_bag
    factors = T.arange(8.0).reshape(2, 2, 2)

    def gradient(make: Any) -> Any:
        weight.grad = None
        make().backward()
        return weight.grad

    return [
        gradient(lambda: (embedding(indices, weight, sparse=True) * factors).sum()),
        gradient(lambda: (embedding(indices, weight, padding_idx=1, sparse=True) * factors).sum()),
        gradient(lambda: embedding(T.tensor(2), weight, sparse=True).sum()),
        gradient(lambda: embedding(indices.int(), weight, sparse=True).sum()),
        gradient(lambda: embedding(indices[:0], weight, sparse=True).sum()),
        gradient(lambda: (bag(indices, weight, sparse=True) * factors[0]).sum()),
        gradient(lambda: (bag(indices, weight, sparse=True, mode="sum") * factors[0]).sum()),
        gradient(lambda: (bag(indices, weight, sparse=True, mode="sum", padding_idx=1) * factors[0]).sum()),
        gradient(lambda: (bag(indices, weight, sparse=True, mode="sum", per_sample_weights=factors[0]) * 2).sum()),
        gradient(lambda: bag(indices.flatten(), weight, T.tensor([0, 1, 1]), mode="mean", sparse=True).sum()),
        outcome(
            lambda: gradient(lambda: embedding(indices, weight, scale_grad_by_freq=True, sparse=True).sum()),
            "scale_grad_by_freq not supported with sparse gradients",
        ),
    ]


@same
def test_modules(T: Any) -> Any:
    layers = [T.nn.Embedding(5, 3, sparse=True, padding_idx=2), T.nn.EmbeddingBag(5, 3, sparse=True, mode="mean")]
    observed = []
    for layer in layers:
        with T.no_grad():
            layer.weight.copy_(T.arange(15.0).reshape(5, 3))
        layer(T.tensor([[0, 2], [4, 0]])).pow(2).sum().backward()
        observed += [layer.weight.grad, layer.weight.grad.is_sparse]
    return observed


@same
def test_accumulation(T: Any) -> Any:
    indices = T.tensor([1, 3, 1])
    embedding = T.nn.functional.embedding

    def fresh() -> Any:
        return T.arange(8.0).reshape(4, 2).requires_grad_()

    def use(weight: Any, chosen: Any = indices) -> Any:
        return (embedding(chosen, weight, sparse=True) * 2).sum()

    twice, mixed, other_way, in_one_pass, mixed_pass = fresh(), fresh(), fresh(), fresh(), fresh()
    use(twice).backward()
    use(twice, T.tensor([0])).backward()
    use(mixed).backward()
    mixed.sum().backward()
    other_way.sum().backward()
    kept = other_way.grad
    use(other_way).backward()
    (use(in_one_pass) + use(in_one_pass, T.tensor([0, 1]))).backward()
    (use(mixed_pass) + mixed_pass.sum()).backward()
    given = T.autograd.grad(*_root(use, fresh))
    zeroed = fresh()
    use(zeroed).backward()
    zeroed.grad.zero_()
    return [
        twice.grad.coalesce(),
        mixed.grad,
        other_way.grad,
        other_way.grad is kept,
        in_one_pass.grad.coalesce(),
        mixed_pass.grad,
        given,
        zeroed.grad,
    ]


def _root(use: Any, fresh: Any) -> Any:
    weight = fresh()
    return use(weight), [weight]


@same
def test_hooks_and_assignment(T: Any) -> Any:
    weight = T.arange(8.0).reshape(4, 2).requires_grad_()
    seen = []
    weight.register_hook(lambda grad: (seen.append(grad.is_sparse), grad * 2)[1])
    T.nn.functional.embedding(T.tensor([1]), weight, sparse=True).sum().backward()
    first = weight.grad
    weight.grad = T.sparse_coo_tensor([[0]], [[1.0, 2.0]], (4, 2))
    return [
        seen,
        first,
        weight.grad,
        outcome(lambda: setattr(weight, "grad", T.sparse_coo_tensor(size=(3, 2)))),
        outcome(lambda: setattr(weight, "grad", weight.grad.double())),
    ]


def test_the_gradient_shares_no_memory_with_what_came_in() -> None:
    weight = flambeau.zeros(4, 2, requires_grad=True)
    arriving = flambeau.ones(3, 2)
    flambeau.nn.functional.embedding(flambeau.tensor([1, 3, 1]), weight, sparse=True).backward(arriving)
    assert weight.grad is not None
    weight.grad._values().zero_()
    assert arriving.sum() == 6


def test_saved_sparse_tensors_come_back_sparse() -> None:
    class Twice(flambeau.autograd.Function):
        @staticmethod
        def forward(ctx: Any, s: Any) -> Any:
            ctx.save_for_backward(s)
            return s.to_dense() * 2

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            (s,) = ctx.saved_tensors
            assert s.is_sparse
            return grad.sparse_mask(s) * 2

    leaf = matrix(flambeau, coalesced=True).detach().requires_grad_()
    Twice.apply(leaf * 1).sum().backward()
    assert leaf.grad is not None
    assert leaf.grad.to_dense().sum() == 4
    with flambeau.autograd.graph.saved_tensors_hooks(lambda each: each, lambda each: each):
        product = flambeau.sparse.mm(leaf * 1, flambeau.ones(3, 2, requires_grad=True))
    product.sum().backward()


def test_a_large_sparse_gradient_goes_through_other_ops() -> None:
    """What is computed in one pass over large arrays leaves sparse gradients to the formulas."""
    weight = flambeau.ones(30_000, 8, requires_grad=True)
    scale = flambeau.full((30_000, 8), 3.0)
    rows = flambeau.nn.functional.embedding(flambeau.tensor([5, 7]), -(weight * scale) * 2, sparse=True)
    rows.sum().backward()
    assert weight.grad is not None
    assert weight.grad.is_sparse
    assert weight.grad.to_dense().sum() == -96


def test_users_classes_do_not_disable_it() -> None:
    class Mine(flambeau.Tensor):
        pass

    s = matrix(flambeau)
    mine = flambeau.ones(2, 3).as_subclass(Mine)
    assert (mine + s).sum() == 18
    assert (mine * s).is_sparse
    with flambeau.DisableTorchFunctionSubclass():
        assert (s * 2).to_dense().sum() == 24
        with pytest.raises(NotImplementedError, match="aten::exp"):
            s.exp()


@pytest.mark.parametrize("name", FUNCTIONS)
@same
def test_autograd_takes_sparse_leaves_and_results(T: Any, name: str) -> Any:
    s = matrix(T, coalesced=True).detach().clone().requires_grad_()
    result = FUNCTIONS[name](T, s)
    (found,) = T.autograd.grad(_sum(result), s)
    T.autograd.backward([_sum(FUNCTIONS[name](T, s))])
    return found.layout, found.to_dense() * 1, s.grad.to_dense()


@same
def test_gradients_that_come_in_sparse(T: Any) -> Any:
    s = matrix(T, coalesced=True).detach().clone().requires_grad_()
    dense = T.arange(6.0).reshape(2, 3).requires_grad_()
    grad = T.ones(2, 3).to_sparse()
    T.autograd.backward(s * 2, grad)
    compressed = T.eye(2).to_sparse_csr().requires_grad_()
    return (
        s.grad.to_dense(),
        T.autograd.grad(s * 2, {"s": s}, grad)["s"].to_dense(),
        T.autograd.grad(dense.to_sparse(), dense, grad),
        T.autograd.grad((compressed @ T.ones(2, 2)).sum(), compressed)[0].to_dense(),
    )
