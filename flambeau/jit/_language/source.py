"""Reading a file of the language: its syntax, checked, and the definitions in it.

Python's grammar contains the language's, so Python's parser reads it. What comes out is looked at node by node: what
the language does not have is refused before anything runs.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from .types import NotInLanguage

_LARGEST_SOURCE = 64 << 20
_DEEPEST = 200
"""How deeply expressions and blocks may be nested: PyTorch writes far flatter ones."""

_ALLOWED = (
    ast.Module, ast.ClassDef, ast.FunctionDef, ast.arguments, ast.arg, ast.expr_context, ast.alias,
    ast.Assign, ast.AnnAssign, ast.Expr, ast.If, ast.While, ast.For, ast.With, ast.withitem, ast.Return, ast.Pass,
    ast.Name, ast.Attribute, ast.Constant, ast.Call, ast.keyword, ast.Tuple, ast.List, ast.Dict, ast.Subscript,
    ast.Slice, ast.UnaryOp, ast.USub, ast.UAdd, ast.Not, ast.BinOp, ast.Add, ast.Sub, ast.IfExp, ast.Starred,
    ast.ListComp, ast.comprehension, ast.AugAssign, ast.Mult, ast.Div, ast.Break, ast.Continue, ast.Assert,
    ast.BoolOp, ast.And, ast.Or, ast.Compare, ast.Is, ast.IsNot,
)  # fmt: skip


class Definitions(NamedTuple):
    """What a file defines, and its lines."""

    path: str
    text: str
    classes: dict[str, ast.ClassDef]
    functions: dict[str, ast.FunctionDef]

    def lines_of(self, node: ast.stmt) -> str:
        """The text of a definition."""
        lines = self.text.splitlines()[node.lineno - 1 : node.end_lineno]
        return "\n".join(line[node.col_offset :] for line in lines) + "\n"


def read(path: str, text: str) -> Definitions:
    """The definitions in a file; `NotInLanguage` says what is wrong with it."""
    if len(text) > _LARGEST_SOURCE:
        raise NotInLanguage(f"{path} has {len(text)} characters of code: no program of TorchScript is that long")
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise NotInLanguage(f"{path} is no TorchScript: {str(error)[:200]}") from None
    _check(path, tree)
    definitions = Definitions(path, text, {}, {})
    for each in tree.body:
        if isinstance(each, ast.ClassDef):
            definitions.classes[each.name] = each
        elif isinstance(each, ast.FunctionDef):
            definitions.functions[each.name] = each
        elif not isinstance(each, ast.Expr):
            raise NotInLanguage(f"{path}, line {each.lineno}: a file has definitions only")
    return definitions


def _check(path: str, tree: ast.Module) -> None:
    level: list[ast.AST] = [tree]
    for _ in range(_DEEPEST):
        for node in level:
            if not isinstance(node, _ALLOWED):
                place = getattr(node, "lineno", "?")
                raise NotInLanguage(f"{path}, line {place}: TorchScript has no {type(node).__name__}")
        level = [child for node in level for child in _inner(node)]
        if not level:
            return
    raise NotInLanguage(f"{path} is nested more deeply than {_DEEPEST} levels")


def _inner(node: ast.AST) -> Iterator[ast.AST]:
    return ast.iter_child_nodes(node)
