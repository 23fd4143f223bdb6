"""`torch.utils.benchmark.Fuzzer`: the same sizes, layouts and numbers as PyTorch's for a seed."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any

import pytest

import flambeau
from tests.support.differential import differential, outcome
from tests.support.oracle import pytorch


@pytest.fixture(autouse=True)
def _generators() -> Iterator[None]:
    """A fuzzer seeds the library's own generator."""
    before = [(T, T.get_rng_state()) for T in (flambeau, pytorch) if T is not None]
    yield
    for T, state in before:
        T.set_rng_state(state)


def _benchmark(T: Any) -> Any:
    return importlib.import_module(f"{T.__name__}.utils.benchmark")


def _fuzzer(T: Any, seed: int, **options: Any) -> Any:
    b = _benchmark(T)
    return b.Fuzzer(
        parameters=[
            b.FuzzedParameter("k0", minval=4, maxval=64, distribution="loguniform"),
            [b.FuzzedParameter("k1", minval=2, maxval=12, distribution="uniform")],
            b.FuzzedParameter("scale", minval=0.5, maxval=2.0, distribution="uniform"),
            b.FuzzedParameter("step", minval=1, maxval=2, distribution="uniform"),
            b.FuzzedParameter("dim", minval=1, maxval=2, distribution="uniform", strict=True),
        ],
        tensors=[
            b.FuzzedTensor("x", size=("k0", "k1"), steps=("step", 1), min_elements=16, max_elements=512,
                           dim_parameter="dim", probability_contiguous=0.4),
            [b.FuzzedTensor("y", size=("k1", 3, "k0"), dtype=T.int64, max_allocation_bytes=8192)],
        ],
        seed=seed,
        **options,
    )  # fmt: skip


@differential
@pytest.mark.parametrize("seed", [0, 7, 123])
def test_what_is_drawn(T: Any, seed: int) -> Any:
    fuzzer = _fuzzer(T, seed)
    observed = [
        (tensors, {name: {**each, "order": each["order"].tolist()} for name, each in described.items()}, params)
        for tensors, described, params in fuzzer.take(6)
    ]
    return observed, fuzzer.rejection_rate


@differential
def test_constraints_and_constructors(T: Any) -> Any:
    fuzzer = _fuzzer(T, 3, constraints=[lambda params: params["k0"] > params["k1"]])
    b = _benchmark(T)
    made = b.Fuzzer(
        parameters=[b.FuzzedParameter("n", minval=1, maxval=8, distribution="uniform")],
        tensors=[b.FuzzedTensor("x", size=("n",), tensor_constructor=lambda size, dtype, n: T.full(size, float(n)))],
        seed=1,
    )
    return [params for _, _, params in fuzzer.take(5)], [tensors["x"] for tensors, _, _ in made.take(3)]


@differential
def test_wrong_specifications(T: Any) -> Any:
    b = _benchmark(T)
    impossible = b.Fuzzer(
        parameters=[b.FuzzedParameter("n", minval=1, maxval=2, distribution="uniform")],
        tensors=[b.FuzzedTensor("x", size=("n",), min_elements=100)],
        seed=0,
    )
    return [
        outcome(lambda: next(iter(impossible.take(1))))[:2],
        outcome(lambda: b.FuzzedParameter("n"))[:2],
        outcome(lambda: b.FuzzedParameter("n", minval=1, maxval=2, distribution="normal"))[:2],
    ]


def test_choices_and_aliases() -> None:
    """PyTorch 2.13 refuses every dict of choices whose probabilities add up to 1."""
    b = flambeau.utils.benchmark
    fuzzer = b.Fuzzer(
        parameters=[
            b.FuzzedParameter("n", minval=5, maxval=9, distribution="uniform"),
            b.FuzzedParameter("twin", distribution={b.ParameterAlias("n"): 0.5, 3: 0.5}),
        ],
        tensors=[b.FuzzedTensor("x", size=("n", "twin"))],
        seed=0,
    )
    drawn = [(params["n"], params["twin"], tuple(tensors["x"].shape)) for tensors, _, params in fuzzer.take(20)]
    assert {twin == 3 for _, twin, _ in drawn} == {True, False}
    assert all(twin in (3, n) and shape == (n, twin) for n, twin, shape in drawn)
    with pytest.raises(AssertionError, match="not normalized"):
        b.FuzzedParameter("n", distribution={1: 0.3, 2: 0.3})
