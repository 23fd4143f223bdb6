"""Ledgers: two runs compared step by step, and a continued run that checks itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import flambeau
from flambeau import nn
from flambeau._cli.main import main
from flambeau.utils import TrainingState
from flambeau.utils.data import DataLoader, TensorDataset
from flambeau.utils.ledger import Ledger, first_difference, read


def train(
    folder: Path, name: str, *, until: int = 8, rate: float = 0.1, wrong_from: int = 99, checkpoint: Any = None
) -> list[float]:
    flambeau.manual_seed(0)
    inputs = flambeau.randn(32, 4)
    model = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.2), nn.Linear(8, 1))
    optimizer = flambeau.optim.Adam(model.parameters(), lr=rate)
    loader = DataLoader(TensorDataset(inputs, inputs.sum(1, keepdim=True)), batch_size=4, shuffle=True)
    state = TrainingState(model=model, optimizer=optimizer, loader=loader)
    state.resume(checkpoint or folder / f"{name}.pt")
    ledger = Ledger(folder / f"{name}.ledger", model=model, start=state.step)
    losses = []
    for _ in state.epochs(1):
        for x, y in state.batches():
            scale = 1.5 if state.step >= wrong_from else 1.0
            loss = nn.functional.mse_loss(model(x) * scale, y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            ledger.step(loss, batch=(x, y))
            losses.append(loss.item())
            if state.step % 3 == 0 and checkpoint is None:
                state.save(folder / f"{name}{state.step}.pt")
                ledger.checkpoint(folder / f"{name}{state.step}.pt")
            if state.step == until:
                return losses
    return losses


def test_equal_runs_have_equal_ledgers(tmp_path: Path) -> None:
    assert train(tmp_path, "one") == train(tmp_path, "other")
    assert [line["step"] for line in read(tmp_path / "one.ledger")] == list(range(1, 9))
    assert first_difference(tmp_path / "one.ledger", tmp_path / "other.ledger") is None


def test_the_first_step_that_differs_is_found_and_compared_from_its_checkpoint(tmp_path: Path) -> None:
    train(tmp_path, "one")
    train(tmp_path, "other", wrong_from=5)
    found = first_difference(tmp_path / "one.ledger", tmp_path / "other.ledger")
    assert found is not None
    assert found.step == 5
    assert found.fields[0] == "loss"
    assert {"gradient_norm", "parameters"} <= set(found.fields)
    assert found.after == 3
    assert "step 5 is the first that differs: loss" in str(found)

    (tmp_path / "again").mkdir()
    compared = found.compare(
        lambda path: train(tmp_path / "again", "one", checkpoint=path),
        lambda path: train(tmp_path / "again", "other", wrong_from=5, checkpoint=path),
    )
    assert compared.entry is not None
    assert compared.entry.name == "mul"
    assert compared.entry.step == 1  # the second after the checkpoint
    assert "model(x) * scale" in compared.entry.line


def test_another_batch_is_named_before_what_follows_from_it(tmp_path: Path) -> None:
    weight = flambeau.ones(3, requires_grad=True)
    for name, value in (("one", 1.0), ("other", 2.0)):
        batch = flambeau.full((3,), value)
        loss = (weight * batch).sum()
        weight.grad = None
        loss.backward()
        Ledger(tmp_path / name, model=[weight]).step(loss, batch={"x": batch})
    found = first_difference(tmp_path / "one", tmp_path / "other")
    assert found is not None
    assert found.fields == ("batch", "loss", "gradient_norm")


def test_a_resumed_run_is_the_run_that_was_not_stopped(tmp_path: Path) -> None:
    whole = train(tmp_path, "run")
    lines = read(tmp_path / "run.ledger")
    again = train(tmp_path, "run", checkpoint=tmp_path / "run3.pt")  # each step is compared with its line
    assert again == whole[3:]
    assert read(tmp_path / "run.ledger") == lines


def test_a_run_that_is_continued_wrongly_is_refused(tmp_path: Path) -> None:
    train(tmp_path, "run")
    with pytest.raises(RuntimeError, match=r"step 6 is not the one in .*: loss was .* and is"):
        train(tmp_path, "run", checkpoint=tmp_path / "run3.pt", wrong_from=6)


def test_a_line_that_was_cut_off_is_written_again(tmp_path: Path) -> None:
    path = tmp_path / "run.ledger"
    train(tmp_path, "run")
    text = path.read_text(encoding="utf-8")
    path.write_text(text[:-20], encoding="utf-8")
    assert [line["step"] for line in read(path)] == list(range(1, 8))
    path.write_text("no ledger\n", encoding="utf-8")
    with pytest.raises(ValueError, match="is not a line of a ledger"):
        read(path)


def test_the_command_compares_ledgers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    train(tmp_path, "one", until=4)
    train(tmp_path, "other", until=4, rate=0.2)
    one, other = str(tmp_path / "one.ledger"), str(tmp_path / "other.ledger")
    assert main(["compare", one, other]) == 1
    assert "step 1 is the first that differs: parameters" in capsys.readouterr().out
    assert main(["compare", one, one]) == 0
