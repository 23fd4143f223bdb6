"""Collectives beside PyTorch's over Gloo, and what happens where processes do not do the same."""

from __future__ import annotations

import contextlib
import dataclasses
import enum
import os
import re
import signal
import subprocess
import sys
import warnings
from collections.abc import Iterator
from datetime import timedelta
from typing import Any, NamedTuple

import pytest

import flambeau
import flambeau.distributed as dist
from flambeau.distributed.testing import run_in_threads

from ..support.oracle import pytorch
from . import scenarios
from .oracle import gloo

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="forks PyTorch's ranks")
MINUTES = timedelta(minutes=4)


SIZES = (2, 3)


@pytest.fixture(scope="module")
def theirs() -> Iterator[Any]:
    """What PyTorch's ranks find, while Flambeau's look for it too."""
    if pytorch is None:
        pytest.skip("needs PyTorch")
    with gloo("tests.distributed.scenarios", *SIZES) as results:
        yield results


@pytest.fixture(scope="module", params=SIZES)
def found(request: pytest.FixtureRequest, theirs: Any) -> tuple[list[Any], list[Any]]:
    """What the ranks of both libraries found: by rank, and then by scenario."""

    def run(rank: int) -> dict[str, Any]:
        return dict(scenarios.run_all(flambeau, rank, request.param))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ours = run_in_threads(run, request.param, MINUTES)
    return ours, theirs(request.param)


@pytest.mark.parametrize("name", [each.__name__ for each in scenarios.SCENARIOS])
def test_as_gloo(found: tuple[list[Any], list[Any]], name: str) -> None:
    ours, theirs = found
    for rank, (own, expected) in enumerate(zip(ours, theirs, strict=True)):
        assert own[name].__class__ is expected[name].__class__
        if isinstance(own[name], dict):
            assert set(own[name]) == set(expected[name])
            wrong = [key for key in own[name] if repr(own[name][key]) != repr(expected[name][key])]
            details = [(key, own[name][key], expected[name][key]) for key in wrong[:3]]
            assert not wrong, f"rank {rank}: {len(wrong)} differ: {details}"
        else:
            assert own[name] == expected[name], f"rank {rank}"


@pytest.mark.parametrize("size", [2, 3, 5])
def test_large_sums_are_the_same_bits_on_all_ranks(size: int) -> None:
    """In chunks, in parts of unequal length, of numbers whose sum depends on the order."""

    def work(rank: int) -> bytes:
        x = flambeau.randn(1_000_003, generator=flambeau.Generator().manual_seed(rank))
        expected = sum(flambeau.randn(1_000_003, generator=flambeau.Generator().manual_seed(r)) for r in range(size))
        dist.all_reduce(x)
        flambeau.testing.assert_close(x, expected)
        return x.numpy().tobytes()

    results = run_in_threads(work, size, MINUTES)
    assert all(each == results[0] for each in results)


def test_many_in_the_background_and_out_of_order() -> None:
    def work(rank: int) -> None:
        tensors = [flambeau.full((n,), float(rank + 1)) for n in (3, 200_000, 1, 50_000, 7)]
        works = [dist.all_reduce(tensor, async_op=True) for tensor in tensors]
        futures = [work.get_future().then(lambda done: done.value()[0] / 2) for work in works]
        for work in reversed(works):
            work.wait()
        assert all((tensor == 3).all() for tensor in tensors)
        assert [future.wait()[0].item() for future in futures] == [1.5] * 5
        if rank == 0:
            dist.send(flambeau.ones(3), 1, tag=1)
            dist.send(flambeau.full((300_000,), 2.0), 1, tag=2)
        else:
            second, first = flambeau.zeros(300_000), flambeau.zeros(3)
            dist.recv(second, 0, tag=2)
            dist.recv(first, 0, tag=1)
            assert second.sum() == 600_000
            assert first.sum() == 3

    run_in_threads(work, 2, MINUTES)


def test_a_change_is_one_of_version() -> None:
    def work(rank: int) -> None:
        x = flambeau.ones(2, requires_grad=True)
        y = x * 1
        z = y * y
        dist.all_reduce(y.detach())
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            z.sum().backward()

    run_in_threads(work, 2, MINUTES)


@pytest.mark.parametrize(
    ("one", "other", "words"),
    [
        ((2, "float32"), (3, "float32"), "messages of 3 float32"),
        ((2, "float32"), (1, "float64"), "1 float64"),
    ],
)
def test_different_calls_are_an_error_on_every_rank(one: Any, other: Any, words: str) -> None:
    def work(rank: int) -> str:
        count, dtype = one if rank == 0 else other
        with pytest.raises(dist.DistBackendError) as raised:
            dist.all_reduce(flambeau.ones(count, dtype=getattr(flambeau, dtype)))
        return str(raised.value)

    texts = run_in_threads(work, 2, MINUTES)
    assert any("do different things" in text and words in text for text in texts)
    assert all("test_collectives.py" in text for text in texts)


def test_collectives_in_different_order_are_an_error() -> None:
    def call(rank: int) -> None:
        if rank:
            dist.all_reduce(flambeau.ones(2))
        else:
            dist.broadcast(flambeau.ones(2), 1)
            dist.barrier()

    def work(rank: int) -> str:
        with pytest.raises(dist.DistBackendError) as raised:
            call(rank)
        return str(raised.value)

    texts = run_in_threads(work, 2, MINUTES)
    assert any("all_reduce" in text and "broadcast" in text for text in texts)


def test_who_waits_too_long_names_the_rank_and_the_line() -> None:
    def work(rank: int) -> str | None:
        if rank == 1:
            return None  # it leaves only when the others have given up
        with pytest.raises(dist.DistBackendError) as raised:
            dist.all_reduce(flambeau.ones(2), async_op=True).wait(timedelta(seconds=0.3))
        return str(raised.value)

    texts = run_in_threads(work, 2, MINUTES)
    assert "rank 1" in texts[0]
    assert "all_reduce" in texts[0]
    assert "test_collectives.py" in texts[0]


def test_processes_that_wait_for_each_other_say_where_they_are() -> None:
    """In different groups: nothing comes that could be compared, and the first timeout ends it for all."""

    def call(rank: int) -> None:
        part = dist.new_group(timeout=timedelta(seconds=0.5))
        if rank == 0:
            dist.all_reduce(flambeau.ones(2), group=part)
        else:
            dist.broadcast(flambeau.ones(2), 0)

    def work(rank: int) -> str:
        with pytest.raises(dist.DistBackendError) as raised:
            call(rank)
        return str(raised.value)

    first, second = run_in_threads(work, 2, MINUTES)
    cause = (
        r"rank 0 waited 0.5 s for rank 1 in all_reduce, collective 1 of group 1, called at \S*test_collectives.py:\d+"
    )
    assert re.search(cause, first)
    assert re.search(cause, second)
    assert re.search(r"It was in broadcast, collective 1 of group 0, called at \S*test_collectives.py:\d+", second)


def test_a_rank_that_ends_is_named() -> None:
    def work(rank: int) -> str:
        if rank == 2:
            return ""
        with pytest.raises(dist.DistBackendError) as raised:
            dist.all_reduce(flambeau.ones(100_000))
        return str(raised.value)

    texts = run_in_threads(work, 3, MINUTES)
    assert all("rank 2 has" in text for text in texts[:2]), texts


def test_a_monitored_barrier_names_who_is_missing() -> None:
    def work(rank: int) -> str:
        if rank == 1:
            dist.recv(flambeau.zeros(1), 0)
            return ""
        if rank == 0:
            with pytest.raises(RuntimeError, match=r"rank 1 is missing") as raised:
                dist.monitored_barrier(timeout=timedelta(seconds=0.5))
            dist.send(flambeau.ones(1), 1)
            return str(raised.value)
        with pytest.raises(RuntimeError, match="monitored_barrier"):
            dist.monitored_barrier(timeout=timedelta(seconds=0.5))
        return ""

    run_in_threads(work, 3, MINUTES)


def test_objects_of_peers_are_not_executed() -> None:
    class Dangerous:
        def __reduce__(self) -> Any:
            return print, ("executed",)

    def work(rank: int) -> None:
        with pytest.raises(Exception, match="print"):
            dist.all_gather_object([None, None], Dangerous())

    run_in_threads(work, 2, MINUTES)


class _Kind(enum.Enum):
    SMALL = 1
    LARGE = 2


@dataclasses.dataclass
class _Described:
    shape: tuple[int, ...]
    values: Any
    kind: _Kind


class _Named(NamedTuple):
    rank: int
    text: str


def test_records_of_peers_are_read() -> None:
    """Libraries describe with them what they send."""

    def work(rank: int) -> list[Any]:
        found: list[Any] = [None, None]
        dist.all_gather_object(found, (_Described((rank, 2), flambeau.ones(2), _Kind.LARGE), _Named(rank, "x")))
        return found

    for found in run_in_threads(work, 2, MINUTES):
        for rank, (described, named) in enumerate(found):
            assert (described.shape, described.kind, named) == ((rank, 2), _Kind.LARGE, _Named(rank, "x"))
            assert described.values.tolist() == [1.0, 1.0]


def test_ops_are_seen_by_interpreters() -> None:
    from flambeau._dispatch.interpreter import Interpreter

    class Names(Interpreter):
        def __init__(self) -> None:
            self.names: list[str] = []

        def run(self, op: Any, args: Any) -> Any:
            self.names.append(op.name)
            return op(*args)

    def work(rank: int) -> list[str]:
        x = flambeau.ones(2)
        with Names() as seen:
            dist.all_reduce(x)
            dist.broadcast(x, 0)
        assert x.tolist() == [2, 2]
        return list(seen.names)

    assert run_in_threads(work, 2, MINUTES) == [["all_reduce", "broadcast_from_one"]] * 2


FORKING = """
import os, sys, time
import flambeau, flambeau.distributed as dist

rank = int(sys.argv[1])
dist.init_process_group("gloo", "file://" + sys.argv[2], rank=rank, world_size=2)
reading, writing = os.pipe()
child = os.fork()
if child == 0:
    try:
        dist.all_reduce(flambeau.ones(1))
    except dist.DistBackendError as error:
        print("child:", error, flush=True)
    os.write(writing, b"x")
    time.sleep(1000 if rank == 1 else 0)
    os._exit(0)
os.read(reading, 1)
x = flambeau.ones(1)
dist.all_reduce(x)
print("sum", x.item(), "child", child, flush=True)
if rank == 1:
    os._exit(0)  # without a farewell, while its child lives on
try:
    dist.all_reduce(x)
except dist.DistBackendError as error:
    print("error:", error, flush=True)
"""


def test_a_forked_process_holds_no_connection(tmp_path: Any) -> None:
    """Whoever waits for a rank that is gone notices, although a child of that rank lives."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-W", "ignore", "-c", FORKING]
    outputs = [(tmp_path / f"output{rank}") for rank in range(2)]
    processes = []
    try:
        for rank, output in enumerate(outputs):
            with output.open("w") as file:
                arguments = [*command, str(rank), str(tmp_path / "meeting")]
                processes.append(subprocess.Popen(arguments, env=environment, stdout=file))
        assert [process.wait(240) for process in processes] == [0, 0]
        texts = [output.read_text() for output in outputs]
        assert "error: rank 1 has gone" in texts[0]
        assert all("sum 2.0" in text and "was forked" in text for text in texts)
    finally:
        for process in processes:
            process.kill()
            process.wait()
        for pid in re.findall(r"child (\d+)", "".join(output.read_text() for output in outputs)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)


def test_one_process_alone(tmp_path: Any) -> None:
    assert not dist.is_initialized()
    with pytest.raises(ValueError, match="has not been initialized"):
        dist.all_reduce(flambeau.ones(1))
    dist.init_process_group("gloo", f"file://{tmp_path}/meeting", rank=0, world_size=1)
    try:
        x = flambeau.ones(3)
        dist.all_reduce(x)
        assert (dist.get_rank(), dist.get_world_size(), dist.get_backend(), x.tolist()) == (0, 1, "gloo", [1, 1, 1])
        assert dist.group.WORLD is dist.GroupMember.WORLD
    finally:
        dist.destroy_process_group()
    assert not dist.is_initialized()
    assert dist.is_available()
    with pytest.raises(RuntimeError, match="'ucc' is not available"):
        dist.init_process_group("ucc", f"file://{tmp_path}/other", rank=0, world_size=1)
