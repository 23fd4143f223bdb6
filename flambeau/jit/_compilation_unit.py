"""Functions compiled from text, under the name of `torch.jit.CompilationUnit`."""

from __future__ import annotations
import __future__

import ast
import itertools
import linecache
import typing
from collections.abc import Callable
from typing import Any

from ._scripting.modules import scripted_function
from ._scripting.translate import Unwritable
from ._trace import ScriptFunction

__all__ = ["CompilationUnit"]

_numbers = itertools.count(1)
_OF_CONSTANTS = ast.Constant, ast.List, ast.Tuple, ast.Dict, ast.UnaryOp, ast.unaryop, ast.expr_context
"""What defaults may be made of."""


class CompilationUnit:
    """Functions of TorchScript, defined by their source.

    They run in TorchScript's interpreter: what Python would do besides, their source cannot reach.

    >>> unit = flambeau.jit.CompilationUnit("def double(x):\\n    return x * 2")
    >>> unit.double(flambeau.tensor([1.0]))
    tensor([2.])
    """

    def __init__(self, lang: str = "", _frames_up: int = 0) -> None:
        self._functions: dict[str, ScriptFunction] = {}
        if lang:
            self.define(lang)

    def define(self, src: str, rcb: Callable[[str], Any] | None = None, _frames_up: int = 0) -> None:
        """Add the functions of a text; they may call each other."""
        names = _names_of_functions(src)
        for name in names:
            if name in self._functions:
                raise RuntimeError(f"method '{name}' already defined.")
        self._functions.update(_translated(src, names, rcb))

    def find_function(self, name: str) -> ScriptFunction | None:
        """The function of a name, if there is one."""
        return self._functions.get(name)

    def get_functions(self) -> list[ScriptFunction]:
        """All functions, in the order of their definition."""
        return list(self._functions.values())

    def drop_all_functions(self) -> None:
        """Forget all functions of the unit."""
        self._functions.clear()

    def set_optimized(self, optimized: bool) -> None:
        """Nothing: functions are interpreted."""

    def __getattr__(self, name: str) -> ScriptFunction:
        found = self.__dict__.get("_functions", {}).get(name)
        if found is None:
            raise AttributeError(f"'CompilationUnit' has no attribute '{name}'")
        return typing.cast(ScriptFunction, found)


def _known() -> dict[str, Any]:
    """What sources may name without having defined it."""
    import flambeau

    names = ("Any", "Dict", "Final", "List", "NamedTuple", "Optional", "Tuple", "Union")
    return {
        "__name__": "compilation_unit", "torch": flambeau, "Tensor": flambeau.Tensor,
        **{each: getattr(typing, each) for each in names},
    }  # fmt: skip


def _names_of_functions(source: str) -> list[str]:
    """The functions of a text, which may hold nothing else: Python is to run none of it."""
    try:
        tree = ast.parse(source)
    except SyntaxError as error:
        raise RuntimeError(f"{error.msg}: line {error.lineno}: {(error.text or '').strip()}") from error
    for node in tree.body:
        if not isinstance(node, ast.FunctionDef):
            raise RuntimeError(f"expected def but found {type(node).__name__} here: {ast.unparse(node)}")
        if node.decorator_list:
            raise RuntimeError(f"functions of a compilation unit have no decorators: {node.name}")
        for default in (*node.args.defaults, *filter(None, node.args.kw_defaults)):
            if not all(isinstance(part, _OF_CONSTANTS) for part in ast.walk(default)):
                raise RuntimeError(f"the default {ast.unparse(default)} of {node.name} is no constant")
    return [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]


def _translated(source: str, names: list[str], rcb: Callable[[str], Any] | None) -> dict[str, ScriptFunction]:
    """The functions of a text as programs; `rcb` finds what else they name."""
    file = f"<compilation unit {next(_numbers)}>"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)  # where translation looks
    space = _known()
    try:
        exec(compile(source, file, "exec", __future__.annotations.compiler_flag), space)
        if rcb is not None:
            asked = {each for name in names for each in space[name].__code__.co_names} - space.keys()
            space.update({each: found for each in asked if (found := rcb(each)) is not None})
        return {name: ScriptFunction(scripted_function(space[name]), name) for name in names}
    except Unwritable as error:
        raise RuntimeError(str(error)) from error
    finally:
        del linecache.cache[file]
