"""Random tensors against PyTorch: signatures, graph, devices. The numbers: `tests/_core/random/test_sampling.py`."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.differential import differential, outcome, warned


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
def test_choices_from_weights_in_other_orders(T: Any) -> Any:
    """Variables for `multinomial` are drawn in the order of the weights' memory, those of `gumbel_softmax` by rows."""
    by_columns = T.arange(1.0, 401).reshape(20, 20).t()
    in_part = T.arange(1.0, 101).reshape(10, 10)[::2].t()
    repeated = T.arange(1.0, 21).expand(4, 20)
    weights = by_columns, in_part, repeated, by_columns / by_columns.sum(1, keepdim=True)
    images = T.arange(1.0, 49).reshape(2, 3, 2, 4).contiguous(memory_format=T.channels_last)
    return [
        *(
            T.multinomial(each, count, repeats)
            for each in weights
            for count, repeats in ((1, False), (3, False), (1, True))
        ),
        T.distributions.Categorical(by_columns).sample((2,)),
        T.nn.functional.gumbel_softmax(by_columns),
        T.nn.functional.gumbel_softmax(images, hard=True, dim=1),
        T.rand(2),
    ]


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


@differential(tolerance=0.0)
def test_out_is_filled_itself(T: Any) -> Any:
    """Its strides decide about the numbers; factories change its shape in silence."""
    p = T.rand(4, 5)
    return [
        T.randn(5, 5, out=T.zeros(5, 5).t()), T.rand(2, 3, out=T.zeros(5)),
        T.randint(9, (20,), out=T.zeros(20, 2)[:, 0]), T.randperm(4, out=T.zeros(8)[::2]),
        T.normal(0.5, 2.0, (3,), out=T.zeros(7)),
        T.normal(p, 1.5, out=T.zeros(5, 4).t()), T.normal(p, 1.5, out=T.zeros(2, 4, 5)),
        T.normal(0.5, p, out=T.zeros(5, 4).t()), T.normal(p[0], p, out=T.zeros(0)),
        T.bernoulli(p, out=T.zeros(5, 4).t()),
        T.bernoulli(p, out=T.zeros(2, dtype=T.int64)), T.multinomial(p, 2, out=T.zeros(9, dtype=T.int64)), T.rand(3),
        warned(lambda: T.normal(p[0], p, out=T.zeros(3)), "An output with one or more elements was resized"),
    ]  # fmt: skip


@differential
def test_what_out_must_be(T: Any) -> Any:
    p = T.rand(3)
    wide = T.zeros(3, dtype=T.float64)
    graph = p.clone().requires_grad_()
    return [
        outcome(lambda: T.rand(3, dtype=T.float32, out=wide), "dtype Float does not match dtype of out parameter"),
        outcome(lambda: T.rand(3, device="meta", out=wide), "device type meta does not match device type of out"),
        outcome(lambda: T.normal(p, 1.0, out=T.zeros(5)), "size of tensor a (3) must match the size of tensor b (5)"),
        outcome(lambda: T.rand(3, out=5)), outcome(lambda: T.normal(p, p, out=5)),
        outcome(lambda: T.bernoulli(p, out=5)),
        outcome(lambda: T.multinomial(p, 1, out=wide), "multinomial expects Long tensor out, got: Double"),
        outcome(lambda: T.bernoulli(p, 0.5, out=wide), "bernoulli() received an invalid combination of arguments"),
        outcome(lambda: T.bernoulli(graph, out=wide), "don't support automatic differentiation"),
        outcome(lambda: T.normal(graph, 1.0, out=wide), "don't support automatic differentiation"),
    ]  # fmt: skip


@differential
def test_arguments_of_normal(T: Any) -> Any:
    p = T.rand(3)
    return [
        T.normal(p.to(T.complex64), p),
        T.normal(mean=p, std=p.to(T.float64)),
        outcome(lambda: T.normal(1.0, 2.0), "normal() received an invalid combination of arguments"),
        outcome(lambda: T.normal(1.0, 2.0, size=3), "normal() received an invalid combination of arguments"),
        outcome(lambda: T.normal(p, 2.0, size=(3,)), "normal() received an invalid combination of arguments"),
        outcome(lambda: T.normal(T.ones(1), 2.0, size=(3,)), "normal() received an invalid combination of arguments"),
        outcome(
            lambda: T.normal(0.0, T.tensor(2.0, requires_grad=True), size=(3,)),
            "normal() received an invalid combination of arguments",
        ),
        T.normal(0, T.tensor(2.0), size=(3,)),
        T.normal(mean=T.tensor(1), std=T.tensor(2.0), size=T.Size([2, 2])),
        outcome(lambda: T.normal(p, p.to(T.complex64)), "normal expects standard deviation to be non-complex"),
        outcome(lambda: T.normal(p, T.zeros(4)), "size of tensor a (3) must match the size of tensor b (4)"),
    ]


@differential(tolerance=0.0)
def test_ranges_by_name(T: Any) -> Any:
    x = T.zeros(4)
    return [
        x.uniform_(**{"from": 1, "to": 5}).clone(), x.uniform_(-3, to=2).clone(),
        x.random_(**{"from": 1, "to": 5}).clone(), x.random_(to=5).clone(), x.random_(3, to=5).clone(),
        T.randint(T.tensor(5), (3,)), T.randint(2**63 - 1, (3,)),
        outcome(lambda: x.uniform_(from_=1), "uniform_() got an unexpected keyword argument 'from_'"),
        outcome(lambda: x.random_(2.5)),
        outcome(lambda: T.randint(2.5, (3,)), "must be int, not float"),
        outcome(lambda: T.randint(2**64, (3,)), "Overflow when unpacking long long"),
    ]  # fmt: skip


@differential
def test_the_meta_device_draws_nothing(T: Any) -> Any:
    m = T.empty(3, device="meta", requires_grad=True)
    drawn = [T.bernoulli(m), T.normal(m, 1.0), T.normal(0.0, m), T.normal(m, m), T.poisson(m), T._standard_gamma(m)]
    return [*drawn, T.bernoulli(m, 0.5), T.multinomial(m, 2), T.rand_like(m), T.rand(2)]


@differential(tolerance=0.0)
def test_rejection_samplers(T: Any) -> Any:
    p = T.rand(6, requires_grad=True)
    counts = T.poisson(p * 30)
    counts.sum().backward()
    fair = p.detach()
    plain = [
        counts, p.grad, T.poisson(T.rand(3, 4).t() * 5), T.binomial(T.full((6,), 50.0), fair), T._standard_gamma(p),
        T.binomial(T.full((2, 1), 7.0), fair), T._sample_dirichlet(fair), T._sample_dirichlet(T.ones(3, 0)),
        T._sample_dirichlet(T.tensor(2.0)), T.poisson(T.zeros(0)), T.poisson(input=T.tensor(3.0), generator=None),
    ]  # fmt: skip
    refused = [
        outcome(lambda: T.binomial(p * 3, p).sum().backward(), "derivative for aten::binomial is not implemented"),
        outcome(lambda: T.bernoulli(p, 0.5).sum().backward(), "derivative for aten::bernoulli is not implemented"),
        outcome(lambda: T._sample_dirichlet(p).sum().backward(), "derivative for aten::_sample_dirichlet is not"),
        outcome(
            lambda: T._standard_gamma_grad(p, fair).sum().backward(), "derivative for '_standard_gamma_grad' is not"
        ),
        outcome(lambda: T.poisson(-fair), "invalid Poisson rate, expected rate to be non-negative"),
        outcome(lambda: T.poisson(T.ones(2, dtype=T.int64)), '"poisson_cpu" not implemented for'),
        outcome(lambda: T.binomial(T.ones(2, dtype=T.int64), T.rand(2)), "floating-point dtypes for count, got: Long"),
        outcome(lambda: T.binomial(fair, fair.to(T.float64)), "Found dtype Double but expected Float"),
        outcome(lambda: T._standard_gamma(fair.to(T.float16)), '"gamma_cpu" not implemented for'),
        outcome(lambda: T._standard_gamma_grad(fair.to(T.float64), fair), "Found dtype Float but expected Double"),
    ]
    return plain, refused


@differential(tolerance=2e-3)
def test_slopes_of_gamma_and_dirichlet_numbers(T: Any) -> Any:
    """PyTorch approximates these; see `tests/_ops/test_reparameterized.py` for the digits."""
    shape = T.tensor([[0.02, 0.4, 1.0], [2.5, 9.0, 200.0]], requires_grad=True)
    sample = T._standard_gamma(shape)
    saved = sample.grad_fn._saved_result
    sample.sum().backward()
    x = T._sample_dirichlet(shape.detach())
    slope = T._dirichlet_grad(x, shape.detach(), shape.detach().sum(-1, True).expand_as(x))
    return sample, saved, shape.grad, slope, T._standard_gamma_grad(T.ones(2), T.zeros(2))


@differential
def test_forked_states(T: Any) -> Any:
    with T.random.fork_rng():
        inside = T.rand(2)
    with T.random.fork_rng(enabled=False):
        kept = T.rand(2)
    with T.random.fork_rng(devices=[], device_type="cpu"):
        T.rand(5)
    return inside, kept, T.rand(2), T.random.thread_safe_generator()


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
