"""A program: files of definitions, and what the qualified names in them mean."""

from __future__ import annotations

import ast
import builtins
import collections
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .._errors import Error
from .source import Definitions, read
from .types import Misfit, NotInLanguage, Type, dotted, given, read_type

_BASES = ("Module", "NamedTuple", "Enum", "Interface", "ModuleInterface")
_FIELDS_ARE_NAMES = (ast.List, ast.Tuple)


class Parameter:
    """One parameter of a function: a missing `default` is `REQUIRED`."""

    __slots__ = ("default", "name", "type")

    def __init__(self, name: str, annotation: Type, default: Any) -> None:
        self.name, self.type, self.default = name, annotation, default


REQUIRED: Any = object()


class Failure(Exception):
    """An error on its way out of a program, with the places that it passed, innermost first."""

    def __init__(self, error: Exception, place: str) -> None:
        super().__init__(str(error))
        self.error = error
        self.places = [place]


class Function:
    """A function or method of a program. It becomes closures when it is first run."""

    def __init__(self, program: Program, file: Definitions, node: ast.FunctionDef, name: str) -> None:
        self.program, self.file, self.node, self.name = program, file, node, name
        self._parameters: list[Parameter] | None = None
        self._body: Callable[[dict[Any, Any]], Any] | None = None
        self.names = [each.arg for each in node.args.args]
        if node.args.vararg or node.args.kwarg or node.args.kwonlyargs or node.args.posonlyargs:
            raise NotInLanguage(f"{file.path}: {node.name} has parameters of a kind that TorchScript does not have")

    @property
    def code(self) -> str:
        """The text of the function."""
        return self.file.lines_of(self.node)

    @property
    def parameters(self) -> list[Parameter]:
        """The parameters with their types and defaults."""
        if self._parameters is None:
            arguments = self.node.args
            missing = len(arguments.args) - len(arguments.defaults)
            self._parameters = [
                Parameter(
                    each.arg,
                    Type("Any") if each.annotation is None else read_type(each.annotation, self.program.find),
                    REQUIRED if place < missing else self.program.constant(arguments.defaults[place - missing]),
                )
                for place, each in enumerate(arguments.args)
            ]
        return self._parameters

    def run(self, args: Sequence[Any], kwargs: Mapping[str, Any] | None = None) -> Any:
        """Call it from inside of a program, where types have been checked when the program was written."""
        frame: dict[Any, Any] = dict(zip(self.names, args, strict=False))
        if kwargs:
            frame.update(kwargs)
        if len(args) + len(kwargs or ()) != len(self.names) or len(frame) != len(self.names):
            self._complete(frame, len(args) + len(kwargs or ()))
        if self._body is None:
            from .statements import body_of

            self._body = body_of(self.node.body, self.program)
        try:
            return self._body(frame)
        except Failure as failure:
            failure.places.append(self._place(frame))
            raise
        except RecursionError as error:
            raise RuntimeError(f"{self.name}: the program calls itself too deeply") from error
        except Exception as error:
            raise Failure(error, self._place(frame)) from error

    def _complete(self, frame: dict[Any, Any], count: int) -> None:
        if count > len(self.names) or frame.keys() - set(self.names):
            raise RuntimeError(f"{self.name}() is called with arguments that it does not have")
        for each in self.parameters:
            if each.name not in frame:
                if each.default is REQUIRED:
                    raise RuntimeError(f"{self.name}() is called without its argument {each.name!r}")
                frame[each.name] = copied(each.default)

    def _place(self, frame: dict[Any, Any]) -> str:
        line = frame.get(LINE, self.node.lineno)
        text = self.file.text.splitlines()[line - 1].strip()
        return f'  File "code/{self.file.path}.py", line {line}, in {self.node.name}\n    {text}'

    def call(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Call it from Python: arguments are bound and checked, errors say where in the program they arose."""
        bound = self.bound(args, kwargs)
        try:
            return self.run(bound)
        except Failure as failure:
            raise outward(failure) from failure.error

    def bound(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
        """The arguments in order, as values of the program."""
        title = self.node.name
        if len(args) > len(self.names):
            told, wanted = len(args), len(self.names)
            raise RuntimeError(f"{title}() expected at most {wanted} argument(s) but received {told} argument(s)")
        unknown = [each for each in kwargs if each not in self.names[len(args) :]]
        if unknown:
            raise RuntimeError(f"{title}() got an unknown or repeated keyword argument {unknown[0]!r}")
        values = []
        for place, each in enumerate(self.parameters):
            value = args[place] if place < len(args) else kwargs.get(each.name, each.default)
            if value is REQUIRED:
                raise RuntimeError(f"{title}() is missing value for argument '{each.name}'")
            if place or each.name != "self":
                try:
                    value = given(value, each.type)
                except Misfit:
                    raise RuntimeError(
                        f"{title}() Expected a value of type '{each.type}' for argument '{each.name}' but instead "
                        f"found type '{builtins.type(value).__name__}'.\nPosition: {place}"
                    ) from None
            values.append(value)
        return values


LINE = 0
"""Where a frame keeps the line that is running; names are strings."""


def outward(failure: Failure) -> Exception:
    """The error that leaves a program: PyTorch's types, and where it arose."""
    from .prims import Raised

    error = failure.error
    text = "The following operation failed in the TorchScript interpreter.\n"
    text += "Traceback of TorchScript, serialized code (most recent call last):\n"
    text += "\n".join(reversed(failure.places)) + "\n"
    if isinstance(error, Raised):
        return Error(f"{text}{error.kind}: {error.text}")
    told = f"{text}{builtins.type(error).__name__}: {error}"
    return NotImplementedError(told) if isinstance(error, NotImplementedError) else RuntimeError(told)


def copied(value: Any) -> Any:
    """A default or constant for one call: lists are the call's own."""
    return list(value) if builtins.type(value) is list else value


class WithProgram:
    """An object whose class is one of a program: attributes are read and set by what that declares."""

    _definition: ClassDefinition

    def _read(self, name: str) -> Any:
        raise NotImplementedError

    def _set(self, name: str, value: Any) -> None:
        raise NotImplementedError


class ScriptObject(WithProgram):
    """An object of a class of the program."""

    def __init__(self, definition: ClassDefinition) -> None:
        self._definition = definition
        self.attributes: dict[str, Any] = {}

    def _read(self, name: str) -> Any:
        return self.attributes[name]

    def _set(self, name: str, value: Any) -> None:
        self.attributes[name] = value

    def __getattr__(self, name: str) -> Any:
        attributes = self.__dict__.get("attributes", {})
        if name in attributes:
            return attributes[name]
        definition = self.__dict__.get("_definition")
        if definition is not None and name in definition.methods:
            function = definition.methods[name]
            return lambda *args, **kwargs: function.call((self, *args), kwargs)
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __repr__(self) -> str:
        return f"<torch.ScriptObject object of {self._definition.name}>"


class EnumValue:
    """A member of an enumeration of the program."""

    def __init__(self, definition: ClassDefinition, name: str, value: Any) -> None:
        self._definition, self.name, self.value = definition, name, value

    def __repr__(self) -> str:
        return f"<{self._definition.name.rpartition('.')[2]}.{self.name}: {self.value!r}>"


class ClassDefinition:
    """A class of a program: what it declares, its constants and its methods."""

    def __init__(self, program: Program, file: Definitions, node: ast.ClassDef, name: str) -> None:
        self.program, self.file, self.node, self.name = program, file, node, name
        self.annotations: dict[str, ast.expr] = {}
        self.constants: dict[str, Any] = {}
        self.parameters: list[str] = []
        self.buffers: list[str] = []
        self.methods: dict[str, Function] = {}
        bases = [dotted(each) for each in node.bases]
        if len(bases) > 1 or (bases and bases[0] not in _BASES) or node.keywords or node.decorator_list:
            raise NotInLanguage(f"{file.path}: class {node.name} has bases that TorchScript does not have")
        self.base = bases[0] if bases and bases[0] else ""
        self.is_interface = self.base in ("Interface", "ModuleInterface")
        self.members: dict[str, EnumValue] = {}
        for each in node.body:
            self._enter(each)
        self.fields = tuple(self.annotations) if self.base == "NamedTuple" else None
        self._tuple: Any = None

    def _enter(self, node: ast.stmt) -> None:
        if isinstance(node, ast.FunctionDef):
            self.methods[node.name] = Function(self.program, self.file, node, f"{self.name}.{node.name}")
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            if node.value is not None and self.base != "NamedTuple":
                self.constants[node.target.id] = self.program.constant(node.value)
            else:
                self.annotations[node.target.id] = node.annotation
        elif isinstance(node, ast.Assign) and len(node.targets) == 1:
            self._assign(node.targets[0], node.value)
        elif not isinstance(node, (ast.Pass, ast.Expr)):
            raise NotInLanguage(f"{self.file.path}, line {node.lineno}: a class has no such statement")

    def _assign(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Subscript) and dotted(target.value) == "__annotations__":
            key = target.slice
            if isinstance(key, ast.Constant) and type(key.value) is str:
                self.annotations[key.value] = value
                return
        if isinstance(target, ast.Name):
            if target.id in ("__parameters__", "__buffers__") and isinstance(value, _FIELDS_ARE_NAMES):
                names = [each.value for each in value.elts if isinstance(each, ast.Constant)]
                texts = [each for each in names if isinstance(each, str)]
                (self.parameters if target.id == "__parameters__" else self.buffers).extend(texts)
                return
            if self.base == "Enum":
                self.members[target.id] = EnumValue(self, target.id, self.program.constant(value))
                return
        raise NotInLanguage(f"{self.file.path}, line {target.lineno}: a class has no such statement")

    def type_of(self, name: str) -> Type | None:
        """The declared type of an attribute; None if there is no such attribute."""
        annotation = self.annotations.get(name)
        return None if annotation is None else read_type(annotation, self.program.find)

    @property
    def tuple(self) -> Any:
        """The named tuple that a `NamedTuple` of the program is in Python."""
        if self._tuple is None:
            make: Any = collections.namedtuple  # the fields are known only now
            self._tuple = make(self.node.name, list(self.annotations))
        return self._tuple

    def converted(self, value: Any) -> Any:
        """A caller's value as one of this class: named tuples of the same fields, members of the same name."""
        if self.fields is not None and isinstance(value, tuple) and len(value) == len(self.fields):
            return self.tuple(*value)
        if self.base == "Enum" and getattr(value, "name", None) in self.members:
            return self.members[value.name]
        raise Misfit


class Program:
    """The files of an archive's code, by path without the ending, and its constants."""

    def __init__(self, sources: Mapping[str, str], constants: Sequence[Any] = (), version: int = 10) -> None:
        self.sources = dict(sources)
        self.constants = constants
        self.version = version
        self.files = {path: read(path, text) for path, text in sources.items()}
        self._found: dict[str, Any] = {}

    def find(self, name: str) -> Any:
        """The class or function behind a qualified name: `__torch__.torch.nn.modules.linear.Linear`."""
        found = self._found.get(name)
        if found is not None:
            return found
        path, _, last = name.rpartition(".")
        file = self.files.get(path.replace(".", "/"))
        if file is not None and last in file.classes:
            self._found[name] = ClassDefinition(self, file, file.classes[last], name)
        elif file is not None and last in file.functions:
            self._found[name] = Function(self, file, file.functions[last], name)
        elif name.startswith("__torch__.torch.classes."):
            raise NotImplementedError(f"{name} is a class of PyTorch's C++ part, of which Flambeau has no twin")
        else:
            raise NotInLanguage(f"the archive names {name[:200]!r}, but does not define it")
        return self._found[name]

    def constant(self, node: ast.expr) -> Any:
        """The value of an expression that no variable takes part in: a default or a constant."""
        from .expressions import expression

        return expression(node, self)({})
