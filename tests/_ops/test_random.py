"""Random tensors against PyTorch: signatures, graph, devices. For the numbers see `tests/_core/test_sampling.py`."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.differential import differential, outcome


@differential
def test_factories(T: Any) -> Any:
    return [
        T.rand(2, 3), T.rand((2, 3)), T.rand(()), T.rand(0), T.rand(3, dtype=T.float64, requires_grad=True),
        T.randn(20), T.randn(3), T.randn([2, 2]), T.randn(2, dtype=T.complex64), T.randint(10, (4,)),
        T.randint(2, 9, (2, 2)), T.randint(high=5, size=(2,)), T.randint(1, high=5, size=(2,)),
        T.randint(3, (2,), dtype=T.float32), T.randperm(7), T.randperm(5, dtype=T.int32), T.normal(1.0, 2.0, (3,)),
        T.rand(2, device="meta"), T.randn(2, 3, device="meta"), T.randperm(4, device="meta"), T.rand(2),
    ]  # fmt: skip


@differential
def test_like(T: Any) -> Any:
    x = T.rand(3, 4)
    return [
        T.rand_like(x),
        T.randn_like(x),
        T.randint_like(x, 5),
        T.randint_like(x, 2, 5),
        T.rand_like(x, dtype=T.float64),
    ]


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("uniform_", ()), ("uniform_", (-1, 2)), ("normal_", ()), ("normal_", (1, 2)), ("log_normal_", ()),
        ("exponential_", ()), ("exponential_", (2.0,)), ("cauchy_", ()), ("geometric_", (0.3,)), ("bernoulli_", ()),
        ("bernoulli_", (0.2,)), ("random_", ()), ("random_", (5,)), ("random_", (2, 5)),
    ],
)  # fmt: skip
@differential
def test_fills(T: Any, name: str, arguments: tuple[Any, ...]) -> Any:
    leaf = T.ones(3, requires_grad=True)
    filled = getattr(leaf * 2, name)(*arguments)
    filled.sum().backward()
    plain = T.ones(3, 6)
    version = plain._version
    returned = getattr(plain, name)(*arguments)
    refused = outcome(lambda: getattr(leaf, name)(*arguments), "a leaf Variable that requires grad")
    overlap = outcome(lambda: getattr(T.ones(1).expand(3), name)(*arguments), "more than one element of the written-to")
    return [filled, leaf.grad, plain, returned is plain, plain._version - version, refused, overlap]


@differential
def test_fill_in_the_order_of_memory(T: Any) -> Any:
    return [T.zeros(3, 4).t().uniform_(), T.zeros(20, 2)[:, 0].normal_(), T.zeros(5, 4).t().bernoulli_(0.5)]


@differential
def test_sampling_with_tensors_as_parameters(T: Any) -> Any:
    p = T.rand(4, requires_grad=True)
    drawn = [T.bernoulli(p), T.normal(p, 1.5), T.normal(0.5, p), T.normal(p, p), T.zeros(4).bernoulli_(p.detach())]
    for each in drawn[:4]:
        each.sum().backward()
    return [*drawn, p.grad, p.detach().bernoulli(), T.multinomial(p.detach(), 2), T.multinomial(p.detach(), 6, True)]


@differential
def test_normal_broadcasts_and_checks_its_deviation(T: Any) -> Any:
    return [
        T.normal(T.zeros(2, 1), T.ones(3)),
        outcome(lambda: T.normal(T.zeros(2), -T.ones(2)), "normal expects all elements of std >= 0.0"),
        outcome(lambda: T.normal(T.zeros(2), -1.0), "normal expects std >= 0.0"),
    ]


@differential
def test_seeds_and_states(T: Any) -> Any:
    first = T.manual_seed(5) is T.default_generator
    state = T.get_rng_state()
    drawn = T.rand(3)
    T.set_rng_state(state)
    own = T.Generator().manual_seed(3)
    from_own = T.rand(3, generator=own)
    kept = own.get_state()
    ahead = T.randn(3, generator=own)
    own.set_state(kept)
    return [first, T.initial_seed(), state, drawn, T.rand(3), from_own, kept, ahead, T.randn(3, generator=own)]


@differential
def test_bad_states(T: Any) -> Any:
    own = T.Generator()
    return [
        outcome(lambda: own.set_state(T.zeros(3, dtype=T.uint8)), "Expected a CPUGeneratorImplState of size 5056"),
        outcome(lambda: own.set_state(T.zeros(5056)), "RNG state must be a torch.ByteTensor"),
        outcome(lambda: own.set_state(None), "expected a torch.ByteTensor, but got NoneType"),
        outcome(lambda: T.manual_seed(2**64), "Overflow when unpacking long long"),
        outcome(lambda: T.randint(5, 5, (2,)), "random_ expects 'from' to be less than 'to', but got from=5 >= to=5"),
        outcome(lambda: T.rand(2, dtype=T.int64), "not implemented for 'Long'"),
        outcome(lambda: T.rand(-1), "Trying to create tensor with negative dimension -1: [-1]"),
    ]


@differential
def test_out_decides_the_precision(T: Any) -> Any:
    wide = T.zeros(3, dtype=T.float64)
    return [T.rand(3, out=wide) is wide, wide, T.randn(3, out=wide)]
