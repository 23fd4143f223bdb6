"""Every change in place ends in one function, which counts it and records it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import flambeau
from tests.support.differential import differential, outcome

PACKAGE = Path(flambeau.__file__).parent


@pytest.mark.parametrize(
    ("pattern", "place"),
    [
        (r"ounter\[0\] \+= 1", ["_core/version.py"]),
        (r"rebase_history\(", ["_dispatch/changes/history.py", "autograd/function.py"]),
        # The last three are short ways of tensors that have no history.
        (
            r"note_change\(",
            [
                "_core/version.py",
                "_dispatch/changes/history.py",
                "_dispatch/call/elementwise.py",
                "_ops/random/draws.py",
                "_ops/tensor/copy.py",
            ],
        ),
    ],
)
def test_there_is_one_place(pattern: str, place: list[str]) -> None:
    """Where versions move, and histories."""
    found = [
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        if re.search(pattern, path.read_text(encoding="utf-8"))
    ]
    assert sorted(found) == sorted(place)


CHANGES = {
    "elementwise": lambda T, x, y: x.add_(y),
    "number": lambda T, x, y: x.mul_(2),
    "copy": lambda T, x, y: x.copy_(y),
    "zero": lambda T, x, y: x.zero_(),
    "fill": lambda T, x, y: x.fill_(y.sum()),
    "index": lambda T, x, y: x.__setitem__(0, y[0]),
    "mask": lambda T, x, y: x.masked_fill_(y > 0, 1.0),
    "scatter": lambda T, x, y: x.scatter_(0, T.tensor([1]), y),
    "random": lambda T, x, y: x.uniform_(),
    "out": lambda T, x, y: T.exp(y.detach(), out=x.detach()),
    "combined": lambda T, x, y: x.addcmul_(y, y, value=0.5),
    "shape": lambda T, x, y: x.unsqueeze_(0),
    "several": lambda T, x, y: T._foreach_add_([x], [y]),
}


@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize("view", [False, True])
@pytest.mark.parametrize("name", CHANGES)
@differential
def test_versions_and_histories(T: Any, name: str, view: bool, recorded: bool) -> Any:
    T.manual_seed(0)
    leaf = T.tensor([0.5, -1.0, 2.0], requires_grad=recorded)
    base = leaf * 1
    x = base[:] if view else base
    CHANGES[name](T, x, T.tensor([1.0, -2.0, 3.0], requires_grad=recorded))
    node = None if base.grad_fn is None else base.grad_fn.name()
    return base._version, x._version, x.requires_grad, node


WINDOWS = {
    "changed and stored": lambda x: x[1].add_(1),
    "the same": lambda x: x[1],
    "the same in one dimension more": lambda x: x[1:2][0],
    "the same column": lambda x: x[:, 1][:3],
    "another": lambda x: x[2],
    "some of the same": lambda x: x.view(-1)[4:7],
}


@pytest.mark.parametrize("name", WINDOWS)
@pytest.mark.parametrize("index", [1, (slice(None), 1)], ids=["row", "column"])
@differential
def test_windows_stored_in_windows(T: Any, name: str, index: Any) -> Any:
    x = T.arange(9.0).view(3, 3)

    def store() -> None:
        x[index] = WINDOWS[name](x)

    return outcome(store), x, x._version
