"""`Lesson`: where its files are, and the engine's own code that does what its exercise is about."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import NamedTuple

_HERE = Path(__file__).parent
_PACKAGE = _HERE.parent


class Code(NamedTuple):
    """A definition in the package, as it is written there."""

    path: str
    line: int
    text: str


class Lesson:
    """One lesson. `beside` names the engine's own code on its subject: pairs of a file and a definition in it."""

    def __init__(self, name: str, title: str, *beside: tuple[str, str]) -> None:
        self.name = name
        self.title = title
        self.beside = beside
        self.folder = _HERE / name

    def text(self, file: str) -> str:
        """The text of one of its files."""
        return (self.folder / file).read_text(encoding="utf-8")

    def code(self) -> list[Code]:
        """The engine's own code on the subject."""
        return [code_of(path, name) for path, name in self.beside]


def code_of(path: str, name: str) -> Code:
    """The definition of `name`, or of `Class.name`, in a file of the package: a function, a class or an assignment."""
    source = (_PACKAGE / path).read_text(encoding="utf-8")
    node: ast.AST = ast.parse(source)
    for part in name.split("."):
        node = next(each for each in ast.iter_child_nodes(node) if part in _names(each))
    assert isinstance(node, ast.stmt)
    decorators = getattr(node, "decorator_list", [])
    first = min([node.lineno, *[each.lineno for each in decorators]])
    return Code(f"flambeau/{path}", first, "\n".join(source.splitlines()[first - 1 : node.end_lineno]))


def _names(node: ast.AST) -> list[str]:
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        return [node.name]
    if isinstance(node, ast.Assign):
        return [each.id for each in node.targets if isinstance(each, ast.Name)]
    return []


LESSONS = {
    lesson.name: lesson
    for lesson in (
        Lesson("op", "An operation", ("_ops/pointwise/unary.py", "exp"), ("_ops/pointwise/unary.py", "sigmoid")),
        Lesson(
            "derivative",
            "A derivative",
            ("_ops/pointwise/binary.py", "mul"),
            ("_dispatch/arguments/broadcast.py", "sum_to_shape"),
        ),
        Lesson(
            "strides",
            "Strides and views",
            ("_ops/shape/parts.py", "_unfold_geometry"),
            ("_ops/shape/parts.py", "_unfold"),
        ),
        Lesson(
            "backward",
            "The backward pass",
            ("autograd/engine.py", "count_gradients"),
            ("autograd/engine.py", "_Pass.run"),
        ),
        Lesson("optimizer", "An optimizer", ("optim/adagrad.py", "Adagrad"), ("optim/adagrad.py", "adagrad")),
        Lesson(
            "checkpoint",
            "A checkpoint reader",
            ("_serialization/safetensors.py", "parse_header"),
            ("_serialization/safetensors.py", "_entry"),
        ),
        Lesson(
            "kernel",
            "A kernel in machine code",
            ("_codegen/kernel.py", "Kernel"),
            ("_codegen/build.py", "Builder.lanes"),
        ),
        Lesson(
            "capture",
            "A graph capture",
            ("_dispatch/interpreter.py", "interpret"),
            ("compiler/capture/ops.py", "Capture"),
        ),
        Lesson(
            "collective",
            "A collective",
            ("distributed/_mesh/algorithms.py", "all_reduce"),
            ("distributed/_mesh/algorithms.py", "_recursive_doubling"),
        ),
    )
}
"""In the order in which to take them."""
