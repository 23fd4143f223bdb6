"""A module with its methods as TorchScript: what `jit.save` writes of a module that was scripted."""

from __future__ import annotations

import ast
import inspect
import textwrap
from types import FunctionType, GenericAlias
from typing import Any, get_type_hints

from ..._core.tensor import Tensor
from ...nn.modules.module import Module
from .._annotated import ann_to_type
from .._language.program import Program
from .._module import RecursiveScriptModule
from .._writing import Layout
from .classes import definition
from .stand_ins import stand_in
from .translate import Translation, Unwritable


class _Scripting:
    """A program on its way: the methods that it needs, by the path of their module, and its functions."""

    def __init__(self, root: Module) -> None:
        self.root = root
        self.layout = Layout(root)
        self.constants: list[Tensor] = []
        self.methods: dict[int, dict[str, Translation]] = {}
        """For each module, by its id: what is called of it."""
        self.functions: dict[FunctionType, tuple[str, str]] = {}
        """For each function its name in the program, and its text."""
        self.classes: dict[type, tuple[str, str]] = {}
        """For each class of the program's own the same."""
        self.attributes: dict[int, set[str]] = {}
        """For each module, by its id: what else than tensors and modules a run reads or sets of it."""
        self._waiting: list[tuple[Module, str]] = []
        self._paths: dict[int, dict[int, ast.expr]] = {}

    def path_of(self, owner: Module | None, value: Module | Tensor) -> ast.expr | None:
        if owner is None:
            return None
        if id(owner) not in self._paths:
            self._paths[id(owner)] = {key: _parsed(text) for key, text in _places(owner).items()}
        return self._paths[id(owner)].get(id(value))

    def constant(self, tensor: Tensor) -> ast.expr:
        known = [id(each) for each in self.constants]
        if id(tensor) not in known:
            self.constants.append(tensor)
            known.append(id(tensor))
        return _parsed(f"CONSTANTS.c{known.index(id(tensor))}")

    def method(self, module: Module, name: str) -> None:
        if name not in self.methods.setdefault(id(module), {}):
            self._refuse_hooks(module)
            self.methods[id(module)][name] = Translation(_function_of(module, name), module, self)
            self._waiting.append((module, name))

    def attribute(self, module: Module, name: str) -> bool:
        if name in module._parameters or name in module._buffers or name in module._modules or name == "training":
            return True
        if name in vars(module):
            self.attributes.setdefault(id(module), set()).add(name)
        return name in vars(module)

    def function(self, function: FunctionType) -> str:
        if function not in self.functions:
            name = self._free_name(function.__name__ if function.__name__.isidentifier() else "function")
            self.functions[function] = name, ""
            text = Translation(function, None, self).text(name, None)
            del self.functions[function]  # those that it calls come before it in the file
            self.functions[function] = name, text
        return f"__torch__.{self.functions[function][0]}"

    def class_named(self, cls: type) -> str:
        if cls not in self.classes:
            name = self._free_name(cls.__name__)
            self.classes[cls] = name, ""
            text = definition(cls, name, self)
            del self.classes[cls]  # those that it names come before it in the file
            self.classes[cls] = name, text
        return f"__torch__.{self.classes[cls][0]}"

    def _free_name(self, name: str) -> str:
        taken = {each for each, _ in (*self.functions.values(), *self.classes.values())}
        while name in taken or name in self.layout.names.values():
            name += "_"
        return name

    def definitions(self) -> str:
        """The text of the classes and functions."""
        return "".join(text for _, text in (*self.classes.values(), *self.functions.values()))

    @staticmethod
    def _refuse_hooks(module: Module) -> None:
        if module._forward_hooks or module._forward_pre_hooks:
            raise Unwritable(f"{type(module).__name__} has hooks, which are Python: they are not written to an archive")

    def source(self) -> str:
        """The text of the program, once everything that is called has been translated."""
        texts: dict[int, dict[str, str]] = {}
        while self._waiting:
            module, name = self._waiting.pop()
            texts.setdefault(id(module), {})[name] = self.methods[id(module)][name].text(name, "{own}")
        methods: dict[str, list[str]] = {}
        attributes: dict[str, dict[str, str]] = {}
        for path, module in self.layout.modules.items():
            own = f"__torch__.{self.layout.names[path]}"
            methods[path] = [
                textwrap.indent(each.replace("{own}", own, 1), "  ") for each in texts.get(id(module), {}).values()
            ]
            attributes[path] = {name: _type_of(module, name) for name in sorted(self.attributes.get(id(module), ()))}
        return self.definitions() + self.layout.source(methods, attributes)


def scripted(module: Module) -> RecursiveScriptModule:
    """The module with its program; `Unwritable` names the line that cannot be expressed."""
    scripting = _Scripting(module)
    exported = [
        name
        for name in dir(type(module))
        if getattr(getattr(type(module), name, None), "_torchscript_modifier", "").startswith("export")
    ]
    if type(module).forward is not Module.forward:
        scripting.method(module, "forward")
    for name in exported:
        scripting.method(module, name)
    program = Program({"__torch__": scripting.source()}, tuple(scripting.constants), version=10)
    return _filled(module, program, scripting, "")


def scripted_function(function: FunctionType) -> RecursiveScriptModule:
    """A module whose `forward` is a function."""

    class Function(Module):
        """What an archive holds of a function."""

    module = Function()
    scripting = _Scripting(module)
    parameters = inspect.signature(function).parameters
    text = Translation(function, None, scripting).text("forward", None)
    head, _, body = text.partition("(")
    self_type = f"self: __torch__.{scripting.layout.names['']}{', ' if parameters else ''}"
    forward = textwrap.indent(f"{head}({self_type}{body}", "  ")
    source = scripting.definitions() + scripting.layout.source({"": [forward]})
    program = Program({"__torch__": source}, tuple(scripting.constants), version=10)
    return _filled(module, program, scripting, "")


def _function_of(module: Module, name: str) -> FunctionType:
    found: Any = stand_in(module) if name == "forward" else None
    if found is None:
        found = inspect.unwrap(getattr(type(module), name))
    if not isinstance(found, FunctionType):
        raise Unwritable(f"{type(module).__name__}.{name} is no function that Python has the source of")
    if getattr(found, "_torchscript_modifier", "").startswith(("ignore", "unused")):
        raise Unwritable(f"{type(module).__name__}.{name} is called, but marked as one that is not compiled")
    return found


def _places(owner: Module) -> dict[int, str]:
    """How methods of a module reach what is inside of it, by id."""
    found = {id(owner): "self"}
    for path, module in owner.named_modules():
        text = "self"
        for part in filter(None, path.split(".")):
            text = _access(text, part)
        found.setdefault(id(module), text)
        for name, tensor in (*module._parameters.items(), *module._buffers.items()):
            if tensor is not None:
                found.setdefault(id(tensor), _access(text, name))
    return found


def _access(owner: str, name: str) -> str:
    return f"{owner}.{name}" if name.isidentifier() else f'getattr({owner}, "{name}")'


def _type_of(module: Module, name: str) -> str:
    try:
        hint = get_type_hints(type(module)).get(name)
    except Exception:
        hint = None
    value = getattr(module, name)
    if hint is None:
        hint = GenericAlias(list, type(value[0])) if isinstance(value, list) and value else type(value)
    try:
        return ann_to_type(hint, None).annotation_str
    except (ValueError, RuntimeError, TypeError):
        raise Unwritable(f"{type(module).__name__}.{name}: {hint} is no type of TorchScript") from None


def _parsed(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


def _filled(module: Module, program: Program, scripting: _Scripting, path: str) -> RecursiveScriptModule:
    """The module of the program, with what the one of Python holds."""
    made = RecursiveScriptModule(program.find(f"__torch__.{scripting.layout.names[path]}"))
    made.training = module.training
    for name, value in (*module._parameters.items(), *module._buffers.items()):
        made._set(name, value)
    for name in scripting.attributes.get(id(module), ()):
        made._set(name, getattr(module, name))
    for name, child in module._modules.items():
        if child is not None:
            made._set(name, _filled(child, program, scripting, f"{path}.{name}" if path else name))
    return made
