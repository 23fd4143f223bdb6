"""Memory over time, and the page that shows a profile."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest

import flambeau
from flambeau import nn, optim
from flambeau.profiler import profile, record_function
from flambeau.profiler._memory_timeline import CATEGORIES


def _profiled(**options: Any) -> profile:
    flambeau.manual_seed(0)
    net = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 4))
    optimizer = optim.Adam(net.parameters())
    x = flambeau.randn(32, 64)
    with profile(**options) as prof:
        for _ in range(2):
            optimizer.zero_grad()
            net(x).square().sum().backward()
            optimizer.step()
    return prof


@pytest.fixture(scope="module")
def detailed() -> profile:
    return _profiled(profile_memory=True, with_stack=True, with_modules=True, record_shapes=True, with_flops=True)


def test_memory_is_sorted_by_what_it_was_for(detailed: profile) -> None:
    assert detailed.profiler is not None
    timeline = detailed.profiler.memory_timeline()
    found: dict[str, set[tuple[int, ...]]] = {name: set() for name in CATEGORIES}
    for piece in timeline.pieces:
        found[piece.category].add(piece.block.shape)
    assert {(128, 64), (128,), (4, 128), (4,)} <= found["PARAMETER"]
    assert (32, 64) in found["INPUT"]
    assert {(32, 128), (32, 4)} <= found["ACTIVATION"]
    assert {(128, 64), (4, 128)} <= found["GRADIENT"]
    assert {(128, 64), (4, 128)} <= found["OPTIMIZER_STATE"]


def test_the_peak_adds_up_and_names_lines(detailed: profile) -> None:
    assert detailed.profiler is not None
    timeline = detailed.profiler.memory_timeline()
    moment, most, pieces = timeline.peak()
    assert most == sum(piece.block.nbytes for piece in pieces)
    _, sizes = timeline.series()
    assert max(map(sum, sizes)) == most
    assert all(piece.start <= moment for piece in pieces)
    activation = next(piece for piece in pieces if piece.category == "ACTIVATION")
    assert activation.made_by.startswith("aten::")
    assert activation.stack[0].startswith(f"{__file__}(")
    assert activation.stack[0].endswith("_profiled")


def test_memory_that_is_freed_is_seen_to_be() -> None:
    with profile(profile_memory=True) as prof:
        kept = flambeau.ones(1000)
        flambeau.ones(2000)
        kept.sum()
    assert prof.profiler is not None
    pieces = {piece.block.shape: piece for piece in prof.profiler.memory_timeline().pieces}
    assert pieces[1000,].end is None
    assert pieces[2000,].end is not None
    del kept
    again = {piece.block.shape: piece for piece in prof.profiler.memory_timeline().pieces}
    assert again[1000,].end is None, "what goes after the profile lived to its end"


def test_files_of_the_memory_timeline(detailed: profile, tmp_path: Path) -> None:
    detailed.export_memory_timeline(tmp_path / "memory.json", device="cpu")
    times, sizes = json.loads((tmp_path / "memory.json").read_text())
    assert len(times) == len(sizes)
    assert times == sorted(times)
    assert {len(row) for row in sizes} == {len(CATEGORIES) + 1}  # as PyTorch's, whose first column is 0
    assert {row[0] for row in sizes} == {0}
    detailed.export_memory_timeline(tmp_path / "memory.raw.json.gz")
    with gzip.open(tmp_path / "memory.raw.json.gz", "rt") as file:
        assert {change[1] for change in json.load(file)} == {"PREEXISTING", "CREATE", "DESTROY"}
    with pytest.raises(ValueError, match="cuda"):
        detailed.export_memory_timeline(tmp_path / "memory.json", device="cuda:0")
    with pytest.raises(ValueError, match="profile_memory=True"):
        _profiled().export_memory_timeline(tmp_path / "memory.json")


def _data(path: Path) -> Any:
    text = path.read_text(encoding="utf-8")
    assert not re.search(r"""(src|href)\s*=|https?://|import\(|fetch\(""", text), "the page needs nothing else"
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    assert found is not None
    return json.loads(found[1])


def test_page(detailed: profile, tmp_path: Path) -> None:
    detailed.export_page(tmp_path / "page.html", title="A <title> & more")
    data = _data(tmp_path / "page.html")
    assert "<title>A &lt;title&gt; &amp; more</title>" in (tmp_path / "page.html").read_text(encoding="utf-8")
    product = next(op for op in data["ops"] if op["name"] == "aten::addmm")
    assert product["calls"] == 4
    assert product["flops"] == 2 * 2 * 32 * (64 * 128 + 128 * 4)
    assert product["line"].endswith("_profiled")
    assert {event["module"] for event in data["events"] if event["name"] == "aten::addmm"} == {
        "Sequential.0", "Sequential.2",
    }  # fmt: skip
    assert data["memory"]["peak"]["bytes"] == sum(piece["bytes"] for piece in data["memory"]["peak"]["pieces"])
    assert all(0 <= event["start"] <= event["end"] <= data["duration"] + 0.2 for event in data["events"])


def test_text_in_a_page_stays_text(tmp_path: Path) -> None:
    with profile() as prof, record_function("</script><b>"):
        flambeau.ones(2).exp()
    prof.export_page(tmp_path / "page.html")
    data = _data(tmp_path / "page.html")
    assert data["memory"] is None
    assert [event["name"] for event in data["events"] if event["range"]] == ["</script><b>"]


def test_accumulated_cycles() -> None:
    plan = flambeau.profiler.schedule(wait=1, warmup=0, active=1)
    with profile(schedule=plan, acc_events=True) as prof:
        for _ in range(4):
            flambeau.ones(2).exp()
            prof.step()
    assert sum(event.name == "aten::exp" for event in prof.events()) == 2


def test_memory_in_a_trace(detailed: profile, tmp_path: Path) -> None:
    detailed.export_chrome_trace(str(tmp_path / "trace.json"))
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    counters = [event["args"]["bytes"] for event in events if event["ph"] == "C"]
    assert detailed.profiler is not None
    assert max(counters) == detailed.profiler.memory_timeline().peak()[1]
