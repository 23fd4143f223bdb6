"""`flambeau trim`: copies of the kernel library become links."""

from __future__ import annotations

from pathlib import Path

import pytest

from flambeau._cli.main import main


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder like an environment's, with three copies of a library and another version of it."""
    for name in ("libdnnl.so", "libdnnl.so.3", "libdnnl.so.3.2"):
        (tmp_path / name).write_bytes(b"machine code" * 1000)
    (tmp_path / "libdnnl.so.2").write_bytes(b"older" * 1000)
    monkeypatch.setenv("FLAMBEAU_ONEDNN_LIBRARY", str(tmp_path / "libdnnl.so.3"))
    return tmp_path


def test_equal_copies_become_links(environment: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trim"]) == 0
    assert "freed" in capsys.readouterr().out
    assert [path.name for path in sorted(environment.iterdir()) if path.is_symlink()] == [
        "libdnnl.so",
        "libdnnl.so.3.2",
    ]
    assert {path.read_bytes()[:5] for path in environment.iterdir()} == {b"machi", b"older"}
    assert sum(path.stat().st_size for path in environment.iterdir() if not path.is_symlink()) == 12_000 + 5_000
    assert main(["trim"]) == 0
    assert "only once" in capsys.readouterr().out


def test_nothing_to_trim(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("FLAMBEAU_ONEDNN_LIBRARY", str(tmp_path / "none"))
    assert main(["trim"]) == 0
    assert "nothing to trim" in capsys.readouterr().out
