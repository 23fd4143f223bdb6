"""A save that does not finish leaves the file as it was."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path
from typing import Any

import pytest

import flambeau
from flambeau.safetensors import save_file
from flambeau.serialization import load, save

from .killing import kill_while_saving, leftovers


def test_kill_at_any_moment(tmp_path: Path) -> None:
    numbers = kill_while_saving(tmp_path, times=15)
    assert numbers == sorted(numbers)
    assert numbers[-1] >= 15
    assert len(leftovers(tmp_path)) <= 1, "each save removes what killed ones left"
    save(1, tmp_path / "model.pt")
    assert os.listdir(tmp_path) == ["model.pt"]


def test_failures_leave_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "model.pt"
    save("old", path)
    with pytest.raises(AttributeError, match="Can't pickle local object"):
        save(lambda: None, path)

    def full_disk(*arguments: Any) -> None:
        raise OSError(28, "No space left on device")

    for name in ("fsync", "replace"):
        with monkeypatch.context() as patch:
            patch.setattr(os, name, full_disk)
            with pytest.raises(OSError, match="No space left"):
                save("new", path)
            with pytest.raises(OSError, match="No space left"):
                save_file({"a": flambeau.ones(1)}, path)
    assert load(path) == "old"
    assert os.listdir(tmp_path) == ["model.pt"]


def test_permissions_and_links_stay(tmp_path: Path) -> None:
    real, link = tmp_path / "real.pt", tmp_path / "link.pt"
    save("old", real)
    real.chmod(0o666)
    link.symlink_to(real)
    save("new", link)
    assert link.is_symlink()
    assert load(real) == "new"
    assert stat.S_IMODE(real.stat().st_mode) == 0o666


def test_new_files_have_the_usual_permissions(tmp_path: Path) -> None:
    save("new", tmp_path / "saved.pt")
    (tmp_path / "plain").write_bytes(b"")
    assert (tmp_path / "saved.pt").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_readers_see_whole_files(tmp_path: Path) -> None:
    path = tmp_path / "model [1].pt"
    save(flambeau.zeros(50_000), path)
    done = threading.Event()

    def write() -> None:
        for number in range(1, 15):
            save(flambeau.full((50_000,), float(number)), path)
        done.set()

    thread = threading.Thread(target=write)
    thread.start()
    while not done.is_set():
        assert load(path).unique().numel() == 1
    thread.join()
    assert os.listdir(tmp_path) == [path.name]


def test_a_pipe_is_written_directly(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    received = []
    thread = threading.Thread(target=lambda: received.append(pipe.read_bytes()))
    thread.start()
    save([1, 2], pipe)
    thread.join()
    assert received[0].startswith(b"PK")
