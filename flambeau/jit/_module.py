"""`ScriptModule`: modules whose code is a program of the language."""

from __future__ import annotations

import io
from typing import Any

from .._core.names.same_as import same_as
from .._core.slots import SLOTS
from .._core.tensor import Tensor
from ..nn.modules.module import Module
from ._language.program import ClassDefinition, Function, WithProgram
from ._language.types import Misfit, given


class ScriptMethod:
    """A method of a module, as Python calls it."""

    def __init__(self, module: Any, function: Function) -> None:
        self._module, self._function = module, function
        self.__name__ = self.name = function.node.name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._function.call((self._module, *args), kwargs)

    code: str = same_as("_function.code", "The text of the method.")

    @property
    def graph(self) -> Any:
        """What the method runs."""
        from ._graph import graph_of

        return graph_of(self._function)

    inlined_graph: Any = same_as("graph", "What the method runs; calls of submodules stay calls.")
    owner: Any = same_as("_module", "The module.")

    raw_owner = owner


class ScriptModule(Module):
    """The base of modules of TorchScript.

    A class that inherits from it, and what `jit.script` gives, is a module like any other and runs as Python. Its
    program is written from the source when it is asked for: to be read, or to be saved.
    """

    def __getattr__(self, name: str) -> Any:
        # No properties: a module may have attributes of these names.
        try:
            return super().__getattr__(name)
        except AttributeError:
            if name not in _OF_THE_PROGRAM or isinstance(self, RecursiveScriptModule):
                raise
        return type(self).__name__ if name == "original_name" else getattr(self._program(), name)

    def _program(self) -> RecursiveScriptModule:
        program: RecursiveScriptModule = SLOTS.scripted_module(self)
        return program

    def save(self, f: Any, **kwargs: Any) -> None:
        """Write an archive that `jit.load` reads, here and in PyTorch."""
        SLOTS.save_scripted(self, f, **kwargs)

    def save_to_buffer(self, **kwargs: Any) -> bytes:
        """The bytes of such an archive."""
        buffer = io.BytesIO()
        ScriptModule.save(self, buffer, **kwargs)
        return buffer.getvalue()


_OF_THE_PROGRAM = frozenset({"code", "graph", "inlined_graph", "original_name"})
"""What a scripted module tells of its program."""


class RecursiveScriptModule(ScriptModule, WithProgram):
    """A module whose methods are a program: what `jit.load` gives.

    Args:
        definition (ClassDefinition): the class of the program.

    Returns:
        what the program's `forward` returns.

    Example:
        >>> isinstance(torch.jit.script(torch.nn.ReLU()), torch.nn.Module)
        True
    """

    def __init__(self, definition: ClassDefinition) -> None:
        super().__init__()
        self.__dict__["_definition"] = definition

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Run the program's `forward`."""
        return self._method("forward")(*args, **kwargs)

    def _method(self, name: str) -> ScriptMethod | _Overloaded:
        methods = self._definition.methods
        if name in methods:
            return ScriptMethod(self, methods[name])
        overloads = [each for title, each in methods.items() if title.startswith(f"{name}__") and title[-1].isdigit()]
        if overloads:
            return _Overloaded(self, overloads)
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def _read(self, name: str) -> Any:
        """A declared attribute, for the program."""
        places = self.__dict__
        for group in ("_parameters", "_modules", "_buffers"):
            if name in places[group]:
                return places[group][name]
        return places[name] if name in places else getattr(self, name)

    def _set(self, name: str, value: Any) -> None:
        """Give a declared attribute a value: it stands where modules keep parameters, buffers, modules, all else."""
        definition = self._definition
        places = self.__dict__
        if name in definition.parameters and (value is None or isinstance(value, Tensor)):
            places["_parameters"][name] = value
        elif name in definition.buffers and (value is None or isinstance(value, Tensor)):
            places["_buffers"][name] = value
        elif isinstance(value, Module):
            places["_modules"][name] = value
        else:
            places[name] = value

    def __getattr__(self, name: str) -> Any:
        definition = self.__dict__.get("_definition")
        if definition is not None:
            if name in definition.methods:
                return ScriptMethod(self, definition.methods[name])
            if name in definition.constants:
                return definition.constants[name]
        return super().__getattr__(name)

    def __setattr__(self, name: str, value: Any) -> None:
        definition = self.__dict__.get("_definition")
        wanted = None if definition is None else definition.type_of(name)
        if wanted is None or name == "training":
            super().__setattr__(name, value)
            return
        try:
            self._set(name, value if isinstance(value, (Module, Tensor)) else given(value, wanted))
        except Misfit:
            found = type(value).__name__
            raise RuntimeError(f"Could not cast attribute '{name}' to type {wanted}: it is a {found}") from None

    @property
    def original_name(self) -> str:
        """The name of the class that was scripted."""
        return str(self._definition.node.name)

    @property
    def code(self) -> str:
        """The text of `forward`."""
        return self._method("forward").code

    @property
    def graph(self) -> Any:
        """What `forward` runs."""
        return self._method("forward").graph

    inlined_graph: Any = same_as("graph", "What `forward` runs; calls of submodules stay calls.")

    def extra_repr(self) -> str:
        """The name of the class that was scripted."""
        return f"original_name={self.original_name}"

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._definition.methods, *self._definition.constants})

    def __len__(self) -> int:
        return int(self._method("__len__")())

    def __bool__(self) -> bool:
        return True

    def __reduce__(self) -> Any:
        return _from_bytes, (self.save_to_buffer(),)

    def __deepcopy__(self, memo: Any) -> Any:
        import copy

        made = module_of(self._definition)
        memo[id(self)] = made
        for name, value in self.__dict__.items():
            if name != "_definition":
                made.__dict__[name] = copy.deepcopy(value, memo)
        return made

    def __copy__(self) -> Any:
        made = module_of(self._definition)
        for name, value in self.__dict__.items():
            made.__dict__[name] = value.copy() if name in ("_parameters", "_buffers", "_modules") else value
        return made


class _Overloaded:
    """A method that has a form for each type of its arguments, such as the `forward` of recurrent layers."""

    def __init__(self, module: Any, functions: list[Function]) -> None:
        self._module, self._functions = module, functions

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        *others, last = self._functions
        for function in others:
            try:
                values = function.bound((self._module, *args), kwargs)
            except RuntimeError:
                continue
            return function.call(values, {})
        return last.call((self._module, *args), kwargs)

    @property
    def code(self) -> str:
        """The text of all forms."""
        return "\n".join(each.code for each in self._functions)

    @property
    def graph(self) -> Any:
        """What the first form runs."""
        from ._graph import graph_of

        return graph_of(self._functions[0])


def module_of(definition: ClassDefinition) -> RecursiveScriptModule:
    """A module of a class of a program, without attributes."""
    return RecursiveScriptModule(definition)


def _from_bytes(content: bytes) -> Any:
    return SLOTS.load_scripted(io.BytesIO(content))
