"""Generated kernels that read and write at positions, against NumPy's kernels and PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch as pytorch

import flambeau
from flambeau._backends.tiers import available, generated, numpy_only
from flambeau._core.backend import backend_of

pytestmark = pytest.mark.skipif(not available(), reason="code cannot be generated here")

FLOATS = ["float32", "float64", "bfloat16", "float16"]


def numbers(*shape: int) -> Any:
    return np.random.default_rng(len(shape)).integers(-20, 21, shape) / 8  # sums of them are exact


def positions(size: int, *shape: int) -> Any:
    return np.random.default_rng(size).integers(0, size, shape)


def compare(run: Any, rtol: float = 0.0) -> None:
    """The same from generated kernels, from NumPy's, and from PyTorch."""
    ours, theirs = run(flambeau), run(pytorch)
    with numpy_only():
        reference = run(flambeau)
    for mine, other, numpy in zip(ours, theirs, reference, strict=True):
        assert mine.shape == tuple(other.shape)
        assert str(mine.dtype).split(".")[1] == str(other.dtype).split(".")[1]
        np.testing.assert_allclose(
            mine.detach().double().numpy(), other.detach().double().numpy(), rtol=rtol, atol=rtol
        )
        np.testing.assert_array_equal(mine.detach().double().numpy(), numpy.detach().double().numpy())


@pytest.mark.parametrize("dtype", [*FLOATS, "int64", "int32", "uint8", "bool"])
@pytest.mark.parametrize("index_type", ["int64", "int32"])
def test_index_select_and_gather(dtype: str, index_type: str) -> None:
    def run(T: Any) -> list[Any]:
        kind, index = getattr(T, dtype), getattr(T, index_type)
        x = T.tensor(numbers(33, 40, 21)).to(kind)
        found = []
        for view in (x, x.transpose(0, 2), x[::2, :, ::2]):
            for dim in range(3):
                size = view.shape[dim]
                found.append(view.index_select(dim, T.tensor(positions(size, 50)).to(index)))
                shape = [*view.shape]
                shape[dim] = 45
                shape[dim - 1] -= 3
                found.append(view.gather(dim, T.tensor(positions(size, *shape)).to(index)))
                few = [45 if each == dim else 1 for each in range(3)]
                found.append(view.gather(dim, T.tensor(positions(size, *few)).to(index).expand(shape)))
        return found

    compare(run)


@pytest.mark.parametrize("dtype", [*FLOATS, "int64", "int32"])
@pytest.mark.parametrize("index_type", ["int64", "int32"])
def test_scatter_and_index_add(dtype: str, index_type: str) -> None:
    def run(T: Any) -> list[Any]:
        kind, index = getattr(T, dtype), getattr(T, index_type)
        x, source = T.tensor(numbers(33, 40, 21)).to(kind), T.tensor(numbers(60, 60, 60)).to(kind)
        found = []
        for view in (x, x.transpose(0, 2), x[::2, :, ::2]):
            for dim in range(3):
                shape = [*view.shape]
                shape[dim - 1] -= 3
                where = T.tensor(positions(view.shape[dim], *shape)).to(index)
                found.append(view.scatter_add(dim, where, source))
                changed = view.clone()
                part = changed[..., 1:]
                part.scatter_add_(dim, where.clamp(max=part.shape[dim] - 1)[..., 1:], source)
                found.append(changed)
                distinct = T.argsort(T.tensor(numbers(*view.shape)), dim=dim, stable=True)
                found.append(view.scatter(dim, distinct.to(index), source))
                full = [*view.shape]
                full[dim] = 70
                lines = T.tensor(positions(view.shape[dim], 70)).to(index)
                found.append(view.index_add(dim, lines, T.tensor(numbers(*full)).to(kind)))
        return found

    compare(run)


@pytest.mark.parametrize("dtype", FLOATS)
def test_the_last_of_several_writes_stays(dtype: str) -> None:
    def run(T: Any) -> list[Any]:
        source = T.arange(6000).to(getattr(T, dtype))
        return [T.zeros(9, dtype=source.dtype).scatter(0, T.arange(6000) % 9, source)]

    compare(run)


def _on_long(run: Any) -> Any:
    """`run` of a large matrix and positions along its last dimension."""
    return lambda: run(flambeau.ones(80, 100), flambeau.tensor(positions(80, 80, 100)))


@pytest.mark.parametrize(
    ("family", "name", "run"),
    [
        ("gather", "gathered", _on_long(lambda x, index: x.gather(1, index))),
        ("gather", "selected", _on_long(lambda x, index: x.index_select(0, index[0]))),
        ("gather", "scattered", _on_long(lambda x, index: x.scatter(1, index, x))),
        ("gather", "scattered", _on_long(lambda x, index: x.scatter_add_(1, index, x.clone()))),
        ("gather", "add_slices", _on_long(lambda x, index: x.index_add(0, index[0, :80], x))),
        ("gather", "add_slices", _on_long(lambda x, index: x.index_put((index[0],), x[0], accumulate=True))),
        ("gather", "embedding", _on_long(lambda x, index: flambeau.nn.functional.embedding(index, x))),
        (
            "gather",
            "embedding_backward",
            _on_long(lambda x, index: flambeau.nn.functional.embedding(index, x.requires_grad_()).sum().backward()),
        ),
        (
            "random",
            "can_throw",
            _on_long(lambda x, index: flambeau.empty(x.shape, dtype=flambeau.bool).bernoulli_(0.5)),
        ),
        ("random", "mersenne_words", _on_long(lambda x, index: flambeau.rand(100000))),
        ("masks", "fill", _on_long(lambda x, index: x.masked_fill(index > 3, 2.0))),
        ("join", "concatenated", _on_long(lambda x, index: flambeau.cat([x, x], 1))),
    ],
)
def test_kernels_do_it(family: str, name: str, run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    module = generated(family)
    function, results = getattr(module, name), []

    def watched(*args: Any) -> Any:
        results.append(function(*args))
        return results[-1]

    with monkeypatch.context() as patched:
        patched.setattr(module, name, watched)
        backend_of("cpu").forget()  # what it has found
        run()
    backend_of("cpu").forget()
    assert results
    assert all(each is not None and each is not False for each in results)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("index_type", ["int64", "int32"])
@pytest.mark.parametrize("padding", [None, 7])
@pytest.mark.parametrize("by_frequency", [False, True])
def test_embedding(dtype: str, index_type: str, padding: int | None, by_frequency: bool) -> None:
    def run(T: Any) -> list[Any]:
        weight = T.tensor(numbers(50, 37)).to(getattr(T, dtype)).requires_grad_()
        index = T.tensor(positions(50, 12, 20)).to(getattr(T, index_type))
        rows = T.nn.functional.embedding(index, weight, padding, scale_grad_by_freq=by_frequency)
        rows.backward(T.tensor(numbers(12, 20, 37)).to(rows.dtype))
        turned = T.nn.functional.embedding(index.t(), weight.detach())
        return [rows, turned, *([] if by_frequency else [weight.grad])]

    # PyTorch rounds sums of half precision after every addition, but these are exact.
    compare(run, 0.0)


def test_rows_of_an_index_put() -> None:
    def run(T: Any) -> list[Any]:
        x = T.tensor(numbers(40, 6, 30)).requires_grad_()
        first, second = T.tensor(positions(40, 300)), T.tensor(positions(6, 300))
        x[first, second].backward(T.tensor(numbers(300, 30)))
        added = x.detach().index_put((T.tensor(positions(40, 90)),), T.tensor(numbers(90, 6, 30)), accumulate=True)
        return [x.grad, added]

    compare(run)


@pytest.mark.parametrize("wrong", [-1, 50, 2**40, -(2**63)])
def test_positions_outside(wrong: int) -> None:
    index = flambeau.tensor(positions(50, 100, 60))
    index[63, 31] = wrong
    x = flambeau.zeros(100, 50)
    with pytest.raises(RuntimeError, match=f"index {wrong} is out of bounds for dimension 1 with size 50"):
        x.gather(1, index)
    with pytest.raises(RuntimeError, match=f"index {wrong} is out of bounds for dimension 1 with size 50"):
        x.scatter_add_(1, index, flambeau.ones(100, 60))
    assert not x.any()
    with pytest.raises(IndexError, match=f"{wrong} is not among the 50 rows"):
        flambeau.nn.functional.embedding(index, flambeau.zeros(50, 3))
    with pytest.raises(RuntimeError, match=f"INDICES element is out of DATA bounds, id={wrong} axis_dim=50"):
        x.index_select(1, index.flatten())


@pytest.mark.parametrize("count", [1, 5, 8, 16, 17, 1000])
@pytest.mark.parametrize("kind", ["int64", "int32"])
def test_within(count: int, kind: str) -> None:
    within = generated("gather").within
    index = np.full(count, 6, kind)
    assert within(index, 7)
    assert not within(index, 6)
    for wrong in (-1, 7, np.iinfo(kind).min, np.iinfo(kind).max):
        index[-1] = wrong
        assert not within(index, 7)
    index[-1] = np.iinfo(kind).max - 1
    assert within(index, 2**31 - 1 if kind == "int32" else 2**63 - 1)


def test_random_words_and_coins() -> None:
    sizes = (3, 4096, 50001, 624 * 70)
    for p in (0.0, 1 / 3, 0.9, 1.0):
        for dtype in ("float32", "float64", "bfloat16", "float16", "bool", "int64"):
            states = []
            for T in (flambeau, pytorch):
                T.manual_seed(9)
                drawn = [T.empty(size, dtype=getattr(T, dtype)).bernoulli_(p).double().numpy() for size in sizes]
                turned = T.empty(100, 70, dtype=getattr(T, dtype)).t().bernoulli_(p).double().numpy()
                states.append([*drawn, turned, T.rand(5).numpy(), T.get_rng_state().numpy()])
            for mine, other in zip(*states, strict=True):
                np.testing.assert_array_equal(mine, other)
    flambeau.manual_seed(4)
    mine = flambeau.rand(200001)
    with numpy_only():
        flambeau.manual_seed(4)
        assert flambeau.equal(mine, flambeau.rand(200001))


@pytest.mark.parametrize("dtype", FLOATS)
def test_dropout(dtype: str) -> None:
    def run(T: Any) -> list[Any]:
        T.manual_seed(5)
        x = T.tensor(numbers(90, 101)).to(getattr(T, dtype)).requires_grad_()
        result = T.nn.functional.dropout(x, 0.25)
        result.backward(T.tensor(numbers(90, 101)).to(x.dtype))
        return [result, x.grad]

    compare(run)


@pytest.mark.parametrize("dtype", [*FLOATS, "int64", "bool", "complex128"])
def test_masked_fill(dtype: str) -> None:
    def run(T: Any) -> list[Any]:
        x = T.tensor(numbers(3, 4, 20, 33)).to(getattr(T, dtype))
        found = []
        for shape in (
            (3, 4, 20, 33),
            (20, 33),
            (3, 1, 1, 33),
            (3, 1, 20, 33),
            (4, 1, 33),
            (3, 4, 20, 1),
            (1,),
            (4, 20, 1),
        ):
            mask = T.tensor(np.random.default_rng(0).random(shape) < 0.3)
            found.append(x.masked_fill(mask, 1))
            found.append(x.transpose(2, 3).clone().transpose(2, 3).masked_fill(mask, T.tensor(1, dtype=x.dtype)))
        return [each.real if each.is_complex() else each for each in found]

    compare(run)


@pytest.mark.parametrize("dtype", [*FLOATS, "int8", "complex128"])
def test_cat_and_stack(dtype: str) -> None:
    def run(T: Any) -> list[Any]:
        kind = getattr(T, dtype)
        a, b, c = (T.tensor(numbers(30, n, 41)).to(kind) for n in (7, 1, 12))
        found = [T.cat([a, b, c, a], dim) for dim in (1, -2)]
        found += [T.cat([a.transpose(0, 1), b.transpose(0, 1)], 0), T.cat([a, a[:, :, :3]], 2), T.cat([a, a], 0)]
        found += [T.stack([a, a], dim) for dim in range(4)]
        return [each.real if each.is_complex() else each for each in found]

    compare(run)
    with pytest.raises(RuntimeError, match="Sizes of tensors must match"):
        flambeau.cat([flambeau.zeros(70, 60), flambeau.zeros(71, 60)], 1)


def test_an_expanded_index_is_looked_at_once_for_each_position() -> None:
    rows = np.random.default_rng(0).integers(0, 50, (4000, 1))
    for wrong in (None, 50, -1):
        if wrong is not None:
            rows[3999] = wrong
        index, values = flambeau.from_numpy(rows).expand(4000, 8), flambeau.ones(4000, 8)
        for call in (
            lambda index=index, values=values: flambeau.zeros(50, 8).scatter_add(0, index, values),
            lambda index=index: flambeau.zeros(50, 8).gather(0, index),
        ):
            if wrong is None:
                assert float(call().sum()) in (0, 32000)
            else:
                with pytest.raises((RuntimeError, IndexError), match="out of bounds"):
                    call()
