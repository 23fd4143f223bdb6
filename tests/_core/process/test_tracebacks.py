"""What a traceback shows of an error: the user's lines and the line that raised, nothing of the way between them."""

from __future__ import annotations

import os
import subprocess
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import flambeau as torch
from flambeau.nn import functional as F

pytestmark = pytest.mark.skipif(
    sys.version_info < (3, 11), reason="Python 3.10 raises again with the traceback that it has caught"
)

TWICE = (torch.ones(2, requires_grad=True) ** 2).sum()
TWICE.backward()


def _refuse(*_: Any) -> None:
    raise ValueError("the user's own")


def _hooked() -> None:
    made = torch.ones(2, requires_grad=True) * 2
    made.register_hook(_refuse)
    made.sum().backward()


class Refusing(torch.autograd.Function):
    """A function whose backward raises."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x.clone()

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return _refuse()


def _collate(batch: Any) -> Any:
    return torch.stack(batch)


CASES: dict[str, tuple[Callable[[], Any], int]] = {
    "loss": (lambda: F.cross_entropy(torch.zeros(3, 4), torch.tensor([0, 1, 9])), 1),
    "cat": (lambda: torch.cat([torch.ones(2, 3), torch.ones(3, 4)]), 1),
    "operator": (lambda: torch.ones(2, 3) @ torch.ones(2, 3), 1),
    "sum": (lambda: torch.ones(2) + torch.ones(3), 1),
    "index": (lambda: torch.ones(3)[7], 1),
    "indices": (lambda: torch.ones(3, 4)[torch.tensor([7])], 1),
    "keyword": (lambda: torch.ones(3).sum(dims=0), 1),
    "data": (lambda: torch.tensor([1, "a"]), 1),
    "twice": (lambda: TWICE.backward(), 1),
    "hook": (_hooked, 2),
    "function": (lambda: Refusing.apply(torch.ones(1, requires_grad=True)).backward(), 3),
    "compiled": (lambda: torch.compile(lambda a: a @ a)(torch.ones(2, 3)), 2),
    "loader": (lambda: next(iter(torch.utils.data.DataLoader([1], collate_fn=_collate))), 2),
    "file": (lambda: torch.load(__file__), 1),
}


@pytest.mark.parametrize("name", CASES)
def test_own_lines_and_the_cause(name: str) -> None:
    call, own = CASES[name]
    with pytest.raises(Exception, match=r".") as raised:
        call()
    frames = traceback.extract_tb(raised.value.__traceback__)[1:]
    library = [each.filename for each in frames if each.filename != __file__]
    assert len(frames) - len(library) == own
    assert len(library) <= 2, library  # at most the method that was called, and what raised
    shown = "".join(traceback.format_exception(raised.value))
    assert "During handling" not in shown


def test_errors_of_users_stay_in_the_chain() -> None:
    def hook(grad: Any) -> None:
        try:
            _refuse()
        except ValueError:
            torch.ones(2).view(3)

    made = torch.ones(2, requires_grad=True) * 2
    made.register_hook(hook)
    with pytest.raises(RuntimeError, match="is invalid for input of size") as raised:
        made.sum().backward()
    assert "the user's own" in "".join(traceback.format_exception(raised.value))


@pytest.mark.parametrize("whole", ["0", "1"])
def test_the_whole_on_request(whole: str) -> None:
    text = "import flambeau as torch\ntorch.nn.functional.cross_entropy(torch.zeros(1, 2), torch.tensor([5]))"
    variables = {**os.environ, "FLAMBEAU_FULL_TRACEBACK": whole, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    ran = subprocess.run([sys.executable, "-c", text], env=variables, capture_output=True, text=True, check=False)
    assert "Target 5 is out of bounds" in ran.stderr
    assert ("_nll_kernel" in ran.stderr) == (whole == "1")
    assert Path(torch.__file__).parent.name in ran.stderr
