"""Differences that the operator database showed in further states: without rows, expanded, fake, under modes."""

from __future__ import annotations

from typing import Any

import pytest

import flambeau
from tests.support.differential import differential, outcome


@differential
def test_scatter_into_an_expanded_tensor(T: Any) -> Any:
    """An element of an expanded tensor is in several places: the copy has one place for each."""
    rows = T.arange(9.0).reshape(3, 3)[:1].expand(3, 3)
    result = T.as_strided_scatter(rows, T.tensor([[100.0, 200.0]]).expand(2, 2), (2, 2), (1, 2), 0)
    return result, result.stride()


@pytest.mark.parametrize("weights", ["aweights", "fweights"])
@pytest.mark.parametrize("shape", [(0,), (2, 0), (2, 3)])
@differential
def test_covariance_without_weight(T: Any, weights: str, shape: tuple[int, ...]) -> Any:
    dtype = T.int64 if weights == "fweights" else T.float32
    given = {weights: T.zeros(shape[-1], dtype=dtype)}
    return outcome(lambda: T.cov(T.ones(shape), correction=0, **given), "weights sum to zero")


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("lead", [(0,), (0, 2), (2, 0)], ids=str)
@differential
def test_largest_of_windows_without_samples(T: Any, rank: int, lead: tuple[int, ...]) -> Any:
    """The first dimension may be empty, that of the channels of one image too."""
    pool = getattr(T.nn.functional, f"adaptive_max_pool{rank}d")
    images = T.ones(*lead, *[4] * rank)
    if lead[0]:
        return outcome(lambda: pool(images, 3, True), "Expected input to have non-zero size")
    return pool(images, 3, True)


@differential
def test_attention_with_weights_of_no_rows(T: Any) -> Any:
    """Projections that do not fill the heads are refused: there are no elements to look at."""
    empty = T.zeros(0)
    steps = T.zeros(0, 2)
    arguments = (2, 1, T.zeros(0, 2), empty, empty, empty, False, 0.0, T.zeros(0, 2), empty)
    attend = T.nn.functional.multi_head_attention_forward
    return outcome(lambda: attend(steps, steps, steps.clone(), *arguments), "is invalid for input of size 0")


@differential
def test_empty_parts(T: Any) -> Any:
    return [
        outcome(lambda: T.renorm(T.zeros(0, 5, 5), float("inf"), 2, 0.5), "cannot compute the inf norm"),
        T.renorm(T.zeros(0, 5, 5), 2, 2, 0.5),
        T.linalg.tensorsolve(T.zeros(0, 4, 4, 3), T.zeros(0, 4), dims=(0, 2)),
        outcome(lambda: T.linalg.tensorsolve(T.zeros(0, 4, 4, 3), T.zeros(0, 4)), "Expected self to satisfy"),
        T.func.hessian(lambda x: T.combinations(x, 2).sum())(T.ones(1)),
    ]


@differential
def test_histograms_of_fake_tensors(T: Any) -> Any:
    mode = T._subclasses.FakeTensorMode()
    points, edges = mode.from_tensor(T.ones(4, 2)), mode.from_tensor(T.arange(3.0))
    with mode:
        found = [
            T.histogram(points, 3),
            T.histogram(points, edges),
            T.histogram(points, 5, range=(0.0, 2.0)),
            (*T.histogramdd(points, [3, 2])[1], T.histogramdd(points, [3, 2])[0]),
            (T.histogramdd(points, [edges, edges]).hist,),
        ]
    return [[(list(each.shape), str(each.dtype)) for each in parts] for parts in found]


@differential
def test_autocast_of_products_with_one_element(T: Any) -> Any:
    matrix, row, column = T.ones(3, 2), T.ones(1, 3), T.ones(3, 1)
    with T.autocast("cpu", dtype=T.bfloat16):
        dots = [T.tensordot(row, column, 1), T.tensordot(row, matrix, 1), T.tensordot(matrix, matrix)]
        low_rank = [*T.svd_lowrank(matrix, 2), *T.svd_lowrank(matrix.t(), 2), *T.pca_lowrank(matrix, 2)]
    return [str(each.dtype) for each in (*dots, *low_rank)]


def test_a_watched_selu_has_the_same_bits() -> None:
    class Passing(flambeau.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return func(*args, **(kwargs or {}))

    flambeau.manual_seed(0)
    x = flambeau.randn(200)
    plain = flambeau.nn.functional.selu(x), flambeau.nn.functional.elu(x, 0.7)
    with Passing():
        watched = flambeau.nn.functional.selu(x), flambeau.nn.functional.elu(x, 0.7)
    assert [each.tolist() for each in watched] == [each.tolist() for each in plain]
    flambeau.ops.aten.elu_(x, 0.7, 1.3, 0.4)
    assert x.tolist() != plain[1].tolist()


@pytest.mark.parametrize("training", [True, False])
@differential
def test_statistics_of_a_fake_batch(T: Any, training: bool) -> Any:
    """Evaluation computes no statistics: they are empty, but on the meta device."""
    mode = T._subclasses.FakeTensorMode()
    vectors = [T.ones(2) for _ in range(4)]
    with mode:
        fakes = [mode.from_tensor(each) for each in (T.ones(3, 2, 4), *vectors)]
        fake = T.native_batch_norm(*fakes, training, 0.5, 0.6)
    bare = [each.to("meta") for each in (T.ones(3, 2, 4), *vectors)]
    results = T.native_batch_norm(T.ones(3, 2, 4), *vectors, training, 0.5, 0.6)
    return [
        [list(each.shape) for each in found]
        for found in (fake, T.native_batch_norm(*bare, training, 0.5, 0.6), results)
    ]


@pytest.mark.parametrize("upper", [False, True])
@differential
def test_the_inverse_of_a_factor_with_a_zero_diagonal(T: Any, upper: bool) -> Any:
    """Without an inverse there is an error, which names the element and the matrix of the batch."""
    factors = [T.zeros(2, 2), T.tensor([1.0, 0, 0]).expand(3, 3), T.stack([T.eye(2), T.zeros(2, 2)])]
    words = "The diagonal element"
    return [outcome(lambda each=each: T.cholesky_inverse(each, upper), words) for each in factors] + [
        outcome(lambda: T.cholesky_inverse(T.zeros(0, 0), upper))
    ]


@differential
def test_a_copied_view_of_a_single_element(T: Any) -> Any:
    one = T.tensor(1.0)
    copies = [T.view_copy(one, (1,)), T.view_copy(one, ()), T.view_copy(one, (1, 1))]
    return [each.data_ptr() == one.data_ptr() for each in copies], copies


@pytest.mark.parametrize("shape", [(0, 2), (3, 0), (0,), (3, 2)])
@pytest.mark.parametrize("dim", [0, -1])
@differential
def test_selecting_from_nothing(T: Any, shape: tuple[int, ...], dim: int) -> Any:
    index = T.tensor([0, 5])
    return outcome(lambda: T.zeros(shape).index_select(dim, index), "out of DATA", "out of range", "should be positive")


@differential
def test_a_choice_lies_in_memory_as_its_first_operand(T: Any) -> Any:
    """Operands that are laid out in other orders: the condition decides, then the second."""
    turned, rows = T.arange(6.0).reshape(3, 2).mT, T.ones(2, 3)
    windows = T.arange(9.0).reshape(3, 3).unfold(0, 2, 2)
    chosen = [
        T.where(turned > 2, turned, rows),
        T.where(turned > 2, rows, 0.5),
        T.where(turned > 2, 0.5, rows),
        T.where(rows > 2, turned, 0.5),
        T.where(T.tensor(True), turned, rows),
        T.where(windows > 2, T.ones(3, 2), 0.5).squeeze(0),
    ]
    return [(each.stride(), each) for each in chosen]
