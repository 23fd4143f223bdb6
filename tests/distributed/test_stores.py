"""Stores, beside PyTorch's, and beside those who do not speak their language."""

from __future__ import annotations

import os
import random
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import flambeau.distributed as dist
from flambeau.distributed import _rendezvous

from ..support.oracle import pytorch

KINDS = ("HashStore", "FileStore", "TCPStore", "PrefixStore")
SOON, LATER = timedelta(milliseconds=200), timedelta(seconds=120)


def made(library: Any, kind: str, folder: Path) -> Any:
    if kind == "HashStore":
        return library.HashStore()
    if kind == "FileStore":
        return library.FileStore(str(folder / f"{library.__name__}.store"), 1)
    store = library.TCPStore("127.0.0.1", 0, None, True, LATER)
    return store if kind == "TCPStore" else library.PrefixStore("part", store)


def error_of(action: Callable[[], Any]) -> str:
    try:
        return f"no error: {action()}"
    except Exception as error:  # some of PyTorch's stores raise a class of their own, others its base
        return "RuntimeError" if isinstance(error, RuntimeError) else type(error).__name__


def observed(library: Any, kind: str, folder: Path) -> list[Any]:
    store = made(library, kind, folder)
    store.set("a", "text")
    store.set("b", "0")
    found = [
        store.get("a"), store.get("b"), store.add("n", 3), store.add("n", -5), store.get("n"),
        store.check(["a", "b"]), store.check(["a", "none"]), store.delete_key("a"), store.delete_key("a"),
        store.check(["a"]), store.compare_set("b", "1", "x"), store.compare_set("b", "0", "y"), store.get("b"),
        store.compare_set("new", "", "z"), store.get("new"),
    ]  # fmt: skip
    store.wait(["b"], SOON)
    store.set_timeout(SOON)
    found.append(store.timeout)
    found += [error_of(lambda: store.wait(["none"], SOON)), error_of(lambda: store.get("none"))]
    if kind == "TCPStore":
        store.append("long", "ab")
        store.append("long", "cd")
        store.multi_set(["m1", "m2"], ["1", "2"])
        found += [store.get("long"), store.multi_get(["m1", "m2"]), store.host]
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_as_pytorch(kind: str, tmp_path: Path) -> None:
    if pytorch is None:
        pytest.skip("needs PyTorch")
    import torch.distributed as theirs

    expected = observed(theirs, kind, tmp_path)
    assert observed(dist, kind, tmp_path) == expected


@pytest.mark.parametrize("kind", KINDS)
def test_queues_and_keys(kind: str, tmp_path: Path) -> None:
    store = made(dist, kind, tmp_path)
    store.queue_push("q", b"1")
    store.queue_push("q", b"2")
    assert (store.queue_len("q"), store.queue_pop("q"), store.queue_pop("q"), store.queue_len("q")) == (
        2,
        b"1",
        b"2",
        0,
    )
    with pytest.raises(dist.DistStoreError):
        store.queue_pop("q", block=False)
    store.set("k", b"\x00\xff")
    assert store.get("k") == b"\x00\xff"
    assert store.list_keys() == ["k"]
    with pytest.raises(dist.DistStoreError, match="no number"):
        store.add("k", 1)


def test_waiting_for_another_thread() -> None:
    for kind in ("HashStore", "TCPStore"):
        store = made(dist, kind, Path())
        other = store.clone()
        timer = threading.Timer(0.05, lambda other=other: other.set("late", "here"))
        timer.start()
        store.wait(["late"], LATER)
        assert store.get("late") == b"here"
        timer.join()


def test_a_file_is_shared_by_processes(tmp_path: Path) -> None:
    path = tmp_path / "store"
    program = (
        "import sys, flambeau.distributed as d\n"
        f"s = d.FileStore({str(path)!r})\n"
        "[s.add('n', 1) for _ in range(50)]\n"
        "s.set('from ' + sys.argv[1], 'x' * 1000)\n"
    )
    store = dist.FileStore(str(path))
    command = [sys.executable, "-c", program]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    processes = [subprocess.Popen([*command, str(number)], env=environment) for number in range(2)]
    try:
        assert [process.wait(120) for process in processes] == [0, 0]
    finally:
        for process in processes:
            process.kill()
    assert store.add("n", 0) == 100
    assert store.get("from 1") == b"x" * 1000


def test_a_half_written_record_of_a_killed_process_is_no_harm(tmp_path: Path) -> None:
    path = tmp_path / "store"
    store = dist.FileStore(str(path))
    store.set("a", "1")
    with path.open("ab") as file:
        file.write(b"\x00\x03\x00\x00")
    store.set("b", "2")
    assert dist.FileStore(str(path)).multi_get(["a", "b"]) == [b"1", b"2"]


def test_garbage_from_strangers_is_no_harm() -> None:
    """100 strangers with random bytes, half of which begin as a client does; the store answers as before."""
    store = dist.TCPStore("127.0.0.1", 0, None, True, LATER)
    store.set("kept", "safe")
    numbers = random.Random(0)
    greeting = b"flambeau store 1\n"
    for attempt in range(100):
        with socket.create_connection(("127.0.0.1", store.port), timeout=60) as stranger:
            data = numbers.randbytes(numbers.choice((1, 5, 40, 3000)))
            stranger.sendall((greeting if attempt % 2 else b"") + data)
            if attempt % 3 == 0:
                stranger.shutdown(socket.SHUT_WR)
        assert store.get("kept") == b"safe"
    assert store.list_keys()[0] == "kept"


def test_nobody_answers() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        with pytest.raises(dist.DistNetworkError, match="timed out"):
            dist.TCPStore("127.0.0.1", unused.getsockname()[1], timeout=timedelta(seconds=0.3))
    with pytest.raises(dist.DistStoreError, match="1/2 clients joined"):
        dist.TCPStore("127.0.0.1", 0, 2, True, timedelta(seconds=0.3))


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "here", "MASTER_PORT": "5"}, ("here", 5, 1, 2)),
        ({"SLURM_PROCID": "3", "SLURM_NTASKS": "4", "SLURM_JOB_NODELIST": "n[07-9,12]", "SLURM_JOB_ID": "7"},
         ("n07", 21346, 3, 4)),
        ({"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_LOCAL_SIZE": "2",
          "MASTER_PORT": "9"}, ("127.0.0.1", 9, 0, 2)),
    ],
)  # fmt: skip
def test_what_launchers_say(variables: dict[str, str], expected: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith(("SLURM", "OMPI", "PMI", "MASTER", "RANK", "WORLD_SIZE", "TORCHELASTIC")):
            monkeypatch.delenv(name)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(_rendezvous, "_tcp_store", lambda address, port, rank, size, timeout: (address, port))
    (address, port), rank, size = next(_rendezvous.rendezvous("env://"))
    assert (address, port, rank, size) == expected


def test_places_to_meet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, *numbers = next(_rendezvous.rendezvous(f"file://{tmp_path}/meeting?rank=1", world_size=2))
    store.set("a", "b")
    other = dist.FileStore(f"{tmp_path}/meeting")
    assert (numbers, other.get("a")) == ([1, 2], b"b")
    monkeypatch.setattr(_rendezvous, "_tcp_store", lambda address, port, rank, size, timeout: (address, port))
    assert next(_rendezvous.rendezvous("tcp://here:5?rank=1&world_size=2")) == (("here", 5), 1, 2)
    assert next(_rendezvous.rendezvous("tcp://[::1]:7", 0, 3)) == (("::1", 7), 0, 3)
    with pytest.raises(ValueError, match="port number missing"):
        next(_rendezvous.rendezvous("tcp://here", 0, 1))
    with pytest.raises(ValueError, match="rank parameter missing"):
        next(_rendezvous.rendezvous("tcp://here:5", world_size=1))


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ValueError, match="environment variable RANK expected"):
        dist.init_process_group("gloo")
    with pytest.raises(RuntimeError, match="No rendezvous handler for ftp"):
        dist.init_process_group("gloo", "ftp://x")
