"""Looking inside: what `explain` says, as text and as a page."""

from __future__ import annotations

import gc
import json
import re
from pathlib import Path
from typing import Any

import pytest

import flambeau as torch
from flambeau import nn
from flambeau._core.arrays.abstract import AbstractArray

X = torch.linspace(-2, 2, 12).reshape(3, 4)


def compiled_step() -> Any:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    losses = []

    @torch.compile
    def step(x: Any) -> None:
        optimizer.zero_grad()
        loss = model(x).square().sum()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())

    for _ in range(12):
        step(X)
    return step


def document(page: str) -> Any:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    return json.loads(found[1])


def test_stages_have_ops_lines_and_times() -> None:
    step = compiled_step()
    plain = torch.compiler.explain(step)
    assert not plain.is_whole
    assert any("looks at the elements" in each for each in plain.reasons)
    stages = [stage for program in plain.programs for stage in vars(program)["stages"]]
    assert all(each.seconds is None for each in stages)
    measured = torch.compiler.explain(step, X)
    stages = [stage for program in measured.programs for stage in vars(program)["stages"]]
    runners = [each for each in stages if each.kind == "schedule"]
    assert runners
    assert all(each.seconds is not None and each.seconds > 0 and each.calls for each in runners)
    lines = [step.line[2] for each in runners for step in each.steps]
    assert "loss = model(x).square().sum()" in lines
    assert "loss.backward()" in lines
    table = measured.table()
    assert "Optimizer.zero_grad" in table
    assert "4 gradients" in table
    assert re.search(r"\d+\.\d us .* schedule ", table)


def test_gradients_let_go_leave_their_identity_to_nobody() -> None:
    """What a call lets go may lie where it makes something next: a recorder must not take one for the other."""
    step = compiled_step()
    for _ in range(12):
        assert torch.compiler.explain(step, X).programs


def test_the_page_needs_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    torch.compiler.explain(compiled_step()).save(path)
    page = path.read_text(encoding="utf-8")
    assert "http" not in page.replace("http://www.w3.org/2000/svg", "")
    assert "__DATA__" not in page
    told = document(page)
    assert told["title"].endswith("step")
    program = told["programs"][0]
    assert any("<Parameter float32[8, 4]>" in each for each in program["checks"])
    names = [step["name"] for stage in program["stages"] for step in stage["steps"]]
    assert "addmm" in names
    sources = [call["source"] for stage in program["stages"] for call in stage["calls"]]
    assert any("store t" in each for each in sources)


def test_names_on_the_page_are_text(tmp_path: Path) -> None:
    def f(x: Any) -> Any:
        return x * 2

    f.__qualname__ = "</script><script>alert(1)"
    made = torch.compile(f)
    for _ in range(4):
        made(X)
    torch.compiler.explain(made).save(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "alert(1)" in page
    assert "<script>alert(1)" not in page


def test_what_is_not_compiled_has_no_explanation() -> None:
    with pytest.raises(TypeError, match=r"takes what torch\.compile has given"):
        torch.compiler.explain(compiled_step)


def test_in_the_words_of_pytorch() -> None:
    history: list[Any] = []

    def f(x: Any) -> Any:
        y = (x * 2).relu() + 1
        history.append(y.mean().item())
        return y.exp() - x

    told = torch._dynamo.explain(f)(X)
    assert (told.graph_count, told.graph_break_count) == (2, 1)
    assert told.ops_per_graph == [["mul", "relu", "add"], ["exp", "sub"]]
    assert told.op_count == 5
    assert str(told).startswith("Graph Count: 2\nGraph Break Count: 1\nOp Count: 5\n")
    assert torch._dynamo.explain(torch.relu, X).graph_break_count == 0


@pytest.mark.parametrize("dynamic", [None, True])
def test_what_is_told_keeps_no_arrays(dynamic: bool | None) -> None:
    layer = nn.Linear(5, 13)
    made = torch.compile(lambda x: (layer(x).relu() * 2).sum(), dynamic=dynamic)
    for _ in range(5):
        made(torch.ones(7, 5)).backward()
    assert torch.compiler.explain(made).programs
    gc.collect()
    alive = [each for each in gc.get_objects() if issubclass(type(each), torch.Tensor)]
    with_elements = [each for each in alive if type(each._array) is not AbstractArray]  # others hold no memory
    assert not [each for each in with_elements if tuple(each.shape) == (7, 13)]
