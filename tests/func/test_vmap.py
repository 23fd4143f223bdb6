"""`vmap` beside PyTorch: dimensions, structures, in-place changes, indices, random numbers, errors."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

import flambeau
from flambeau._ops.nn.attention import _dropped_attention
from tests.support.differential import differential, outcome


def _data(T: Any, *shape: int) -> Any:
    return T.sin(T.arange(int(numpy.prod(shape)), dtype=T.float64) * 1.3).reshape(shape)


def _seen(result: Any) -> Any:
    if isinstance(result, (tuple, list)):
        return [_seen(each) for each in result]
    if isinstance(result, dict):
        return {name: _seen(each) for name, each in result.items()}
    return result.numpy()


@differential
def test_dimensions_and_structures(T: Any) -> Any:
    x, y = _data(T, 3, 4, 5), _data(T, 5, 2)
    nest = {"a": _data(T, 2, 3), "b": [_data(T, 3, 2), 2.0]}
    return [
        _seen(T.vmap(lambda a, b: a @ b, in_dims=(1, None), out_dims=-1)(x, y)),
        _seen(T.vmap(T.vmap(lambda a: a.sum(), in_dims=1), in_dims=2, out_dims=1)(x)),
        _seen(T.vmap(lambda a: (a, {"sum": a.sum()}), out_dims=(1, 0))(x)),
        _seen(T.vmap(lambda n: n["a"] * n["b"][0] * n["b"][1], in_dims=({"a": 1, "b": [0, None]},))(nest)),
        _seen(T.vmap(lambda a: T.ones(2, dtype=T.float64))(x)),
        _seen(T.vmap(lambda a, *, k: a * k)(x, k=2)),
        _seen(T.vmap(lambda a: a.sum(0), chunk_size=2)(x)),
        _seen(T.vmap(lambda a, b: a + b)(_data(T, 0, 3), _data(T, 0, 3))),
    ]


@differential
def test_promotion_is_that_of_one_example(T: Any) -> Any:
    numbers = T.arange(3, dtype=T.float64)
    return [
        _seen(T.vmap(lambda a, b: a * b)(T.ones(3, 2), numbers)),
        _seen(T.vmap(lambda a, b: a * b)(T.ones(3), numbers)),
        _seen(T.vmap(lambda a, b: a + b)(T.arange(3), T.ones(3, 2, dtype=T.int32))),
        _seen(T.vmap(lambda a: a * 2.5)(T.arange(3))),
    ]


@differential
def test_choices_between_numbers(T: Any) -> Any:
    """The condition of examples without dimensions stays one, in the derivative too."""
    x = T.tensor([0.5, 1.5, 2.5])
    functions = [
        lambda t: T.where(t > 1, t**2, -t),
        lambda t: T.where(t > 1, t, T.tensor(2.0)),
        lambda t: T.where(T.tensor(True), t, 0),
        lambda t: T.where(t > 1, T.ones(2), t).sum(),
    ]
    return [(T.func.vmap(each)(x), T.func.vmap(T.func.grad(each))(x)) for each in functions]


@differential
def test_changes_in_place(T: Any) -> Any:
    def assigned(a: Any) -> Any:
        y = a.clone()
        y[0] = a[1] * 2
        y[1:].mul_(a[:-1])
        y += 1
        return y

    def gathered(a: Any) -> Any:
        y = a.new_zeros(4)
        y[1:3] = a[:2]
        y.index_add_(0, T.tensor([0, 0, 3]), a[:3])
        return y

    x = _data(T, 3, 4)
    changed = x.clone()
    T.vmap(lambda a: a.add_(1))(changed)
    return [
        _seen(T.vmap(assigned)(x)),
        _seen(T.vmap(gathered)(x)),
        _seen(changed),
        _seen(T.vmap(lambda a: T.zeros_like(a).copy_(a[0]))(x)),
        _seen(T.vmap(lambda a: a.clone().transpose_(0, 1).unsqueeze_(0))(_data(T, 2, 3, 4))),
        outcome(lambda: T.vmap(lambda a: T.zeros(4, dtype=T.float64).copy_(a))(x), "vmapped over but `self` not"),
    ]


@differential
def test_indices_differ_between_examples(T: Any) -> Any:
    x, rows = _data(T, 3, 4, 5), T.tensor([[0, 1], [2, 3], [3, 3]])

    def put(a: Any, i: Any) -> Any:
        y = a.clone()
        y[i] = a[0] * 2
        y[:, i] = 1.0
        return y

    return [
        _seen(T.vmap(lambda a, i: a[i])(x, rows)),
        _seen(T.vmap(lambda a, i: a[i])(x, rows[:, 0])),
        _seen(T.vmap(lambda a, i: a[:, i], in_dims=(None, 0))(x[0], rows)),
        _seen(T.vmap(lambda a, i: a[i, :, i], in_dims=(None, 0))(_data(T, 4, 2, 5), rows)),
        _seen(T.vmap(lambda a: a[T.tensor([0, 2]), :, T.tensor([1, 1])])(_data(T, 3, 4, 2, 5))),
        _seen(T.vmap(lambda a, i: a[..., i, None])(x, rows)),
        _seen(T.vmap(put)(x, rows)),
        _seen(T.vmap(lambda a, i: a.gather(0, i))(_data(T, 3, 4), rows)),
        _seen(T.vmap(lambda a, i: a.index_select(1, i))(x, rows)),
        _seen(T.vmap(lambda a, i: a.index_put((i,), a[:2]))(x, rows)),
        _seen(T.vmap(lambda w, i: T.nn.functional.embedding(i, w))(x, rows)),
    ]


@differential(tolerance=1e-5)
def test_random_numbers(T: Any) -> Any:
    x = T.ones(3, 4)
    results = []
    for randomness in ("different", "same"):
        for draw in (
            lambda a: a + T.rand(4),
            lambda a: a * T.randn(2, 4),
            lambda a: T.nn.functional.dropout(a),
            lambda a: a + T.randint(0, 9, (4,)),
        ):
            T.manual_seed(0)
            results.append(_seen(T.vmap(draw, randomness=randomness)(x)))
    results.append(outcome(lambda: T.vmap(lambda a: a + T.rand(4))(x), "randomness error mode"))
    results.append(outcome(lambda: T.vmap(T.bernoulli, randomness="same")(x * 0.5), "same randomness"))
    results.append(
        outcome(lambda: T.vmap(lambda a: T.ones(4).bernoulli_(), randomness="same")(x).shape),
    )
    return results


@differential
def test_batches_of_gradients(T: Any) -> Any:
    x = _data(T, 3).requires_grad_()
    y = (x.sin() * x.sum()).clone()
    y[0] = y[1] * 2
    (rows,) = T.autograd.grad(y, x, T.eye(3, dtype=T.float64), is_grads_batched=True)
    vectorized = T.autograd.functional.jacobian(lambda x: x.exp() * x.sum(), _data(T, 3), vectorize=True)
    return rows.detach().numpy(), vectorized.numpy()


@differential
def test_wrong_calls(T: Any) -> Any:
    x = _data(T, 3, 4)
    return [
        outcome(lambda: T.vmap(lambda a: a)(1), "We cannot vmap over non-Tensor arguments"),
        outcome(lambda: T.vmap(lambda a: a)(), "got no inputs"),
        outcome(lambda: T.vmap(lambda a: a, in_dims=5)(x), "so expected in_dim to satisfy -2 <= in_dim < 2"),
        outcome(lambda: T.vmap(lambda a: a, in_dims=None)(x), "expected `in_dims` to be int or a"),
        outcome(lambda: T.vmap(lambda a: a, in_dims=[0])(x), "expected `in_dims` to be int or a"),
        outcome(lambda: T.vmap(lambda a: a, in_dims=(0, 0))(x), "in_dims is not compatible with the structure"),
        outcome(lambda: T.vmap(lambda a, b: a)(x, x[0]), "to have the same size in the mapped dimension"),
        outcome(lambda: T.vmap(lambda a: 1)(x), "must only return Tensors, got type"),
        outcome(lambda: T.vmap(lambda a: a, out_dims="a")(x), "`out_dims` must be an int, None or a python collection"),
        outcome(lambda: T.vmap(lambda a: a, out_dims=(0, 0))(x), "out_dims is not compatible with the structure"),
        outcome(lambda: T.vmap(lambda a: a, out_dims=5)(x), "Dimension out of range"),
        outcome(lambda: T.vmap(lambda a: a, out_dims=None)(x), "can not return a BatchedTensor when out_dim is None"),
        outcome(lambda: T.vmap(lambda a: a, randomness="x")(x), "Only allowed values for randomness"),
        outcome(lambda: T.vmap(lambda a: a, chunk_size=0)(x), "chunk_size should be None or greater than 0"),
        outcome(lambda: T.vmap(lambda a: a.item())(x[0]), "calling .item() on a Tensor"),
        outcome(lambda: T.vmap(lambda a: a if a > 0 else -a)(x[0]), "data-dependent control flow"),
        outcome(lambda: T.vmap(lambda a: a.nonzero())(x), "output dynamic shape"),
        outcome(lambda: T.vmap(lambda a: a[a > 0])(x), "dynamic shape"),
    ]


def test_an_example_is_of_no_use_outside() -> None:
    kept: list[Any] = []
    flambeau.vmap(lambda a: kept.append(a) or a)(flambeau.ones(3))
    with pytest.raises(RuntimeError, match="after that function had returned"):
        kept[0] + 1


def test_elements_cannot_be_read_by_accident() -> None:
    def reads(a: Any) -> Any:
        return a + float(a._array.max())

    with pytest.raises(RuntimeError, match="data-dependent"):
        flambeau.vmap(reads)(flambeau.ones(3, 2))


def test_attention_with_kept_weights_runs_without_a_loop() -> None:
    queries, keys, values = (flambeau.rand(3, 2, 2, 5, 4) for _ in range(3))
    kept = flambeau.rand(3, 2, 2, 5, 5) > 0.25

    def attended(query: Any, key: Any, value: Any, kept: Any) -> Any:
        return _dropped_attention(query, key, value, kept, 0.25, True, None, None)[0]

    found = flambeau.vmap(attended)(queries, keys, values, kept)
    flambeau.testing.assert_close(found, flambeau.stack(list(map(attended, queries, keys, values, kept))))


def test_a_loop_says_so() -> None:
    with pytest.warns(UserWarning, match="performance drop"):
        flambeau.vmap(lambda a: flambeau.histc(a, 2, 0, 1))(flambeau.rand(3, 4))
