"""`graph`: what a method runs, operator by operator, read from its text: a view, which changes nothing."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ._language.program import Function
from ._language.types import dotted

_BLOCKS = {ast.If: "prim::If", ast.While: "prim::Loop", ast.For: "prim::Loop", ast.With: "prim::Enter"}


class Node:
    """One operator, call or block."""

    def __init__(self, kind: str, text: str, line: int) -> None:
        self._kind, self._text, self._line = kind, text, line

    def kind(self) -> str:
        """The name of what runs: `aten::relu`, `prim::CallMethod`, `prim::If`."""
        return self._kind

    def __str__(self) -> str:
        return f"{self._kind}  # line {self._line}: {self._text}"

    __repr__ = __str__


class Graph:
    """The operators of a function in the order of its text."""

    def __init__(self, function: Function) -> None:
        self._function = function

    def nodes(self) -> Iterator[Node]:
        """What the function runs, what blocks contain included."""
        for statement in self._function.node.body:
            yield from _nodes(statement)

    def inputs(self) -> list[str]:
        """The names of the parameters."""
        return list(self._function.names)

    def findAllNodes(self, kind: str, recurse: bool = True) -> list[Node]:
        """The nodes of a kind."""
        return [each for each in self.nodes() if each.kind() == kind]

    def __str__(self) -> str:
        names = ", ".join(f"%{each}" for each in self._function.names)
        return "\n".join([f"graph({names}):", *(f"  {each}" for each in self.nodes()), ""])

    __repr__ = __str__


def _nodes(tree: ast.AST) -> Iterator[Node]:
    """Inner calls come before outer ones, as they run."""
    block = _BLOCKS.get(type(tree))
    if block is not None and isinstance(tree, ast.stmt):
        yield Node(block, ast.unparse(tree).splitlines()[0], tree.lineno)
    for child in ast.iter_child_nodes(tree):
        yield from _nodes(child)
    if isinstance(tree, ast.Call):
        yield Node(_kind(tree), ast.unparse(tree)[:200], tree.lineno)


def _kind(call: ast.Call) -> str:
    name = dotted(call.func) or ""
    space, _, last = name.partition(".")
    if space == "torch":
        return f"aten::{last}"
    if space == "ops":
        return last.replace(".", "::", 1)
    if space == "__torch__":
        return "prim::CallFunction"
    return "prim::CallMethod" if isinstance(call.func, ast.Attribute) else f"prim::{name or 'CallFunction'}"
