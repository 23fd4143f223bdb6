"""Statements of the language as functions on frames."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any

from ..._core.tensor import Tensor
from .calls import operator_named
from .expressions import Frame, InnerFunction, expression, set_attribute, subscript
from .prims import Raised
from .program import LINE, ClassDefinition, Function, Program
from .types import NotInLanguage

Statement = Callable[[Frame], Any]

_GOES_ON: Any = object()
"""What a statement gives that does not return from the function."""

_LEAVES: Any = object()
_NEXT: Any = object()
"""What `break` and `continue` give."""


def body_of(nodes: Sequence[ast.stmt], program: Program) -> Callable[[Frame], Any]:
    """What runs the statements of a function and gives its result."""
    block = _block(nodes, program)

    def run(frame: Frame) -> Any:
        result = block(frame)
        if result is _LEAVES or result is _NEXT:
            raise NotInLanguage("break and continue belong into loops")
        return None if result is _GOES_ON else result

    return run


def _block(nodes: Sequence[ast.stmt], program: Program) -> Statement:
    steps = [(each.lineno, _statement(each, program)) for each in nodes if not isinstance(each, ast.Pass)]

    def run(frame: Frame) -> Any:
        for line, step in steps:
            frame[LINE] = line
            result = step(frame)
            if result is not _GOES_ON:
                return result
        return _GOES_ON

    return run


def _statement(node: ast.stmt, program: Program) -> Statement:
    reader = _READERS.get(type(node))
    if reader is None:
        raise NotInLanguage(f"{ast.unparse(node)[:200]!r} is no statement of TorchScript")
    return reader(node, program)


def _assign(node: ast.Assign, program: Program) -> Statement:
    if len(node.targets) != 1:
        raise NotInLanguage("an assignment has one target")
    value, keep = expression(node.value, program), store(node.targets[0], program)

    def run(frame: Frame) -> Any:
        keep(frame, value(frame))
        return _GOES_ON

    return run


def _declare(node: ast.AnnAssign, program: Program) -> Statement:
    if node.value is None:
        return lambda frame: _GOES_ON
    return _assign(ast.Assign([node.target], node.value), program)


_OPERATORS = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div"}


def _augment(node: ast.AugAssign, program: Program) -> Statement:
    """`x += y`: tensors change in place."""
    name = _OPERATORS.get(type(node.op))
    if name is None:
        raise NotInLanguage(f"{ast.unparse(node)[:200]!r} is no statement of TorchScript")
    current, value, keep = (
        expression(node.target, program),
        expression(node.value, program),
        store(node.target, program),
    )
    plain, in_place = (operator_named(f"torch.{name}{mark}", program.version) for mark in ("", "_"))

    def run(frame: Frame) -> Any:
        before = current(frame)
        keep(frame, (in_place if isinstance(before, Tensor) else plain)(before, value(frame)))
        return _GOES_ON

    return run


def _assert(node: ast.Assert, program: Program) -> Statement:
    test = expression(node.test, program)
    message = None if node.msg is None else expression(node.msg, program)

    def run(frame: Frame) -> Any:
        if not test(frame):
            raise Raised("" if message is None else str(message(frame)), "AssertionError")
        return _GOES_ON

    return run


def store(target: ast.expr, program: Program) -> Callable[[Frame, Any], None]:
    """What gives a value to a variable, an attribute, an element, or its parts to several."""
    if isinstance(target, ast.Name):
        name = target.id

        def store_name(frame: Frame, value: Any) -> None:
            frame[name] = value

        return store_name
    if isinstance(target, ast.Tuple):
        stores = [store(each, program) for each in target.elts]

        def store_parts(frame: Frame, value: Any) -> None:
            if not isinstance(value, (tuple, list)) or len(value) != len(stores):
                count = len(value) if isinstance(value, (tuple, list)) else "no"
                raise RuntimeError(f"Expected {len(stores)} elements in a list but found {count}")
            for keep, part in zip(stores, value, strict=True):
                keep(frame, part)

        return store_parts
    if isinstance(target, ast.Attribute):
        owner, attribute = expression(target.value, program), target.attr
        return lambda frame, value: set_attribute(owner(frame), attribute, value)
    if isinstance(target, ast.Subscript):
        container, key = expression(target.value, program), subscript(target.slice, program)

        def store_element(frame: Frame, value: Any) -> None:
            found = container(frame)
            if not isinstance(found, (list, dict, Tensor)):
                raise NotInLanguage(f"an element of {type(found).__name__} cannot be set")
            found[key(frame)] = value

        return store_element
    raise NotInLanguage(f"{ast.unparse(target)[:200]!r} cannot be assigned to")


def _evaluate(node: ast.Expr, program: Program) -> Statement:
    value = expression(node.value, program)

    def run(frame: Frame) -> Any:
        value(frame)
        return _GOES_ON

    return run


def _if(node: ast.If, program: Program) -> Statement:
    test, then, otherwise = expression(node.test, program), _block(node.body, program), _block(node.orelse, program)
    return lambda frame: then(frame) if test(frame) else otherwise(frame)


def _while(node: ast.While, program: Program) -> Statement:
    test, block = expression(node.test, program), _block(node.body, program)

    def run(frame: Frame) -> Any:
        while test(frame):
            result = block(frame)
            if result is _LEAVES:
                break
            if result is not _GOES_ON and result is not _NEXT:
                return result
        return _GOES_ON

    return run


def _for(node: ast.For, program: Program) -> Statement:
    values, keep, block = expression(node.iter, program), store(node.target, program), _block(node.body, program)

    def run(frame: Frame) -> Any:
        for value in values(frame):
            keep(frame, value)
            result = block(frame)
            if result is _LEAVES:
                break
            if result is not _GOES_ON and result is not _NEXT:
                return result
        return _GOES_ON

    return run


def _with(node: ast.With, program: Program) -> Statement:
    managers = [
        (
            expression(each.context_expr, program),
            None if each.optional_vars is None else store(each.optional_vars, program),
        )
        for each in node.items
    ]
    block = _block(node.body, program)

    def run(frame: Frame) -> Any:
        entered: list[Function] = []
        owners: list[Any] = []
        try:
            for manager, keep in managers:
                owner = manager(frame)
                definition = getattr(owner, "_definition", None)
                if not isinstance(definition, ClassDefinition) or "__exit__" not in definition.methods:
                    raise NotInLanguage(f"{type(owner).__name__} is no context")
                value = definition.methods["__enter__"].run([owner])
                entered.append(definition.methods["__exit__"])
                owners.append(owner)
                if keep is not None:
                    keep(frame, value)
            return block(frame)
        finally:
            for leave, owner in zip(reversed(entered), reversed(owners), strict=True):
                leave.run([owner, None, None, None])

    return run


def _return(node: ast.Return, program: Program) -> Statement:
    if node.value is None:
        return lambda frame: None
    return expression(node.value, program)


def _inner_function(node: ast.FunctionDef, program: Program) -> Statement:
    names, body = [each.arg for each in node.args.args], body_of(node.body, program)

    def run(frame: Frame) -> Any:
        frame[node.name] = InnerFunction(names, body, frame)
        return _GOES_ON

    return run


_READERS: dict[type, Callable[[Any, Program], Statement]] = {
    ast.Assign: _assign,
    ast.AnnAssign: _declare,
    ast.Expr: _evaluate,
    ast.If: _if,
    ast.While: _while,
    ast.For: _for,
    ast.With: _with,
    ast.AugAssign: _augment,
    ast.Assert: _assert,
    ast.Break: lambda node, program: lambda frame: _LEAVES,
    ast.Continue: lambda node, program: lambda frame: _NEXT,
    ast.Return: _return,
    ast.FunctionDef: _inner_function,
}
