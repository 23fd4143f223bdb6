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
    "list.safetensors": struct.pack("<Q", 3) + b"[1]",
    "zeros.pt": bytes(100),
    "image.pt": b"\x89PNG\r\n\x1a\n",
    "cut.pkl": b"\x80\x02X\xff\x00\x00\x00abc",
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


@pytest.mark.parametrize("shape", ["(-3,)", "(99999999999999999999,)", "(7,)"])
@pytest.mark.parametrize("command", ["inspect", "convert"])
def test_shapes_that_the_record_does_not_have(shape: str, command: str, tmp_path: Path, capsys: Capture) -> None:
    head = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}".ljust(117).encode() + b"\n"
    packed(tmp_path / "a.npz", {"a.npy": b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head + bytes(8)})
    target = (tmp_path / "out.pt",) if command == "convert" else ()
    status, _, err = call(capsys, command, tmp_path / "a.npz", *target)
    assert status == 1
    assert f"{tmp_path / 'a.npz'} is damaged: a" in err


def test_what_cannot_be_converted_is_not_damaged(tmp_path: Path, capsys: Capture) -> None:
    arrays = {"objects": np.array([{}], object), "words": np.array(["a"]), "swapped": np.arange(3, dtype=">i4")}
    for name, array in arrays.items():
        np.savez(tmp_path / f"{name}.npz", a=array)
    for name in ("objects", "words"):
        status, _, err = call(capsys, "convert", tmp_path / f"{name}.npz", tmp_path / "out.pt")
        assert status == 1
        assert f"{tmp_path / name}.npz: a cannot be a tensor" in err
    assert call(capsys, "convert", tmp_path / "swapped.npz", tmp_path / "out.pt").status == 0
    assert flambeau.load(tmp_path / "out.pt")["a"].tolist() == [0, 1, 2]
    torch.save([1], tmp_path / "number.pt")
    _, _, err = call(capsys, "convert", tmp_path / "number.pt", tmp_path / "out.npz", "--tensors-only")
    assert f"{tmp_path / 'number.pt'}: there is no tensor to write" in err


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
        refused = "cannot be a tensor" if (arguments[0], name) == ("convert", "objects.npz") else f"{path} is damaged"
        assert refused in err
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
