"""Which local names statements read and set: what has to be handed to a part of a function, and what comes back."""

from __future__ import annotations

import ast
from collections.abc import Iterable

_SCOPES = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_FOUND = "_names"
"""The attribute of a statement that holds the names in it, once they have been looked for."""


class _Names(ast.NodeVisitor):
    """Collects names that are read or set in the scope of a statement, not those of scopes inside."""

    def __init__(self) -> None:
        self.read: set[str] = set()
        self.set: set[str] = set()

    def visit(self, node: ast.AST) -> None:
        if not isinstance(node, ast.stmt):
            super().visit(node)
            return
        found = getattr(node, _FOUND, None)  # a statement is asked for its names once for each block around it
        if found is None:
            inner = _Names()
            ast.NodeVisitor.visit(inner, node)
            found = inner.read, inner.set
            setattr(node, _FOUND, found)
        self.read |= found[0]
        self.set |= found[1]

    def visit_Name(self, node: ast.Name) -> None:
        (self.set if isinstance(node.ctx, ast.Store) else self.read).add(node.id)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self.generic_visit(node)
        if isinstance(node.target, ast.Name):
            self.read.add(node.target.id)

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        self.generic_visit(node)
        if node.name:
            self.set.add(node.name)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self.set.add(node.name)
        self._inner(node, _parameters(node.args))

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self._inner(node, _parameters(node.args))

    def generic_visit(self, node: ast.AST) -> None:
        if isinstance(node, _SCOPES):
            own = {name for each in node.generators for name in names_in([each.target])[1]}
            self._inner(node, own)
            self.visit(node.generators[0].iter)  # this one is evaluated outside
        else:
            super().generic_visit(node)

    def _inner(self, node: ast.AST, own: set[str]) -> None:
        inner = _Names()
        for each in ast.iter_child_nodes(node):
            inner.visit(each)
        self.read |= inner.read - own
        if isinstance(node, _SCOPES):  # what `:=` sets there is set here
            self.set |= inner.set - own


def _parameters(node: ast.arguments) -> set[str]:
    every = [*node.posonlyargs, *node.args, *node.kwonlyargs, node.vararg, node.kwarg]
    return {each.arg for each in every if each is not None}


def parameters(node: ast.arguments) -> set[str]:
    """The names of the parameters of a function."""
    return _parameters(node)


def names_in(nodes: Iterable[ast.AST]) -> tuple[set[str], set[str]]:
    """The names that are read, and those that are set."""
    found = _Names()
    for each in nodes:
        found.visit(each)
    return found.read, found.set


def surely_set(statement: ast.stmt) -> set[str]:
    """The names that have a value for certain once a statement is over."""
    if isinstance(statement, (ast.Assign, ast.AugAssign)) or (
        isinstance(statement, ast.AnnAssign) and statement.value is not None
    ):
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        return names_in(targets)[1]
    if isinstance(statement, ast.With):
        inside = [each.optional_vars for each in statement.items if each.optional_vars is not None]
        return names_in(inside)[1]  # its body may end early: a context may swallow an error
    if isinstance(statement, ast.If) and statement.orelse:
        return surely_set_by(statement.body) & surely_set_by(statement.orelse)
    return {statement.name} if isinstance(statement, ast.FunctionDef) else set()


def surely_set_by(statements: Iterable[ast.stmt]) -> set[str]:
    """The names that have a value for certain once some statements are over."""
    return set().union(*[surely_set(each) for each in statements])


def needed_by(statements: Iterable[ast.stmt]) -> set[str]:
    """The names that some statements may read before these have set them."""
    found: set[str] = set()
    sure: set[str] = set()
    for each in statements:
        found |= _needed(each) - sure
        sure |= surely_set(each)
    return found


def _needed(statement: ast.stmt) -> set[str]:
    if isinstance(statement, ast.For):
        read, target = names_in([statement.target])
        return read | names_in([statement.iter])[0] | (needed_by(statement.body) - target) | needed_by(statement.orelse)
    if isinstance(statement, (ast.If, ast.While)):
        return names_in([statement.test])[0] | needed_by(statement.body) | needed_by(statement.orelse)
    if isinstance(statement, ast.With):
        return names_in(statement.items)[0] | (needed_by(statement.body) - surely_set(statement))
    return names_in([statement])[0]
