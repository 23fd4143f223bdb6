"""Damaged and hostile files: `inspect` and `convert` name them and say so, and unpack nothing that is far too large."""

from __future__ import annotations

import io
import os
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch

import flambeau

from .calls import call

Capture = pytest.CaptureFixture[str]
HUGE = 1 << 28


def saved(**options: bool) -> bytes:
    file = io.BytesIO()
    torch.save({"weight": torch.arange(1000.0)}, file, **options)
    return file.getvalue()


def safetensors() -> bytes:
    return flambeau.safetensors.save({"weight": flambeau.arange(1000.0)})


def arrays() -> bytes:
    file = io.BytesIO()
    np.savez(file, weight=np.arange(1000.0))
    return file.getvalue()


def changed(content: bytes, position: int) -> bytes:
    return content[:position] + bytes([content[position] ^ 255]) + content[position + 1 :]


DAMAGED = {
    "cut.pt": saved()[:-100],
    "half.pt": saved()[:2000],
    "stacked.pt": saved(_use_new_zipfile_serialization=False)[:1000],
    "cut.safetensors": safetensors()[:-10],
    "header.safetensors": changed(safetensors(), 12),
    "cut.npz": arrays()[:-30],
    "array.npz": changed(arrays(), arrays().index(b"NUMPY")),
    "empty.pt": b"",
    "text.pt": b"hello",
    "lying.safetensors": struct.pack("<Q", 1 << 60) + b"{}" + bytes(600),
}


@pytest.mark.parametrize("command", ["inspect", "convert"])
@pytest.mark.parametrize("name", sorted(DAMAGED))
def test_damage_is_named(name: str, command: str, tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / name
    path.write_bytes(DAMAGED[name])
    target = (tmp_path / "out.pt",) if command == "convert" else ()
    status, out, err = call(capsys, command, path, *target)
    assert (status, out) == (1, "")
    assert err.startswith(f"flambeau {command}: error: {path} is damaged"), err
    assert "Traceback" not in err
    assert not (tmp_path / "out.pt").exists()


def test_what_is_not_allowed_is_not_damaged(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "code.pt"
    torch.save({"call": os.system}, path)
    status, _, err = call(capsys, "convert", path, tmp_path / "out.pt")
    assert status == 1
    assert f"{path}: Weights only load failed" in err
    assert "damaged" not in err


def packed(path: Path, records: dict[str, bytes]) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, content in records.items():
            archive.writestr(name, content)


def npy_header(kind: str, size: int) -> bytes:
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": kind, "fortran_order": False, "shape": (size,)})
    return file.getvalue()


def bomb(name: str, path: Path) -> None:
    """Write a file that would become hundreds of megabytes."""
    if name == "array.npz":
        packed(path, {"a.npy": npy_header("|u1", HUGE) + bytes(HUGE)})
        return
    if name == "objects.npz":  # reading its opcodes one by one would take a minute
        packed(path, {"a.npy": npy_header("|O", 1) + b"\x80\x02" + b"N0" * (20 << 20) + b"N."})
        return
    with zipfile.ZipFile(io.BytesIO(saved())) as archive:
        records = {each: archive.read(each) for each in archive.namelist()}
    folder = next(iter(records)).partition("/")[0]
    claim = struct.pack("<H", 1000)
    pickled = records[f"{folder}/data.pkl"]
    assert pickled.count(b"M" + claim) == 2
    if name == "storage.pt":
        records[f"{folder}/data.pkl"] = pickled.replace(b"M" + claim, b"J" + struct.pack("<i", HUGE // 4))
        records[f"{folder}/data/0"] = bytes(HUGE)
    else:
        records[f"{folder}/data.pkl"] = b"\x80\x02" + b"N0" * (HUGE // 2) + b"N."
    packed(path, records)


@pytest.mark.parametrize("name", ["storage.pt", "pickle.pt", "array.npz", "objects.npz"])
def test_bombs_are_refused_before_they_are_unpacked(
    name: str, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / name
    bomb(name, path)
    assert path.stat().st_size < HUGE // 50
    unpacked = 0
    inflate = zipfile.ZipExtFile.read

    def counted(self: zipfile.ZipExtFile, size: int | None = -1) -> bytes:
        nonlocal unpacked
        content = inflate(self, size)  # type: ignore[arg-type]
        unpacked += len(content)
        return content

    monkeypatch.setattr(zipfile.ZipExtFile, "read", counted)
    for arguments in (("inspect", path), ("convert", path, tmp_path / "out.pt")):
        status, out, err = call(capsys, *arguments)
        assert (status, out) == (1, "")
        assert f"{path} is damaged" in err
    assert unpacked < 1 << 20
    if path.suffix == ".pt":
        with pytest.raises(Exception, match="corrupt or malicious"):
            flambeau.load(path)
        assert unpacked < 1 << 20


def test_packed_files_that_are_not_hostile_are_read(tmp_path: Path, capsys: Capture) -> None:
    np.savez_compressed(tmp_path / "zeros.npz", a=np.zeros(1_000_000))
    assert call(capsys, "inspect", tmp_path / "zeros.npz").status == 0
    assert call(capsys, "convert", tmp_path / "zeros.npz", tmp_path / "zeros.pt").status == 0
    with zipfile.ZipFile(io.BytesIO(saved())) as archive:
        packed(tmp_path / "again.pt", {each: archive.read(each) for each in archive.namelist()})
    assert flambeau.load(tmp_path / "again.pt")["weight"][-1] == 999
