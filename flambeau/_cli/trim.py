"""`flambeau trim`: make the installation smaller."""

from __future__ import annotations

import argparse
import contextlib
import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from importlib import metadata
from pathlib import Path, PurePath

from .._backends.cpu.runtime.library_copies import link_copies
from .._codegen.ir import LIBRARY_WITHOUT_EXCEPTIONS
from .library_tables import make_smaller, without_symbols, without_unwinding
from .terminal import readable_size, say

SUMMARY = "make the installation smaller by what no program needs when it runs"
DESCRIPTION = (
    "Replace equal copies of the kernel library by links to one of them, take out of the shared libraries of the "
    "packages that Flambeau requires what only debuggers read (symbol tables, and where no exception is caught the "
    "tables by which the stack is unwound), and remove the tests of these packages. It changes no result and no speed, "
    "can be run again at any time, and pip removes the packages as before."
)
_OF_DEVELOPERS = (".pyi", ".h", ".a", ".pxd", ".pyx")
_IMPORTED_BY_TESTS = "_simd."  # NumPy's vector instructions, one by one
_IMPORT_OF_TESTS = re.compile(rb"^\s*(?:from|import)\s[^#\n]*\b(?:tests|_simd)\b.*", re.MULTILINE)
_FROM_A_MODULE = re.compile(rb"\s*from\s+(\w[\w.]*\.tests\.[\w.]+)\s+import\s")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the option of `flambeau trim`."""
    parser.add_argument(
        "--development",
        action="store_true",
        help="also remove what only editors, type checkers and compilers of extensions read: stub files, headers, "
        "static libraries",
    )


def run(arguments: argparse.Namespace) -> int:
    """Make the installation smaller, and say what that freed."""
    library, linked = link_copies()
    packages = [_files(name) for name in _required()]
    libraries = [path for files in packages for path in files.values() if _is_library(path)]
    freed = {
        f"copies of {library}": linked,
        "symbol tables": sum(make_smaller(path, without_symbols) for path in libraries),
        "unwind tables": sum(make_smaller(path, _without_unwinding(path)) for path in libraries),
        "tests of packages": sum(_remove(_tests(files)) for files in packages),
    }
    if arguments.development:
        read = [path for files in (*packages, _files("flambeau")) for path in files.values() if path.is_file()]
        freed["files for development"] = _remove(path for path in read if path.suffix in _OF_DEVELOPERS)
    for what, size in freed.items():
        if size:
            say(f"{readable_size(size):>8}  {what}")
    say(f"{readable_size(sum(freed.values()))} freed." if any(freed.values()) else "There is nothing to trim.")
    return 0


def _required() -> Iterator[str]:
    """The packages that Flambeau requires and that are installed."""
    lines = [line for line in metadata.requires("flambeau") or () if "extra ==" not in line]
    for name in dict.fromkeys(re.split(r"[^\w.-]", line, maxsplit=1)[0] for line in lines):  # once for several systems
        with contextlib.suppress(metadata.PackageNotFoundError):
            yield metadata.distribution(name).name


def _files(name: str) -> dict[PurePath, Path]:
    """Where the files of an installed package are, by the names under which it lists them; an editable one has none."""
    located = ((each, Path(str(each.locate()))) for each in metadata.files(name) or ())
    return {each: path for each, path in located if path.is_file() and not path.is_symlink()}


def _without_unwinding(path: Path) -> Callable[[bytes], bytes | None]:
    return partial(without_unwinding, catches_nothing=path.name == LIBRARY_WITHOUT_EXCEPTIONS)


def _is_library(path: Path) -> bool:
    return ".so" in path.suffixes


def _tests(files: dict[PurePath, Path]) -> list[Path]:
    """A package's tests, and modules that they alone import, without those that its other files import."""
    tests = {
        name
        for name in files
        if "tests" in name.parts or name.name == "conftest.py" or name.name.startswith(_IMPORTED_BY_TESTS)
    }
    read = [name for name in files if name.suffix == ".py" and name not in tests]
    while read:
        for line in _IMPORT_OF_TESTS.findall(files[read.pop()].read_bytes()):
            module = _FROM_A_MODULE.match(line)
            path = PurePath(*module[1].decode().split(".")).with_suffix(".py") if module else PurePath()
            if path not in files:
                return []  # any of them may be meant
            imported = tests & {path, *(folder / "__init__.py" for folder in path.parents)}
            tests -= imported
            read += imported
    return [files[name] for name in tests]


def _remove(files: Iterable[Path]) -> int:
    """Remove files, with their folders where they leave nothing; the bytes that this frees."""
    freed = 0
    for file in files:
        freed += file.stat().st_size
        file.unlink()
        folder = file.parent
        while not any(folder.iterdir()):
            folder.rmdir()
            folder = folder.parent
    return freed
