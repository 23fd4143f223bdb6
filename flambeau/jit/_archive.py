"""Reading a TorchScript archive: its program, its objects, its extra files. Nothing in it is executed by reading it.

The program is text in the language of `_language/`. Objects come from a pickle that the restricted machine of
`_serialization/` reads: it may name classes of the program itself, and otherwise what `flambeau.load` allows.
"""

from __future__ import annotations

import contextlib
import pickle
from typing import Any, NamedTuple

from .._serialization.archive import ArchiveReader
from .._serialization.globals import SafeGlobals
from .._serialization.limits import Budget
from .._serialization.storages import Storages
from .._serialization.unpickler import Machine
from ._language.program import ClassDefinition, Program, ScriptObject

_BUILDERS = "torch.jit._pickle"
_CODE = "code/"
_EXTRA = "extra/"
_NEWEST = 10


class Contents(NamedTuple):
    """What an archive holds."""

    root: Any
    program: Program
    extra: dict[str, bytes]


class _Builder:
    """A function by which pickles of TorchScript give lists and dicts a type: it gives back what it gets."""


class _ProgramGlobals(SafeGlobals):
    """What the pickles of an archive may name: classes of its program too."""

    def __init__(self, program: Program) -> None:
        super().__init__()
        self.program = program
        self.restored: list[tuple[Any, Any]] = []
        """Objects whose classes restore them by a method, with their states."""

    def find(self, module: str, name: str) -> Any:
        if module == "__torch__" or module.startswith("__torch__."):
            definition = self.program.find(f"{module}.{name}")
            if not isinstance(definition, ClassDefinition):
                raise pickle.UnpicklingError(f"{module}.{name} is no class of the archive's program")
            return definition
        if module == _BUILDERS:
            return _Builder()
        return super().find(module, name)

    def call(self, function: Any, arguments: tuple[Any, ...], budget: Budget) -> Any:
        if isinstance(function, _Builder) and arguments:
            return arguments[0]
        if isinstance(function, ClassDefinition):
            return _made(function, arguments)
        return super().call(function, arguments, budget)

    def create(self, cls: Any, arguments: tuple[Any, ...], keywords: dict[str, Any], budget: Budget) -> Any:
        if not isinstance(cls, ClassDefinition):
            return super().create(cls, arguments, keywords, budget)
        if arguments or keywords:
            return _made(cls, arguments)
        if cls.base == "Module":
            from ._module import module_of

            return module_of(cls)
        return ScriptObject(cls)

    def build(self, target: Any, state: Any, budget: Budget) -> None:
        definition = getattr(target, "_definition", None)
        if not isinstance(definition, ClassDefinition):
            super().build(target, state, budget)
        elif "__setstate__" in definition.methods:
            self.restored.append((target, state))
        elif type(state) is not dict or not all(type(key) is str for key in state):
            raise pickle.UnpicklingError("the state of an object is no dictionary of attributes: the file is corrupt")
        else:
            _restore(target, definition, state)


def _restore(target: Any, definition: ClassDefinition, state: dict[str, Any]) -> None:
    unknown = [name for name in state if name not in definition.annotations]
    if unknown:
        raise pickle.UnpicklingError(f"{definition.name} declares no attribute {unknown[0][:100]!r}")
    for name, value in state.items():
        target._set(name, value)


def _made(definition: ClassDefinition, arguments: tuple[Any, ...]) -> Any:
    """A named tuple, or the member of an enumeration with a value."""
    if definition.fields is not None and len(arguments) == len(definition.fields):
        return definition.tuple(*arguments)
    for member in definition.members.values():
        if len(arguments) == 1 and type(arguments[0]) is type(member.value) and arguments[0] == member.value:
            return member
    raise pickle.UnpicklingError(f"{definition.name} cannot be made from these parts: the file is corrupt")


def read_archive(file: Any, map_location: Any = None) -> Contents:
    """The contents of an archive; errors say what is wrong with it."""
    try:
        with contextlib.closing(ArchiveReader(file)) as archive:
            return _read(archive, map_location)
    except (pickle.UnpicklingError, UnicodeError, EOFError) as error:
        raise RuntimeError(f"this is no sound TorchScript archive: {error}") from error
    except RecursionError as error:
        raise RuntimeError("this is no sound TorchScript archive: it is nested too deeply") from error


def _read(archive: ArchiveReader, map_location: Any) -> Contents:
    _check_kind(archive)
    sources = {
        name.removeprefix(_CODE).removesuffix(".py"): archive.read(name).decode()
        for name in archive.names(_CODE)
        if name.endswith(".py")
    }
    program = Program(sources, version=_version(archive))
    names = _ProgramGlobals(program)
    budget = Budget.for_input(archive.source.size)
    constants = _unpickled(archive, "constants", names, budget, map_location)
    if not isinstance(constants, tuple):
        raise RuntimeError("the archive's constants are no tuple: it is corrupt")
    program.constants = constants
    root = _unpickled(archive, "data", names, budget, map_location)
    for target, state in names.restored:
        target._definition.methods["__setstate__"].call((target, state), {})
    extra = {name.removeprefix(_EXTRA): archive.read(name) for name in archive.names(_EXTRA)}
    return Contents(root, program, extra)


def _version(archive: ArchiveReader) -> int:
    """The version of the format; above 5 PyTorch keeps it in another record."""
    name = next((each for each in ("version", ".data/version") if archive.has(each)), None)
    if name is None:
        raise RuntimeError("the archive does not say its version: it is corrupt")
    text = archive.read(name).strip()
    if not text.isdigit() or int(text) > _NEWEST:
        raise RuntimeError(f"the archive's version {text[:20]!r} is not one from 1 to {_NEWEST}")
    return int(text)


def _check_kind(archive: ArchiveReader) -> None:
    if not archive.has("constants.pkl"):
        raise RuntimeError(
            "PytorchStreamReader failed locating file constants.pkl: file not found. torch.jit.load reads what "
            "torch.jit.save wrote; a file of torch.save is read by torch.load."
        )
    if archive.has("bytecode.pkl") and not archive.names(_CODE):
        raise RuntimeError(
            "the archive was written for PyTorch's lite interpreter (_save_for_lite_interpreter): it has instructions "
            "of a virtual machine in place of code. Save the module by torch.jit.save."
        )
    if not archive.has("data.pkl"):
        raise RuntimeError("PytorchStreamReader failed locating file data.pkl: file not found")


def _unpickled(archive: ArchiveReader, folder: str, names: _ProgramGlobals, budget: Budget, map_location: Any) -> Any:
    def fetch(key: str, nbytes: int) -> Any:
        name = f"{folder}/{key}"
        if archive.size(name) != nbytes:
            raise RuntimeError(f"storage {key[:40]!r} has another size than the archive says: the file is corrupt")
        return archive.array(name)

    storages = Storages(fetch, map_location, order=archive.byteorder())
    return Machine(archive.read(f"{folder}.pkl"), names, storages.persistent_load, budget=budget).load()
