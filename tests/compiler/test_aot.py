"""Programs compiled ahead of time: the same bits from a file, in a new process too, and what is refused."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

import flambeau as torch
from flambeau import nn
from flambeau.compiler import aot_compile, aot_load
from flambeau.compiler._errors import Unsupported

X = torch.linspace(-2, 2, 24).reshape(2, 3, 4)


def network() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.LayerNorm(8), nn.GELU(), nn.Flatten(), nn.Linear(24, 3), nn.Softmax(-1))


def bits(tensor: Any) -> bytes:
    found: bytes = tensor.detach().contiguous().numpy().tobytes()
    return found


def test_a_module(tmp_path: Path) -> None:
    model = network()
    loaded = aot_load(aot_compile(model, (X,), tmp_path / "model.fc"))
    for turn in range(3):
        found = loaded(X + turn)
        assert bits(found) == bits(model(X + turn))
        assert not found.requires_grad
    turned = (X + 1).permute(2, 0, 1).contiguous().permute(1, 2, 0)
    assert turned.stride() != X.stride()
    assert bits(loaded(turned)) == bits(model(turned.contiguous()))
    with torch.no_grad():
        model[0].weight.zero_()
    assert bits(loaded(X)) == bits(network()(X))  # the file has the weights as they were


def test_an_exported_program(tmp_path: Path) -> None:
    layer = nn.TransformerEncoderLayer(4, 2, 8, batch_first=True).eval()
    exported = torch.export.export(layer, (X,))
    path = torch._inductor.aoti_compile_and_package(exported, package_path=str(tmp_path / "layer.pt2"))
    assert path == str(tmp_path / "layer.pt2")
    with torch.no_grad():
        assert bits(torch._inductor.aoti_load_package(path)(X + 1)) == bits(layer(X + 1))
    with pytest.raises(ValueError, match="Only ExportedProgram is supported"):
        torch._inductor.aoti_compile_and_package(layer)


def test_structures_and_numbers(tmp_path: Path) -> None:
    def function(x: Any, by: float = 2.5, *, more: Any) -> Any:
        return {"scaled": x * by, "rest": [x.sum(), (more["y"][0] - 1,)], "count": 3, "same": x}

    loaded = aot_load(aot_compile(function, (X, 0.5), tmp_path / "f.fc", {"more": {"y": [X + 1]}}))
    found = loaded(X + 2, 0.5, more={"y": [X]})
    expected = function(X + 2, 0.5, more={"y": [X]})
    assert list(found) == list(expected)
    assert bits(found["scaled"]) == bits(expected["scaled"])
    assert bits(found["rest"][1][0]) == bits(expected["rest"][1][0])
    assert found["count"] == 3
    assert bits(found["same"]) == bits(X + 2)


def test_other_arguments_are_refused(tmp_path: Path) -> None:
    loaded = aot_load(aot_compile(lambda x, n: x * n, (X, 2.0), tmp_path / "f.fc"))
    for args, message in (
        ((X[:1], 2.0), r"float32\[1, 3, 4\], not float32\[2, 3, 4\]"),
        ((X.double(), 2.0), "float64"),
        ((X, 3.0), "is 3.0, not 2.0"),
        ((X, 2), "is 2, not 2.0"),
        ((X,), "a tuple of 2"),
        ((2.0, X), "is to be a tensor"),
    ):
        with pytest.raises(RuntimeError, match=message):
            loaded(*args)
    twice = aot_load(aot_compile(lambda x, y: x * y, (X, X), tmp_path / "g.fc"))
    assert bits(twice(X, X)) == bits(X * X)
    with pytest.raises(RuntimeError, match="two were one tensor"):
        twice(X, X + 1)


def test_what_cannot_be_compiled_ahead(tmp_path: Path) -> None:
    counter = torch.zeros(1)
    seen: list[Any] = []
    for function, message in (
        (lambda x: counter.add_(1) + x, "changes a tensor"),
        (lambda x: x if x.sum() > 0 else -x, "looks at the elements of a tensor"),
        (lambda x: x.sum().item(), "returns a number that it reads"),
        (lambda x: seen.append(x) or x, "changes Python state"),
    ):
        with pytest.raises(Unsupported, match=message):
            aot_compile(function, (X,), tmp_path / "f.fc")
    assert not (tmp_path / "f.fc").exists()


def rewritten(path: Path, name: str, change: Any) -> Path:
    """A copy of a file with one entry changed, and nothing else."""
    other = path.with_suffix(".changed")
    with zipfile.ZipFile(path) as archive, zipfile.ZipFile(other, "w") as target:
        for each in archive.namelist():
            content = archive.read(each)
            target.writestr(each, change(content) if each == name else content)
    return other


def test_damaged_files_and_other_machines_are_refused(tmp_path: Path) -> None:
    path = aot_compile(network(), (X,), tmp_path / "model.fc")
    with zipfile.ZipFile(path) as archive:
        codes = [each for each in archive.namelist() if each.startswith("code/")]
    for name in ("program.json", "weights.safetensors", *codes[:1]):
        with pytest.raises(RuntimeError, match="is damaged"):
            aot_load(rewritten(path, name, lambda content: content[:-1] + b"?"))
    other = tmp_path / "other.zip"
    with zipfile.ZipFile(other, "w") as archive:
        archive.writestr("program.json", "{}")
    with pytest.raises(RuntimeError, match="nothing that aot_compile has written"):
        aot_load(other)


def test_a_file_for_another_processor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from flambeau.compiler.ahead import load as _aot_load
    from flambeau.compiler.ahead import save as _aot

    here = _aot.machine()
    monkeypatch.setattr(_aot, "machine", lambda: {**here, "processor": "abacus"})
    path = aot_compile(network(), (X,), tmp_path / "model.fc")
    assert _aot_load.machine() == here
    with pytest.raises(RuntimeError, match="another machine or version: processor was 'abacus'"):
        aot_load(path)


def test_a_new_process(tmp_path: Path) -> None:
    model = network()
    path = aot_compile(model, (X,), tmp_path / "model.fc")
    program = (
        "import json, flambeau as torch\n"
        f"found = torch.compiler.aot_load({str(path)!r})(torch.linspace(-2, 2, 24).reshape(2, 3, 4))\n"
        "print(json.dumps(found.tolist()))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300, check=True)
    assert json.loads(done.stdout) == model(X).tolist()
