"""`flambeau compare --with cuda`: a script on the CPU and on the device, with one set of random numbers."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import flambeau as torch
from flambeau.utils import compare
from flambeau.utils.compare._draws import DrawsOfTheHost

from .conftest import is_simulated

_SCRIPT = """
import torch
torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.LayerNorm(32), torch.nn.ReLU(), torch.nn.Linear(32, 3))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
x, y = torch.randn(16, 8), torch.randint(0, 3, (16,))
torch.nn.functional.cross_entropy(net(x), y).backward()
optimizer.step()
"""
_SIMULATED = """
import sys
if "flambeau.utils.compare._child" in sys.orig_argv:
    from tests.support.simulated_cuda import install_simulated_device
    install_simulated_device()
"""


@pytest.mark.parametrize(
    "draw",
    [
        lambda device: torch.rand(40, device=device),
        lambda device: torch.randn(40, device=device),
        lambda device: torch.randint(0, 9, (40,), device=device),
        lambda device: torch.randperm(40, device=device),
        lambda device: torch.bernoulli(torch.full((40,), 0.3, device=device)),
        lambda device: torch.multinomial(torch.ones(40, device=device), 5),
        lambda device: torch.nn.functional.dropout(torch.ones(40, device=device)),
        lambda device: torch.empty(40, device=device).exponential_(),
    ],
)
def test_draws_are_those_of_the_host(draw: object) -> None:
    assert callable(draw)
    torch.manual_seed(3)
    wanted = draw("cpu")
    torch.manual_seed(3)
    with DrawsOfTheHost():
        found = draw("cuda")
    assert found.is_cuda
    assert torch.equal(found.cpu(), wanted)


def test_a_script_agrees_but_for_rounding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "train.py"
    script.write_text(_SCRIPT, encoding="utf-8")
    if is_simulated():
        (tmp_path / "sitecustomize.py").write_text(_SIMULATED, encoding="utf-8")
        monkeypatch.setenv("PYTHONPATH", os.pathsep.join((str(tmp_path), str(Path(__file__).parents[3]))))
    found = compare.scripts(str(script), mode="cuda")
    assert not found, str(found)
    assert " in common" in str(found)
