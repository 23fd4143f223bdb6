"""`PackageImporter`: modules and data out of an archive, apart from the environment's modules."""

from __future__ import annotations

import builtins
import importlib
import io
import linecache
import os
import pickle
import types
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import IO, Any

from .._serialization.archive import ArchiveReader
from .._serialization.names import object_named
from .._serialization.storages import Storages
from ._mangling import demangle, new_prefix
from .file_structure_representation import Directory, structure
from .glob_group import GlobGroup, GlobPattern
from .importer import Importer

__all__ = ["PackageImporter"]


class PackageImporter(Importer):
    """The modules of an archive, which see each other, and of the environment only what the archive lists.

    An archive of PyTorch's finds Flambeau under the name `torch`. `module_allowed` says which of the listed modules of
    the environment an archive may have.

    Args:
        file_or_buffer: the path of the archive, or a file object.
        module_allowed (Callable): says which modules of the environment the archive may use.

    Example:
        >>> import io
        >>> file = io.BytesIO()
        >>> with torch.package.PackageExporter(file) as exporter:
        ...     exporter.save_text("data", "note.txt", "hello")
        >>> _ = file.seek(0)
        >>> torch.package.PackageImporter(file).load_text("data", "note.txt")
        'hello'
    """

    def __init__(self, file_or_buffer: Any, module_allowed: Callable[[str], bool] = lambda module_name: True) -> None:
        self.filename = "<binary>"
        shown = str(file_or_buffer)
        if isinstance(file_or_buffer, (str, os.PathLike)):
            self.filename = os.fspath(file_or_buffer)
            file_or_buffer = io.BytesIO(Path(file_or_buffer).read_bytes())
        reader = getattr(file_or_buffer, "_reader", None)
        self._archive = reader if isinstance(reader, ArchiveReader) else ArchiveReader(file_or_buffer)
        self._prefix = new_prefix()
        self._modules: dict[str, ModuleType] = {}
        self.extern_modules = self._archive.read(".data/extern_modules").decode().split()
        for name in self.extern_modules:
            if not module_allowed(name):
                raise ImportError(
                    f"package '{shown}' needs the external module '{name}' but that module has been disallowed"
                )
        self._builtins = {**vars(builtins), "__import__": self._import}
        self._storages: Storages | None = None

    @property
    def modules(self) -> dict[str, ModuleType]:
        """What has been imported from the archive."""
        return self._modules

    def id(self) -> str:
        """What the names of its modules begin with."""
        return self._prefix

    def python_version(self) -> str | None:
        """The version of Python that wrote it; None if it does not say."""
        name = ".data/python_version"
        return self._archive.read(name).decode().strip() if self._archive.has(name) else None

    # ----- data ---------------------------------------------------------------------------------------------------

    def load_binary(self, package: str, resource: str) -> bytes:
        """The bytes of a resource."""
        return self._archive.read(f"{package.replace('.', '/')}/{resource}")

    def load_text(self, package: str, resource: str, encoding: str = "utf-8", errors: str = "strict") -> str:
        """The text of a resource."""
        return self.load_binary(package, resource).decode(encoding, errors)

    def load_pickle(self, package: str, resource: str, map_location: Any = None) -> Any:
        """The object of a resource, with classes of the archive's modules: it runs their code."""
        content = self.load_binary(package, resource)
        if self._storages is None or map_location is not None:
            self._storages = Storages(self._storage, map_location, order=self._archive.byteorder("little"))
        return _Unpickler(content, self, self._storages).load()

    def _storage(self, key: str, nbytes: int) -> Any:
        return self._archive.array(f".data/{key}.storage")

    def file_structure(self, *, include: GlobPattern = "**", exclude: GlobPattern = ()) -> Directory:
        """What is in the archive, as far as it fits."""
        group = GlobGroup(include, exclude=exclude, separator="/")
        return structure(self.filename, self._archive.names(), group)

    # ----- modules ------------------------------------------------------------------------------------------------

    def import_module(self, name: str, package: str | None = None) -> ModuleType:
        """A module of the archive, or one of the environment's that it lists."""
        name = importlib.util.resolve_name(demangle(name), demangle(package) if package else None)
        if self._is_extern(name):
            return importlib.import_module(_own_name(name))
        found = self._modules.get(name)
        if found is not None:
            return found
        parent = name.rpartition(".")[0]
        if parent:
            self.import_module(parent)
        return self._load(name, parent)

    def _is_extern(self, name: str) -> bool:
        path = self._path(name)
        return path is None and any(name == each or name.startswith(f"{each}.") for each in self.extern_modules)

    def _path(self, name: str) -> str | None:
        base = name.replace(".", "/")
        return next((path for path in (f"{base}/__init__.py", f"{base}.py") if self._archive.has(path)), None)

    def _load(self, name: str, parent: str) -> ModuleType:
        path = self._path(name)
        is_folder = any(each.startswith(f"{name.replace('.', '/')}/") for each in self._archive.names())
        if path is None and not is_folder:
            raise ModuleNotFoundError(
                f'No module named "{name}" in self-contained archive "{self.filename}" and the module is also not in '
                f"the list of allowed external modules: {self.extern_modules}",
                name=name,
            )
        module = types.ModuleType(f"{self._prefix}.{name}")
        is_package = path is None or path.endswith("/__init__.py")
        vars(module).update(
            __file__=f"{self._prefix}.{path}",
            __package__=f"{self._prefix}.{name if is_package else parent}",
            __builtins__=self._builtins,
            __torch_package__=True,
        )
        if is_package:
            vars(module)["__path__"] = []
        self._modules[name] = module
        if path is not None:
            source = self._archive.read(path).decode()
            file = str(module.__file__)
            linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
            try:
                exec(compile(source, file, "exec", dont_inherit=True), vars(module))
            except BaseException:
                del self._modules[name]
                raise
        if parent:
            setattr(self._modules[parent], name.rpartition(".")[2], module)
        return module

    def _import(self, name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0) -> Any:
        """`__import__` as the archive's modules have it."""
        if level:
            package = demangle(str((globals or {}).get("__package__", "")))
            name = importlib.util.resolve_name("." * level + name, package)
        module = self.import_module(name)
        if not fromlist:
            return module if level else self.import_module(name.partition(".")[0])
        for each in fromlist:
            if each != "*" and not hasattr(module, each) and self._path(f"{name}.{each}") is not None:
                self.import_module(f"{name}.{each}")
        return module

    def get_source(self, module_name: str) -> str:
        """The source of a module of the archive."""
        path = self._path(demangle(module_name))
        if path is None:
            raise ModuleNotFoundError(f"no source for module {module_name!r} in {self.filename}", name=module_name)
        return self._archive.read(path).decode()

    def get_resource_reader(self, fullname: str) -> Any:
        """What `importlib.resources` reads a package of the archive with."""
        return _Resources(self, demangle(fullname))


def _own_name(name: str) -> str:
    """Flambeau's name of a module, where an archive says `torch`."""
    return f"flambeau{name[5:]}" if name == "torch" or name.startswith("torch.") else name


class _Unpickler(pickle.Unpickler):
    """Finds classes in the archive first, and storages among its records."""

    def __init__(self, content: bytes, importer: PackageImporter, storages: Storages) -> None:
        super().__init__(io.BytesIO(content))
        self._importer = importer
        self._storages = storages

    def find_class(self, module: str, name: str) -> Any:
        if self._importer._path(module) is None and module.partition(".")[0] == "torch":
            return object_named(module, name)
        found: Any = self._importer.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
        return found

    def persistent_load(self, pid: Any) -> Any:
        return self._storages.persistent_load(pid)


class _Resources:
    """The files of one package of an archive."""

    def __init__(self, importer: PackageImporter, package: str) -> None:
        self._importer = importer
        self._package = package

    def open_resource(self, resource: str) -> IO[bytes]:
        """A file."""
        return io.BytesIO(self._importer.load_binary(self._package, resource))

    def is_resource(self, path: str) -> bool:
        """Whether there is such a file."""
        return self._importer._archive.has(f"{self._package.replace('.', '/')}/{path}")

    def contents(self) -> list[str]:
        """The names of the files and folders."""
        folder = f"{self._package.replace('.', '/')}/"
        return sorted({each[len(folder) :].partition("/")[0] for each in self._importer._archive.names(folder)})
