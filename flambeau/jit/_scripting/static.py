"""What is known of an expression before anything runs: attributes of modules, globals, arithmetic on them."""

from __future__ import annotations

import ast
import builtins
import functools
import inspect
import math
import operator
import textwrap
from collections.abc import Callable
from types import FunctionType
from typing import Any

from ..._core.tensor import Tensor
from ...nn.modules.module import Module
from ..annotations import is_scripting

UNKNOWN: Any = object()
"""The value of an expression that depends on the run."""

_BINARY: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.Pow: operator.pow,
}  # fmt: skip
_COMPARED: dict[type, Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt,
    ast.GtE: operator.ge, ast.Is: operator.is_, ast.IsNot: operator.is_not,
    ast.In: lambda a, b: a in b, ast.NotIn: lambda a, b: a not in b,
}  # fmt: skip
_PURE = frozenset({len, range, isinstance, hasattr, getattr, enumerate, zip, reversed, list, tuple, int, float, str,
                   bool, min, max, abs, sum, sorted, type})  # fmt: skip
"""Functions whose results are known where their arguments are."""

_VIEWS = frozenset({"items", "values", "keys", "children", "named_children"})
"""Methods of modules that give what is inside of them."""


class Scope:
    """What the names in a function mean."""

    def __init__(self, function: FunctionType, owner: Module | None) -> None:
        self.function = function
        self.owner = owner
        self.known: dict[str, Any] = {}
        """Variables whose value is known: those of loops over modules."""
        code = function.__code__
        self.variables = {*code.co_varnames, *code.co_cellvars}
        self._outer = dict(inspect.getclosurevars(function).nonlocals)
        if owner is not None:
            self.known[code.co_varnames[0]] = owner

    def named(self, name: str) -> Any:
        """What a name means; `UNKNOWN` for variables."""
        if name in self.known:
            return self.known[name]
        if name in self.variables:
            return UNKNOWN
        for names in (self._outer, self.function.__globals__, vars(builtins)):
            if name in names:
                return names[name]
        return UNKNOWN

    def value(self, node: ast.expr) -> Any:
        """The value of an expression, if it is known."""
        find = _FINDERS.get(type(node))
        return UNKNOWN if find is None else find(self, node)

    def values(self, nodes: list[ast.expr]) -> list[Any] | None:
        """The values of several; None if one of them is not known."""
        found = [self.value(each) for each in nodes]
        return None if any(each is UNKNOWN for each in found) else found


def _attribute(scope: Scope, node: ast.Attribute) -> Any:
    owner = scope.value(node.value)
    if owner is UNKNOWN or isinstance(owner, Tensor):
        return UNKNOWN
    if isinstance(owner, Module):
        is_property = isinstance(getattr(type(owner), node.attr, None), property)
        if node.attr == "training" or node.attr in changed(owner):
            return UNKNOWN
        if is_property and isinstance(getattr(owner, node.attr), Tensor):  # it is computed in every run
            return UNKNOWN
    return getattr(owner, node.attr, UNKNOWN)


def changed(module: Module) -> frozenset[str]:
    """The attributes that methods of a module assign to, other than when it is made: a run may change them."""
    cls: Any = type(module)
    return _changed_by(cls)


@functools.cache
def _changed_by(cls: Any) -> frozenset[str]:
    found: set[str] = set()
    for each in cls.__mro__:
        if each.__module__.partition(".")[0] != __name__.partition(".")[0]:
            for name, function in vars(each).items():
                if isinstance(function, FunctionType) and name not in ("__init__", "__setstate__"):
                    found |= _assigned(function)
    return frozenset(found)


def _assigned(function: FunctionType) -> set[str]:
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, SyntaxError, TypeError):  # a method without source is not translated either
        return set()
    own = function.__code__.co_varnames[:1]
    stored = [each for each in ast.walk(tree) if isinstance(each, ast.Attribute) and isinstance(each.ctx, ast.Store)]
    return {each.attr for each in stored if isinstance(each.value, ast.Name) and each.value.id in own}


def _subscript(scope: Scope, node: ast.Subscript) -> Any:
    owner = scope.value(node.value)
    if owner is UNKNOWN or isinstance(owner, Tensor):
        return UNKNOWN
    if isinstance(node.slice, ast.Slice):
        absent = ast.Constant(None)
        parts = scope.values([each or absent for each in (node.slice.lower, node.slice.upper, node.slice.step)])
        key: Any = UNKNOWN if parts is None else slice(*parts)
    else:
        key = scope.value(node.slice)
    return UNKNOWN if key is UNKNOWN else owner[key]


def _call(scope: Scope, node: ast.Call) -> Any:
    if node.keywords:
        return UNKNOWN
    if isinstance(node.func, ast.Attribute) and node.func.attr in _VIEWS and not node.args:
        owner = scope.value(node.func.value)
        return list(getattr(owner, node.func.attr)()) if isinstance(owner, (Module, dict)) else UNKNOWN
    function = scope.value(node.func)
    if function is is_scripting:
        return True  # the branch is the one for a compiler
    args = scope.values(node.args)
    if args is None or not callable(function):
        return UNKNOWN
    is_pure = getattr(function, "__module__", None) == math.__name__
    try:
        is_pure = is_pure or function in _PURE
    except TypeError:  # a callable without a hash
        return UNKNOWN
    if not is_pure or any(isinstance(each, Tensor) for each in args):
        return UNKNOWN
    if function in (getattr, hasattr) and isinstance(args[0], Module) and args[1] == "training":
        return UNKNOWN
    result = function(*args)
    return list(result) if isinstance(result, (enumerate, zip, reversed, range)) else result


def _compare(scope: Scope, node: ast.Compare) -> Any:
    if len(node.ops) != 1:
        return UNKNOWN
    left, right = scope.value(node.left), scope.value(node.comparators[0])
    if left is UNKNOWN or right is UNKNOWN:
        return UNKNOWN
    is_identity = isinstance(node.ops[0], (ast.Is, ast.IsNot))
    if not is_identity and (isinstance(left, Tensor) or isinstance(right, Tensor)):
        return UNKNOWN
    return _COMPARED[type(node.ops[0])](left, right)


def _bool_op(scope: Scope, node: ast.BoolOp) -> Any:
    decides = isinstance(node.op, ast.Or)
    result: Any = UNKNOWN
    for each in node.values:
        result = scope.value(each)
        if result is UNKNOWN or isinstance(result, Tensor):
            return UNKNOWN
        if bool(result) is decides:
            return result
    return result


def _binary(scope: Scope, node: ast.BinOp) -> Any:
    values = scope.values([node.left, node.right])
    compute = _BINARY.get(type(node.op))
    if values is None or compute is None or any(isinstance(each, Tensor) for each in values):
        return UNKNOWN
    return compute(*values)


def _unary(scope: Scope, node: ast.UnaryOp) -> Any:
    value = scope.value(node.operand)
    if value is UNKNOWN or isinstance(value, Tensor):
        return UNKNOWN
    if isinstance(node.op, ast.Not):
        return not value
    return -value if isinstance(node.op, ast.USub) and isinstance(value, (int, float)) else UNKNOWN


def _choice(scope: Scope, node: ast.IfExp) -> Any:
    test = scope.value(node.test)
    if test is UNKNOWN or isinstance(test, Tensor):
        return UNKNOWN
    return scope.value(node.body if test else node.orelse)


def _sequence(scope: Scope, node: ast.Tuple | ast.List) -> Any:
    values = scope.values(node.elts)
    return UNKNOWN if values is None else tuple(values) if isinstance(node, ast.Tuple) else values


_FINDERS: dict[type, Callable[[Scope, Any], Any]] = {
    ast.Constant: lambda scope, node: node.value,
    ast.Name: lambda scope, node: scope.named(node.id),
    ast.Attribute: _attribute,
    ast.Subscript: _subscript,
    ast.Call: _call,
    ast.Compare: _compare,
    ast.BoolOp: _bool_op,
    ast.BinOp: _binary,
    ast.UnaryOp: _unary,
    ast.IfExp: _choice,
    ast.Tuple: _sequence,
    ast.List: _sequence,
}
