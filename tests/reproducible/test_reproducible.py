"""`flambeau.reproducible`: the same bits for any number of threads."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import flambeau
from flambeau import nn
from flambeau._backends import tiers
from flambeau._backends.cpu.linalg.blas import used_threads
from flambeau._backends.cpu.onednn import by_shape
from flambeau._core.backend import Backend
from flambeau._core.process.determinism import DETERMINISM
from flambeau._dispatch.op import OPS
from flambeau.utils._reproducible import _tell_devices

F = nn.functional
THREADS = (1, 2, 3, 7, 16)


@pytest.fixture(autouse=True)
def same_threads_after() -> Iterator[None]:
    before = flambeau.get_num_threads()
    yield
    flambeau.set_num_threads(before)
    assert flambeau.reproducible.level() is None


def bits_with_each_number_of_threads(run: Callable[[], list[flambeau.Tensor]]) -> list[list[bytes]]:
    found = []
    for threads in THREADS:
        flambeau.set_num_threads(threads)
        found.append([np.ascontiguousarray(each.detach()._array).tobytes() for each in run()])
    return found


def random(*shape: int) -> flambeau.Tensor:
    return flambeau.randn(*shape)


INDEX = flambeau.arange(5000) * 7919 % 50
CASES: dict[str, tuple[Callable[..., Any], list[tuple[int, ...]]]] = {
    "product": (lambda a, b: a @ b, [(200, 768), (768, 600)]),
    "product of few rows": (lambda a, b: a @ b, [(3, 3000), (3000, 50)]),
    "product with a vector": (lambda a, b: a @ b, [(3000, 1513), (1513,)]),
    "dot": (lambda a, b: a @ b, [(300_000,), (300_000,)]),
    "products": (lambda a, b: a @ b, [(24, 100, 64), (24, 64, 100)]),
    "linear": (F.linear, [(8, 100, 512), (512, 512), (512,)]),
    "conv2d": (lambda x, w, b: F.conv2d(x, w, b, padding=1), [(8, 32, 40, 40), (64, 32, 3, 3), (64,)]),
    "conv2d with a stride": (lambda x, w: F.conv2d(x, w, stride=2), [(8, 32, 40, 40), (64, 32, 3, 3)]),
    "conv2d by channels": (lambda x, w: F.conv2d(x, w, groups=32), [(8, 32, 40, 40), (32, 1, 3, 3)]),
    "conv2d 1x1": (F.conv2d, [(8, 32, 40, 40), (64, 32, 1, 1)]),
    "conv1d": (F.conv1d, [(8, 32, 400), (64, 32, 5)]),
    "conv3d": (F.conv3d, [(2, 8, 16, 16, 16), (16, 8, 3, 3, 3)]),
    "conv_transpose2d": (lambda x, w: F.conv_transpose2d(x, w, stride=2), [(8, 32, 20, 20), (32, 16, 3, 3)]),
    "sum": (lambda x: x.sum(), [(1_000_003,)]),
    "mean of columns": (lambda x: x.mean(0), [(3000, 301)]),
    "var": (lambda x: x.var((0, 2)), [(100, 101, 103)]),
    "softmax": (lambda x: x.softmax(-1), [(300, 1001)]),
    "layer_norm": (lambda x, w, b: F.layer_norm(x, (768,), w, b), [(512, 768), (768,), (768,)]),
    "batch_norm": (lambda x, w, b: F.batch_norm(x, None, None, w, b, True), [(16, 32, 30, 30), (32,), (32,)]),
    "attention": (
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
        [(2, 8, 200, 64)] * 3,
    ),
    "index_add": (lambda x, s: x.index_add(0, INDEX, s), [(50, 64), (5000, 64)]),
    "index_put": (lambda x, s: x.index_put((INDEX,), s), [(50, 64), (5000, 64)]),
    "embedding": (lambda w: F.embedding(INDEX, w), [(50, 64)]),
    "cross_entropy": (lambda x: F.cross_entropy(x, flambeau.arange(600) % 1001), [(600, 1001)]),
    "cumsum": (lambda x: x.cumsum(0), [(300_000,)]),
}


@pytest.mark.parametrize("dtype", [flambeau.float32, flambeau.bfloat16], ids=["float32", "bfloat16"])
@pytest.mark.parametrize("name", CASES)
def test_results_and_gradients_are_the_same_for_any_number_of_threads(name: str, dtype: Any) -> None:
    function, shapes = CASES[name]
    flambeau.manual_seed(0)
    given = [random(*shape).to(dtype).requires_grad_() for shape in shapes]

    def run() -> list[flambeau.Tensor]:
        result = function(*given)
        return [result, *flambeau.autograd.grad(result.float().sin().sum(), given)]

    with flambeau.reproducible("threads"):
        first, *others = bits_with_each_number_of_threads(run)
    assert all(each == first for each in others)


class Attends(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(128)
        self.mix = nn.MultiheadAttention(128, 4, batch_first=True)
        self.more = nn.Sequential(nn.Linear(128, 512), nn.GELU(), nn.Dropout(0.1), nn.Linear(512, 128))

    def forward(self, x: Any) -> Any:
        y = self.norm(x)
        x = x + self.mix(y, y, y, need_weights=False)[0]
        return x + self.more(x)


class Recurs(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(128, 96, 2)

    def forward(self, x: Any) -> Any:
        return self.lstm(x)[0]


def images() -> nn.Module:
    return nn.Sequential(
        nn.Unflatten(1, (3, 32)), nn.Conv2d(3, 24, 3, padding=1), nn.BatchNorm2d(24), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(24, 32, 3, stride=2), nn.BatchNorm2d(32), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
    )  # fmt: skip


NETWORKS: dict[str, Callable[[], nn.Module]] = {"attention": Attends, "convolutions": images, "lstm": Recurs}


@pytest.mark.parametrize("kind", NETWORKS)
def test_a_trained_network_is_the_same_for_any_number_of_threads(kind: str) -> None:
    def run() -> list[flambeau.Tensor]:
        flambeau.manual_seed(0)
        net = NETWORKS[kind]()
        optimizer = flambeau.optim.AdamW(net.parameters(), lr=1e-3)
        for _ in range(6):
            optimizer.zero_grad()
            net(flambeau.randn(16, 96, 128)).square().mean().backward()
            optimizer.step()
        return list(net.state_dict().values())

    with flambeau.reproducible("threads"):
        first, *others = bits_with_each_number_of_threads(run)
    assert all(each == first for each in others)


def test_compiled_functions_heed_the_level() -> None:
    flambeau.manual_seed(0)
    weight, x = random(64, 32, 3, 3).requires_grad_(), random(8, 32, 40, 40)
    compiled = flambeau.compile(lambda x: F.conv2d(x, weight).square().sum())

    def run() -> list[flambeau.Tensor]:
        weight.grad = None
        for _ in range(3):
            compiled(x).backward()
        assert weight.grad is not None
        return [weight.grad]

    run()  # recorded without a level
    with flambeau.reproducible("threads"):
        first, *others = bits_with_each_number_of_threads(run)
    assert all(each == first for each in others)


def test_a_switch_and_a_context() -> None:
    switch = flambeau.reproducible("threads")
    assert repr(switch) == "reproducible('threads')"
    assert flambeau.reproducible.level() == "threads"
    with flambeau.reproducible("run"):
        assert flambeau.reproducible.level() == "run"
    assert flambeau.reproducible.level() == "threads"
    flambeau.reproducible(None)
    assert flambeau.reproducible.level() is None
    with pytest.raises(
        ValueError, match="level must be one of 'run', 'threads', 'batch', 'machine' or None, but got 'all'"
    ):
        flambeau.reproducible("all")


def test_a_level_asks_for_deterministic_algorithms() -> None:
    with flambeau.reproducible("run"):
        assert flambeau.are_deterministic_algorithms_enabled()
        values, places = F.max_pool2d(flambeau.ones(1, 1, 4, 4), 2, return_indices=True)
        with pytest.raises(RuntimeError, match="does not have a deterministic implementation"):
            F.max_unpool2d(values, places, 2)
    assert not flambeau.are_deterministic_algorithms_enabled()
    flambeau.use_deterministic_algorithms(True, warn_only=True)
    try:
        with flambeau.reproducible("run"):
            assert not flambeau.is_deterministic_algorithms_warn_only_enabled()
        assert flambeau.is_deterministic_algorithms_warn_only_enabled()
    finally:
        flambeau.use_deterministic_algorithms(False)
    assert not DETERMINISM.asked


def test_nothing_is_left_behind() -> None:
    flambeau.set_num_threads(2)
    library, threads = tiers.library(), used_threads()
    at_threads = by_shape if by_shape.available() else None
    with flambeau.reproducible("threads"):
        assert tiers.library() is at_threads
        assert used_threads() == 1
        flambeau.set_num_threads(3)
        assert used_threads() == 1
        with tiers.numpy_only():
            pass
        assert tiers.library() is at_threads
        flambeau.set_num_threads(2)
    assert tiers.library() is library
    assert used_threads() == threads


def test_other_devices_refuse_ops_at_a_level() -> None:
    class Elsewhere(Backend):
        array_class = type("Elsewhere", (), {})

    backend = Elsewhere("elsewhere")
    flambeau.ones(2, 2) @ flambeau.ones(2, 2)
    with flambeau.reproducible("run"):
        _tell_devices(backend)
        with pytest.raises(RuntimeError, match="mm on this device is not kept reproducible"):
            backend.prepare(OPS["mm"])
    _tell_devices(backend)
    assert backend.prepare(OPS["mm"]) is not None


def test_the_environment_sets_the_level() -> None:
    code = "import flambeau; print(flambeau.reproducible.level(), flambeau.are_deterministic_algorithms_enabled())"
    for asked, said in (("threads", "threads True"), ("", "None False")):
        environment = {**os.environ, "FLAMBEAU_REPRODUCIBLE": asked}
        ran = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
        assert ran.stdout.strip() == said
    environment = {**os.environ, "FLAMBEAU_REPRODUCIBLE": "always"}
    ran = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert "FLAMBEAU_REPRODUCIBLE must be one of run, threads, batch, machine, but is 'always'" in ran.stderr
