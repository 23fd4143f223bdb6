"""`flambeau convert`: between formats, and what it refuses."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import flambeau
from flambeau import safetensors

from .calls import call

Capture = pytest.CaptureFixture[str]


def state(library: Any) -> dict[str, Any]:
    base = library.arange(6.0).view(2, 3)
    return {
        "weight": base,
        "transposed": library.arange(4.0).view(2, 2).t(),
        "count": library.tensor(3),
        "file": base[0],
    }


def test_round_trip(tmp_path: Path, capsys: Capture) -> None:
    names = [tmp_path / f"model.{suffix}" for suffix in ("pt", "safetensors", "npz", "bin")]
    torch.save(state(torch), names[0])
    for source, target in itertools.pairwise(names):
        status, out, _ = call(capsys, "convert", source, target)
        assert status == 0
        assert out.startswith(f"{target}: ")
    expected = state(torch)
    loaded = torch.load(names[-1])
    with np.load(names[2]) as arrays:
        assert set(arrays.files) == set(expected)
    for name, tensor in expected.items():
        assert torch.equal(loaded[name], tensor)
        assert loaded[name].dtype == tensor.dtype
        assert flambeau.equal(safetensors.load_file(names[1])[name], flambeau.tensor(tensor.tolist()))


def test_shared_memory_is_named(tmp_path: Path, capsys: Capture) -> None:
    torch.save(state(torch), tmp_path / "a.pt")
    assert (
        "file shares memory with weight" in call(capsys, "convert", tmp_path / "a.pt", tmp_path / "a.safetensors").err
    )


def test_bfloat16_survives_but_not_in_npz(tmp_path: Path, capsys: Capture) -> None:
    source = tmp_path / "a.pt"
    torch.save({"half": torch.tensor([1.5, 2], dtype=torch.bfloat16)}, source)
    assert call(capsys, "convert", source, tmp_path / "a.safetensors").status == 0
    assert safetensors.load_file(tmp_path / "a.safetensors")["half"].dtype is flambeau.bfloat16
    status, _, err = call(capsys, "convert", source, tmp_path / "a.npz")
    assert status == 1
    assert "half is torch.bfloat16" in err
    assert not (tmp_path / "a.npz").exists()


def test_nothing_is_overwritten_without_force(tmp_path: Path, capsys: Capture) -> None:
    source, target = tmp_path / "a.pt", tmp_path / "b.safetensors"
    torch.save({"a": torch.ones(1)}, source)
    target.write_text("precious")
    status, _, err = call(capsys, "convert", source, target)
    assert status == 1
    assert "give --force to replace it" in err
    assert target.read_text() == "precious"
    assert call(capsys, "convert", source, target, "--force").status == 0
    assert list(safetensors.load_file(target)) == ["a"]
    assert call(capsys, "convert", source, source).status == 1


def test_a_failure_leaves_the_old_file(tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    source, target = tmp_path / "a.pt", tmp_path / "b.npz"
    torch.save({"a": torch.ones(1), "b": torch.ones(1)}, source)
    target.write_text("precious")
    written: list[Any] = []

    def fail_at_the_second(file: Any, array: Any, **options: Any) -> None:
        written.append(array)
        if len(written) == 2:
            raise OSError("No space left on device")

    monkeypatch.setattr(np.lib.format, "write_array", fail_at_the_second)
    status, _, err = call(capsys, "convert", source, target, "--force")
    assert status == 1
    assert "No space left" in err
    assert target.read_text() == "precious"
    assert sorted(each.name for each in tmp_path.iterdir()) == ["a.pt", "b.npz"]


def test_parts_and_other_values(tmp_path: Path, capsys: Capture) -> None:
    source, target = tmp_path / "a.pt", tmp_path / "b.safetensors"
    torch.save({"model": {"fc.weight": torch.ones(1)}, "steps": [torch.zeros(1)], "epoch": 3, "name": "x"}, source)
    status, _, err = call(capsys, "convert", source, target)
    assert status == 1
    assert "2 other values: epoch, name" in err
    assert call(capsys, "convert", source, target, "--tensors-only").status == 0
    assert set(safetensors.load_file(target)) == {"model.fc.weight", "steps.0"}
    assert call(capsys, "convert", source, target, "--key", "model", "--force").status == 0
    assert set(safetensors.load_file(target)) == {"fc.weight"}
    assert call(capsys, "convert", source, tmp_path / "c.pt", "--key", "model.fc.weight").status == 0
    assert torch.equal(torch.load(tmp_path / "c.pt"), torch.ones(1))
    status, _, err = call(capsys, "convert", source, target, "--key", "nothing", "--force")
    assert status == 1
    assert "the keys there are: model, steps, epoch, name" in err


def test_wrong_calls(tmp_path: Path, capsys: Capture) -> None:
    source = tmp_path / "a.pt"
    torch.save({"a": torch.ones(1)}, source)
    assert call(capsys, "convert", source, tmp_path / "b.txt").status == 2
    assert call(capsys, "convert", source).status == 2
    assert call(capsys, "convert", tmp_path / "absent.pt", tmp_path / "b.pt").status == 1
    np.savez(tmp_path / "text.npz", a=np.array(["x"]))
    status, _, err = call(capsys, "convert", tmp_path / "text.npz", tmp_path / "b.pt")
    assert status == 1
    assert "a cannot be a tensor" in err
    np.savez(tmp_path / "objects.npz", a=np.array([None]))
    assert call(capsys, "convert", tmp_path / "objects.npz", tmp_path / "b.pt").status == 1
    assert not (tmp_path / "b.pt").exists()
