"""Every file operation, thread start, fork and op fails in turn: documented errors, nothing lost, nothing held."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import flambeau
from flambeau import nn, safetensors
from flambeau._codegen.machine import cache
from flambeau.utils.data import DataLoader

from .support.faults import ALLOCATIONS, FILE_OPERATIONS, STARTS, disk_full, no_more_threads, sweep

_NO_MEMORY = (MemoryError, flambeau.OutOfMemoryError)
_OLD, _NEW = {"weight": flambeau.zeros(300, 300)}, {"weight": flambeau.ones(300, 300), "step": 3}


def _is_whole(content: dict[str, Any]) -> bool:
    """Whether a checkpoint is the old one or the new one."""
    expected = _NEW if "step" in content else _OLD
    return flambeau.equal(content["weight"], expected["weight"])


def test_save(tmp_path: Path) -> None:
    path = tmp_path / "model.pt"
    flambeau.save(_OLD, path)

    def check(ended: BaseException | None) -> None:
        assert ended is None or isinstance(ended, OSError), repr(ended)
        assert _is_whole(flambeau.load(path)), "neither the old file nor the new one"
        if ended is not None:
            assert "step" not in flambeau.load(path), "the call failed, and replaced the file"
        assert os.listdir(tmp_path) == ["model.pt"]
        flambeau.save(_OLD, path)

    assert sweep(lambda: flambeau.save(_NEW, path), check, FILE_OPERATIONS, disk_full) >= 5


def test_save_of_safetensors(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    safetensors.save_file(_OLD, path)

    def check(ended: BaseException | None) -> None:
        assert ended is None or isinstance(ended, OSError), repr(ended)
        assert flambeau.equal(safetensors.load_file(path)["weight"], _OLD["weight"]) or ended is None
        assert os.listdir(tmp_path) == ["model.safetensors"]
        safetensors.save_file(_OLD, path)

    new = {"weight": _NEW["weight"]}
    assert sweep(lambda: safetensors.save_file(new, path), check, FILE_OPERATIONS, disk_full) >= 5


@pytest.mark.parametrize("options", [{}, {"mmap": True}, {"weights_only": False}], ids=str)
def test_load(tmp_path: Path, options: dict[str, Any]) -> None:
    path = tmp_path / "model.pt"
    flambeau.save(_NEW, path)

    def check(ended: BaseException | None) -> None:
        assert ended is None or isinstance(ended, (OSError, RuntimeError)), repr(ended)
        assert _is_whole(flambeau.load(path, **options))

    assert sweep(lambda: flambeau.load(path, **options), check, FILE_OPERATIONS, disk_full) >= 1


def test_the_cache_of_kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the disk refuses is compiled, and nobody hears of it."""
    monkeypatch.setenv("FLAMBEAU_CACHE_DIR", str(tmp_path / "cache"))

    def action() -> None:
        cache.store("faults", b"content")
        found = cache.load("faults")
        assert found is None or bytes(found) == b"content"

    def check(ended: BaseException | None) -> None:
        assert ended is None, repr(ended)

    assert sweep(action, check, FILE_OPERATIONS, disk_full) >= 3


_BODIES = ("sin", "cos", "tanh", "sigmoid", "exp", "log1p", "erf", "atan", "sinh", "asinh", "expm1", "sqrt")


@pytest.mark.filterwarnings("ignore")
def test_the_disk_under_compiled_calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each run compiles a function with kernels of its own: what the disk refuses changes neither call nor result."""
    monkeypatch.setenv("FLAMBEAU_CACHE_DIR", str(tmp_path / "cache"))
    numbers = itertools.count()

    def run() -> None:
        number = next(numbers)
        first, second, third = (_BODIES[(number * 7 + place * 5) % len(_BODIES)] for place in range(3))

        def function(x: Any) -> Any:
            y = getattr(x * (1.5 + number), first)()
            return (getattr(y * y + number, second)() * x + getattr(y.abs(), third)()).sum()

        compiled = flambeau.compile(function)
        x = flambeau.linspace(0.0, 1.0, 20_000)
        for _ in range(4):
            result = compiled(x)
        assert flambeau.equal(result, function(x)) or result.isnan()

    def check(ended: BaseException | None) -> None:
        assert ended is None, repr(ended)

    run()
    assert sweep(run, check, FILE_OPERATIONS, disk_full) >= 5


@pytest.mark.parametrize("workers", [0, 2])
def test_data_loader(workers: int) -> None:
    data = [flambeau.full((2,), float(number)) for number in range(8)]

    def epoch() -> list[Any]:
        loader = DataLoader(data, 3, num_workers=workers, multiprocessing_context="fork" if workers else None)
        return [each.sum().item() for each in loader]

    expected = epoch()

    def check(ended: BaseException | None) -> None:
        assert isinstance(ended, (RuntimeError, OSError)), repr(ended)
        assert epoch() == expected

    assert (sweep(epoch, check, STARTS, no_more_threads) > 0) == (workers > 0)


def _network() -> tuple[Any, Any]:
    flambeau.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 2))
    return model, flambeau.randn(3, 4)


def _trained(fails: bool) -> tuple[Any, int]:
    """The gradients after a backward pass in which every op has failed once, and how many there are."""
    model, x = _network()
    count = 0
    if fails:
        loss = model(x).square().sum()

        def check(ended: BaseException | None) -> None:
            assert isinstance(ended, _NO_MEMORY), repr(ended)
            model.zero_grad()

        def backward() -> None:
            loss.backward(retain_graph=True)

        count = sweep(backward, check, None, MemoryError)
    else:
        model(x).square().sum().backward()
    return [each.grad.tolist() for each in model.parameters()], count


def test_backward() -> None:
    """A backward pass that failed can be run again, in the same graph."""
    expected, _ = _trained(fails=False)
    found, count = _trained(fails=True)
    assert count >= 10
    assert found == expected


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "Adadelta", "Adamax", "NAdam", "RAdam"])
def test_optimizer_step(name: str) -> None:
    """Each op of a step fails in turn; then the optimizer's state is complete, and a step with everything works."""
    model, x = _network()
    optimizer = getattr(flambeau.optim, name)(model.parameters(), lr=0.01)
    model(x).square().sum().backward()

    def check(ended: BaseException | None) -> None:
        assert isinstance(ended, _NO_MEMORY), repr(ended)
        saved = optimizer.state_dict()
        optimizer.load_state_dict(saved)
        keys = [frozenset(each) for each in saved["state"].values() if each]
        assert len(set(keys)) <= 1, "some parameters have a part of their state"

    assert sweep(optimizer.step, check, None, MemoryError) >= 1
    before = [each.detach().clone() for each in model.parameters()]
    optimizer.step()
    assert all(flambeau.isfinite(each).all() for each in model.parameters())
    assert not all(flambeau.equal(old, new) for old, new in zip(before, model.parameters(), strict=True))


# ----- memory ---------------------------------------------------------------------------------------------------------


def _checked(action: Callable[[], Any]) -> Callable[[BaseException | None], None]:
    """Checks that a failure is one of memory, and that `action` then does what it did before."""
    expected = action()

    def check(ended: BaseException | None) -> None:
        assert ended is None or isinstance(ended, _NO_MEMORY), repr(ended)
        assert action() == expected

    return check


@pytest.mark.parametrize("options", [{}, {"weights_only": False}], ids=str)
def test_memory_of_save_and_load(tmp_path: Path, options: dict[str, Any]) -> None:
    path = tmp_path / "model.pt"

    def both() -> Any:
        flambeau.save(_NEW, path)
        found = flambeau.load(path, **options)
        return _is_whole(found), os.listdir(tmp_path)

    check = _checked(both)
    assert sweep(both, check, ALLOCATIONS, MemoryError) >= 1


def _step() -> Any:
    model, x = _network()
    optimizer = flambeau.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(2):
        optimizer.zero_grad()
        model(x).square().sum().backward()
        optimizer.step()
    return [each.tolist() for each in model.parameters()]


def test_memory_of_a_training_step() -> None:
    check = _checked(_step)
    assert sweep(_step, check, ALLOCATIONS, MemoryError) >= 10


def test_memory_of_a_data_loader() -> None:
    data = [flambeau.full((2,), float(number)) for number in range(8)]

    def epoch() -> list[Any]:
        return [each.tolist() for each in DataLoader(data, batch_size=3, shuffle=False)]

    check = _checked(epoch)
    assert sweep(epoch, check, ALLOCATIONS, MemoryError) >= 1


def _compiled_calls() -> Any:
    """Calls of a function from its first to its third as a program."""
    weight = flambeau.arange(6.0).reshape(2, 3).requires_grad_()
    compiled = flambeau.compile(lambda x: (x @ weight).tanh().sum())
    values = []
    for turn in range(6):
        weight.grad = None
        result = compiled(flambeau.ones(4, 2) * (turn + 1))
        result.backward()
        values.append((result.item(), weight.grad.tolist()))
    return values


@pytest.mark.filterwarnings("ignore")  # one says that a call could not be compiled
def test_memory_of_compiled_calls() -> None:
    """A function that is out of memory while it is compiled, or runs as a program, works the next time."""
    check = _checked(_compiled_calls)
    assert sweep(_compiled_calls, check, ALLOCATIONS, MemoryError) >= 10
