"""Programs beside the calls that they stand for: nothing differs, and what was broken on purpose is found and named."""

from __future__ import annotations

import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flambeau as torch
from flambeau import nn
from flambeau.compiler._errors import WrongProgram
from flambeau.compiler.capture.guards import State
from flambeau.compiler.emit import source as _emit
from flambeau.compiler.plan import builder, first_run, segment
from flambeau.compiler.tools.verify import Verification

X = torch.linspace(-2, 2, 12).reshape(3, 4)
HISTORY: list[float] = []


@pytest.fixture
def tanh_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs compute another `tanh` than ops do, where it is large."""
    lowered = _emit.lowered

    def broken(call: Any) -> Any:
        run = lowered(call)
        if call.op.name != "tanh":
            return run
        return lambda x: np.where(x > 1, run(x) + np.float32(1e-6), run(x)).astype(x.dtype)

    for module in (_emit, builder, first_run):
        monkeypatch.setattr(module, "lowered", broken)


@pytest.fixture
def kernels_fail_on_nan(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fused kernels are wrong if there is a NaN in what they read: not so when they are made."""
    fused = segment.fused

    def broken(*args: Any) -> Any:
        launches = fused(*args)
        for each in launches:
            function, given, options = each.calls[0]
            if "pointwise" in getattr(function, "__name__", ""):
                each.calls = ((_wrong_for_nan(function), given, options),)
        return launches

    monkeypatch.setattr(segment, "fused", broken)


def _wrong_for_nan(function: Callable[..., Any]) -> Callable[..., Any]:
    def run(*arrays: Any) -> Any:
        function(*arrays)
        if any(np.isnan(each).any() for each in arrays[1:]):
            arrays[0][...] = 0

    return run


def network() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Linear(4, 8), nn.LayerNorm(8), nn.GELU(), nn.Dropout(0.4), nn.BatchNorm1d(8), nn.Linear(8, 3)
    )


def test_a_module_and_its_backward_pass() -> None:
    found = torch.compiler.verify(network(), X)
    assert found.equal, found
    assert found.startswith("equal: 1 call, ")
    assert found.difference is None


def test_a_step_of_training_goes_on_as_it_would() -> None:
    def run(verified: bool) -> list[Any]:
        model = network()
        optimizer = torch.optim.AdamW(model.parameters(), 0.1)

        def step(x: Any, y: Any) -> Any:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            return loss.item()

        made = torch.compile(step, backend="verify") if verified else step
        losses = [made(X + turn, torch.tensor([0, 1, 2])) for turn in range(7)]
        if verified:
            assert made._run.verified == 5
        return [losses, torch.rand(2).tolist(), model[0].weight.tolist()]

    assert run(True) == run(False)


def _with_a_break(x: Any) -> Any:
    y = (x * 2).relu() + 1
    HISTORY.append(y.mean().item())
    return y.exp() - x


def test_parts_of_a_function() -> None:
    found = torch.compiler.verify(_with_a_break, X)
    assert found.equal, found
    assert "it changes Python state" in found


def test_nothing_to_compare() -> None:
    found = torch.compiler.verify(lambda x: id(x), X)
    assert not found.equal
    assert found.startswith("nothing is compiled")


def _through_tanh(x: Any, weight: Any) -> Any:
    product = x @ weight
    squashed = product.tanh()
    return (squashed * 2).sum()


def _blamed(found: Verification, op: str, line: str, ops: list[str]) -> None:
    assert not found.equal
    difference = found.difference
    assert difference is not None
    assert [each.op.name for each in difference.calls] == ops
    assert found.startswith(f"{op} gives something else")
    assert f'test_verify.py:{_line_of(line)}: "{line}"' in found


def _line_of(line: str) -> int:
    return next(
        number for number, each in enumerate(Path(__file__).read_text().splitlines(), 1) if each.strip() == line
    )


@pytest.mark.usefixtures("tanh_is_wrong")
def test_a_broken_lowering_is_named_with_its_line() -> None:
    found = torch.compiler.verify(_through_tanh, X, 2 * torch.eye(4))
    _blamed(found, "tanh", "squashed = product.tanh()", ["tanh"])
    assert "of 12 elements of float32[3, 4]" in found


def _elementwise(x: Any, y: Any) -> Any:
    scaled = x * 2
    moved = scaled + y
    return torch.relu(moved) - 1.5


@pytest.mark.usefixtures("kernels_fail_on_nan")
def test_a_kernel_that_fails_later_is_named_with_its_ops() -> None:
    made = torch.compile(_elementwise, backend="verify")
    for _ in range(5):
        made(X + 2, X + 1)
    with pytest.raises(WrongProgram, match=r"add gives something else in the kernel of mul -> add"):
        made(X.log(), X.clone())


def test_stale_checks_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the walk over Python state overlooked something, here what is in lists, the ops of a call would be others."""
    look_into = State._container

    def overlooking(self: State, value: Any, place: str, *how: bool) -> None:
        if type(value) is not list:
            look_into(self, value, place, *how)

    monkeypatch.setattr(State, "_container", overlooking)
    scale = [2.0]

    def scaled(x: Any) -> Any:
        return x * scale[0]

    stale, verified = torch.compile(scaled), torch.compile(scaled, backend="verify")
    for _ in range(4):
        stale(X), verified(X)
    scale[0] = 3.0
    assert torch.equal(stale(X), X * 2)  # it is that bad
    with pytest.raises(
        WrongProgram, match=r"hold for a call that does something else: mul\(v0, 2\.0\) .*mul\(v0, 3\.0\)"
    ):
        verified(X)


def test_what_elements_decide_is_not_stale() -> None:
    made = torch.compile(lambda x: x * 2 if x.sum() > 0 else x - 1, backend="verify")
    for _ in range(5):
        made(X + 1)
    verified = made._run.verified
    assert verified
    assert torch.equal(made(X - 9), X - 10)
    made(X + 1)
    assert made._run.verified == verified + 1


@pytest.mark.usefixtures("tanh_is_wrong")
def test_minify_writes_a_program_that_shows_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = torch.compiler.minify(_through_tanh, (X, 2 * torch.eye(4)), tmp_path / "small.py")
    assert path == tmp_path / "small.py"
    text = path.read_text()
    assert text.count(" = op_") == 1
    assert "squashed = product.tanh()" in text
    runpy.run_path(str(path))
    assert "tanh gives something else" in capsys.readouterr().out


def test_minify_without_a_difference(tmp_path: Path) -> None:
    assert torch.compiler.minify(_through_tanh, (X, torch.eye(4)), tmp_path / "small.py") is None
    assert not list(tmp_path.iterdir())
