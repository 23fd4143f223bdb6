"""Random fills by generated kernels: the bits of the reference kernels, and the generator left in the same state."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest

import flambeau
from flambeau._backends.tiers import generated
from flambeau._core.generator import Generator
from flambeau._core.process.processor import ON_X86_64
from flambeau._core.random import permutation, sampling

draws = generated("fills")
pytestmark = pytest.mark.skipif(draws is None, reason="no code is generated here")

FLOATS = ("float32", "float64")
CASES: dict[str, tuple[Callable[..., Any], Callable[..., Any], tuple[str, ...], tuple[Any, ...]]] = {
    "uniform": (draws and draws.uniform, sampling.fill_uniform, FLOATS, (-1.5, 2)),
    "uniform in a narrow range": (draws and draws.uniform, sampling.fill_uniform, FLOATS, (1.0, 1.0000003)),
    "exponential": (draws and draws.exponential, sampling.fill_exponential, FLOATS, (1.7,)),
    "cauchy": (draws and draws.cauchy, sampling.fill_cauchy, FLOATS, (0.3, 2.1)),
    "geometric": (draws and draws.geometric, sampling.fill_geometric, FLOATS, (0.3,)),
    "log_normal": (draws and draws.log_normal, sampling.fill_log_normal, FLOATS, (0.3, 0.7)),
    "coins": (draws and draws.coins, sampling.fill_bernoulli, FLOATS, (0.7,)),
    "whole numbers": (draws and draws.whole_between, sampling.fill_random_between, ("int64",), (-3, 1000)),
}


def _sequence(fill: Callable[..., Any], dtype: str, numbers: tuple[Any, ...], sizes: tuple[int, ...]) -> Any:
    generator = Generator().manual_seed(5)
    arrays = [np.empty(size, dtype) for size in sizes]
    answers = [fill(array, generator, *numbers) for array in arrays]
    return arrays, generator.state_bytes(), answers


@pytest.mark.parametrize("name", CASES)
def test_fills(name: str) -> None:
    fill, reference, dtypes, numbers = CASES[name]
    for dtype in dtypes:
        sizes = (1, 2, 7, 16, 5000, 3)  # odd numbers of normals leave one for the next call
        arrays, state, answers = _sequence(fill, dtype, numbers, sizes)
        assert all(answer is array for answer, array in zip(answers, arrays, strict=True))
        with flambeau.backends.cpu.numpy_only():
            expected, expected_state, _ = _sequence(reference, dtype, numbers, sizes)
        for ours, theirs in zip(arrays, expected, strict=True):
            np.testing.assert_array_equal(ours, theirs)
        np.testing.assert_array_equal(state, expected_state)


def test_few_normal_numbers() -> None:
    for dtype in FLOATS:
        sizes = (1, 2, 7, 15, 3)
        arrays, state, _ = _sequence(draws.normal, dtype, (0.3, 0.7), sizes)
        with flambeau.backends.cpu.numpy_only():
            expected, expected_state, _ = _sequence(sampling.fill_normal, dtype, (0.3, 0.7), sizes)
        for ours, theirs in zip(arrays, expected, strict=True):
            np.testing.assert_array_equal(ours, theirs)
        np.testing.assert_array_equal(state, expected_state)


@pytest.mark.skipif(not ON_X86_64, reason="elsewhere the C library's functions make them")
@pytest.mark.parametrize("moments", [(0.0, 1.0), (0.3, 0.7), (5, 0)])
def test_many_normal_numbers(moments: tuple[float, float]) -> None:
    sizes = (16, 17, 31, 5000, 4, 64)
    arrays, state, answers = _sequence(draws.normal, "float32", moments, sizes)
    assert all(answer is not None for answer in answers)
    with flambeau.backends.cpu.numpy_only():
        expected, expected_state, _ = _sequence(sampling.fill_normal, "float32", moments, sizes)
    assert [each.tobytes() for each in arrays] == [each.tobytes() for each in expected]
    np.testing.assert_array_equal(state, expected_state)


def test_the_stream_goes_on_whatever_makes_its_words() -> None:
    """NumPy's engine and generated code take over from each other, and states are the same at every moment."""

    def drawn(generator: Generator, generated_from: int, numpy_from: int) -> Any:
        words, states = [], []
        for number in range(8):
            plain = not generated_from <= number < numpy_from
            with flambeau.backends.cpu.numpy_only() if plain else nullcontext():
                words.append(generator.draw32(5000 if number % 2 else 100).tolist())
                states.append(generator.state_bytes().tobytes())
        return words, states

    reference = drawn(Generator().manual_seed(3), 9, 9)
    assert drawn(Generator().manual_seed(3), 0, 9) == reference
    assert drawn(Generator().manual_seed(3), 2, 5) == reference
    restored = Generator()
    restored.set_state_bytes(Generator().manual_seed(3).state_bytes())
    assert drawn(restored, 1, 9) == reference


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", [(1,), (3, 5), (5000,)])
def test_coins_of_chances_and_choices(shape: tuple[int, ...], dtype: str) -> None:
    """The reference kernels' results, and the generator is left as they leave it."""
    chances = flambeau.tensor(np.random.RandomState(1).uniform(0, 1, shape).astype(dtype))
    columns = shape[-1]
    calls: list[Callable[[Generator], Any]] = [
        lambda source: flambeau.bernoulli(chances, generator=source),
        lambda source: flambeau.multinomial(chances, 1, generator=source),
        lambda source: flambeau.multinomial(chances, (columns + 1) // 2, generator=source),
        lambda source: flambeau.multinomial(chances, columns, generator=source),
    ]
    for call in calls:
        ours, theirs = Generator().manual_seed(4), Generator().manual_seed(4)
        got = call(ours)
        with flambeau.backends.cpu.numpy_only():
            assert flambeau.equal(got, call(theirs))
        np.testing.assert_array_equal(ours.state_bytes(), theirs.state_bytes())


@pytest.mark.parametrize("wrong", [-0.1, 1.5, float("nan"), float("inf")])
def test_wrong_chances(wrong: float) -> None:
    chances = flambeau.tensor([0.3, wrong, 0.2])
    with pytest.raises(RuntimeError, match="p_in"):
        flambeau.bernoulli(chances)
    if wrong != 1.5:
        with pytest.raises(RuntimeError, match="inf"):
            flambeau.multinomial(chances, 2)
    with pytest.raises(RuntimeError, match="sum of probabilities <= 0"):
        flambeau.multinomial(flambeau.zeros(3), 2)


@pytest.mark.parametrize("n", [1, 2, 10, 1000])
def test_permutations(n: int) -> None:
    out = np.empty(n, np.int64)
    assert draws.permutation(out, Generator().manual_seed(1), n) is out
    with flambeau.backends.cpu.numpy_only():
        np.testing.assert_array_equal(out, permutation.randperm(n, out.dtype, Generator().manual_seed(1)))


def test_what_the_reference_kernels_do() -> None:
    generator, out = Generator(), np.empty(4, np.float32)
    assert draws.uniform(np.empty(4, np.float16), generator) is None
    assert draws.uniform(np.empty((4, 4), np.float32).T[:, 1:], generator) is None
    assert draws.uniform(out, generator, 2.0, 1.0) is None
    assert draws.uniform(out, generator, "a", 1.0) is None
    assert draws.normal(np.empty(16, np.float64), generator) is None
    assert draws.normal(out, generator, 0.0, -1.0) is None
    assert draws.exponential(out, generator, 0.0) is None
    assert draws.geometric(out, generator, 1.0) is None
    assert draws.coins(out, generator, 1.5) is None
    assert draws.whole_between(np.empty(4, np.int64), generator, 0, 2**40) is None
