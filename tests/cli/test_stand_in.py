"""Flambeau in the place of torch: names, versions, metadata, pickles, and what is said about what is absent."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
import torch as pytorch

import flambeau

ROOT = Path(__file__).parent.parent.parent
SHIM = ROOT / "packages" / "torch-shim"


def run(program: str, *path: Path) -> str:
    """What a program prints in a process of its own."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (*path, ROOT)))}
    command = [sys.executable, "-W", "error", "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


NAMES = """
import importlib.metadata, importlib.util
import torch.nn as nn
import torch.nn.functional as F
import torch
assert torch is importlib.import_module("flambeau")
for each in (torch, nn, F, torch.optim):
    print(each.__name__)
for each in (torch.Tensor, nn.Linear, torch.add, F.relu, torch.optim.Adam, torch.Size, torch.fx.Graph, torch.no_grad):
    print(each.__module__, each.__qualname__)
print(type(torch.ones(1)))
print(torch.__version__, importlib.metadata.version("torch"), torch.version.__version__)
print(torch.__version__ >= (2, 13), torch.__version__ < "2.14", type(torch.__version__).__name__)
print(importlib.util.find_spec("torch") is not None, importlib.util.find_spec("torch.nn") is not None)
"""
EXPECTED = f"""
torch
torch.nn
torch.nn.functional
torch.optim
torch Tensor
torch.nn.modules.linear Linear
torch add
torch.nn.functional relu
torch.optim.adam Adam
torch Size
torch.fx.graph Graph
torch.autograd.grad_mode no_grad
<class 'torch.Tensor'>
{" ".join([f"2.13.0+flambeau.{flambeau._RELEASE}"] * 3)}
True True TorchVersion
True True
"""


def test_an_import_stands_in() -> None:
    assert run("import flambeau.as_torch" + NAMES) == EXPECTED.lstrip()


def test_the_distribution_stands_in() -> None:
    assert run(NAMES.replace("import importlib.metadata,", "import importlib, importlib.metadata,"), SHIM) == (
        EXPECTED.lstrip()
    )


def test_every_namespace_of_operators_is_there() -> None:
    """torchvision asks for its own before it knows whether its operators are loaded."""
    program = (
        "import flambeau.as_torch, torch; print(hasattr(torch.ops.a_library, 'an_op'));"
        "torch.ops.aten.add; torch.ops.quantized"
    )
    assert run(program) == "False\n"


def test_the_distribution_has_the_versions() -> None:
    text = (SHIM / "pyproject.toml").read_text(encoding="utf-8")
    assert f'version = "{flambeau.version.PYTORCH}+flambeau.{flambeau._RELEASE}"' in text
    assert f'"flambeau=={flambeau._RELEASE}"' in text


def test_pickles_are_pytorchs(tmp_path: Path) -> None:
    path = tmp_path / "objects.pickle"
    program = f"""
import flambeau.as_torch, pickle, torch
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3))
model[0].weight.note = "kept"
things = [model, torch.arange(6.0).reshape(2, 3).t(), torch.float16, torch.tensor([True]), torch.Size([2]), torch.add]
with open({str(path)!r}, "wb") as file:
    pickle.dump(things, file)
with open({str(path)!r}, "rb") as file:
    again = pickle.load(file)
assert torch.equal(again[0][0].weight, model[0].weight) and again[0][0].weight.note == "kept"
assert torch.equal(again[1], things[1]) and again[2] is torch.float16 and again[5] is torch.add
"""
    run(program)
    content = path.read_bytes()
    assert b"flambeau" not in content
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch's own warning about typed storages
        model, transposed, dtype, truth, size, add = pickle.loads(content)
    assert type(model[0]) is pytorch.nn.Linear
    assert isinstance(model[0].weight, pytorch.nn.Parameter)
    assert model(pytorch.ones(2, 2)).shape == (2, 3)
    assert transposed.tolist() == [[0, 3], [1, 4], [2, 5]]
    assert transposed.stride() == (1, 3)
    assert (dtype, truth.tolist(), size, add) == (pytorch.float16, [True], pytorch.Size([2]), pytorch.add)


@pytest.mark.parametrize(
    ("line", "beginning"),
    [
        ("torch.no_such", "module 'torch' has no attribute 'no_such': Flambeau"),
        ("torch.nn.functional.no_such", "module 'torch.nn.functional' has no attribute 'no_such': Flambeau"),
        ("import torch.no_such", "No module named 'torch.no_such': Flambeau"),
        ("import torch._core", "No module named 'torch._core': Flambeau"),
    ],
)
def test_what_is_absent_points_to_the_page(line: str, beginning: str) -> None:
    program = f"""
import flambeau.as_torch, torch
try:
    {line}
except (AttributeError, ImportError) as error:
    print(error)
assert not hasattr(torch, "no_such")
"""
    said = run(program)
    assert said.startswith(beginning)
    assert "names.html" in said


def test_sparse_tensors_where_flambeau_stands_in() -> None:
    """What runs for a sparse tensor is found by the function's name, which is another one there."""
    program = """
import flambeau.as_torch, torch
matrix = torch.eye(3).to_sparse()
print(torch.is_complex(matrix), torch.sparse.mm(matrix, torch.ones(3, 1)).flatten().tolist())
"""
    assert run(program) == "False [1.0, 1.0, 1.0]\n"
