"""All code of users' notes on PyTorch, run with Flambeau, where a checkout has these notes beside it.

A note is played from its first block to its last, with `torch` standing for Flambeau. Sessions must print what the
notes show, programs what they print under PyTorch. A statement that needs a GPU must say so clearly, and run when it
asks for the CPU instead.
"""

from __future__ import annotations

import ast
import code
import contextlib
import io
import re
import sys
import textwrap
import types
import warnings
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy
import pytest
import torch as pytorch

import flambeau
from tests.training.test_convolutional import resnet_18

NOTES = {
    path.name[:3]: path.read_text(encoding="utf-8")
    for path in sorted((Path(__file__).parent.parent.parent / "shared" / "seeds").glob("*.txt"))
}
CODE = re.compile(
    r"^ *(?P<fence>```|~~~)[ ]*\w*\n(?P<fenced>.*?)^ *(?P=fence)[ ]*$"
    r"|^\* if save[^\n]*\n(?P<indented>(?: {4}[^\n]*\n?)+)"
    r"|<code[^>]*>\n(?P<tagged>.*?)\n</code>",
    re.MULTILINE | re.DOTALL,
)
CONTINUES = "003"  # the note whose blocks use what earlier ones made
SUBMODULES = ("autograd", "nn", "nn.functional", "optim")
pytestmark = pytest.mark.skipif(not NOTES, reason="no notes beside this checkout")


def blocks(note: str) -> list[str]:
    """The code of a note; lines of dots stand for what its author left out."""
    found = [textwrap.dedent(next(filter(None, match.group(*CODE.groupindex)[1:]))) for match in CODE.finditer(note)]
    return [re.sub(r"^ *\.\.\.\n", "", block, flags=re.MULTILINE) for block in found]


def names_of_notes(T: Any, folder: Path) -> dict[str, Any]:
    """What the notes use without showing where it comes from."""
    nn = T.nn
    model, other = nn.Linear(2, 2), nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    optimizer = T.optim.SGD(model.parameters(), lr=0.1)
    T.save(model.state_dict(), folder / "model.pt")
    square = T.ones(2, requires_grad=True) ** 2
    return {
        "torch": T,
        "nn": nn,
        "optim": T.optim,
        "Variable": T.autograd.Variable,
        "OrderedDict": OrderedDict,
        "torchvision": types.SimpleNamespace(
            models=types.SimpleNamespace(resnet18=lambda pretrained: pretrained_resnet(T))
        ),
        "a": other,  # a model whose children go into a ModuleDict
        "self": other,  # a module in whose methods the notes are
        "model": model,
        "mymodel": nn.Linear(2, 2),
        "modelB": nn.Linear(2, 2),
        "optimizer": optimizer,
        "epoch": 3,
        "loss": T.tensor(0.5),
        "mypath": folder / "my.pt",
        "path": folder / "my.pt",
        "PATH": folder / "model.pt",
        "input": T.ones(1, 2),
        "input_var": T.ones(6, 2),
        "ndarray": numpy.ones(3),
        "inputs": (T.ones(1), T.zeros(2)),
        "num_features": 3,
        "param": square,
        "pack_hook": lambda tensor: tensor,
        "unpack_hook": lambda tensor: tensor,
    }


def pretrained_resnet(T: Any) -> Any:
    """ResNet-18 that takes a matrix, as the notes give it one, for an image."""
    network = resnet_18(T, width=64, classes=1000)
    network.register_forward_pre_hook(lambda module, args: (args[0].expand(2, 3, *args[0].shape),))
    return network


# Blocks that are no Python but a command, or a signature; and the call that the signature describes.
COMMAND = re.compile(r"conda ")
SIGNATURES = {
    "torch.from_numpy(ndarray) → Tensor": "torch.from_numpy(ndarray)",
    "torch.cat(inputs, dimension=0) → Tensor": "torch.cat(inputs, 0)",
    "cpu(device_id=None)": "model.cpu()",
    "cuda(device_id=None)": "model.cuda(None)",
}
ON_THE_CPU = {r"\.cuda\(\w*\)": ".cpu()", r'map_location="cuda:0"': 'map_location="cpu"'}


def play(T: Any, note: str, folder: Path) -> list[str]:
    """Run a note's blocks in turn; what each of them prints."""
    scope: dict[str, Any] = {}
    printed = []
    for block in blocks(note):
        scope = {**names_of_notes(T, folder), **(scope if note is NOTES[CONTINUES] else {})}
        block = SIGNATURES.get(block.strip(), block)
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            if ">>> " in block:
                if T is flambeau:
                    check_session(block, scope)
            elif not COMMAND.match(block):
                run = run_with_a_gpu if T.cuda.is_available() else run_statement
                for statement in ast.parse(block).body:
                    run(ast.unparse(statement), scope)
        T.set_grad_enabled(True)
        text = output.getvalue().replace("flambeau", "torch")
        if T.cuda.is_available():  # how much memory a convolution takes is its library's business
            text = re.sub(r"^\d{7,}$", "bytes", text, flags=re.MULTILINE)
        printed.append(text)
    return printed


def run_statement(source: str, scope: dict[str, Any]) -> None:
    """Run a statement; if it needs a GPU, expect to be told, then let it use the CPU."""
    instead = source
    for pattern, replacement in ON_THE_CPU.items():
        instead = re.sub(pattern, replacement, instead.replace("'cuda:0'", '"cuda:0"'))
    if ".to(device)" in source and scope["device"].type == "cuda":
        instead = source.replace("device", "'cpu'")
    if instead != source and "torch.device(" not in source:
        with pytest.raises((AssertionError, RuntimeError), match=r"CUDA|NVIDIA driver"):
            exec(source, scope)
        source = instead
    exec(source, scope)


def run_with_a_gpu(source: str, scope: dict[str, Any]) -> None:
    """Run a statement where there is one GPU: what asks for others must be told, and gets the one."""
    try:
        exec(source, scope)
    except (AssertionError, RuntimeError) as error:
        if "nvalid device" not in str(error):
            raise
        exec(re.sub(r"device_ids=\[[\d, ]*\]", "device_ids=[0]", source) if "device_ids" in source else "", scope)


def check_session(body: str, scope: dict[str, Any]) -> None:
    """Type an interactive session in, statement by statement, and compare what it prints with what the notes show."""
    for source, expected in statements(body):
        printed = io.StringIO()
        console = code.InteractiveConsole(scope)
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            for line in [*source, ""]:
                console.push(line)
        if expected:
            assert printed.getvalue().strip() == "\n".join(expected), source
        else:
            assert "Traceback" not in printed.getvalue(), printed.getvalue()


def statements(body: str) -> list[tuple[list[str], list[str]]]:
    """The statements of a session, each with the lines that it should print, in today's form of printed modules."""
    body = re.sub(r"Linear \((\d+) -> (\d+)\)", r"Linear(in_features=\1, out_features=\2, bias=True)", body)
    body = body.replace("Sequential (", "Sequential(").replace('"""', "")
    found: list[tuple[list[str], list[str]]] = []
    for line in body.splitlines():
        if line.startswith(">>> "):
            found.append(([line[4:].rstrip()], []))
        elif line.startswith("... "):
            found[-1][0].append(line[4:].rstrip())
        elif line.startswith(" " * 8) and line.strip():  # the body of a loop, without dots
            found[-1][0].append(line.rstrip())
        elif line.strip() and not line.startswith("#"):
            found[-1][1].append(line.rstrip())
    return found


@pytest.mark.parametrize("number", NOTES)
def test_note_plays(number: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    note = NOTES[number]
    # The notes load whole models, which a file of unknown origin must not do: they trust their own.
    monkeypatch.setenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "1")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pytorch.manual_seed(0)
        expected = play(pytorch, note, tmp_path)
        monkeypatch.setitem(sys.modules, "torch", flambeau)
        for name in SUBMODULES:
            module = flambeau
            for part in name.split("."):
                module = getattr(module, part)
            monkeypatch.setitem(sys.modules, f"torch.{name}", module)
        flambeau.manual_seed(0)
        actual = play(flambeau, note, tmp_path)
    assert actual == expected


def test_results_that_the_notes_give_in_comments() -> None:
    """3.5 and 7.5; 27 everywhere and its mean; 4.5."""
    scope: dict[str, Any] = {"torch": flambeau, "Variable": flambeau.autograd.Variable}
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        for block in blocks(NOTES["003"])[:3]:
            exec(re.sub("^(import|from) torch.*", "", block, flags=re.MULTILINE), scope)
    assert scope["a"].unique().tolist() == [3.5]
    assert scope["b"].unique().tolist() == [7.5]
    assert scope["z"].tolist() == [[27, 27], [27, 27]]
    assert scope["out"].item() == 27
    assert "tensor([[4.5000, 4.5000],\n        [4.5000, 4.5000]])" in printed.getvalue()


def test_every_block_is_found() -> None:
    assert {number: len(blocks(note)) for number, note in NOTES.items()} == {
        "000": 5,
        "001": 8,
        "002": 9,
        "003": 6,
        "004": 1,
    }
