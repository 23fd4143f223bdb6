"""Expressions of the language as functions on frames: each is looked at once, and then only called."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Sequence
from typing import Any

from ..._core.tensor import Tensor
from .calls import BUILTINS, operator_named
from .program import ClassDefinition, EnumValue, Function, Program, ScriptObject, WithProgram
from .types import NotInLanguage, dotted, is_of, read_type

Frame = dict[Any, Any]
Expression = Callable[[Frame], Any]

_NUMBERS = {"inf": math.inf, "nan": math.nan, "infj": complex(0, math.inf), "nanj": complex(0, math.nan)}


def expression(node: ast.expr, program: Program) -> Expression:
    """What gives the value of an expression in a frame."""
    reader = _READERS.get(type(node))
    if reader is None:
        raise _unknown(node)
    return reader(node, program)


def _unknown(node: ast.AST) -> NotInLanguage:
    return NotInLanguage(f"{ast.unparse(node)[:200]!r} is no expression of TorchScript")


def _several(nodes: Sequence[ast.expr], program: Program) -> list[Expression]:
    return [expression(each, program) for each in nodes]


def _constant(node: ast.Constant, program: Program) -> Expression:
    value = node.value
    if not isinstance(value, (int, float, complex, str, type(None))):
        raise _unknown(node)
    return lambda frame: value


def _name(node: ast.Name, program: Program) -> Expression:
    name = node.id
    if name in _NUMBERS:
        value = _NUMBERS[name]
        return lambda frame: value

    def read(frame: Frame) -> Any:
        try:
            return frame[name]
        except KeyError:
            raise NotInLanguage(f"the program uses {name!r}, which has no value") from None

    return read


def _negation(node: ast.UnaryOp, program: Program) -> Expression:
    inner = expression(node.operand, program)
    if isinstance(node.op, ast.USub):
        return lambda frame: -_number(inner(frame))
    if isinstance(node.op, ast.Not):
        return lambda frame: not inner(frame)
    return lambda frame: _number(inner(frame))


def _complex_number(node: ast.BinOp, program: Program) -> Expression:
    """A complex constant, `1.+2.j`: all other arithmetic is calls."""
    left, right = expression(node.left, program), expression(node.right, program)
    if isinstance(node.op, ast.Sub):
        return lambda frame: _number(left(frame)) - _number(right(frame))
    if not isinstance(node.op, ast.Add):
        raise _unknown(node)
    return lambda frame: _number(left(frame)) + _number(right(frame))


def _number(value: Any) -> Any:
    if not isinstance(value, (int, float, complex, Tensor)):
        raise NotInLanguage(f"arithmetic on {type(value).__name__}")
    return value


def _tuple(node: ast.Tuple, program: Program) -> Expression:
    parts = _several(node.elts, program)
    return lambda frame: tuple([each(frame) for each in parts])


def _list(node: ast.List, program: Program) -> Expression:
    parts = _several(node.elts, program)
    return lambda frame: [each(frame) for each in parts]


def _dict(node: ast.Dict, program: Program) -> Expression:
    if any(each is None for each in node.keys):
        raise _unknown(node)
    keys = _several([each for each in node.keys if each is not None], program)
    values = _several(node.values, program)
    return lambda frame: {key(frame): value(frame) for key, value in zip(keys, values, strict=True)}


def _choice(node: ast.IfExp, program: Program) -> Expression:
    test, then, otherwise = _several((node.test, node.body, node.orelse), program)
    return lambda frame: then(frame) if test(frame) else otherwise(frame)


def _item(node: ast.Subscript, program: Program) -> Expression:
    value, key = expression(node.value, program), subscript(node.slice, program)
    return lambda frame: element(value(frame), key(frame))


def subscript(node: ast.expr, program: Program) -> Expression:
    """What stands in brackets: beside values, slices of them, `...` and several at once."""
    if isinstance(node, ast.Slice):
        parts = [_absent if each is None else expression(each, program) for each in (node.lower, node.upper, node.step)]
        return lambda frame: slice(*[each(frame) for each in parts])
    if isinstance(node, ast.Tuple):
        keys = [subscript(each, program) for each in node.elts]
        return lambda frame: tuple([each(frame) for each in keys])
    if isinstance(node, ast.Constant) and node.value is Ellipsis:
        return lambda frame: Ellipsis
    return expression(node, program)


def _absent(frame: Frame) -> None:
    return None


def element(value: Any, key: Any) -> Any:
    """The element of a list, tuple, dict or string, or a part of a tensor."""
    if isinstance(value, Tensor):
        return value[key]
    if isinstance(value, dict):
        if key not in value:
            raise RuntimeError(f"KeyError: {key!r}")
        return value[key]
    if not isinstance(value, (list, tuple, str)):
        raise NotInLanguage(f"an element of {type(value).__name__}")
    try:
        return value[key]
    except IndexError:
        raise IndexError("list index out of range") from None


def _both(node: ast.BoolOp, program: Program) -> Expression:
    parts = _several(node.values, program)
    if isinstance(node.op, ast.And):
        return lambda frame: all(bool(each(frame)) for each in parts)
    return lambda frame: any(bool(each(frame)) for each in parts)


def _identity(node: ast.Compare, program: Program) -> Expression:
    """`x is None` and its opposite: all other comparisons are calls."""
    if len(node.ops) != 1:
        raise _unknown(node)
    left, right = _several((node.left, node.comparators[0]), program)
    if isinstance(node.ops[0], ast.Is):
        return lambda frame: left(frame) is right(frame)
    return lambda frame: left(frame) is not right(frame)


def _comprehension(node: ast.ListComp, program: Program) -> Expression:
    """A list from one loop over one variable, or over several at once."""
    from .statements import store

    if len(node.generators) != 1 or node.generators[0].ifs or node.generators[0].is_async:
        raise _unknown(node)
    loop = node.generators[0]
    values, made, keep = expression(loop.iter, program), expression(node.elt, program), store(loop.target, program)

    def run(frame: Frame) -> list[Any]:
        inner = dict(frame)
        found = []
        for each in values(frame):
            keep(inner, each)
            found.append(made(inner))
        return found

    return run


def _attribute(node: ast.Attribute, program: Program) -> Expression:
    name = dotted(node)
    if name is not None:
        if name.startswith("__torch__."):
            return _defined(name, program)
        if name.startswith("CONSTANTS.c") and name[11:].isdigit():
            number = int(name[11:])
            if number >= len(program.constants):
                raise NotInLanguage(f"the archive has no constant {number}")
            return lambda frame: program.constants[number]
        if name.split(".", 1)[0] in ("torch", "ops"):
            raise _unknown(node)
    value, last = expression(node.value, program), node.attr
    return lambda frame: attribute(value(frame), last)


def _defined(name: str, program: Program) -> Expression:
    """A class or function of the program, or a member of an enumeration."""
    owner, _, last = name.rpartition(".")
    try:
        found = program.find(name)
    except NotInLanguage:
        definition = program.find(owner)
        if not isinstance(definition, ClassDefinition):
            raise
        if last in definition.methods:
            found = definition.methods[last]
        elif last in definition.members:
            found = definition.members[last]
        else:
            raise
    return lambda frame: found


def attribute(value: Any, name: str) -> Any:
    """An attribute that the class of an object declares: nothing else is reached."""
    if isinstance(value, WithProgram):
        definition = value._definition
        if name in definition.annotations:
            return value._read(name)
        if name in definition.constants:
            return definition.constants[name]
    elif isinstance(value, EnumValue) and name in ("name", "value"):
        return getattr(value, name)
    elif isinstance(value, ClassDefinition) and name in value.members:
        return value.members[name]
    elif isinstance(value, tuple) and name in getattr(value, "_fields", ()):
        return getattr(value, name)
    raise NotInLanguage(f"{type(value).__name__} has no attribute {name[:100]!r} in the program")


def set_attribute(value: Any, name: str, new: Any) -> None:
    """Give an attribute that the class of an object declares a value."""
    if not isinstance(value, WithProgram) or name not in value._definition.annotations:
        raise NotInLanguage(f"{type(value).__name__} has no attribute {name[:100]!r} in the program")
    value._set(name, new)


# ----- calls ----------------------------------------------------------------------------------------------------------


def _call(node: ast.Call, program: Program) -> Expression:
    if any(isinstance(each, ast.Starred) for each in node.args) or any(each.arg is None for each in node.keywords):
        raise _unknown(node)
    name = dotted(node.func)
    special = _SPECIAL.get(name or "")
    if special is not None:
        return special(node, program)
    args = _several(node.args, program)
    if name in _OF_NUMBERS and len(args) > 1 and (dotted(node.args[1]) or "").startswith("CONSTANTS."):
        args[1] = _as_number(args[1])
    names = [str(each.arg) for each in node.keywords]
    values = _several([each.value for each in node.keywords], program)
    target = _target(node.func, name, program)
    if isinstance(target, str):
        return _method(node.func, target, args, names, values, program)
    if names:
        return lambda frame: target(
            *[each(frame) for each in args],
            **{name: value(frame) for name, value in zip(names, values, strict=True)},
        )
    if len(args) == 1:
        (only,) = args
        return lambda frame: target(only(frame))
    if len(args) == 2:
        first, second = args
        return lambda frame: target(first(frame), second(frame))
    return lambda frame: target(*[each(frame) for each in args])


_OF_NUMBERS = frozenset(f"torch.{name}{mark}" for name in ("add", "sub", "mul", "div") for mark in ("", "_"))
"""Operators whose second operand, where it is a constant without dimensions, was a number when the trace was made: as
a number it takes part in promotion."""


def _as_number(constant: Expression) -> Expression:
    def read(frame: Frame) -> Any:
        value = constant(frame)
        return value.item() if isinstance(value, Tensor) and not value.dim() and not value.requires_grad else value

    return read


def _target(function: ast.expr, name: str | None, program: Program) -> Callable[..., Any] | str:
    """What a call runs, or the name of the method that it looks for in the value."""
    if name is not None:
        first = name.split(".", 1)[0]
        if first in ("torch", "ops"):
            return operator_named(name, program.version)
        if first == "__torch__" and not name.endswith((".__new__", ".__init__")):
            return constructor(_defined(name, program)({}))
        if name in BUILTINS:
            return BUILTINS[name]
    if isinstance(function, ast.Attribute):
        return function.attr
    if isinstance(function, ast.Name):
        return ""
    raise _unknown(function)


class InnerFunction:
    """A function inside of another, which sees the frame in which it was made: what `fork` runs."""

    def __init__(self, names: list[str], body: Expression, outer: Frame) -> None:
        self.names, self.body, self.outer = names, body, outer

    def run(self, *args: Any) -> Any:
        """Call it: its frame begins as a copy of the outer one."""
        return self.body({**self.outer, **dict(zip(self.names, args, strict=True))})


def constructor(target: Any) -> Callable[..., Any]:
    """What a call of something that the program defines runs."""
    if isinstance(target, Function):
        return lambda *args, **kwargs: target.run(args, kwargs)
    if isinstance(target, ClassDefinition) and target.fields is not None:
        make: Callable[..., Any] = target.tuple
        return make
    if isinstance(target, ClassDefinition) and "__init__" in target.methods:
        return lambda *args, **kwargs: _constructed(target, args, kwargs)
    if isinstance(target, InnerFunction):
        return target.run
    raise NotInLanguage(f"{type(target).__name__} cannot be called in a program")


def _constructed(definition: ClassDefinition, args: Sequence[Any], kwargs: dict[str, Any]) -> ScriptObject:
    made = ScriptObject(definition)
    definition.methods["__init__"].run((made, *args), kwargs)
    return made


def _method(
    function: ast.expr, method: str, args: list[Expression], names: list[str], values: list[Expression],
    program: Program,
) -> Expression:  # fmt: skip
    """A call of a method, or, where no method is named, of a function in a variable."""
    if method:
        assert isinstance(function, ast.Attribute)
        owner = expression(function.value, program)
    else:
        owner = expression(function, program)

    def run(frame: Frame) -> Any:
        target = owner(frame)
        given = [each(frame) for each in args]
        by_name = {name: value(frame) for name, value in zip(names, values, strict=True)} if names else None
        if method:
            found = target._definition.methods.get(method) if isinstance(target, WithProgram) else None
            if found is not None:
                return found.run([target, *given], by_name)
            raise NotInLanguage(f"{type(target).__name__} has no method {method[:100]!r} in the program")
        return constructor(target)(*given, **(by_name or {}))

    return run


def _typed(node: ast.Call, program: Program) -> Expression:
    """`annotate(type, value)`: the value; a tensor that is to be a number is read."""
    if len(node.args) != 2 or node.keywords:
        raise _unknown(node)
    wanted, value = read_type(node.args[0], program.find), expression(node.args[1], program)
    read = _READ_AS.get(wanted.name)
    if read is None:
        return value

    def converted(frame: Frame) -> Any:
        found = value(frame)
        return read(found.item()) if isinstance(found, Tensor) else found

    return converted


_READ_AS: dict[str, Callable[[Any], Any]] = {"int": int, "float": float, "complex": complex, "number": lambda x: x}


def _cast(node: ast.Call, program: Program) -> Expression:
    """`unchecked_cast(type, value)`: the value."""
    if len(node.args) != 2 or node.keywords:
        raise _unknown(node)
    read_type(node.args[0], program.find)
    return expression(node.args[1], program)


def _uninitialized(node: ast.Call, program: Program) -> Expression:
    return lambda frame: None


def _isinstance(node: ast.Call, program: Program) -> Expression:
    if len(node.args) != 2 or node.keywords:
        raise _unknown(node)
    value, types = expression(node.args[0], program), node.args[1]
    elements = types.elts if isinstance(types, (ast.Tuple, ast.List)) else [types]
    wanted = [read_type(each, program.find) for each in elements]
    return lambda frame: any(is_of(value(frame), each) for each in wanted)


def _getattr(node: ast.Call, program: Program) -> Expression:
    if len(node.args) != 2 or node.keywords or not isinstance(node.args[1], ast.Constant):
        raise _unknown(node)
    value, name = expression(node.args[0], program), str(node.args[1].value)
    return lambda frame: attribute(value(frame), name)


def _setattr(node: ast.Call, program: Program) -> Expression:
    if len(node.args) != 3 or node.keywords or not isinstance(node.args[1], ast.Constant):
        raise _unknown(node)
    value, name, new = expression(node.args[0], program), str(node.args[1].value), expression(node.args[2], program)
    return lambda frame: set_attribute(value(frame), name, new(frame))


def _fork(node: ast.Call, program: Program) -> Expression:
    """`fork(function)`: runs at once; what is forked is a function of no arguments or a method."""
    from .._async import fork

    if not node.args or node.keywords:
        raise _unknown(node)
    target, *args = _several(node.args, program)
    return lambda frame: fork(constructor(target(frame)), *[each(frame) for each in args])


_SPECIAL: dict[str, Callable[[ast.Call, Program], Expression]] = {
    "annotate": _typed,
    "unchecked_cast": _cast,
    "uninitialized": _uninitialized,
    "isinstance": _isinstance,
    "getattr": _getattr,
    "setattr": _setattr,
    "fork": _fork,
}


def _object(node: ast.Call, program: Program) -> Expression:
    """`C.__new__(C)`: a new object of a class of the program."""
    name = dotted(node.args[0]) if len(node.args) == 1 else None
    definition = program.find(name) if name is not None else None
    if not isinstance(definition, ClassDefinition) or definition.base:
        raise _unknown(node)
    return lambda frame: ScriptObject(definition)


def _any_call(node: ast.Call, program: Program) -> Expression:
    if isinstance(node.func, ast.Attribute) and node.func.attr == "__new__":
        return _object(node, program)
    return _call(node, program)


_READERS: dict[type, Callable[[Any, Program], Expression]] = {
    ast.Constant: _constant,
    ast.Name: _name,
    ast.UnaryOp: _negation,
    ast.BinOp: _complex_number,
    ast.Tuple: _tuple,
    ast.List: _list,
    ast.Dict: _dict,
    ast.IfExp: _choice,
    ast.Subscript: _item,
    ast.BoolOp: _both,
    ast.Compare: _identity,
    ast.ListComp: _comprehension,
    ast.Attribute: _attribute,
    ast.Call: _any_call,
}
