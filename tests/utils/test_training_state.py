"""Training that is interrupted and resumed: bitwise the losses and weights of training that was not."""

from __future__ import annotations

import copy
import itertools
import json
import random
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flambeau
from flambeau import nn
from flambeau.utils import TrainingState
from flambeau.utils.data import DataLoader, IterableDataset
from tests.utils.training_run import EPOCHS, STEPS, Run, complete, seed_all

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "resume.md"
CASES = [("convnet", 0), ("convnet", 2), ("lstm", 0), ("lstm", 2)]


# ----- whole runs ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "workers"), CASES)
def test_resumed_after_any_step(kind: str, workers: int, tmp_path: Path) -> None:
    run, counter = Run(kind, workers), itertools.count()
    assert list(run.train(lambda: run.state.save(tmp_path / f"{next(counter)}.pt"))) == list(range(1, STEPS + 1))
    saves = STEPS + EPOCHS  # after each step, and after each epoch
    assert len(json.loads(run.result())[0]) == len(list(tmp_path.iterdir())) == saves
    half = saves // 2
    ends = {half - 2, half - 1}  # after the last step of an epoch, and after the epoch
    for moment in range(saves) if workers == 0 else ends | {random.randrange(half - 2), random.randrange(half, saves)}:
        resumed = Run(kind, workers, seed=99)
        assert resumed.state.resume(tmp_path / f"{moment}.pt")
        assert complete(resumed) == run.result(), f"resumed from save {moment} of {saves}"


def test_resumed_with_another_number_of_workers(tmp_path: Path) -> None:
    """Where the samples themselves are not random."""

    def losses(*workers: int) -> list[float]:
        path = tmp_path / f"{workers}.pt"
        for number, each in enumerate(workers):
            state = make(1, number, loader=DataLoader(flambeau.arange(18.0).view(18, 1), 2, True, num_workers=each))
            state.resume(path)
            model, optimizer = state.parts["model"], state.parts["optimizer"]
            for batch in itertools.islice(state.batches(), 9 // len(workers)):
                loss = model(batch).square().mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                state.values.setdefault("losses", []).append(loss.item())
            state.save(path)
        return state.values["losses"]

    assert losses(0) == losses(2, 0, 1)


PROGRAM = """
import random, signal, sys
from pathlib import Path
from tests.utils.training_run import Run

seed, last, folder, *cases = sys.argv[1:]
for case in cases:
    kind, workers = case.split()
    path = Path(folder) / f"{case}.pt"
    run = Run(kind, int(workers), int(seed))
    assert run.state.resume(path) == (seed != "3")
    for step in run.train(lambda: run.state.step % 2 or run.state.save(path)):
        if step == int(last):  # die a moment later, in the middle of whatever is going on then
            signal.setitimer(signal.ITIMER_REAL, random.SystemRandom().uniform(1e-4, 0.04))
    path.with_suffix(".json").write_text(run.result())
"""


def test_killed_and_resumed_in_a_fresh_process(tmp_path: Path) -> None:
    def start(seed: int, last: int, *cases: str) -> Any:
        command = [sys.executable, "-c", PROGRAM, str(seed), str(last), str(tmp_path), *cases]
        return subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True)

    stops = {f"{kind} {workers}": random.randint(2, STEPS - 2) for kind, workers in CASES}
    killed = [start(3, stop, case) for case, stop in stops.items()]
    for process in killed:
        errors = process.communicate(timeout=120)[1]
        assert process.returncode in (-signal.SIGALRM, 0), errors  # 0 where the end came before the signal
    process = start(50, 0, *stops)
    errors = process.communicate(timeout=120)[1]
    assert process.returncode == 0, errors
    for (kind, workers), (case, stop) in zip(CASES, stops.items(), strict=True):
        result = (tmp_path / f"{case}.json").read_text()
        assert result == complete(Run(kind, workers)), f"{case} workers, killed soon after step {stop}"


# ----- the parts ----------------------------------------------------------------------------------------------------


class Average:
    """A part of a program's own."""

    def __init__(self) -> None:
        self.values: list[float] = []

    def state_dict(self) -> dict[str, Any]:
        return {"values": list(self.values)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.values = list(state["values"])


def make(size: int = 2, seed: int = 0, **parts: Any) -> TrainingState:
    seed_all(seed)
    model = nn.Linear(size, 1)
    return TrainingState(model=model, optimizer=flambeau.optim.Adam(model.parameters()), **parts)


def test_generators_of_all_libraries_further_parts_and_values(tmp_path: Path) -> None:
    def everything(seed: int) -> tuple[TrainingState, Any]:
        further = [
            flambeau.Generator().manual_seed(seed),
            random.Random(seed),
            np.random.default_rng(seed),
            np.random.RandomState(seed),
            np.random.Generator(np.random.MT19937(seed)),
        ]
        draws: list[Any] = [
            lambda: flambeau.rand(1).item(),
            lambda: flambeau.randn(1).item(),
            random.random,
            lambda: random.gauss(0, 1),
            np.random.rand,
            np.random.randn,
            lambda: flambeau.rand(1, generator=further[0]).item(),
            lambda: further[1].gauss(0, 1),
            further[2].random,
            further[3].randn,
            further[4].random,
        ]
        scaler = flambeau.amp.GradScaler("cpu", init_scale=2.0**seed)
        state = make(seed=seed, generators=further, scaler=scaler, average=Average())
        return state, draws

    state, draws = everything(1)
    for draw in draws:
        draw()
    state.parts["average"].values += [1.5, 2.5]
    state.values.update(best=0.25, history=[1, (2, "three")], weights=flambeau.ones(2), none=None)
    state.save(tmp_path / "run.pt")
    expected = [draw() for draw in draws]

    other, draws = everything(2)
    assert other.resume(tmp_path / "run.pt")
    assert [draw() for draw in draws] == expected
    assert other.parts["average"].values == [1.5, 2.5]
    assert other.parts["scaler"].get_scale() == 2.0
    assert other.values.pop("weights").tolist() == [1.0, 1.0]
    assert other.values == {"best": 0.25, "history": [1, (2, "three")], "none": None}
    assert not flambeau.serialization.get_unsafe_globals_in_checkpoint(tmp_path / "run.pt")


def test_gradients_are_resumed_or_removed(tmp_path: Path) -> None:
    state = make(loose=flambeau.optim.SGD([flambeau.zeros(2, requires_grad=True)], lr=0.1))
    model = state.parts["model"]
    (loose,) = state.parts["loose"].param_groups[0]["params"]
    model.weight.grad = flambeau.ones(1, 2)
    loose.grad = flambeau.full((2,), 7.0)
    assert set(state.state_dict()["gradients"]) == {"model.weight", "loose.0"}
    state.save(tmp_path / "run.pt")
    model.bias.grad = flambeau.ones(1)
    model.weight.grad += 1
    loose.grad = None
    state.resume(tmp_path / "run.pt")
    assert model.weight.grad.tolist() == [[1.0, 1.0]]
    assert model.bias.grad is None
    assert loose.grad.tolist() == [7.0, 7.0]


def test_a_state_from_memory() -> None:
    first, second = make(), make(seed=5)
    second.load_state_dict(first.state_dict())
    for name, value in first.parts["model"].state_dict().items():
        assert flambeau.equal(value, second.parts["model"].state_dict()[name])
    assert repr(first) == "TrainingState(model=Linear, optimizer=Adam) at epoch 0, step 0"


# ----- the loops ----------------------------------------------------------------------------------------------------


def loader_of(count: int = 5, **options: Any) -> Any:
    return DataLoader(range(count), None, **options)


def resumed(state: TrainingState, **parts: Any) -> TrainingState:
    fresh = TrainingState(loader=loader_of(), **parts)
    fresh.load_state_dict(state.state_dict())
    return fresh


def walk(state: TrainingState, epochs: int = 2) -> Iterator[tuple[int, int, int]]:
    for epoch in state.epochs(epochs):
        for batch in state.batches():
            yield epoch, state.step, batch


def test_epochs_and_steps_are_counted_on() -> None:
    whole = list(walk(TrainingState(loader=loader_of())))
    assert whole == [(epoch, epoch * 5 + batch + 1, batch) for epoch in range(2) for batch in range(5)]
    state = TrainingState(loader=loader_of())
    for position, _ in enumerate(walk(state), 1):
        assert list(walk(resumed(state))) == whole[position:]
    assert (state.epoch, state.step) == (2, 10)
    assert not list(walk(resumed(state)))
    assert [epoch for epoch, _, _ in walk(state, 3)] == [2] * 5


def test_a_save_after_the_batches_ends_the_epoch() -> None:
    state = TrainingState(loader=loader_of())
    for epoch in state.epochs(2):
        for batch in state.batches():
            if batch == 3 and epoch == 0:
                break
        follows = resumed(state)
        assert follows.epoch == epoch + 1
        assert [batch for _, _, batch in walk(follows, 3)] == [0, 1, 2, 3, 4] * (2 - epoch)


def fail_after_first(state: TrainingState, seen: list[Any]) -> None:
    for each in walk(state):
        seen.append(each)
        raise KeyError("trouble")


@pytest.mark.parametrize("workers", [0, 2])
def test_loops_that_were_left_are_continued(workers: int) -> None:
    """By an error, or by leaving both loops: in the same process as after a resume."""
    state = TrainingState(loader=loader_of(shuffle=True, num_workers=workers))
    seed_all(4)
    whole = [*walk(state)]
    state = TrainingState(loader=loader_of(shuffle=True, num_workers=workers))
    seed_all(4)
    seen = list(itertools.islice(walk(state), 7))
    with pytest.raises(KeyError, match="trouble"):
        fail_after_first(state, seen)
    saved = state.state_dict()
    assert seen + [*walk(state)] == whole
    flambeau.rand(9)
    state.load_state_dict(saved)
    assert seen + [*walk(state)] == whole


def test_without_epochs_each_pass_is_one() -> None:
    state = TrainingState(loader=loader_of())
    seen = []
    while state.step < 8:
        for batch in state.batches():
            seen.append((state.epoch, batch))
            if state.step == 8:
                break
    assert seen == [(0, 0), (0, 1), (0, 2), (0, 3), (0, 4), (1, 0), (1, 1), (1, 2)]
    assert list(resumed(state).batches()) == list(state.batches()) == [3, 4]


def test_without_a_loader_a_save_ends_the_epoch(tmp_path: Path) -> None:
    state = make()
    for _ in state.epochs(4):
        state.save(tmp_path / "run.pt")
        if state.epoch == 1:
            break
    again = make()
    again.resume(tmp_path / "run.pt")
    assert list(again.epochs(4)) == list(state.epochs(4)) == [2, 3]


def test_what_stands_before_the_batches_is_repeated_without_effect() -> None:
    def run(state: TrainingState, stop: int | None = None) -> Any:
        log = []
        for _ in state.epochs(2):
            state.values.setdefault("drawn", []).clear()
            offset = random.random()
            if state.step % 5:  # the epoch is continued: a save now is as good as the one that was resumed from
                early = TrainingState(loader=loader_of())
                early.load_state_dict(state.state_dict())
                assert early.values["drawn"] == log_of_all[state.step - 1][1]
            for _ in state.batches():
                state.values["drawn"].append(flambeau.rand(1).item())
                log.append((offset, list(state.values["drawn"])))
                if state.step == stop:
                    return log
        return log

    log_of_all: list[Any] = []
    seed_all(8)
    log_of_all += run(TrainingState(loader=loader_of()))
    for stop in range(1, 11):
        seed_all(8)
        state = TrainingState(loader=loader_of())
        log = run(state, stop)
        saved = copy.deepcopy(state.state_dict())
        assert log + run(state) == log_of_all
        seed_all(80)
        again = TrainingState(loader=loader_of())
        again.load_state_dict(saved)
        assert log + run(again) == log_of_all


class Stream(IterableDataset[float]):
    """Random samples without a length."""

    def __iter__(self) -> Any:
        return (flambeau.rand(1).item() for _ in range(6))


def test_streams() -> None:
    def make_one() -> TrainingState:
        return TrainingState(loader=DataLoader(Stream(), 2))

    seed_all(8)
    whole = [batch.tolist() for batch in make_one().batches()]
    seed_all(8)
    state = make_one()
    batches = state.batches()
    first = next(batches).tolist()
    again = make_one()
    again.load_state_dict(state.state_dict())
    assert [first, *(batch.tolist() for batch in again.batches())] == whole


def test_the_first_step_of_a_schedule_after_a_resume_does_not_warn(tmp_path: Path) -> None:
    def start() -> tuple[TrainingState, Any]:
        state = make(loader=loader_of())
        schedule = flambeau.optim.lr_scheduler.ExponentialLR(state.parts["optimizer"], 0.5)
        return state, schedule

    state, _ = start()
    for _ in state.batches():
        state.parts["optimizer"].step()
        state.save(tmp_path / "run.pt")
    state, schedule = start()
    state.resume(tmp_path / "run.pt")
    assert not list(state.batches())
    schedule.step()  # a warning is an error here
    assert schedule.get_last_lr() == [0.0005]


# ----- errors -------------------------------------------------------------------------------------------------------


def test_wrong_use() -> None:
    with pytest.raises(TypeError, match="scheduler must have state_dict and load_state_dict, but int has not"):
        TrainingState(scheduler=3)
    with pytest.raises(TypeError, match=r"generators\[1\] is str"):
        TrainingState(generators=[flambeau.Generator(), "seed"])
    with pytest.raises(RuntimeError, match=r"batches\(\) needs a loader"):
        next(TrainingState().batches())
    state = TrainingState(loader=loader_of())
    with pytest.raises(RuntimeError, match=r"epoch 0 ended without a loop over batches\(\)"):
        list(state.epochs(2))
    state = TrainingState(loader=loader_of())
    for _ in state.epochs(1):
        with pytest.raises(RuntimeError, match=r"before its loop over batches\(\) has begun"):
            state.state_dict()
        for _ in state.batches():
            with pytest.raises(RuntimeError, match="not within another loop"):
                next(state.batches())
            with pytest.raises(RuntimeError, match="cannot be loaded within a loop"):
                state.load_state_dict(state.state_dict())
        with pytest.raises(RuntimeError, match="once in each epoch"):
            next(state.batches())
        with pytest.raises(RuntimeError, match="within another loop over epochs"):
            next(state.epochs(3))


def mismatches() -> dict[str, tuple[Any, str]]:
    def exchanged(**parts: Any) -> TrainingState:
        state = make(loader=loader_of())
        return TrainingState(**(state.parts | parts))

    other = nn.Linear(2, 1)
    return {
        "missing part": (
            lambda: exchanged(optimizer=None),
            "'optimizer' was saved but not given to this TrainingState",
        ),
        "further part": (lambda: exchanged(average=Average()), "'average' was given but not saved"),
        "both": (lambda: exchanged(model=None, net=other), "'model' was saved but .*; 'net' was given but not saved"),
        "optimizer": (
            lambda: exchanged(optimizer=flambeau.optim.SGD(other.parameters(), lr=0.1)),
            "optimizer was of the type Adam when saved, but is SGD here",
        ),
        "shape": (lambda: make(3, loader=loader_of()), r"the saved state of model does not fit: .*size mismatch"),
        "groups": (
            lambda: exchanged(optimizer=flambeau.optim.Adam([other.weight])),
            "the saved state of optimizer does not fit: .*parameter group",
        ),
        "generators": (
            lambda: exchanged(generators=random.Random(0)),
            r"generators were \[\] when saved, but are \[random.Random\] here",
        ),
        "data": (
            lambda: exchanged(loader=loader_of(6)),
            "in the middle of an epoch of 5 batches, but the loader has 6 here",
        ),
    }


@pytest.mark.parametrize("name", mismatches())
def test_a_file_that_does_not_fit(name: str, tmp_path: Path) -> None:
    state = make(loader=loader_of())
    batches = state.batches()
    next(batches)
    state.save(tmp_path / "run.pt")
    other, message = mismatches()[name]
    with pytest.raises((ValueError, RuntimeError), match=f"(?s)cannot resume from .*run.pt: .*{message}"):
        other().resume(tmp_path / "run.pt")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"weight": 1, "bias": 2}, "expected the state of a TrainingState, but got a dict of 'weight', 'bias'"),
        ([1], "expected the state of a TrainingState, but got list"),
        ({"training_state_version": 9}, "of version 1, but got version 9"),
    ],
)
def test_a_file_of_another_kind(content: Any, message: str, tmp_path: Path) -> None:
    flambeau.save(content, tmp_path / "run.pt")
    with pytest.raises(ValueError, match=re.escape(message)):
        make().resume(tmp_path / "run.pt")


def test_no_file(tmp_path: Path) -> None:
    assert not make().resume(tmp_path / "run.pt")


class Custom:
    """A class that a file may not name."""


def test_what_could_not_be_loaded_is_not_saved(tmp_path: Path) -> None:
    state = make()
    state.save(tmp_path / "run.pt")
    before = (tmp_path / "run.pt").read_bytes()
    state.values["custom"] = Custom()
    with pytest.raises(
        TypeError, match=r"the state of values has objects .*: tests\.utils\.test_training_state\.Custom"
    ):
        state.save(tmp_path / "run.pt")
    assert (tmp_path / "run.pt").read_bytes() == before
    with flambeau.serialization.safe_globals([Custom]):
        state.save(tmp_path / "run.pt")
        assert state.resume(tmp_path / "run.pt")


# ----- the package --------------------------------------------------------------------------------------------------


def test_loads_on_first_use() -> None:
    program = "import sys, flambeau.utils; print('flambeau.utils.training_state' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert run.stdout == "False\n"


def test_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """The program of docs/resume.md prints what the page shows, and the same when it is interrupted and run again."""
    text = PAGE.read_text(encoding="utf-8")
    program, further = re.findall(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    (shown,) = re.findall(r"^```text\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    monkeypatch.chdir(tmp_path)
    whole: dict[str, Any] = {}
    exec(program + further, whole)
    assert capsys.readouterr().out == shown
    assert list(whole["state"].parts) == ["model", "optimizer", "averaged"]

    (tmp_path / "run.pt").unlink()
    forward, count = nn.Dropout.forward, itertools.count()

    def interrupted(self: Any, input: Any) -> Any:
        if next(count) in (5, 30):
            raise InterruptedError
        return forward(self, input)

    monkeypatch.setattr(nn.Dropout, "forward", interrupted)
    for _ in range(2):
        with pytest.raises(InterruptedError):
            exec(program, {})
    resumed: dict[str, Any] = {}
    exec(program, resumed)
    assert capsys.readouterr().out == shown
    for name, value in whole["model"].state_dict().items():
        assert flambeau.equal(resumed["model"].state_dict()[name], value)
