"""No file runs code, reads memory that is not its own, or uses more than its size justifies."""

from __future__ import annotations

import builtins
import io
import os
import pickle
import struct
import subprocess
import sys
import zipfile
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch as pytorch

import flambeau
from flambeau._serialization.globals import SafeGlobals
from flambeau._serialization.unpickler import Machine
from flambeau.serialization import (
    add_safe_globals,
    clear_safe_globals,
    get_safe_globals,
    load,
    safe_globals,
)

from .test_matrix import saved
from .test_old_formats import rewritten

FAILURES = (pickle.UnpicklingError, RuntimeError, EOFError)
RAN: list[str] = []


def run_this(text: str) -> str:
    RAN.append(text)
    return text


class Evil:
    """Runs code when it is unpickled by Python."""

    def __init__(self, function: Any = run_this, *arguments: Any) -> None:
        self.call = function, arguments or ("ran",)

    def __reduce__(self) -> Any:
        return self.call


def with_pickle(content: bytes, data: dict[str, bytes] | None = None) -> io.BytesIO:
    """An archive of PyTorch's with another pickle, and with these storages."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("a/data.pkl", content)
        for key, each in (data or {}).items():
            archive.writestr(f"a/data/{key}", each)
        archive.writestr("a/version", "3\n")
    file.seek(0)
    return file


def executed(content: bytes) -> Any:
    return Machine(content, SafeGlobals()).load()


@pytest.mark.parametrize("stacked", [False, True])
@pytest.mark.parametrize(
    "evil",
    [
        Evil(),
        Evil(os.system, "true"),
        Evil(builtins.eval, "1"),
        Evil(builtins.getattr, "a", "upper"),
        Evil(builtins.__import__, "os"),
        Evil(subprocess.Popen, ["true"]),
        Evil(pickle.loads, b"N."),
    ],
)
def test_calls_are_refused(evil: Evil, stacked: bool) -> None:
    """With the stacked format this is CVE-2025-32434: it, too, goes through the safe machine."""
    file = saved(pytorch, {"weight": pytorch.ones(1), "evil": evil}, _use_new_zipfile_serialization=not stacked)
    for options in ({}, {"weights_only": True}):
        file.seek(0)
        with pytest.raises(
            pickle.UnpicklingError, match=r"Weights only load failed.*(not an allowed global|is blocked)"
        ):
            load(file, **options)
    assert RAN == []


def test_weights_only_false_runs_code() -> None:
    assert load(saved(flambeau, Evil()), weights_only=False) == "ran"
    assert RAN == ["ran"]
    RAN.clear()


def test_evil_in_tar_and_behind_a_pickle_module() -> None:
    from .test_old_formats import tar_file

    with pytest.raises(pickle.UnpicklingError, match="not an allowed global"):
        load(tar_file(pickle=pickle.dumps(Evil(), 2)))
    with pytest.raises(RuntimeError, match="Can not safely load weights when explicit pickle_module is specified"):
        load(saved(flambeau, 1), pickle_module=pickle, weights_only=True)


def test_environment_decides_only_what_the_caller_left_open(monkeypatch: pytest.MonkeyPatch) -> None:
    file = saved(flambeau, Evil())
    monkeypatch.setenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "1")
    assert load(file) == "ran"
    RAN.clear()
    file.seek(0)
    with pytest.raises(pickle.UnpicklingError):
        load(file, weights_only=True)


def test_blocked_modules_stay_blocked() -> None:
    with (
        safe_globals([os.system]),
        pytest.raises(pickle.UnpicklingError, match=r"posix\.system whose module posix is blocked"),
    ):
        load(saved(pytorch, Evil(os.system, "true")))


TENSOR = b"ctorch\nTensor\n)R"


@pytest.mark.parametrize(
    ("content", "phrase"),
    [
        (TENSOR + b"K\x00K\x01s.", "Can only set items of dictionaries"),
        (TENSOR + b"(K\x00K\x01u.", "Can only set items of dictionaries"),
        (b"](K\x00K\x01u.", "Can only set items of dictionaries"),
        (b"X\x01\x00\x00\x00a(K\x00K\x01u.", "Can only set items of dictionaries"),
        (b"}K\x00a.", "Can only append to lists"),
        (TENSOR + b"(K\x00e.", "Can only append to lists"),
        (b"](K\x00\x90.", "Can only add items to sets"),
        (b"]}b.", "Can only build"),
        (b"K\x01)R.", "Trying to call reduce for unrecognized function"),
        (b"ctorch\nfloat32\n)R.", "Trying to call reduce for unrecognized function"),
        (b"cbuiltins\ndict\n)\x81.", "Trying to create new object for unrecognized class"),
        (b"ccollections\nOrderedDict\n)R](K\x01K\x02eb.", "must be a dict of attributes"),
        (b"(U\x01aQ.", "persistent id where none can be|Only persistent_load"),
        (b"\x80\x09N.", "unsupported pickle protocol"),
        (b"\x82\x01.", "Unsupported operand 130"),
        (b"(K\x01.", "ends inside an object"),
        (b"h\x07.", "cannot be executed"),
        (b"t.", "cannot be executed"),
        (b"X\xff\xff\xff\x7fabc.", "truncated"),
        (b"\x8b\xff\xff\xff\xffabc.", "negative length"),
        (b"cbuiltins\nbytearray\nK\x64\x85R.", "only allowed for bytes"),
        (b"cnumpy\ndtype\nX\x01\x00\x00\x00O\x85R.", "not one of numbers"),
    ],
)
def test_machine_refuses(content: bytes, phrase: str) -> None:
    """SETITEM and SETITEMS on anything but a dict are CVE-2026-24747."""
    with pytest.raises(FAILURES, match=phrase):
        executed(content)
    with pytest.raises(FAILURES, match=phrase):
        load(with_pickle(content))


def rebuild(numel: int, offset: int, size: tuple[int, ...], stride: tuple[int, ...]) -> bytes:
    def number(value: int) -> bytes:
        return b"\x8a\x09" + value.to_bytes(9, "little", signed=True)

    def numbers(values: tuple[int, ...]) -> bytes:
        return b"(" + b"".join(map(number, values)) + b"t"

    storage = (
        b"(X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpu" + number(numel) + b"tQ"
    )
    hooks = b"ccollections\nOrderedDict\n)R"
    window = number(offset) + numbers(size) + numbers(stride)
    return b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n(" + storage + window + b"\x89" + hooks + b"tR."


def test_a_well_formed_pickle_made_by_hand() -> None:
    assert load(with_pickle(rebuild(4, 1, (3,), (1,)), {"0": bytes(16)})).tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize(
    ("numel", "offset", "size", "stride"),
    [
        (5, 0, (4,), (1,)),
        (2, 0, (1,), (1,)),
        (2**50, 0, (4,), (1,)),
        (-1, 0, (1,), (1,)),
        (4, 0, (5,), (1,)),
        (4, 1, (4,), (1,)),
        (4, -1, (1,), (1,)),
        (4, 0, (-1,), (1,)),
        (4, 3, (2,), (-1,)),
        (4, 0, (2, 2), (1,)),
        (4, 0, (2,), (2**62,)),
        (4, 0, (2**40, 2**40), (0, 0)),
        (4, 2**62, (1,), (1,)),
    ],
)
def test_storage_size_against_the_archive(
    numel: int, offset: int, size: tuple[int, ...], stride: tuple[int, ...]
) -> None:
    """The other part of CVE-2026-24747: what the pickle says of a storage must fit the data that is there."""
    with pytest.raises(FAILURES, match=r"(?i)corrupt|out of bounds|mismatch|out of range"):
        load(with_pickle(rebuild(numel, offset, size, stride), {"0": bytes(16)}))


def test_stacked_storage_sizes() -> None:
    file = saved(pytorch, pytorch.ones(4), _use_new_zipfile_serialization=False).getvalue()
    huge = file.replace(b"K\x04N", b"M\xff\xffN").replace(struct.pack("<q", 4), struct.pack("<q", 2**40))
    for content in (huge, file[:-1], file.replace(struct.pack("<q", 4), struct.pack("<q", 3))):
        with pytest.raises(FAILURES, match=r"corrupt|truncated|more bytes"):
            load(io.BytesIO(content))


def test_no_blow_up() -> None:
    """Small inputs that ask for much: huge sizes, copies of copies, keys whose hash never ends."""
    text = b"X" + struct.pack("<I", 1 << 20) + b"a" * (1 << 20)
    encoding = b"c_codecs\nencode\nh\x00X\x06\x00\x00\x00latin1\x86R"
    copies = text + b"q\x000(" + encoding * 2000 + b"t."
    nested = b")" + b"2\x86" * 60 + b"q\x000}h\x00Ns."
    deep = b")" + b"\x85" * 100_000 + b"q\x000}h\x00Ns."
    members = b"](" + b"K\x01" * 100_000 + b"eq\x000(" + b"cbuiltins\nset\nh\x00\x85R" * 20_000 + b"t."
    for content in (copies, nested, deep, members):
        with pytest.raises(pickle.UnpicklingError, match=r"more memory than|nested too deeply"):
            executed(content)
    assert executed(b"\x80\x02" + b"]" * 100_000 + b".") == []


@pytest.mark.parametrize("flaw", ["duplicate", "size", "bomb", "prefix", "crc", "version", "overlap"])
def test_malformed_archives(flaw: str) -> None:
    good = saved(flambeau, {"a": flambeau.arange(1000.0)})
    content = bytearray(good.getvalue())
    if flaw == "duplicate":
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w") as archive:
            archive.writestr("a/data.pkl", b"N.")
            with pytest.warns(UserWarning, match="Duplicate name"):
                archive.writestr("a/data.pkl", b"N.")
        content = bytearray(file.getvalue())
    elif flaw == "size":
        content = bytearray(content.replace(struct.pack("<2I", 4000, 4000), struct.pack("<2I", 4000, 2**31)))
    elif flaw == "bomb":
        packed = rewritten(good, lambda name, data: bytes(10**6) if name == "data/0" else data, zipfile.ZIP_DEFLATED)
        content = bytearray(packed.getvalue())
    elif flaw == "prefix":
        del content[10:20]
    elif flaw == "crc":
        content[content.index(np.arange(1000, dtype="<f4").tobytes()) + 400] ^= 1
    elif flaw == "version":
        content = bytearray(rewritten(good, lambda name, data: b"99\n" if name == "version" else data).getvalue())
    else:
        start = content.rindex(b"PK\1\2", 0, content.index(b"archive/data/0", content.index(b"PK\1\2")))
        content[start + 42 : start + 46] = struct.pack("<I", 10)
    with pytest.raises(FAILURES, match=r"(?i)corrupt"):
        load(io.BytesIO(bytes(content)))


def test_a_packed_pickle_is_not_unpacked_without_end() -> None:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a/data.pkl", b"N0" * (40 << 20) + b"N.")
    assert len(file.getvalue()) < 100_000
    file.seek(0)
    with pytest.raises(pickle.UnpicklingError, match="more memory than it has content"):
        load(file)


def test_truncation_at_every_length() -> None:
    for options in ({}, {"_use_new_zipfile_serialization": False}):
        content = saved(pytorch, {"a": pytorch.ones(3), "b": "text"}, **options).getvalue()
        for length in range(0, len(content), 7):
            with pytest.raises(FAILURES):
                load(io.BytesIO(content[:length]))


def test_what_the_user_allows() -> None:
    assert get_safe_globals() == []
    add_safe_globals([run_this, (run_this, "other.name")])
    assert get_safe_globals() == [run_this, (run_this, "other.name")]
    try:
        assert load(saved(flambeau, Evil())) == "ran"
        with safe_globals([run_this, OrderedDict]):
            assert OrderedDict in get_safe_globals()
        assert get_safe_globals() == [run_this, (run_this, "other.name")]
    finally:
        clear_safe_globals()
        RAN.clear()
    assert get_safe_globals() == []


def test_memory_stays_small(tmp_path: Path) -> None:
    """Hostile sizes do not raise a process's peak of memory."""
    good = saved(flambeau, flambeau.ones(4)).getvalue()
    end = good.rindex(b"PK\5\6")
    stacked = saved(pytorch, pytorch.ones(4), _use_new_zipfile_serialization=False).getvalue()
    contents = [
        with_pickle(rebuild(2**50, 0, (2,), (1,)), {"0": bytes(16)}).getvalue(),
        good[: end + 12] + struct.pack("<I", 2**32 - 2) + good[end + 16 :],
        b"\x80\x02X\xff\xff\xff\x7fabc",
        stacked.replace(b"K\x04N", b"J\0\0\0\x7fN"),
    ]
    program = """
import pickle, resource, sys
import flambeau
for turn, name in enumerate(sys.argv[1:]):
    try:
        flambeau.load(name)
        assert turn == 0, name
    except (pickle.UnpicklingError, RuntimeError):
        pass
    if turn == 0:
        base = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - base)
"""
    names = [str(tmp_path / str(number)) for number in range(len(contents) + 1)]
    for name, content in zip(names, [good, *contents], strict=True):
        Path(name).write_bytes(content)
    command = [sys.executable, "-c", program, *names]
    run = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=True)
    assert int(run.stdout) < 30_000
