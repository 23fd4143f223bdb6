"""`flambeau inspect`: every format, without loading and without executing anything."""

from __future__ import annotations

import io
import pickle
import random
import re
import struct
import warnings
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import flambeau
from flambeau import safetensors

from ..serialization.fuzzing import CANARY, Caller, checkpoint, corpus, mutated
from ..serialization.test_old_formats import tar_file
from .calls import call

Capture = pytest.CaptureFixture[str]


def rows(output: str) -> dict[str, list[str]]:
    """The table by the first column."""
    lines = [re.split(r"  +", line.strip()) for line in output.splitlines()]
    return {line[0]: line[1:] for line in lines if len(line) > 1}


@pytest.mark.parametrize("zipped", [True, False])
def test_a_checkpoint_of_pytorch(zipped: bool, tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "model.pt"
    torch.save(checkpoint(torch), path, _use_new_zipfile_serialization=zipped)
    status, out, err = call(capsys, "inspect", path)
    assert (status, err) == (0, "")
    table = rows(out)
    assert table["model.weight"][:4] == ["parameter", "[3, 4]", "float32", "48 B"]
    assert table["model.bias"][:4] == ["tensor", "[4]", "float32", "16 B"]
    assert table["model.half"][2] == "bfloat16"
    assert table["small"][2] == "uint16"
    assert table["array"][:3] == ["array", "[4]", "float64"]
    assert table["optimizer.param_groups.0.lr"] == ["float", "0.1"]
    assert table["model.weight"][4] == table["model.bias"][4] != table["model.half"][4]
    assert f"storage {table['model.weight'][4]} is shared: model.weight, model.bias" in out
    assert ("PyTorch zip archive, little-endian" if zipped else "PyTorch stacked pickles (0.1.10 to 1.5)") in out
    assert "6 tensors" in out


def test_a_tar_of_2016(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "old.pt"
    path.write_bytes(tar_file().getvalue())
    status, out, _ = call(capsys, "inspect", path)
    assert status == 0
    assert "tar archive" in out
    assert rows(out)["whole"][:3] == ["tensor", "[2, 3]", "float32"]
    assert "shared: whole, part, again" in out or "shared: whole, again" in out


def test_torchscript(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "script.pt"
    path.write_bytes(next(content for name, _, content in corpus() if name == "torchscript"))
    status, out, err = call(capsys, "inspect", path)
    assert status == 0
    assert "TorchScript archive" in out
    assert rows(out)["first.weight"][1:3] == ["[4]", "float32"]
    assert "code" in err


def test_safetensors(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "model.safetensors"
    tensors = {"a": flambeau.ones(2, 3, dtype=flambeau.float16), "b": flambeau.tensor(1)}
    safetensors.save_file(tensors, path, {"epoch": "3"})
    status, out, err = call(capsys, "inspect", path)
    assert (status, err) == (0, "")
    assert rows(out)["a"][:4] == ["tensor", "[2, 3]", "float16", "12 B"]
    assert rows(out)["b"][1] == "[]"
    assert rows(out)["metadata epoch"] == ["str", "3"]
    assert "2 tensors, 7 elements, 20 B in 2 storages" in out


def test_npz_and_the_pickles_inside(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "arrays.npz"
    np.savez(path, a=np.ones((2, 3)), evil=np.array([Caller()], dtype=object))
    status, out, err = call(capsys, "inspect", path)
    assert status == 0
    assert rows(out)["a"][:3] == ["array", "[2, 3]", "float64"]
    assert "tests.serialization.fuzzing.canary" in err
    assert CANARY == []


def test_whole_models_show_their_state(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "model.pt"
    model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3))
    torch.save(model, path)
    status, out, err = call(capsys, "inspect", path)
    assert status == 0
    assert [name for name in rows(out) if re.match(r"\d\.", name)] == list(model.state_dict())
    for name in ("container.Sequential", "linear.Linear", "batchnorm.BatchNorm1d"):
        assert f"torch.nn.modules.{name}" in err


class Evil:
    """Runs a program if it is unpickled."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> Any:
        return exec, (f"open({str(self.marker)!r}, 'w')",)


@pytest.mark.parametrize("form", ["zip", "stacked", "plain"])
def test_nothing_is_executed(form: str, tmp_path: Path, capsys: Capture) -> None:
    path, marker = tmp_path / "evil.pt", tmp_path / "executed"
    content = {"weight": flambeau.ones(2), "evil": Evil(marker), "canary": Caller()}
    if form == "plain":
        path.write_bytes(pickle.dumps({**content, "weight": 1}))
    else:
        flambeau.save(content, path, _use_new_zipfile_serialization=form == "zip")
    status, _, err = call(capsys, "inspect", path)
    assert status == 0
    assert not marker.exists()
    assert CANARY == []
    assert re.search(r"builtins.exec +<- can do anything", err)
    assert re.search(r"tests.serialization.fuzzing.canary$", err, re.MULTILINE)
    assert call(capsys, "convert", path, tmp_path / "out.pt").status == 1
    assert not marker.exists()
    assert not (tmp_path / "out.pt").exists()


def test_tensors_are_not_read(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "large.pt"
    torch.save({"weight": torch.zeros(1000)}, path)
    content = bytearray(path.read_bytes())
    content[content.index(bytes(3000)) + 100] = 1  # its checksum no longer fits
    path.write_bytes(content)
    with pytest.raises(RuntimeError, match="CRC-32"):
        flambeau.load(path)
    assert rows(call(capsys, "inspect", path).out)["weight"][1] == "[1000]"


def test_a_storage_that_claims_too_much(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "claims.pt"
    torch.save({"weight": torch.zeros(300)}, path)
    with zipfile.ZipFile(path) as archive:
        records = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in records.items():
            content = content.replace(b"M" + struct.pack("<H", 300), b"M" + struct.pack("<H", 60000))
            archive.writestr(name, content)
    status, _, err = call(capsys, "inspect", path)
    assert status == 1
    assert "corrupt or malicious" in err


def test_names_cannot_write_to_the_terminal(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "names.pt"
    torch.save({"\033[31mred\n\r": torch.ones(1), "value": "\033]0;title\a"}, path)
    out = call(capsys, "inspect", path).out
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f]", out)
    assert "\\x1b[31mred\\n\\r" in out


def test_nests_and_cycles_end(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "bomb.pt"
    bomb: Any = [flambeau.ones(1)]
    for _ in range(60):
        bomb = [bomb, bomb]  # 2 ** 60 paths lead to the tensor
    deep: Any = flambeau.ones(1)
    for _ in range(120):
        deep = {"x": deep}
    cycle: Any = [flambeau.ones(1)]
    cycle.append(cycle)
    flambeau.save({"bomb": bomb, "deep": deep, "cycle": cycle}, path)
    status, out, err = call(capsys, "inspect", path)
    assert status == 0
    assert "2 tensors" in out
    assert "deeper than" in err


def test_long_lists_of_values_need_all(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "values.pt"
    torch.save({f"key{index}": index for index in range(30)}, path)
    assert "... and 10 more: see --all" in call(capsys, "inspect", path).out
    assert "key29" in call(capsys, "inspect", path, "--all").out


def test_what_is_no_checkpoint(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "notes.txt"
    for content in (b"", b"hello", b"PK\3\4 and no more", struct.pack("<Q", 5) + b"{    ", bytes(600)):
        path.write_bytes(content)
        status, out, err = call(capsys, "inspect", path)
        assert (status, out) == (1, ""), content
        assert err.startswith("flambeau inspect: error: ")
        assert err.count("\n") <= 4
        assert "Traceback" not in err
    assert call(capsys, "inspect", tmp_path / "absent.pt").err.endswith("absent.pt: no such file\n")
    assert call(capsys, "inspect", tmp_path).status == 1


def test_damaged_files_are_refused_or_described(tmp_path: Path, capsys: Capture) -> None:
    chance = random.Random(0)
    path = tmp_path / "damaged.pt"
    arrays, model = io.BytesIO(), io.BytesIO()
    np.savez(arrays, a=np.arange(4.0), b=np.array([1, None]))
    torch.save(torch.nn.Linear(2, 2), model)
    contents = [content for _, _, content in corpus()] + [arrays.getvalue(), model.getvalue()]
    statuses = set()
    for turn in range(150):
        path.write_bytes(mutated(contents[turn % len(contents)], chance))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            statuses.add(call(capsys, "inspect", path).status)
    assert statuses == {0, 1}
    assert CANARY == []
