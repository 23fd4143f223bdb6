"""The folders of the package stand in an order, and none imports what is above it, inside functions neither."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "flambeau"

ORDER = ("_core", "_codegen", "_backends", "_dispatch", "_ops", "autograd", "compiler")
"""From the bottom up. All else is public, and on top."""


def _rank(folder: str) -> int:
    return ORDER.index(folder) if folder in ORDER else len(ORDER)


def _is_part(name: str) -> bool:
    folders = (PACKAGE, PACKAGE / "_torch")
    return any((folder / name).is_dir() or (folder / f"{name}.py").is_file() for folder in folders)


def _last_name(function: ast.expr) -> str | None:
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else None


def _imported(tree: ast.AST, package: tuple[str, ...]) -> Iterator[str]:
    """The full names of what a module of `package` imports, by statements and by `import_module`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) + 1 - node.level] if node.level else ()
            base = ".".join((*above, *([node.module] if node.module else [])))
            yield from (f"{base}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Call) and _last_name(node.func) == "import_module" and node.args:
            name = node.args[0]
            first = name.values[0] if isinstance(name, ast.JoinedStr) else name
            if isinstance(first, ast.Constant) and isinstance(first.value, str):
                yield first.value


def _upwards(source: str, path: str) -> set[tuple[str, str]]:
    """The imports upwards of the file at `path` in the package: the file, and the folder that it imports from."""
    *folders, _ = path.split("/")
    rank = _rank(folders[0] if folders else "")
    found = set()
    for name in _imported(ast.parse(source), ("flambeau", *folders)):
        package, *parts = name.split(".")
        if package == "flambeau" and parts and _is_part(parts[0]) and _rank(parts[0]) > rank:
            found.add((path, parts[0]))
    return found


def test_no_folder_imports_what_is_above_it() -> None:
    found: set[tuple[str, str]] = set()
    for folder in ORDER:  # nothing is above the others
        for file in sorted((PACKAGE / folder).rglob("*.py")):
            found |= _upwards(file.read_text(encoding="utf-8"), file.relative_to(PACKAGE).as_posix())
    assert found == set(), "imports upwards: call through `_core/slots.py`, or move what is imported"


def test_no_folder_imports_the_face_of_the_package() -> None:
    """What users call is on top, and imports all of it: the engine imports what is behind the names."""
    found = set()
    for folder in ORDER:
        for file in sorted((PACKAGE / folder).rglob("*.py")):
            path = file.relative_to(PACKAGE).as_posix()
            for name in _imported(ast.parse(file.read_text(encoding="utf-8")), ("flambeau", *path.split("/")[:-1])):
                package, *parts = name.split(".")
                if package == "flambeau" and not (parts and _is_part(parts[0])):
                    found.add(f"{path}: {name}")
    assert found == set()


def test_imports_upwards_are_seen() -> None:
    statements = (
        "from .._ops.shape import view",
        "from flambeau._ops import shape",
        "from .. import _ops",
        "import flambeau._ops.shape.view",
        "def late():\n    from .._ops.shape.parts import narrow",
        "importlib.import_module('flambeau._ops.shape')",
        "import_module(f'flambeau._ops.{family}')",
    )
    for statement in statements:
        assert _upwards(statement, "_core/tensor.py") == {("_core/tensor.py", "_ops")}, statement
        assert _upwards(statement, "_ops/create.py" if ".." not in statement else "nn/x.py") == set(), statement
    engine = "_codegen/machine/engine.py"
    assert _upwards("from ...version import PYTORCH", engine) == {(engine, "version")}


def test_ops_name_no_tier() -> None:
    """Which of the CPU's kernels run is the backends' affair: ops have lowerings, and call functions on arrays."""
    for folder in ("_core", "_dispatch", "_ops"):
        for file in sorted((PACKAGE / folder).rglob("*.py")):
            source = file.read_text(encoding="utf-8")
            if "_backends" not in source:  # nor can it import them
                continue
            path = file.relative_to(PACKAGE).as_posix()
            imported = set(_imported(ast.parse(source), ("flambeau", *path.split("/")[:-1])))
            named = {name for name in imported if name.startswith("flambeau._backends.")}
            allowed = ("flambeau._backends.arrays", "flambeau._backends.lapack")
            wrong = {name for name in named if not name.startswith((*allowed, "flambeau._backends.cpu.linalg.blas"))}
            assert not wrong, f"{path} imports {sorted(wrong)}"
