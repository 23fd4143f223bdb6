"""Files that no present PyTorch writes: tar archives, Python 2, big-endian machines, old spellings, TorchScript."""

from __future__ import annotations

import io
import pickle
import struct
import tarfile
import warnings
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch as pytorch

import flambeau
from flambeau.serialization import LoadEndianness, load, set_default_load_endianness

from .objects import BUILDS, picture
from .test_matrix import saved


def renamed_globals(content: bytes) -> bytes:
    return content.replace(b"ctests.serialization.test_old_formats\n", b"ctorch\n")


class FloatStorage:
    """Stands for `torch.FloatStorage` in pickles made here."""


class FloatTensor:
    """Stands for `torch.FloatTensor` in pickles made here."""


def tar_file(**changes: bytes) -> io.BytesIO:
    """A file as PyTorch wrote it in 2016: two tensors on one storage, and a view of that storage."""

    def dumped(value: Any) -> bytes:
        return renamed_globals(pickle.dumps(value, 2))

    data = np.arange(6, dtype="<f4").tobytes()
    storages = dumped(1) + dumped((101, "cpu", FloatStorage)) + struct.pack("<q", 6) + data + dumped([(102, 101, 2, 3)])
    tensors = dumped(2)
    tensors += dumped((201, 101, FloatTensor)) + struct.pack("<i4x2q2qq", 2, 2, 3, 3, 1, 0)
    tensors += dumped((202, 102, FloatTensor)) + struct.pack("<i4xqqq", 1, 2, 1, 1)

    class Pickler(pickle.Pickler):
        def persistent_id(self, obj: Any) -> Any:
            return str(obj[1]) if isinstance(obj, tuple) and obj[:1] == ("tensor",) else None

    stream = io.BytesIO()
    Pickler(stream, 2).dump({"whole": ("tensor", 201), "part": ("tensor", 202), "again": ("tensor", 201), "n": 3})
    members = {"sys_info": dumped({}), "storages": storages, "tensors": tensors, "pickle": stream.getvalue()} | changes
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    file.seek(0)
    return file


@pytest.mark.parametrize("weights_only", [True, False])
def test_tar(weights_only: bool, tmp_path: Path) -> None:
    read = load(tar_file(), weights_only=weights_only)
    assert read["whole"].tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
    assert read["part"].tolist() == [3.0, 4.0]
    assert read["again"] is read["whole"]
    assert read["n"] == 3
    read["whole"][1, 0] = 9
    assert read["part"].tolist() == [9.0, 4.0]
    (tmp_path / "old.pt").write_bytes(tar_file().getvalue())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of Python 3.12, about the way in which PyTorch unpacks it
        expected = pytorch.load(tmp_path / "old.pt", weights_only=False)
    assert expected["part"].tolist() == [3.0, 4.0]
    assert read["whole"].stride() == expected["whole"].stride()


@pytest.mark.parametrize("name", ["storages", "tensors", "pickle"])
def test_broken_tar(name: str) -> None:
    for content in (b"", b"garbage" * 10, b"\x80\x02K\x05(Q."):
        with pytest.raises((pickle.UnpicklingError, RuntimeError, EOFError)):
            load(tar_file(**{name: content}))


def test_python_2_strings() -> None:
    """A pickle of Python 2: byte strings for text, `torch._utils._rebuild_tensor`, a Variable and a Parameter."""
    state = b"(U\x07storagectorch\nFloatStorage\nU\x0212U\x03cpuK\x03NtQ"
    tensor = b"ctorch._utils\n_rebuild_tensor\n(" + state + b"K\x00(K\x03t(K\x01ttR"
    variable = b"ctorch.autograd.variable\nVariable\n" + tensor + b"\x85R(\x88\x89ccollections\nOrderedDict\n)Rtb"
    parameter = b"ctorch.nn.parameter\nParameter\n" + tensor + b"\x85R(\x88\x89ccollections\nOrderedDict\n)Rtb"
    content = b"\x80\x02}(U\x01a" + tensor + b"U\x01v" + variable + b"U\x01p" + parameter + b"u."
    head = b"".join(pickle.dumps(each, 2) for each in (0x1950A86A20F9469CFC6C, 1001, {"little_endian": True}))
    tail = pickle.dumps(["12"], 2) + struct.pack("<q", 3) + np.arange(3, dtype="<f4").tobytes()
    for weights_only in (True, False):
        read = load(io.BytesIO(head + content + tail), weights_only=weights_only)
        assert list(read) == ["a", "v", "p"]
        assert [each.tolist() for each in read.values()] == [[0.0, 1.0, 2.0]] * 3
        assert isinstance(read["p"], flambeau.nn.Parameter)
        assert read["v"].requires_grad
    with pytest.raises(pickle.UnpicklingError, match="does not match"):
        load(io.BytesIO(head + content + pickle.dumps([], 2)))


def test_views_of_storages_in_stacked_pickles() -> None:
    part = b"(U\x07storagectorch\nFloatStorage\nU\x0212U\x03cpuK\x06(U\x0213K\x02K\x03ttQ"
    tensor = b"ctorch._utils\n_rebuild_tensor\n(" + part + b"K\x01(K\x02t(K\x01ttR"
    head = b"".join(pickle.dumps(each, 2) for each in (0x1950A86A20F9469CFC6C, 1001, {}))
    tail = pickle.dumps(["12"], 2) + struct.pack("<q", 6) + np.arange(6, dtype="<f4").tobytes()
    assert load(io.BytesIO(head + b"\x80\x02" + tensor + b"." + tail)).tolist() == [3.0, 4.0]


def rewritten(file: io.BytesIO, change: Any, compression: int = zipfile.ZIP_STORED) -> io.BytesIO:
    """An archive with every record passed through `change(name, content)`; None leaves one out."""
    result = io.BytesIO()
    with zipfile.ZipFile(file) as old, zipfile.ZipFile(result, "w", compression) as new:
        for name in old.namelist():
            content = change(name.partition("/")[2], old.read(name))
            if content is not None:
                new.writestr(name, content)
    result.seek(0)
    return result


@pytest.mark.parametrize("name", ["views", "every_dtype", "shared"])
def test_compressed_archives(name: str) -> None:
    original = BUILDS[name](pytorch)
    file = rewritten(saved(pytorch, original), lambda name, content: content, zipfile.ZIP_DEFLATED)
    assert picture(load(file)) == picture(original)


def big_endian(dtype: str) -> tuple[io.BytesIO, Any]:
    tensor = pytorch.arange(1, 17, dtype=pytorch.uint8).view(getattr(pytorch, dtype))
    size = tensor.real.element_size() if tensor.is_complex() and dtype != "complex32" else tensor.element_size()
    size = 2 if dtype == "complex32" else size

    def change(name: str, content: bytes) -> bytes:
        if name == "byteorder":
            return b"big"
        if name.startswith("data/"):
            return np.frombuffer(content, f"u{size}").byteswap().tobytes()
        return content

    return rewritten(saved(pytorch, [tensor, tensor[1:]]), change), tensor


@pytest.mark.parametrize(
    "dtype", ["uint8", "int16", "int64", "float32", "bfloat16", "complex64", "complex32", "uint16"]
)
def test_big_endian(dtype: str, tmp_path: Path) -> None:
    file, tensor = big_endian(dtype)
    (tmp_path / "big.pt").write_bytes(file.getvalue())
    for read in (load(file), load(tmp_path / "big.pt", mmap=True)):
        assert picture(list(read)) == picture([tensor, tensor[1:]])


def test_assumed_byte_order() -> None:
    file = rewritten(big_endian("int32")[0], lambda name, content: None if name == "byteorder" else content)
    expected = big_endian("int32")[1].tolist()
    assert load(file)[0].tolist() != expected
    file.seek(0)
    set_default_load_endianness(LoadEndianness.BIG)
    try:
        assert load(file)[0].tolist() == expected
    finally:
        set_default_load_endianness(None)
    with pytest.raises(TypeError, match="Invalid argument type in function set_default_load_endianness"):
        set_default_load_endianness("big")  # type: ignore[arg-type]


def test_torchscript_weights() -> None:
    nn = pytorch.nn
    model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.Sequential(nn.BatchNorm2d(2), nn.ReLU()))
    file = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch has deprecated TorchScript
        traced = pytorch.jit.script(model)
        pytorch.jit.save(traced, file)
    for weights_only in (True, False):
        file.seek(0)
        with pytest.warns(UserWarning, match="looks like a TorchScript archive"):
            state = load(file, weights_only=weights_only)
        expected = traced.state_dict()
        assert {name: each.tolist() for name, each in state.items()} == {
            name: each.tolist() for name, each in expected.items()
        }
