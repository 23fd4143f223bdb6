"""The code of users' notes on PyTorch, run with Flambeau, where a checkout has these notes beside it.

Blocks that need `nn` or a GPU are left to the tests of those parts; the others must run and print what the notes show.
"""

from __future__ import annotations

import code
import contextlib
import io
import re
import textwrap
import warnings
from pathlib import Path
from typing import Any

import pytest

import flambeau

NOTES = sorted((Path(__file__).parent.parent.parent / "shared" / "seeds").glob("*.txt"))
FENCE = re.compile(r"^( *)(```|~~~)[ ]*(\w*)\n(.*?)^ *\2[ ]*$", re.MULTILINE | re.DOTALL)
NOT_HERE = re.compile(
    r"\bnn\b|cuda|optim\.|torchvision|conda|\bnet\b|torch\.(save|load)|load_state_dict|register_buffer|→|PATH|device_id"
)


def blocks() -> list[Any]:
    found = []
    for note in NOTES:
        for number, match in enumerate(FENCE.finditer(note.read_text(encoding="utf-8"))):
            body = textwrap.dedent(match.group(4))
            if not NOT_HERE.search(body):
                found.append(pytest.param(note, number, body, id=f"{note.name[:3]}-{number}"))
    return found


def earlier_blocks(note: Path, number: int) -> str:
    """What stood before in the same note: later blocks use its variables."""
    bodies = [textwrap.dedent(match.group(4)) for match in FENCE.finditer(note.read_text(encoding="utf-8"))][:number]
    return "\n".join(body for body in bodies if not NOT_HERE.search(body) and ">>>" not in body)


@pytest.mark.skipif(not NOTES, reason="no notes beside this checkout")
@pytest.mark.parametrize(("note", "number", "body"), blocks())
def test_block_runs(note: Path, number: int, body: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "torch", flambeau)
    monkeypatch.setitem(sys.modules, "torch.autograd", flambeau.autograd)
    scope: dict[str, Any] = {"torch": flambeau}
    before = flambeau.is_grad_enabled()
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            exec(compile(earlier_blocks(note, number), "earlier blocks", "exec"), scope)
            if ">>>" in body:
                check_session(body, scope)
            else:
                exec(compile(body, f"{note.name} block {number}", "exec"), scope)
    finally:
        flambeau.set_grad_enabled(before)


def check_session(body: str, scope: dict[str, Any]) -> None:
    """Type an interactive session in, statement by statement, and compare what it prints with what the notes show."""
    for source, expected in statements(body):
        printed = io.StringIO()
        console = code.InteractiveConsole(scope)
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            for line in [*source, ""]:
                console.push(line)
        if expected:
            assert printed.getvalue().strip() == "\n".join(expected)
        else:
            assert "Traceback" not in printed.getvalue(), printed.getvalue()


def statements(body: str) -> list[tuple[list[str], list[str]]]:
    """The statements of a session, each with the lines that it should print."""
    found: list[tuple[list[str], list[str]]] = []
    for line in body.splitlines():
        if line.startswith(">>> "):
            found.append(([line[4:].rstrip()], []))
        elif line.startswith("... "):
            found[-1][0].append(line[4:].rstrip())
        elif line.strip():
            found[-1][1].append(line.strip())
    return found


@pytest.mark.skipif(not NOTES, reason="no notes beside this checkout")
def test_some_blocks_are_found() -> None:
    assert len(blocks()) >= 4
