"""Code as text, made a function: of generated modules, and of those that were pickled as their source."""

from __future__ import annotations

import itertools
import linecache
import sys
from collections.abc import Callable
from typing import Any

from ..nn.modules.module import Module
from ._namespace import CUSTOM_BUILTINS
from ._target_names import in_torch

_NUMBERS = itertools.count()


def forward_of(
    src: str, scope: dict[str, Any], origin: dict[str, Any] | None = None, name: str = "forward"
) -> Callable[..., Any]:
    """The function that the code defines; debuggers and tracebacks find its lines."""
    file = f"<eval_with_key>.{next(_NUMBERS)}"
    if origin:
        file += f" from {origin['co_filename']}:{origin['co_firstlineno']} in {origin['co_name']}"
    linecache.cache[file] = len(src), None, src.splitlines(keepends=True), file
    own = dict(scope)
    exec(compile(src, file, "exec", dont_inherit=True), own)
    found: Callable[..., Any] = own.pop(name)
    return found


def import_block(scope: dict[str, Any]) -> str:
    """The statements that give a module what its code names."""
    return "\n".join(sorted({_import_of(name, value) for name, value in scope.items()}))


def _import_of(name: str, value: Any) -> str:
    if name in CUSTOM_BUILTINS:
        return CUSTOM_BUILTINS[name][0]
    module, attribute = _home_of(value)
    return f"from {in_torch(module)} import {attribute} as {name}"


def _home_of(value: Any) -> tuple[str, str]:
    """The module and the name under which an object is found again."""
    name = getattr(value, "__qualname__", None) or getattr(value, "__name__", None) or getattr(value, "_name", None)
    module = getattr(value, "__module__", None)
    if not name or not module or "<locals>" in name:
        raise RuntimeError(f"the code of the module names {value!r}, which cannot be imported: it is no global name")
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    if found is not value:
        raise RuntimeError(f"the code of the module names {value!r}, which is not {module}.{name}")
    return module, name


class _CodeOnlyModule(Module):
    """A module with the members of one, and a `forward` that is made of text."""

    def __init__(self, body: dict[str, Any]) -> None:
        super().__init__()
        self.__dict__ = body


def reduce_graph_module(body: dict[str, Any], import_block: str) -> Module:
    """The module that was pickled as its source: the code is traced again."""
    source = _in_this_package(import_block) + (body.get("_code") or body["code"])
    forward = forward_of(source, {})
    return _deserialize_graph_module(forward, body)


def _in_this_package(block: str) -> str:
    """Imports of `torch` as those of this package: a program need not have it under that name."""
    lines = []
    for line in block.split("\n"):
        first, _, rest = line.partition(" ")
        if line == "import torch":
            lines.append("import flambeau as torch")
        elif first in ("import", "from") and rest.partition(" ")[0].partition(".")[0] == "torch":
            lines.append(f"{first} flambeau{rest[len('torch') :]}")
        else:
            lines.append(line)
    return "\n".join(lines)


def _deserialize_graph_module(
    forward: Callable[..., Any], body: dict[str, Any], graph_module_cls: Any = None
) -> Module:
    from ._symbolic_trace import Tracer
    from .graph_module import GraphModule

    tracer_class: Any = body.get("_tracer_cls") or Tracer
    source = type("_CodeOnlyModule", (_CodeOnlyModule,), {"forward": forward})(body)
    keep_modules = type("KeepModules", (tracer_class,), {"is_leaf_module": lambda self, m, name: True})
    graph = keep_modules().trace(source, **body.get("_tracer_extras", {}))
    graph._tracer_cls = tracer_class
    name = body.get("_graphmodule_cls_name", "GraphModule")
    module: Module = (graph_module_cls or GraphModule)(source, graph, class_name=name)
    for key, value in body.items():
        if not hasattr(module, key):
            setattr(module, key, value)
    return module
