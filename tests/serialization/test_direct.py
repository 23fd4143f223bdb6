"""Large files, which are written past the system's cache: the same bytes, the same guarantees."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import flambeau
from flambeau import safetensors
from flambeau._serialization import direct
from flambeau._serialization.atomic import replacing

PIECE = 1 << 13
SIZES = [0, 1, PIECE - 1, PIECE, PIECE + 1, 2 * PIECE, 7 * PIECE, 7 * PIECE + 4097]


@pytest.fixture(autouse=True)
def _small_pieces(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every file counts as large; afterwards no thread is left."""
    monkeypatch.setattr(direct, "WORTH_IT", 0)
    monkeypatch.setattr(direct, "_PIECE", PIECE)
    before = threading.active_count()
    yield
    assert threading.active_count() == before


@pytest.fixture
def _direct(tmp_path: Path) -> None:
    """The file system can be written past the cache."""
    with replacing(tmp_path / "probe", 1) as file:
        supported = isinstance(file, direct.DirectWriter)
    (tmp_path / "probe").unlink()
    if not supported:
        pytest.skip("this file system has no O_DIRECT")


def content(size: int) -> bytes:
    return np.random.default_rng(size).bytes(size)


def write_in_parts(path: Path, data: bytes, parts: int) -> None:
    with replacing(path, len(data)) as file:
        step = max(1, len(data) // parts)
        for start in range(0, len(data), step):
            part = data[start : start + step]
            assert file.write(part) == len(part)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("parts", [1, 3, 50])
def test_all_bytes_arrive(tmp_path: Path, size: int, parts: int) -> None:
    write_in_parts(tmp_path / "file", content(size), parts)
    assert (tmp_path / "file").read_bytes() == content(size)
    assert os.listdir(tmp_path) == ["file"]


def test_archives_are_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state = {"a": flambeau.arange(100_003), "b": flambeau.rand(3, 5), "c": flambeau.ones(0), "text": "x" * 20_000}
    flambeau.save(state, tmp_path / "model.pt")
    written = (tmp_path / "model.pt").read_bytes()
    monkeypatch.setattr(direct, "WORTH_IT", 1 << 40)
    flambeau.save(state, tmp_path / "model.pt")
    assert (tmp_path / "model.pt").read_bytes() == written
    assert torch.load(tmp_path / "model.pt")["a"].tolist() == list(range(100_003))


def test_safetensors(tmp_path: Path) -> None:
    tensors = {"a": flambeau.rand(30_001), "b": flambeau.arange(7)}
    safetensors.save_file(tensors, tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == safetensors.save(tensors)


@pytest.mark.usefixtures("_direct")
@pytest.mark.parametrize("refused", [0, 2])
def test_a_file_system_that_refuses_is_written_through_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refused: int
) -> None:
    pwrite, calls = os.pwrite, []

    def refusing(descriptor: int, view: Any, position: int) -> int:
        calls.append(position)
        if len(calls) == refused + 1:
            raise OSError(errno.EINVAL, "not like this")
        return pwrite(descriptor, view, position)

    monkeypatch.setattr(os, "pwrite", refusing)
    write_in_parts(tmp_path / "file", content(SIZES[-1]), 5)
    assert (tmp_path / "file").read_bytes() == content(SIZES[-1])


@pytest.mark.usefixtures("_direct")
def test_writes_that_take_only_a_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pwrite = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda descriptor, view, position: pwrite(descriptor, view[:4097], position))
    write_in_parts(tmp_path / "file", content(SIZES[-1]), 5)
    assert (tmp_path / "file").read_bytes() == content(SIZES[-1])


@pytest.mark.usefixtures("_direct")
@pytest.mark.parametrize("good", [0, 2, 7])
def test_a_full_disk_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, good: int) -> None:
    (tmp_path / "file").write_bytes(b"old")
    pwrite = os.pwrite

    def full(descriptor: int, view: Any, position: int) -> int:
        if position >= good * PIECE:
            raise OSError(errno.ENOSPC, "No space left on device")
        return pwrite(descriptor, view, position)

    monkeypatch.setattr(os, "pwrite", full)
    with pytest.raises(OSError, match="No space left"):
        write_in_parts(tmp_path / "file", content(SIZES[-1]), 5)
    assert os.listdir(tmp_path) == ["file"]
    assert (tmp_path / "file").read_bytes() == b"old"


def test_an_error_of_the_caller_leaves_the_old_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"old")

    def interrupted() -> None:
        with replacing(tmp_path / "file", 1) as file:
            file.write(content(5 * PIECE + 3))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert os.listdir(tmp_path) == ["file"]
    assert (tmp_path / "file").read_bytes() == b"old"


AT_THE_END = """
import atexit, sys
import flambeau
from flambeau._serialization import direct
from flambeau.serialization import async_save

direct.WORTH_IT = 0
state = {"weight": flambeau.ones(1 << 18)}
atexit.register(lambda: flambeau.save(state, sys.argv[1] + "/last"))
atexit.register(lambda: flambeau.save(flambeau.load(sys.argv[1] + "/0"), sys.argv[1] + "/copy"))
for number in range(8):
    async_save(state, f"{sys.argv[1]}/{number}")
"""


def test_saves_while_the_interpreter_ends(tmp_path: Path) -> None:
    root = Path(__file__).parents[2]
    command = [sys.executable, "-c", AT_THE_END, str(tmp_path)]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert sorted(os.listdir(tmp_path)) == sorted([*map(str, range(8)), "copy", "last"])
    for each in tmp_path.iterdir():
        assert flambeau.load(each)["weight"].sum().item() == 1 << 18


def test_what_is_saved_to_an_open_file_is_in_the_file(tmp_path: Path) -> None:
    """Others open it by its name before it is closed."""
    with (tmp_path / "state").open("wb") as file:
        flambeau.save({"x": flambeau.ones(3)}, file)
        assert flambeau.load(tmp_path / "state")["x"].tolist() == [1.0, 1.0, 1.0]
