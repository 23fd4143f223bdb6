"""Machine code on disk: found again, never trusted blindly."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import flambeau
from flambeau._codegen.machine import cache, engine

ROOT = Path(__file__).parents[2]

PROGRAM = """
import flambeau
from flambeau._codegen.machine.engine import Engine
compiled = []
original = Engine.compile
Engine.compile = lambda self, module: compiled.append(module.name) or original(self, module)
x = flambeau.ones(10000)
assert float((x.exp() + x).sum()) > 37182
print(len(compiled))
"""


def run(folder: Path, **environment: str) -> int:
    """How many modules a fresh process compiles."""
    variables = {**os.environ, "FLAMBEAU_CACHE_DIR": str(folder), **environment}
    output = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=ROOT, env=variables, check=True, capture_output=True, text=True
    )
    return int(output.stdout)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FLAMBEAU_CACHE_DIR", str(tmp_path / "code"))
    return tmp_path / "code"


def test_the_second_process_compiles_nothing(folder: Path) -> None:
    first = run(folder)
    assert first >= 4  # the pool, two elementwise kernels, a sum
    assert run(folder) == 0
    for file in folder.glob("*.o"):  # what is damaged is compiled again
        content = bytearray(file.read_bytes())
        content[-1] ^= 1
        file.write_bytes(content)
    assert run(folder) == first
    assert run(folder, FLAMBEAU_CACHE="0") == first


def test_source_is_read_again_when_it_has_changed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder.parent / "source" / "machine").mkdir(parents=True)
    file = folder.parent / "source" / "one.py"
    file.write_text("x = 1")
    before = file.stat()
    monkeypatch.setattr(cache, "__file__", str(folder.parent / "source" / "machine" / "cache.py"))
    found = cache.source_digest()
    assert not folder.exists()  # it was written just now, and may be again
    monkeypatch.setattr(cache, "_SETTLED", -(1 << 60))
    assert cache.source_digest() == found
    with monkeypatch.context() as patched:
        patched.setattr(Path, "read_bytes", None)
        assert cache.source_digest() == found
    while file.stat().st_ctime_ns == before.st_ctime_ns:  # the clock of files moves in steps
        file.write_text("x = 2")
        os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert cache.source_digest() != found


def test_builds_of_python_with_other_objects_share_no_code(monkeypatch: pytest.MonkeyPatch) -> None:
    usual = engine.Engine().fingerprint
    assert engine.Engine().fingerprint == usual
    monkeypatch.setattr(engine, "HEADER", engine.HEADER + 16)  # as without a global lock
    assert engine.Engine().fingerprint != usual


def test_load_and_store(folder: Path) -> None:
    assert cache.load("name") is None
    cache.store("name", b"code")
    assert cache.load("name") == b"code"
    assert (folder.stat().st_mode & 0o077) == 0
    assert flambeau.backends.cpu.code_cache_folder() == str(folder)
    assert flambeau.backends.cpu.clear_code_cache() == 1
    assert cache.load("name") is None


def test_what_others_could_have_written_is_not_run(folder: Path) -> None:
    cache.store("name", b"code")
    (folder / "name.o").chmod(0o666)
    assert cache.load("name") is None


def test_truncated_files_are_ignored(folder: Path) -> None:
    cache.store("name", b"code")
    (folder / "name.o").write_bytes(b"short")
    assert cache.load("name") is None


def test_many_writers_leave_a_whole_file(folder: Path) -> None:
    codes = [bytes([number]) * 100_000 for number in range(8)]
    writers = [threading.Thread(target=cache.store, args=("name", code)) for code in codes]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert cache.load("name") in codes
    assert not list(folder.glob("*.tmp"))


def test_a_folder_that_cannot_be_written_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("FLAMBEAU_CACHE_DIR", str(tmp_path / "file" / "below"))
    cache.store("name", b"code")
    assert cache.load("name") is None


def test_generated_code_can_be_looked_at() -> None:
    x = flambeau.ones(5000)
    text = flambeau.backends.cpu.generated_code(lambda: x * x + x, form="llvm")
    assert all(word in text for word in ("fmul", "fadd", "define"))
    assert "pointwise_flat" in flambeau.backends.cpu.generated_code(flambeau.exp, x, form="assembly")
    with pytest.raises(ValueError, match="form must be"):
        flambeau.backends.cpu.generated_code(flambeau.exp, x, form="c")
