"""The profiles of several processes in one file, with what was under way between them."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import flambeau
import flambeau.distributed as dist
from flambeau.distributed import profiling
from flambeau.distributed.testing import run_in_threads
from flambeau.nn.parallel import DistributedDataParallel

MINUTES = timedelta(minutes=4)


def trained(rank: int, path: Path) -> None:
    layers = [flambeau.nn.Linear(64, 64) for _ in range(4)]
    model = DistributedDataParallel(flambeau.nn.Sequential(*layers), bucket_cap_mb=0.01)
    x = flambeau.full((8, 64), float(rank))
    for _ in range(2):  # the second pass puts the buckets into the order of gradients
        model(x).sum().backward()
    with flambeau.profiler.profile() as prof:
        model(x).sum().backward()
    profiling.export_trace(prof, path)


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("trace") / "trace.json"
    run_in_threads(lambda rank: trained(rank, path), 2, MINUTES)
    return path


@pytest.fixture(scope="module")
def events(trace: Path) -> list[dict[str, Any]]:
    document = json.loads(trace.read_text())
    assert document["distributedInfo"] == {"backend": "gloo", "rank": 0, "world_size": 2}
    found: list[dict[str, Any]] = document["traceEvents"]
    return found


def test_all_ranks_are_in_one_file(events: list[dict[str, Any]]) -> None:
    names = {event["pid"]: event["args"]["name"] for event in events if event["name"] == "process_name"}
    assert set(names) == {0, 1}
    assert all(name.startswith(f"rank {rank} (process") for rank, name in names.items())
    for rank in range(2):
        ops = [event["name"] for event in events if event["pid"] == rank and event["ph"] == "X"]
        assert ops.count("aten::addmm") == 4


def test_buckets_are_exchanged_while_the_backward_pass_goes_on(events: list[dict[str, Any]]) -> None:
    for rank in range(2):
        own = [event for event in events if event["pid"] == rank]
        starts = {event["id"]: event["ts"] for event in own if event["ph"] == "b"}
        ends = {event["id"]: event["ts"] for event in own if event["ph"] == "e"}
        assert set(starts) == set(ends)
        assert len(starts) == 4
        assert all(starts[each] <= ends[each] for each in starts)
        products = [event["ts"] for event in own if event["ph"] == "X" and event["name"] == "aten::mm"]
        assert min(starts.values()) < max(products)  # the last layer's gradients are on their way by then
        assert {event["name"] for event in own if event["ph"] == "b"} == {"all_reduce, 16,640 bytes"}


def test_how_much_of_the_exchange_is_hidden(trace: Path, tmp_path: Path) -> None:
    for under_way, hidden in profiling.overlap(trace).values():
        assert 0 < hidden <= under_way
    exchange = [{"ph": "b", "id": 1, "ts": 10.0, "pid": 3}, {"ph": "e", "id": 1, "ts": 30.0, "pid": 3}]
    ops = [{"ph": "X", "ts": start, "dur": 8.0, "pid": 3} for start in (5.0, 20.0, 24.0, 40.0)]
    made = tmp_path / "made.json"
    made.write_text(json.dumps({"traceEvents": [*exchange, *ops]}))
    assert profiling.overlap(made) == {3: (20.0, 3.0 + 10.0)}


def test_clocks_of_different_machines_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first one answers by a clock that is an hour ahead."""
    hour = 3_600_000_000_000
    monkeypatch.setattr(profiling, "_clock", lambda: flambeau.tensor([profiling.perf_counter_ns() + hour]))

    def work(rank: int) -> float:
        return profiling._behind_the_first(dist.distributed_c10d._get_default_group(), 1)

    first, second = run_in_threads(work, 2, MINUTES)
    assert first == 0
    assert second == pytest.approx(hour / 1e3, abs=5e6)
