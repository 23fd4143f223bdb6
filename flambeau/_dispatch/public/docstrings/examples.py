"""Examples of public functions, which docstrings show and the tests run under Flambeau and under PyTorch.

Those of the ops in `_ops/shape/join.py` stand in `_ops/shape/examples/join.txt`, a text that is read when the first
docstring of the file's functions is made. An example begins with `# ` and the function's name. A further name of a
function and its in-place form show the function's own example with the call replaced, unless they have one themselves.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from .. import catalogue

_OPS = Path(__file__).parents[3] / "_ops"
_TITLE = re.compile(r"^# (.+)\n", re.MULTILINE)


def example_of(name: str, original: str) -> str:
    """The example of the public function `name`, `linalg.inv` or `add_`, as a session; "" where there is none.

    `original` is the function of which `name` is another name or the in-place form; the same if it is neither.
    """
    examples = _of_family(_family(name))
    if name in examples:
        return examples[name]
    if name.endswith("_") and f"{original}_" in examples:
        return examples[f"{original}_"].replace(f".{original}_(", f".{name}(")
    shared = examples.get(original, "")
    if name.endswith("_") and name in catalogue.METHODS:
        return as_method(shared, original, name)
    return shared.replace(f"{called(original)}(", f"{called(name)}(")


def as_method(example: str, function: str, method: str) -> str:
    """An example with the calls of `function` as calls of a method, where their first argument is a name."""
    return re.sub(rf"\b{re.escape(called(function))}\(([a-zA-Z]\w*)(?:, |(?=\)))", rf"\1.{method}(", example)


def called(name: str) -> str:
    """How examples call a public function: `torch.linalg.inv`, `F.relu`."""
    space, _, own = name.rpartition(".")
    return f"F.{own}" if space == "nn.functional" else f"torch.{name}"


def _family(name: str) -> str:
    """The file of ops that has a function or a method."""
    space, _, own = name.rpartition(".")
    return catalogue.FUNCTIONS.get(space, {}).get(own) or catalogue.METHODS.get(own, "")


@cache
def _of_family(family: str) -> dict[str, str]:
    """The examples of one file of ops, by the names of functions."""
    *folders, file = family.split(".")
    path = _OPS.joinpath(*folders, "examples", f"{file}.txt")
    if not path.is_file():
        return {}
    _, *parts = _TITLE.split(path.read_text(encoding="utf-8"))
    return {name: text.strip("\n") for name, text in zip(parts[::2], parts[1::2], strict=True)}
