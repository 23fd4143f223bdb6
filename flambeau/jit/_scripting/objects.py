"""Which values of a program are objects of its own classes: seen from annotations and from how they were made."""

from __future__ import annotations

import ast
import inspect
import sys
import textwrap
import typing
from types import FunctionType
from typing import Any

from ..._core.tensor import Tensor
from ...autograd.grad_mode import enable_grad, no_grad
from ...nn.modules.module import Module
from .static import UNKNOWN, Scope

GRADIENTS = {no_grad: False, enable_grad: True}
"""The package's contexts that programs may enter, with the mode that they set."""


def is_written(cls: Any) -> bool:
    """Whether a class is one that a program can hold."""
    if not isinstance(cls, type) or cls.__module__ == "builtins" or issubclass(cls, (Module, Tensor)):
        return False
    package = cls.__module__.partition(".")[0]
    return cls in GRADIENTS or (package != __name__.partition(".")[0] and package not in sys.stdlib_module_names)


def classes_in(hint: Any) -> list[type]:
    """The classes of the program's own in an annotation."""
    if is_written(hint):
        return [hint]
    return [each for part in typing.get_args(hint) for each in classes_in(part)]


def hints_of(cls: type) -> dict[str, Any]:
    """The types of what objects of a class hold, in order: those that it declares, then those that `__init__` gives."""
    found = {**dict.fromkeys(getattr(cls, "_fields", ()), Tensor), **typing.get_type_hints(cls)}
    init = vars(cls).get("__init__")
    if not isinstance(init, FunctionType):
        return found
    parameters = typing.get_type_hints(init)
    names = {**vars(typing), **init.__globals__}
    own = init.__code__.co_varnames[0]
    for node in ast.walk(ast.parse(textwrap.dedent(inspect.getsource(init)))):
        if isinstance(node, ast.AnnAssign) and (name := _attribute_of(own, node.target)):
            text = {"__annotations__": {name: ast.unparse(node.annotation)}}
            found[name] = typing.get_type_hints(type("_", (), text), names)[name]
        elif isinstance(node, ast.Assign) and (name := _attribute_of(own, node.targets[0])) and name not in found:
            found[name] = _hint_of_value(node.value, parameters)
    return found


def _attribute_of(own: str, node: ast.expr) -> str:
    is_own = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == own
    return node.attr if is_own and isinstance(node, ast.Attribute) else ""


def _hint_of_value(node: ast.expr, parameters: dict[str, Any]) -> Any:
    """The type of what is assigned: a parameter's, or a constant's; what says nothing is a tensor."""
    if isinstance(node, ast.Name):
        return parameters.get(node.id, Tensor)
    return type(node.value) if isinstance(node, ast.Constant) else Tensor


def _result_of(function: FunctionType) -> Any:
    try:
        return typing.get_type_hints(function).get("return")
    except (NameError, TypeError, AttributeError):  # its own translation says what is wrong with them
        return None


class Objects:
    """The variables of a function that hold objects of classes of the program."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self.classes: dict[str, type] = {}

    def note(self, name: str, hint: Any) -> None:
        """Say what a variable is from now on."""
        self.classes.pop(name, None)
        if is_written(hint):
            self.classes[name] = hint

    def note_targets(self, targets: list[ast.expr], value: ast.expr) -> None:
        """Say what an assignment makes of its variables."""
        cls = self.class_of(value)
        for each in targets:
            for part in each.elts if isinstance(each, (ast.Tuple, ast.List)) else [each]:
                if isinstance(part, ast.Name):
                    self.note(part.id, cls if part is each else None)

    def class_of(self, node: ast.expr) -> type | None:
        """The class of the program of which an expression is an object; None if it is of none, or that is not seen."""
        hint: Any = None
        if isinstance(node, ast.Name):
            return self.classes.get(node.id)
        if isinstance(node, ast.Call):
            function = self._scope.value(node.func)
            if isinstance(node.func, ast.Attribute) and (owner := self.class_of(node.func.value)) is not None:
                function = getattr(owner, node.func.attr, None)
            if isinstance(function, FunctionType):
                hint = _result_of(function)
            elif function is not UNKNOWN:
                hint = function
        elif isinstance(node, ast.Attribute) and (owner := self.class_of(node.value)) is not None:
            hint = hints_of(owner).get(node.attr)
        return hint if is_written(hint) else None
