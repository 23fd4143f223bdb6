"""`flambeau run` and `stand_in_for_torch`: PyTorch programs on Flambeau."""

from __future__ import annotations

import runpy
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import flambeau
from flambeau._cli.run import _lacking
from tests.support.oracle import needs_pytorch

from .calls import ROOT, start

TRAINING = """
    import argparse
    import torch
    import torch.nn as nn
    import torch.nn.functional as F
    from torch import optim
    from torch.utils.data import DataLoader, TensorDataset

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.hidden = nn.Linear(2, 16)
            self.out = nn.Linear(16, 1)

        def forward(self, x):
            return self.out(torch.tanh(self.hidden(x)))

    def main():
        parser = argparse.ArgumentParser()
        parser.add_argument("--epochs", type=int, default=3)
        arguments = parser.parse_args()
        torch.manual_seed(0)
        x = torch.randn(64, 2)
        data = TensorDataset(x, (x[:, :1] * x[:, 1:]))
        loader = DataLoader(data, batch_size=16, shuffle=True)
        model = Net()
        optimizer = optim.Adam(model.parameters(), lr=0.01)
        for epoch in range(arguments.epochs):
            total = 0.0
            for inputs, targets in loader:
                optimizer.zero_grad()
                loss = F.mse_loss(model(inputs), targets)
                loss.backward()
                optimizer.step()
                total += loss.item()
            print(f"{total / len(loader):.4f}")
        torch.save(model.state_dict(), "model.pt")

    if __name__ == "__main__":
        main()
"""


def written(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(textwrap.dedent(text))
    return path


def test_a_training_script_gives_pytorchs_losses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    script = written(tmp_path, "train.py", TRAINING)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["train.py", "--epochs", "4"])
    runpy.run_path(str(script), run_name="__main__")  # PyTorch is what this process has
    expected = capsys.readouterr().out
    status, out, err = start("run", script.name, "--epochs", "4", cwd=tmp_path)
    assert (status, err) == (0, "")
    assert out == expected
    assert len(out.split()) == 4
    assert list(flambeau.load(tmp_path / "model.pt")) == ["hidden.weight", "hidden.bias", "out.weight", "out.bias"]


def test_the_program_is_main(tmp_path: Path) -> None:
    written(tmp_path, "helper.py", "import torch\nNAME = torch.__name__\n")
    written(
        tmp_path,
        "script.py",
        """
        '''A script.'''
        import sys, helper, torch, torch.nn.functional as F
        assert torch is sys.modules["flambeau"] and torch.__name__ == "torch"
        assert F is torch.nn.functional and F.__name__ == "torch.nn.functional"
        print(__name__, __file__, __doc__, sys.argv, helper.NAME, sys.modules["__main__"].torch is torch)
        def annotated(x: "not evaluated here, nor by the one who runs this") -> None: ...
        print(type(annotated.__annotations__["x"]).__name__)
        sys.exit(7)
        """,
    )
    status, out, err = start("run", "script.py", "--help", "-m", cwd=tmp_path)
    assert (status, err) == (7, "")
    assert out == "__main__ script.py A script. ['script.py', '--help', '-m'] torch True\nstr\n"


def test_modules(tmp_path: Path) -> None:
    (tmp_path / "package").mkdir()
    written(tmp_path / "package", "__init__.py", "")
    written(
        tmp_path / "package", "__main__.py", "import sys, torch\nprint(torch.__name__, __package__, sys.argv[1:])\n"
    )
    assert start("run", "-m", "package", "-x", cwd=tmp_path) == (0, "torch package ['-x']\n", "")
    assert start("run", "-m", "absent", cwd=tmp_path) == (2, "", "flambeau run: error: no module named 'absent'\n")


def test_tracebacks_are_the_programs(tmp_path: Path) -> None:
    written(tmp_path, "fails.py", "import torch\n\ndef inner():\n    torch.ones(2) @ torch.ones(3)\n\ninner()\n")
    status, out, err = start("run", "fails.py", cwd=tmp_path)
    assert (status, out) == (1, "")
    lines = err.splitlines()
    assert lines[:2] == ["Traceback (most recent call last):", '  File "fails.py", line 6, in <module>']
    assert '  File "fails.py", line 4, in inner' in lines
    assert "_cli" not in err
    assert "RuntimeError: " in err

    written(tmp_path, "typo.py", "x = (\n")
    status, _, err = start("run", "typo.py", cwd=tmp_path)
    assert status == 1
    assert err.splitlines()[0] == '  File "typo.py", line 1'
    assert start("run", "absent.py", cwd=tmp_path).status == 2


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("import flambeau; flambeau.no_such_function(1)", "torch.no_such_function"),
        ("import flambeau; flambeau.nn.functional.no_such_function(1)", "torch.nn.functional.no_such_function"),
        ("import flambeau; flambeau.ones(1).no_such_method()", "torch.Tensor.no_such_method"),
        ("from flambeau.nn import NoSuchLayer", "torch.nn.NoSuchLayer"),
        ("import collections; collections.nothing", None),
        ("from collections import nothing", None),
        ("1 / 0", None),
    ],
)
def test_what_an_error_says_is_lacking(line: str, name: str | None) -> None:
    with pytest.raises((AttributeError, ImportError, ZeroDivisionError)) as caught:
        exec(line, {})
    assert _lacking(caught.value) == name


@pytest.mark.parametrize(
    ("line", "name"), [("torch.no_such_function(1)", "torch.no_such_function"), ("import torch._core", "torch._core")]
)
def test_what_is_lacking_is_named(line: str, name: str, tmp_path: Path) -> None:
    written(tmp_path, "script.py", f"import torch\n{line}\n")
    status, _, err = start("run", "script.py", cwd=tmp_path)
    assert status == 1
    assert name in err.splitlines()[-1]
    assert f"Flambeau {flambeau.__version__} stands in for torch here" in err.splitlines()[-1]


def test_processes_of_the_program(tmp_path: Path) -> None:
    written(
        tmp_path,
        "script.py",
        """
        import multiprocessing, subprocess, sys
        import torch

        def work(x):
            import torch.nn.functional as F
            return (F.relu(x) + 1).tolist(), torch.__name__

        if __name__ == "__main__":
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                print(pool.apply(work, (torch.tensor([-1.0, 2.0]),)))
            program = "import torch.optim as o; print(o.__name__)"
            subprocess.run([sys.executable, "-c", program], check=True)
        """,
    )
    status, out, err = start("run", "script.py", cwd=tmp_path)
    assert (status, err) == (0, "")
    assert sorted(out.splitlines()) == ["([1.0, 3.0], 'torch')", "torch.optim"]


def test_every_public_module_answers_to_pytorchs_name() -> None:
    package = ROOT / "flambeau"
    names = []
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package).with_suffix("").parts
        parts = parts[:-1] if parts[-1] == "__init__" else parts
        if parts != ("as_torch",) and not any(part.startswith("_") for part in parts):
            names.append(".".join(parts))
    assert len(names) > 150
    program = f"""
import importlib, sys, flambeau
flambeau.stand_in_for_torch()
flambeau.stand_in_for_torch()
for name in {names!r}:
    theirs = importlib.import_module("torch" + ("." + name if name else ""))
    ours = sys.modules["flambeau" + ("." + name if name else "")]
    assert theirs is ours and ours.__name__ == "torch" + ("." + name if name else ""), name
from torch.utils.tensorboard import SummaryWriter
from torch import linalg, Tensor
import torch.utils.data._utils.collate
try:
    import torch.no_such_module
except ImportError as error:
    print(error)
    print(error.name)
try:
    import torch.fft.no_such_module
except ImportError as error:
    print(error.name)
"""
    command = [sys.executable, "-W", "error", "-c", program]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=60)
    assert (run.returncode, run.stderr) == (0, "")
    refusal, name, inner = run.stdout.splitlines()
    assert refusal.startswith("No module named 'torch.no_such_module': Flambeau ")
    assert (name, inner) == ("torch.no_such_module", "torch.fft.no_such_module")


@needs_pytorch
def test_pytorch_is_not_replaced_behind_anybodys_back() -> None:
    before = sys.modules["torch"]
    with pytest.raises(RuntimeError, match="torch is already imported"):
        flambeau.stand_in_for_torch()
    assert sys.modules["torch"] is before
