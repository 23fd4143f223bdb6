"""`PackageExporter`: writes objects with the source of the classes that they need."""

from __future__ import annotations

import enum
import importlib.util
import io
import platform
import sys
from collections import OrderedDict
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from .._serialization.names import torch_name
from .._serialization.records import PyTorchFileWriter
from .._serialization.writing import SavedStorages, TorchPickler
from ..utils.hooks import RemovableHandle
from . import _mocking
from ._dependencies import Dependencies, as_dot
from ._mangling import is_mangled
from .find_file_dependencies import find_files_source_depends_on
from .glob_group import GlobGroup, GlobPattern
from .importer import Importer, OrderedImporter, sys_importer
from .package_importer import PackageImporter

__all__ = ["EmptyMatchError", "PackageExporter", "PackagingError", "PackagingErrorReason"]

_ALWAYS_OUTSIDE = frozenset({"torch", "flambeau", *sys.stdlib_module_names, *sys.builtin_module_names})
Hook = Callable[["PackageExporter", str], None]


class EmptyMatchError(Exception):
    """A pattern that had to match a module matched none.

    Example:
        >>> issubclass(torch.package.EmptyMatchError, Exception)
        True
    """


class PackagingErrorReason(enum.Enum):
    """Why a module cannot be in an archive."""

    IS_EXTENSION_MODULE = "Module is a C extension module. torch.package supports Python modules only."
    NO_DUNDER_FILE = "Module had no __file__ defined."
    SOURCE_FILE_NOT_FOUND = "Module had a __file__, but we could not find it in your filesystem."
    DEPENDENCY_RESOLUTION_FAILED = "Dependency resolution failed."
    NO_ACTION = "Module did not match against any action pattern. Extern, mock, or intern it."
    DENIED = "Module was denied by a pattern."
    MOCKED_BUT_STILL_USED = "Module was mocked out, but is still being used in the package."

    def __repr__(self) -> str:
        return f"<{type(self).__name__}.{self.name}>"


class PackagingError(Exception):
    """What could not be packaged.

    Args:
        dependencies (Dependencies): the graph of modules.
        broken (dict[str, tuple[PackagingErrorReason, str]]): the reasons, by module.
        debug (bool): whether to show how each module was reached. Default: `False`.

    Example:
        >>> issubclass(torch.package.PackagingError, Exception)
        True
    """

    def __init__(
        self, dependencies: Dependencies, broken: dict[str, tuple[PackagingErrorReason, str]], debug: bool = False
    ) -> None:
        self.dependencies = dependencies
        self.broken = broken
        lines = [""]
        for reason in PackagingErrorReason:
            names = [name for name, (why, _) in broken.items() if why is reason]
            if names:
                lines.append(f"* {reason.value}")
            for name in names:
                lines.append(f"    {name}")
                if broken[name][1]:
                    lines.append(f"      Context: {broken[name][1]}")
                if debug:
                    lines.append(f"      Needed by: {' -> '.join(dependencies.first_path(name))}")
        lines.append(
            "\nSet debug=True when invoking PackageExporter for the ways by which broken modules are needed.\n"
        )
        super().__init__("\n".join(lines))


class _Pattern(NamedTuple):
    action: str
    group: GlobGroup
    allow_empty: bool
    matched: list[str]


class PackageExporter:
    """Writes an archive: pickles, text and bytes, and modules, each of which goes in, stays outside, or is mocked.

    >>> import io
    >>> from flambeau.package import PackageExporter, PackageImporter
    >>> file = io.BytesIO()
    >>> with PackageExporter(file) as exporter:
    ...     exporter.save_source_string("greetings", "def greet(name): return f'hello {name}'")
    ...     exporter.save_pickle("data", "weights.pkl", flambeau.ones(2))
    >>> importer = PackageImporter(file)
    >>> importer.import_module("greetings").greet("you"), importer.load_pickle("data", "weights.pkl")
    ('hello you', tensor([1., 1.]))

    Args:
        f: the path of the archive, or a file object.
        importer (Importer or sequence of Importers): where modules are looked for.
        debug (bool): whether an error shows the dependencies. Default: `False`.
    """

    def __init__(self, f: Any, importer: Importer | Sequence[Importer] = sys_importer, debug: bool = False) -> None:
        self.debug = debug
        self.importer = importer if isinstance(importer, Importer) else OrderedImporter(*importer)
        self._writer = PyTorchFileWriter(f)
        self._writer.set_min_version(6)
        self._storages = SavedStorages()
        self._patterns: list[_Pattern] = []
        self._dependencies = Dependencies()
        self._sources: dict[str, tuple[str, bool]] = {}
        self._actions: dict[str, str] = {}
        self._broken: dict[str, tuple[PackagingErrorReason, str]] = {}
        self._waiting: list[tuple[str, bool]] = []
        self._names = 0
        self._hooks: dict[str, OrderedDict[int, Hook]] = {each: OrderedDict() for each in ("extern", "mock", "intern")}

    # ----- what becomes of modules --------------------------------------------------------------------------------

    def _pattern(self, action: str, include: GlobPattern, exclude: GlobPattern, allow_empty: bool) -> None:
        self._patterns.append(_Pattern(action, GlobGroup(include, exclude=exclude), allow_empty, []))

    def intern(self, include: GlobPattern, *, exclude: GlobPattern = (), allow_empty: bool = True) -> None:
        """Modules whose source goes into the archive."""
        self._pattern("intern", include, exclude, allow_empty)

    def mock(self, include: GlobPattern, *, exclude: GlobPattern = (), allow_empty: bool = True) -> None:
        """Modules in whose place stands something that refuses to be used."""
        self._pattern("mock", include, exclude, allow_empty)

    def extern(self, include: GlobPattern, *, exclude: GlobPattern = (), allow_empty: bool = True) -> None:
        """Modules that whoever loads the archive has."""
        self._pattern("extern", include, exclude, allow_empty)

    def deny(self, include: GlobPattern, *, exclude: GlobPattern = ()) -> None:
        """Modules that must not be needed."""
        self._pattern("deny", include, exclude, True)

    def register_extern_hook(self, hook: Hook) -> RemovableHandle:
        """Call a function, at the end, with the exporter and the name of each module that stays outside."""
        return self._register("extern", hook)

    def register_mock_hook(self, hook: Hook) -> RemovableHandle:
        """Call a function, at the end, with the exporter and the name of each module that is mocked."""
        return self._register("mock", hook)

    def register_intern_hook(self, hook: Hook) -> RemovableHandle:
        """Call a function, at the end, with the exporter and the name of each module that goes in."""
        return self._register("intern", hook)

    def _register(self, action: str, hook: Hook) -> RemovableHandle:
        handle = RemovableHandle(self._hooks[action])
        self._hooks[action][handle.id] = hook
        return handle

    # ----- what is saved ------------------------------------------------------------------------------------------

    def save_source_string(
        self, module_name: str, src: str, is_package: bool = False, dependencies: bool = True
    ) -> None:
        """A module with this source."""
        self._dependencies.add(module_name)
        self._intern(module_name, src, is_package, dependencies)

    def save_source_file(self, module_name: str, file_or_directory: str, dependencies: bool = True) -> None:
        """A module with the source of a file, or with its submodules that of a folder."""
        path = Path(file_or_directory)
        if not path.is_dir():
            self.save_source_string(module_name, path.read_text(encoding="utf-8"), False, dependencies)
            return
        for file in sorted(path.rglob("*.py")):
            parts = [module_name, *file.relative_to(path).with_suffix("").parts]
            is_package = parts[-1] == "__init__"
            name = ".".join(parts[:-1] if is_package else parts)
            self.save_source_string(name, file.read_text(encoding="utf-8"), is_package, dependencies)

    def save_module(self, module_name: str, dependencies: bool = True) -> None:
        """A module of the importer's."""
        if not isinstance(module_name, str):
            raise TypeError("save_module() expects a string input, did you perhaps mean to pass `__name__`?")
        self._dependencies.add(module_name)
        self._intern_found(module_name, dependencies)

    def save_text(self, package: str, resource: str, text: str) -> None:
        """A resource of text."""
        self.save_binary(package, resource, text.encode("utf-8"))

    def save_binary(self, package: str, resource: str, binary: bytes) -> None:
        """A resource of bytes."""
        self._write(f"{package.replace('.', '/')}/{resource}", binary)

    def save_pickle(
        self, package: str, resource: str, obj: Any, dependencies: bool = True, pickle_protocol: int = 3
    ) -> None:
        """An object; the modules of its classes are needed."""
        stream = io.BytesIO()
        pickler = _Pickler(stream, self._storages, self.importer, pickle_protocol)
        pickler.dump(obj)
        name = f"<{package}.{resource}>"
        self._dependencies.add(name)
        if dependencies:
            for module in pickler.modules:
                self.add_dependency(module, needed_by=name)
        self.save_binary(package, resource, stream.getvalue())

    def add_dependency(self, module_name: str, dependencies: bool = True, *, needed_by: str | None = None) -> None:
        """A module is needed: the first pattern that fits it decides what becomes of it."""
        known = module_name in self._actions or module_name in self._broken
        self._dependencies.add(module_name, needed_by)
        if known:
            return
        action = self._action(module_name)
        if action == "intern":
            self._intern_found(module_name, dependencies)
        elif action == "deny":
            self._broken[module_name] = PackagingErrorReason.DENIED, ""
            self._actions[module_name] = action
        elif action is None:
            self._broken[module_name] = PackagingErrorReason.NO_ACTION, ""
        else:
            self._actions[module_name] = action
            if action == "mock":
                self._sources[module_name] = _mocking.MOCKED, False
                self._sources[_mocking.MODULE] = _mocking.SOURCE, False

    def _action(self, module_name: str) -> str | None:
        if module_name.partition(".")[0] in _ALWAYS_OUTSIDE:
            return "extern"
        for pattern in self._patterns:
            if pattern.group.matches(module_name):
                pattern.matched.append(module_name)
                return pattern.action
        return None

    def _intern_found(self, module_name: str, dependencies: bool) -> None:
        try:
            module = self.importer.import_module(module_name)
        except ImportError as error:
            self._broken[module_name] = PackagingErrorReason.DEPENDENCY_RESOLUTION_FAILED, str(error)
            return
        source = self._source(module_name, module)
        if isinstance(source, PackagingErrorReason):
            self._broken[module_name] = source, ""
        else:
            self._intern(module_name, source, hasattr(module, "__path__"), dependencies)

    def _source(self, module_name: str, module: ModuleType) -> str | PackagingErrorReason:
        if is_mangled(module.__name__):
            importers = getattr(self.importer, "_importers", [self.importer])
            owner = next(
                each for each in importers if isinstance(each, PackageImporter) and module_name in each.modules
            )
            return owner.get_source(module_name)
        file = getattr(module, "__file__", None)
        if file is None:
            return PackagingErrorReason.NO_DUNDER_FILE
        if not file.endswith(".py"):
            return PackagingErrorReason.IS_EXTENSION_MODULE
        path = Path(file)
        return path.read_text(encoding="utf-8") if path.is_file() else PackagingErrorReason.SOURCE_FILE_NOT_FOUND

    def _intern(self, module_name: str, source: str, is_package: bool, dependencies: bool) -> None:
        self._sources[module_name] = source, is_package
        self._broken.pop(module_name, None)  # it may have been needed before it was there
        self._actions[module_name] = "intern"
        parent = module_name.rpartition(".")[0]
        if parent and parent not in self._sources and self._action(parent) == "intern":
            self.add_dependency(parent, needed_by=module_name)
        if not dependencies:
            return
        package = module_name if is_package else parent
        for needed, attribute in find_files_source_depends_on(source, package):
            inner = f"{needed}.{attribute}"
            self.add_dependency(inner if attribute and self._is_module(inner) else needed, needed_by=module_name)

    def _is_module(self, name: str) -> bool:
        if name.partition(".")[0] in _ALWAYS_OUTSIDE or isinstance(self.importer, (PackageImporter, OrderedImporter)):
            return False
        try:
            return importlib.util.find_spec(name) is not None
        except (ImportError, AttributeError, ValueError):
            return False

    # ----- what was decided ---------------------------------------------------------------------------------------

    def _decided(self, action: str) -> list[str]:
        return sorted(name for name, chosen in self._actions.items() if chosen == action)

    def interned_modules(self) -> list[str]:
        """The modules in the archive."""
        return self._decided("intern")

    def externed_modules(self) -> list[str]:
        """The modules outside."""
        return self._decided("extern")

    def mocked_modules(self) -> list[str]:
        """The modules that are mocked."""
        return self._decided("mock")

    def denied_modules(self) -> list[str]:
        """The modules that are needed and must not be."""
        return self._decided("deny")

    def get_rdeps(self, module_name: str) -> list[str]:
        """What needs a module."""
        return self._dependencies.needed_by(module_name)

    def all_paths(self, src: str, dst: str) -> str:
        """All ways from one to the other, in the language of Graphviz."""
        return as_dot(self._dependencies.paths(src, dst))

    def dependency_graph_string(self) -> str:
        """What needs what, in the language of Graphviz."""
        return as_dot(self._dependencies.edges())

    def get_unique_id(self) -> str:
        """A name that nothing else in the archive has."""
        self._names += 1
        return str(self._names - 1)

    # ----- the end ------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Check that every module has its place, and write the rest of the archive."""
        if self._broken:
            raise PackagingError(self._dependencies, self._broken, self.debug)
        for pattern in self._patterns:
            if not pattern.allow_empty and not pattern.matched:
                raise EmptyMatchError(
                    f"Exporter did not match any modules to {pattern.group}, which was marked as allow_empty=False"
                )
        for name, action in self._actions.items():
            for hook in self._hooks.get(action, {}).values():
                hook(self, name)
        for name, (source, is_package) in self._sources.items():
            base = name.replace(".", "/")
            self._write(f"{base}/__init__.py" if is_package else f"{base}.py", source.encode())
        for key, memory, _ in self._storages.contents():
            self._write(f".data/{key}.storage", bytes(memory))
        outside = "".join(f"{name}\n" for name, action in self._actions.items() if action == "extern")
        self._write(".data/extern_modules", outside.encode())
        self._write(".data/python_version", platform.python_version().encode())
        self._writer.write_end_of_file()

    def _write(self, name: str, content: bytes) -> None:
        self._writer.write_record(name, content, len(content))

    def __enter__(self) -> PackageExporter:
        return self

    def __exit__(self, kind: Any, *rest: object) -> None:
        if kind is None:
            self.close()


class _Pickler(TorchPickler):
    """Notes the modules of what it names, and names what came out of archives without their mark."""

    def __init__(self, stream: Any, storages: SavedStorages, importer: Importer, protocol: int) -> None:
        super().__init__(stream, protocol, storages)
        self._importer = importer
        self.modules: dict[str, bool] = {}

    def save_global(self, obj: Any, name: str | None = None) -> None:
        found = torch_name(obj, name)
        if found is not None:
            self.modules[found[0]] = True
            super().save_global(obj, name)
            return
        module, qualified = self._importer.get_name(obj, name)
        self.modules[module] = True
        self.write(f"c{module}\n{qualified}\n".encode())
        self.memoize(obj)

    dispatch = {**TorchPickler.dispatch, type(lambda: 0): save_global, type: save_global}  # noqa: RUF012
