"""The options of `load` and `save`: map_location, mmap, file objects, switches, and what goes wrong."""

from __future__ import annotations

import io
import mmap
import pickle
from pathlib import Path
from typing import Any

import pytest
import torch as pytorch

import flambeau
from flambeau import serialization
from flambeau.serialization import load, save
from tests.support.differential import differential, outcome

from .test_matrix import saved


def on_cuda(torch: Any) -> io.BytesIO:
    """A file of tensors that were on a CUDA device."""
    content = saved(torch, {"a": torch.ones(2), "b": torch.arange(3)}).getvalue()
    file = io.BytesIO()
    import zipfile

    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(file, "w") as new:
        for name in old.namelist():
            data = old.read(name).replace(b"X\x03\x00\x00\x00cpu", b"X\x06\x00\x00\x00cuda:1")
            new.writestr(name, data)
    file.seek(0)
    return file


@differential
def test_map_location(torch: Any) -> Any:
    seen: list[str] = []

    def chosen(storage: Any, location: str) -> Any:
        seen.append(f"{type(storage).__name__} {storage.nbytes()} {location}")
        return storage

    places: list[Any] = ["cpu", torch.device("cpu"), "meta", {"cuda:1": "cpu"}, {"cuda:1": "meta"}, chosen]
    results = [torch.load(on_cuda(torch), map_location=place) for place in places]
    return [[(str(each["a"].device), each["b"].shape) for each in results], sorted(seen)]


@differential
def test_map_location_errors(torch: Any) -> Any:
    missing = "Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False"
    unknown = "don't know how to restore data location of torch.storage.UntypedStorage (tagged with nowhere)"

    def refuse(storage: Any, location: str) -> Any:
        raise LookupError("no")

    return [
        outcome(lambda: torch.load(on_cuda(torch)), missing),
        outcome(lambda: torch.load(on_cuda(torch), map_location="cuda"), missing),
        outcome(lambda: torch.load(on_cuda(torch), map_location=lambda storage, location: None), missing),
        outcome(lambda: torch.load(on_cuda(torch), map_location={"cuda:1": "nowhere"}), unknown),
        outcome(lambda: torch.load(on_cuda(torch), map_location=3), "'int' object is not callable"),
        outcome(lambda: torch.load(on_cuda(torch), map_location=refuse), "no"),
    ]


@differential
def test_errors(torch: Any) -> Any:
    def of(content: bytes, **options: Any) -> Any:
        return lambda: torch.load(io.BytesIO(content), **options)

    good = saved(torch, torch.ones(20)).getvalue()
    unsafe_globals = torch.serialization.get_unsafe_globals_in_checkpoint
    stacked = saved(torch, torch.ones(20), _use_new_zipfile_serialization=False).getvalue()
    return [
        outcome(of(b"")),
        outcome(of(b"\xeearbage"), "Weights only load failed", "Unsupported operand 238"),
        outcome(of(good[:700]), "PytorchStreamReader failed reading zip archive: failed finding central directory"),
        outcome(of(pickle.dumps({"a": 1}, 2)), "Invalid magic number; corrupt file?"),
        outcome(of(stacked.replace(b"M\xe9\x03", b"M\xea\x03", 1)), "Invalid protocol version: 1002"),
        outcome(lambda: torch.load("/nonexistent/file.pt")),
        outcome(lambda: torch.save(1, "/nonexistent/file.pt"), "Parent directory /nonexistent does not exist."),
        outcome(lambda: torch.load(3), "You can only torch.load from a file that is seekable"),
        outcome(lambda: torch.save(1, 3), "expected 'f' to be string, path, or a file-like object with a 'write'"),
        outcome(of(good, mmap=True), "f must be a file path in order to use the mmap argument"),
        outcome(of(good, weights_only=True, pickle_module=pickle), "Can not safely load weights when explicit"),
        outcome(of(good, unknown=1), "unexpected keyword argument 'unknown'"),
        outcome(lambda: unsafe_globals(io.BytesIO(stacked)), "Expected input to be"),
    ]


def test_mmap(tmp_path: Path) -> None:
    path = tmp_path / "model.pt"
    for writer in (pytorch, flambeau):
        writer.save({"a": writer.arange(6.0).view(2, 3), "b": writer.ones(4, dtype=writer.int16)}, path)
        before = path.read_bytes()
        read = load(path, mmap=True)
        assert read["a"].tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
        read["a"].add_(1)
        assert read["a"][0, 0].item() == 1
        assert path.read_bytes() == before, "changes stay private"
        with serialization.set_default_mmap_options(mmap.MAP_SHARED):
            load(path, mmap=True)["b"].fill_(7)
        assert load(path, mmap=True)["b"].tolist() == [7, 7, 7, 7]
        with pytest.raises(RuntimeError, match="CRC-32"):
            load(path)
        assert serialization.get_default_mmap_options() == mmap.MAP_PRIVATE


def test_mmap_needs_an_archive(tmp_path: Path) -> None:
    save(flambeau.ones(2), tmp_path / "old.pt", _use_new_zipfile_serialization=False)
    with pytest.raises(RuntimeError, match="mmap can only be used with files saved with"):
        load(tmp_path / "old.pt", mmap=True)
    with pytest.raises(ValueError, match=r"expected mmap.MAP_PRIVATE or mmap.MAP_SHARED, but got 77"):
        serialization.set_default_mmap_options(77)


def test_crc_can_be_left_out() -> None:
    assert serialization.get_crc32_options()
    for writer, settings in ((flambeau, serialization), (pytorch, pytorch.serialization)):
        settings.set_crc32_options(False)
        try:
            file = saved(writer, writer.arange(1000.0))
        finally:
            settings.set_crc32_options(True)
        assert load(file)[-1].item() == 999
        file.seek(0)
        assert pytorch.load(file)[-1].item() == 999


def test_skip_data(tmp_path: Path) -> None:
    save(flambeau.ones(1000), tmp_path / "full.pt")
    with serialization.skip_data():
        save(flambeau.ones(1000), tmp_path / "bare.pt")
        assert load(tmp_path / "full.pt").shape == (1000,)
    assert load(tmp_path / "bare.pt").sum().item() == 0
    assert (tmp_path / "bare.pt").stat().st_size == (tmp_path / "full.pt").stat().st_size


def test_file_objects(tmp_path: Path) -> None:
    class Trickle(io.RawIOBase):
        """Takes a few bytes at a time, and cannot seek."""

        def __init__(self) -> None:
            self.content = bytearray()

        def writable(self) -> bool:
            return True

        def write(self, data: Any) -> int:
            self.content += bytes(data[:1000])
            return min(len(data), 1000)

    target = Trickle()
    save(flambeau.arange(5000), target)
    assert load(io.BytesIO(bytes(target.content))).sum().item() == 5000 * 4999 // 2
    with open(tmp_path / "file.pt", "w+b") as file:
        file.write(b"before")
        save(flambeau.arange(70_000), file)
        file.seek(6)
        assert load(file)[-1].item() == 69_999
    save(flambeau.arange(70_000), str(tmp_path / "file.pt"))
    with open(tmp_path / "file.pt", "rb") as reading:
        assert load(reading)[-1].item() == 69_999


def test_pickle_module() -> None:
    """Another pickler writes Flambeau's own names; the file is for Flambeau."""
    import types

    other = types.SimpleNamespace(Pickler=pickle.Pickler, Unpickler=pickle.Unpickler)
    base = flambeau.arange(4.0)
    file = saved(flambeau, [base, base[1:]], pickle_module=other)
    read = load(file, pickle_module=other)
    read[0][1] = 9
    assert read[1].tolist() == [9.0, 2.0, 3.0]


def test_register_package() -> None:
    from flambeau._serialization import locations

    before = list(locations._PACKAGES)
    seen = []
    serialization.register_package(
        5, lambda storage: None, lambda storage, tag: (seen.append(tag), storage)[1] if tag == "cuda:1" else None
    )
    try:
        assert load(on_cuda(flambeau))["a"].tolist() == [1.0, 1.0]
        assert seen == ["cuda:1", "cuda:1"]
    finally:
        locations._PACKAGES[:] = before
    assert serialization.location_tag(flambeau.ones(1).untyped_storage()) == "cpu"


def test_async_save(tmp_path: Path) -> None:
    tensor = flambeau.ones(100_000)
    futures = []
    for index in range(3):
        tensor.fill_(index)
        futures.append(serialization.async_save({"a": tensor, "b": tensor[:5]}, tmp_path / "model.pt"))
    tensor.fill_(9)
    for future in futures:
        assert future.result() is None
    read = load(tmp_path / "model.pt")
    assert read["a"].unique().tolist() == [2.0]
    assert read["a"].data_ptr() == read["b"].data_ptr()
    with pytest.raises(RuntimeError, match="does not exist"):
        serialization.async_save(tensor, tmp_path / "missing" / "model.pt").result()


def test_names_of_the_package() -> None:
    assert flambeau.load is load
    assert flambeau.save is save
    assert flambeau.serialization is serialization
    assert set(pytorch.serialization.__all__) - set(serialization.__all__) == {
        "check_module_version_greater_or_equal", "mkdtemp", "normalize_storage_type", "storage_to_tensor_type",
        "validate_hpu_device",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("hello, this is a text\n" * 50, "a text file: pass the file that torch.save wrote"),
        ("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n", "git lfs pull"),
        ("<!DOCTYPE html>\n<html></html>\n", "a web page"),
        ('{"epoch": 3}\n', "json.load"),
        ("é" * 600, "a text file"),
    ],
)
@pytest.mark.parametrize("weights_only", [True, False])
def test_a_text_is_said_to_be_one(content: str, words: str, weights_only: bool) -> None:
    with pytest.raises(pickle.UnpicklingError, match=words) as caught:
        flambeau.load(io.BytesIO(content.encode()), weights_only=weights_only)
    assert str(caught.value).startswith("Weights only load failed") is weights_only
    assert "weights_only=False" not in str(caught.value)


def test_other_bytes_are_not_called_a_text() -> None:
    with pytest.raises(Exception, match="pickle") as caught:
        flambeau.load(io.BytesIO(b"\x00\x01" * 300))
    assert "text" not in str(caught.value)
