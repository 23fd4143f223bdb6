"""`reproducible("batch")`: sums over samples are a tree, so that any power of two of processes gives the same bits."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import flambeau
import flambeau.distributed as dist
from flambeau import nn
from flambeau._backends.cpu.linalg import over_samples
from flambeau._backends.cpu.linalg.fixed_order import product

from .trained import NETWORKS, train

F = nn.functional


@pytest.fixture(autouse=True)
def at_batch() -> Iterator[None]:
    with flambeau.reproducible("batch"):
        yield


def tree(values: list[Any]) -> Any:
    middle = len(values) // 2
    return values[0] if len(values) == 1 else tree(values[:middle]) + tree(values[middle:])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("samples", "steps", "rows", "columns"),
    [(2, 1, 3, 5), (7, 1, 33, 70), (9, 1, 1, 100), (64, 1, 40, 129), (100, 1, 5, 64), (5, 3, 33, 65), (8, 4, 7, 7),
     (3, 9, 100, 1), (1, 4, 3, 3), (13, 1, 2, 1)],
)  # fmt: skip
def test_products_are_trees_of_chains(samples: int, steps: int, rows: int, columns: int, dtype: Any) -> None:
    generator = np.random.default_rng(0)
    left = generator.standard_normal((samples, steps, rows)).astype(dtype)
    right = generator.standard_normal((samples, steps, columns)).astype(dtype)
    wanted = tree([product(one.T, other) for one, other in zip(left, right, strict=True)])
    for first, second in (
        (left, right),
        (np.asfortranarray(left), np.asfortranarray(right)),
        (left.swapaxes(0, 1).copy().swapaxes(0, 1), right.swapaxes(0, 1).copy().swapaxes(0, 1)),
    ):
        assert over_samples.samples_product(first, second).tobytes() == wanted.tobytes()


@pytest.mark.parametrize(("samples", "columns"), [(2, 3), (9, 3), (100, 20), (33, 16), (8, 1), (77, 100)])
def test_sums_are_trees(samples: int, columns: int) -> None:
    values = np.random.default_rng(0).standard_normal((samples, columns)).astype(np.float32)
    wanted = tree(list(values)).tobytes()
    assert over_samples.samples_sum(values).tobytes() == wanted
    assert over_samples.samples_sum(np.asfortranarray(values)).tobytes() == wanted
    assert over_samples.samples_total(samples, lambda sample: values[sample].copy()).tobytes() == wanted
    assert flambeau.from_numpy(values).sum(0).numpy().tobytes() == wanted


@pytest.mark.parametrize(("samples", "steps"), [(1, 4), (4, 1), (8, 5), (6, 7), (9, 2)])
def test_rows_of_embeddings_are_added_in_trees(samples: int, steps: int) -> None:
    generator = np.random.default_rng(0)
    indices = generator.integers(0, 6, (samples, steps))
    rows = generator.standard_normal((samples, steps, 10)).astype(np.float32)

    def of_sample(sample: int) -> Any:
        total = np.zeros((6, 10), np.float32)
        np.add.at(total, indices[sample], rows[sample])
        return total

    wanted = tree([of_sample(sample) for sample in range(samples)]) + 0
    assert over_samples.rows_sum(indices, rows, 6).tobytes() == wanted.tobytes()


class Recurs(nn.Module):
    def __init__(self, kind: Callable[..., nn.Module], **options: Any) -> None:
        super().__init__()
        self.tokens, self.layer = nn.Embedding(20, 12), kind(12, 17, 2, batch_first=True, **options)

    def forward(self, tokens: Any) -> Any:
        return self.layer(self.tokens(tokens))[0]


class Packs(Recurs):
    """Of lengths that fall: a process with the first half of the samples has the longer ones."""

    def forward(self, tokens: Any) -> Any:
        packed = nn.utils.rnn.pack_padded_sequence(self.tokens(tokens), 3 + tokens[:, 0], batch_first=True)
        return nn.utils.rnn.pad_packed_sequence(self.layer(packed)[0], batch_first=True, total_length=12)[0]


class Attends(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.TransformerDecoderLayer(16, 4, 32, dropout=0.0, batch_first=True)

    def forward(self, x: Any) -> Any:
        return self.layer(x, x.flip(1))


def images() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1), nn.GroupNorm(2, 8), nn.PReLU(), nn.Conv2d(8, 12, 3, stride=2, groups=2),
        nn.BatchNorm2d(12).eval(), nn.ConvTranspose2d(12, 4, 2), nn.InstanceNorm2d(4),
    )  # fmt: skip


LAYERS: dict[str, tuple[Callable[[], nn.Module], Callable[[], Any]]] = {
    "rows": (
        lambda: nn.Sequential(nn.Linear(50, 70), nn.RMSNorm(70), nn.GELU(), nn.Linear(70, 10, bias=False)),
        lambda: flambeau.randn(48, 50),
    ),
    "images": (images, lambda: flambeau.randn(12, 3, 9, 9)),
    "lstm": (lambda: Recurs(nn.LSTM, bidirectional=True), lambda: flambeau.randint(0, 20, (8, 7))),
    "projected lstm": (lambda: Recurs(nn.LSTM, proj_size=9), lambda: flambeau.randint(0, 20, (8, 7))),
    "gru": (lambda: Recurs(nn.GRU), lambda: flambeau.randint(0, 20, (8, 7))),
    "rnn": (lambda: Recurs(nn.RNN), lambda: flambeau.randint(0, 20, (6, 7))),
    "packed": (lambda: Packs(nn.LSTM), lambda: flambeau.arange(8, 0, -1)[:, None] + flambeau.arange(12) * 0),
    "attention": (Attends, lambda: flambeau.randn(8, 5, 16)),
}


def gradients(net: nn.Module, x: Any, recorded: bool) -> list[bytes]:
    loss = net(x).sin().mean()
    found = flambeau.autograd.grad(loss, list(net.parameters()), create_graph=recorded)
    return [each.detach().numpy().tobytes() for each in found]


@pytest.mark.parametrize("recorded", [False, True], ids=["plain", "recorded"])
@pytest.mark.parametrize("kind", LAYERS)
def test_gradients_of_halves_and_quarters_add_up(kind: str, recorded: bool) -> None:
    flambeau.manual_seed(0)
    make, data = LAYERS[kind]
    net, x = make(), data()
    whole = gradients(net, x, recorded)
    for parts in (2, 4):
        if len(x) % parts:
            continue
        found = [gradients(net, part, recorded) for part in x.chunk(parts)]
        for number, wanted in enumerate(whole):
            sums = tree([np.frombuffer(each[number], np.float32) / np.float32(parts) for each in found])
            assert sums.tobytes() == wanted, (parts, list(dict(net.named_parameters()))[number])


def test_one_two_and_four_processes_train_the_same() -> None:
    command = [sys.executable, "-m", "tests.reproducible.trained", "--steps", "2", "--threads", "--processes", "2", "4"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=240)
    found: dict[str, set[str]] = {}
    for line in ran.stdout.splitlines():
        kind, _, what, *digests = line.split()
        if what == "processes":
            found.setdefault(kind, set()).update(digests)
    assert found == {kind: {train(kind, 2)} for kind in NETWORKS}


# ----- what is refused ------------------------------------------------------------------------------------------------


@pytest.fixture
def group() -> Iterator[None]:
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield
    dist.destroy_process_group()


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Embedding(9, 4)

    def forward(self, tokens: Any) -> Any:
        return F.linear(self.tokens(tokens), self.tokens.weight)


class Contracts(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(flambeau.randn(3, 4))

    def forward(self, x: Any) -> Any:
        return self.weight @ x.transpose(-2, -1).sin()


REFUSED: dict[str, tuple[Callable[[], nn.Module], Callable[[], Any], str]] = {
    "two uses": (Tied, lambda: flambeau.arange(6).view(2, 3), r"'tokens.weight' is used 2 times in a step"),
    "columns": (Contracts, lambda: flambeau.randn(5, 4), r"comes from MmBackward0, whose sum over samples is no tree"),
    "steps first": (lambda: nn.LSTM(4, 3), lambda: flambeau.randn(2, 5, 4), "'LSTM' has batch_first=False"),
    "16 bits": (lambda: nn.Linear(4, 3).bfloat16(), lambda: flambeau.randn(2, 4).bfloat16(), "with .*bfloat16"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_models_whose_sums_are_no_trees_are_refused(kind: str, group: None) -> None:
    make, data, message = REFUSED[kind]
    model = nn.parallel.DistributedDataParallel(make())
    with pytest.raises(RuntimeError, match=message):
        model(data())
    with flambeau.reproducible("threads"):
        model(data())


def test_gradients_of_several_passes_are_refused(group: None) -> None:
    model = nn.parallel.DistributedDataParallel(nn.Linear(4, 3))
    model(flambeau.randn(2, 4)).sum().backward()
    with pytest.raises(RuntimeError, match="gradients that are added to those of another step"):
        model(flambeau.randn(2, 4)).sum().backward()
    with model.no_sync(), pytest.raises(RuntimeError, match=r"with no_sync\(\)"):
        model(flambeau.randn(2, 4))


def test_compiled_steps_give_the_same() -> None:
    flambeau.manual_seed(0)
    net, x = LAYERS["rows"][0](), flambeau.randn(48, 50)

    def step(x: Any) -> Any:
        return flambeau.autograd.grad(net(x).sin().mean(), list(net.parameters()))

    wanted = [each.numpy().tobytes() for each in step(x)]
    compiled = flambeau.compile(step)
    for _ in range(5):
        assert [each.numpy().tobytes() for each in compiled(x)] == wanted
