"""What an editor shows of the package, as a real language server says it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from .language_server import SERVERS, LanguageServer, server

ROOT = Path(__file__).parents[2]
PROGRAM = '''\
import flambeau as torch
import flambeau.nn.functional as F
from flambeau import nn


class Net(nn.Module):
    """A network."""

    def forward(self, x: torch.Tensor, scale: float = 1.0) -> torch.Tensor:
        return F.relu(x) * scale


def step(x: torch.Tensor, times: int = 2) -> float:
    return (x * times).sum().item()


net = torch.compile(Net())
quick = torch.compile(step)
loss = F.cross_entropy(net(torch.ones(3)), torch.ones(3))
result = net(torch.ones(3))
wrong = net(torch.ones(3), scale='wrong')
total = torch.ones(3).sum()
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
torch.cuda.empty_cache()
name = torch.cuda.get_device_name()
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.ones(3)), batch_size=2)
optimizer.
torch.nn.functional.cross_
'''


@pytest.fixture(scope="module")
def editor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[LanguageServer, Path]]:
    program = server()
    if program is None:
        pytest.skip(
            f"no language server is installed: none of {', '.join(SERVERS)} is there (pip install basedpyright)"
        )
    folder = tmp_path_factory.mktemp("editor")
    path = folder / "program.py"
    path.write_text(PROGRAM, encoding="utf-8")
    started = LanguageServer(program, folder, ROOT)
    try:
        started.open(path, PROGRAM)
        yield started, path
    finally:
        started.close()


def place(words: str, at: str) -> tuple[int, int]:
    """Line and column of `at` in the first line of the program that has `words`."""
    for number, line in enumerate(PROGRAM.splitlines()):
        if words in line:
            return number, line.index(at)
    raise AssertionError(words)


@pytest.mark.parametrize(
    ("words", "at", "shown"),
    [
        ("loss = ", "cross_entropy", ["cross_entropy", "Tensor", "label_smoothing"]),
        ("total = ", "sum", ["sum", "dim", "keepdim", "Tensor"]),
        ("optimizer = torch", "AdamW", ["AdamW", "lr"]),
        ("net = ", "net", ["net: Net"]),
        ("quick = ", "quick", ["x: Tensor", "times: int = 2", "float"]),
        ("result = ", "result", ["result: Tensor"]),
        ("name = ", "get_device_name", ["get_device_name", "str"]),
        ("loader = ", "DataLoader", ["DataLoader", "batch_size"]),
    ],
)
def test_hover(editor: tuple[LanguageServer, Path], words: str, at: str, shown: list[str]) -> None:
    started, path = editor
    text = started.hover(path, *place(words, at))
    assert [each for each in shown if each not in text] == [], text


@pytest.mark.parametrize(
    ("words", "at"),
    [
        ("loss = ", "cross_entropy"),
        ("total = ", "sum"),
        ("optimizer = ", "AdamW"),
        ("torch.cuda.empty_cache", "empty_cache"),
        ("name = ", "get_device_name"),
        ("loader = ", "DataLoader"),
    ],
)
def test_hover_shows_the_documentation(editor: tuple[LanguageServer, Path], words: str, at: str) -> None:
    started, path = editor
    text = started.hover(path, *place(words, at))
    assert any(line.strip().endswith(".") and " " in line.strip() for line in text.splitlines()), text


def test_completion(editor: tuple[LanguageServer, Path]) -> None:
    started, path = editor
    line, column = place("torch.nn.functional.cross_", "cross_")
    assert "cross_entropy" in started.completions(path, line, column + len("cross_"))
    number = PROGRAM.splitlines().index("optimizer.")
    assert {"step", "zero_grad", "param_groups"} <= set(started.completions(path, number, len("optimizer.")))


def test_a_module_is_called_as_its_forward_is(editor: tuple[LanguageServer, Path]) -> None:
    started, _ = editor
    complaints = "\n".join(started.complaints())
    assert '"Literal[\'wrong\']" is not assignable to "float"' in complaints
    assert "compile" not in complaints
