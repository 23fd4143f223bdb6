"""`flambeau.reproducible("batch")`: what a sample gives does not depend on the other samples of its batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import flambeau
from flambeau import nn
from flambeau._backends import tiers
from flambeau._backends.cpu.linalg import fixed_order

F = nn.functional


@pytest.fixture(autouse=True)
def at_batch() -> Iterator[None]:
    with flambeau.reproducible("batch"):
        yield


def bits(tensor: flambeau.Tensor) -> bytes:
    return np.ascontiguousarray(tensor.detach()._array).tobytes()


class Block(nn.Module):
    def __init__(self, width: int = 64, heads: int = 4) -> None:
        super().__init__()
        self.first, self.second = nn.LayerNorm(width), nn.RMSNorm(width)
        self.qkv, self.out, self.heads = nn.Linear(width, 3 * width), nn.Linear(width, width), heads
        self.more = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: Any, cache: list[Any] | None) -> Any:
        batch, length, width = x.shape
        parts = self.qkv(self.first(x)).chunk(3, -1)
        q, k, v = (each.reshape(batch, length, self.heads, -1).transpose(1, 2) for each in parts)
        if cache is not None:
            if cache:
                k, v = flambeau.cat([cache[0], k], 2), flambeau.cat([cache[1], v], 2)
            cache[:] = [k, v]
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=length > 1)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        return x + self.more(self.second(x))


class Gpt(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(100, 64), nn.Embedding(48, 64)
        self.blocks = nn.ModuleList([Block() for _ in range(2)])
        self.norm, self.head = nn.LayerNorm(64), nn.Linear(64, 100)

    def forward(self, tokens: Any, start: int = 0, caches: list[Any] | None = None) -> Any:
        x = self.tokens(tokens) + self.places(flambeau.arange(start, start + tokens.shape[1]))
        for number, block in enumerate(self.blocks):
            x = block(x, None if caches is None else caches[number])
        return self.head(self.norm(x))


def images() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1), nn.GroupNorm(4, 16), nn.SiLU(), nn.MaxPool2d(2), nn.Conv2d(16, 24, 3, stride=2),
        nn.BatchNorm2d(24).eval(), nn.Tanh(), nn.ConvTranspose2d(24, 8, 2), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        nn.Linear(8, 10), nn.LogSoftmax(-1),
    )  # fmt: skip


class Recurs(nn.Module):
    def __init__(self, kind: Callable[..., nn.Module]) -> None:
        super().__init__()
        self.layer = kind(20, 33, 2, batch_first=True)

    def forward(self, x: Any) -> Any:
        return self.layer(x)[0]


NETWORKS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "images": (images, (9, 3, 14, 14)),
    "lstm": (lambda: Recurs(nn.LSTM), (9, 7, 20)),
    "gru": (lambda: Recurs(nn.GRU), (9, 7, 20)),
    "attention": (lambda: nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True), (9, 11, 32)),
    "rows": (lambda: nn.Sequential(nn.Linear(700, 50), nn.Softplus(), nn.Linear(50, 3), nn.Softmax(-1)), (40, 700)),
}


@pytest.mark.parametrize("kind", NETWORKS)
def test_samples_and_their_gradients_are_those_of_the_sample_alone(kind: str) -> None:
    flambeau.manual_seed(0)
    make, shape = NETWORKS[kind]
    net, x = make(), flambeau.randn(*shape)

    def run(part: flambeau.Tensor) -> tuple[flambeau.Tensor, flambeau.Tensor]:
        part = part.detach().requires_grad_()
        result = net(part)
        return result, flambeau.autograd.grad(result.sin().sum(), part)[0]

    whole = run(x)
    for found, wanted in zip(run(x.flip(0)), whole, strict=True):
        assert bits(found.flip(0)) == bits(wanted)
    for start, end in [(0, 1), (4, 5), (2, 9), (0, shape[0] // 2)]:
        for found, wanted in zip(run(x[start:end]), whole, strict=True):
            assert bits(found) == bits(wanted[start:end])


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "sum": lambda x: x.sum(-1),
    "mean": lambda x: x.mean(-1),
    "mean of the middle": lambda x: x.mean(1),
    "var": lambda x: x.var(-1),
    "norm": lambda x: x.norm(dim=-1),
    "prod": lambda x: x.prod(-1),
    "fft": lambda x: flambeau.fft.ifft(x.double()).abs(),
    "logsumexp": lambda x: x.logsumexp(-1),
    "softmax of the middle": lambda x: x.softmax(1),
    "cumsum": lambda x: x.cumsum(-1),
    "gelu": F.gelu,
    "pow": lambda x: x.abs() ** 1.7,
    "products": lambda x: x @ x.transpose(1, 2),
    "product with a vector": lambda x: x @ x[0, 0].detach().sin().new_full((33,), 0.1),
    "cosine": lambda x: F.cosine_similarity(x, x.flip(-1), -1),
    "tensordot": lambda x: flambeau.tensordot(x, x.new_full((5, 33), 0.1), dims=([2], [1])),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("dtype", [flambeau.float32, flambeau.bfloat16, flambeau.float64], ids=str)
def test_few_and_many_samples_give_the_same(name: str, dtype: Any) -> None:
    flambeau.manual_seed(0)
    function, x = FUNCTIONS[name], flambeau.randn(300, 17, 33).to(dtype)
    whole = function(x)
    for start, end in [(0, 1), (7, 9), (100, 200)]:
        assert bits(function(x[start:end])) == bits(whole[start:end])


def test_a_token_decoded_with_a_cache_is_that_of_the_whole_sequence() -> None:
    flambeau.manual_seed(0)
    net, tokens = Gpt(), flambeau.randint(0, 100, (3, 40))
    with flambeau.no_grad():
        whole = net(tokens)
        caches: list[Any] = [[], []]
        steps = [net(tokens[:, at : at + 1], at, caches) for at in range(40)]
    assert bits(flambeau.cat(steps, 1)) == bits(whole)
    assert bits(net(tokens[1:2])) == bits(whole[1:2])
    assert bits(net(tokens[:, :17])) == bits(whole[:, :17])


def test_a_trained_network_is_the_same_again_for_any_number_of_threads() -> None:
    before = flambeau.get_num_threads()

    def run(threads: int) -> list[bytes]:
        flambeau.set_num_threads(threads)
        flambeau.manual_seed(0)
        net = Gpt()
        optimizer = flambeau.optim.AdamW(net.parameters(), lr=1e-3)
        for _ in range(3):
            tokens = flambeau.randint(0, 100, (4, 33))
            optimizer.zero_grad()
            F.cross_entropy(net(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten()).backward()
            optimizer.step()
        return [bits(each) for each in net.parameters()]

    try:
        assert run(1) == run(3)
    finally:
        flambeau.set_num_threads(before)


@pytest.mark.parametrize(("rows", "depth", "columns"), [(1, 5, 3), (7, 700, 50), (129, 64, 257), (3, 9, 1)])
def test_products_are_chains(rows: int, depth: int, columns: int) -> None:
    generator = np.random.default_rng(0)
    left = generator.standard_normal((rows, depth)).astype(np.float32)
    right = generator.standard_normal((depth, columns)).astype(np.float32)
    found = fixed_order.product(left, right)
    chain = np.zeros((rows, columns), np.float32)
    for k in range(depth):  # a product of two float32 is exact in float64
        chain = (left[:, k : k + 1].astype(np.float64) * right[k].astype(np.float64) + chain).astype(np.float32)
    assert np.count_nonzero(found != chain) <= 1e-6 * found.size  # float64 rounds a sum twice
    for other in (
        fixed_order.product(np.asfortranarray(left), right),
        fixed_order.product(left, np.asfortranarray(right)),
        fixed_order.product(left[None].repeat(2, 0), right)[1],
        fixed_order.product(np.pad(left, ((0, 0), (0, 5))), np.pad(right, ((0, 5), (0, 0)), constant_values=3)),
        np.concatenate([fixed_order.product(left[row], right)[None] for row in range(rows)]),
    ):
        assert other.tobytes() == found.tobytes()


def test_compiled_functions_heed_the_level() -> None:
    flambeau.manual_seed(0)
    net, x = NETWORKS["rows"][0](), flambeau.randn(40, 700)
    compiled = flambeau.compile(net)
    with flambeau.no_grad():
        wanted = bits(net(x))
        for _ in range(5):
            assert bits(compiled(x)) == wanted


def test_calls_that_depend_on_the_batch_by_definition_raise() -> None:
    x = flambeau.randn(4, 3, 5, 5)
    with pytest.raises(RuntimeError, match=r'batch_norm cannot be kept by reproducible\("batch"\): in training'):
        nn.BatchNorm2d(3)(x)
    with pytest.raises(RuntimeError, match=r'dropout cannot be kept by reproducible\("batch"\)'):
        F.dropout(x)
    with pytest.raises(RuntimeError, match="dropout cannot be kept"):
        flambeau.native_dropout(x, 0.5, True)
    nn.BatchNorm2d(3).eval()(x)
    nn.Dropout().eval()(x)
    F.instance_norm(x)


def test_derivatives_that_were_compiled_without_a_level_are_not_used() -> None:
    given = [flambeau.rand(30, 300).add(0.5).requires_grad_() for _ in range(3)]

    def gradients(count: int) -> list[flambeau.Tensor]:
        parts = [each.detach()[:count].clone().requires_grad_() for each in given]
        return list(flambeau.autograd.grad(flambeau.addcdiv(*parts, value=3.14).sum(), parts))

    with flambeau.reproducible(None):
        gradients(30)
    for many, one in zip(gradients(30), gradients(1), strict=True):
        assert bits(many[:1]) == bits(one)


def test_nothing_is_left_behind() -> None:
    assert not tiers.wanted()
    with flambeau.reproducible(None):
        assert tiers.wanted()
        assert tiers.generated("matmul") is not None
        nn.BatchNorm2d(3)(flambeau.randn(4, 3, 5, 5))
        with flambeau.reproducible("threads"):
            assert tiers.wanted()
            parts = tiers.library()
            assert parts is None or parts.__name__.endswith(".by_shape")  # where there is no oneDNN: none
    assert not tiers.wanted()
    assert tiers.library() is None
    with pytest.raises(
        ValueError, match="level must be one of 'run', 'threads', 'batch', 'machine' or None, but got 'planet'"
    ):
        flambeau.reproducible("planet")


def test_a_machine_without_generated_code_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    with flambeau.reproducible(None):
        with monkeypatch.context() as without:
            without.setattr(tiers, "available", lambda: False)
            with pytest.raises(RuntimeError, match="its products are generated kernels, which are missing"):
                flambeau.reproducible("batch")
        assert flambeau.reproducible.level() is None
