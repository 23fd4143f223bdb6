"""The order of the public packages, circles of imports, files in a folder: lists and counts that only shrink."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "flambeau"

ENGINE = ("_core", "_codegen", "_backends", "_dispatch", "_ops", "autograd", "compiler")
"""Ranked by `test_layers.py`; the public packages are above it."""

FLOORS = (
    "__future__", "_custom_ops", "_environment", "_lobpcg", "_logging", "_linalg_utils", "_prims_common", "_refs",
    "_sources", "_tensor_str", "_utils_internal", "_VF", "classes", "_classes", "fft", "linalg", "monitor", "mps",
    "mtia", "numa", "quasirandom", "return_types", "signal", "sparse", "special", "testing", "types", "version", "xpu",
    "functional", "overrides", "futures", "torch_version", "_wiring", "__init__", "amp", "cuda", "random", "backends",
    "__config__", "cpu", "_serialization", "serialization", "hub", "nn", "models", "_lowrank", "storage", "jit",
    "optim", "_tensor", "_higher_order_ops", "ops", "library", "_library", "safetensors", "_stand_in", "utils", "func",
    "_subclasses", "_guards", "_vmap_internals", "as_torch", "_rare_names", "masked", "profiler", "_C", "package",
    "onnx", "fx", "export", "_inductor", "ao", "quantization", "_decomp", "_functorch", "_dynamo", "nested",
    "accelerator", "distributed", "distributions", "multiprocessing", "_learn", "_cli", "__main__", "_jit_internal",
    "_utils", "_compile", "functorch", "_operators",
)  # fmt: skip
"""The public packages from the bottom up: each imports those before it."""

UPWARD = {"_serialization -> nn", "cuda -> nn", "nn -> distributed", "nn -> utils"}
"""The imports against that order. Mend one and take it out; do not add to them."""

CIRCLES: set[str] = set()
"""Circles of more than four files that import each other as they load."""

LATE_CIRCLES: list[int] = []
"""Sizes of the circles of more than four files if imports inside functions count."""

MOST_FILES = 25
"""Of a folder of the engine."""


def _name(path: Path) -> str:
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts) or "__init__"


MODULES = {_name(path): path for path in sorted(PACKAGE.rglob("*.py"))}


def _is_for_types(test: ast.expr) -> bool:
    return isinstance(test, ast.Name) and test.id == "TYPE_CHECKING"


def _imports(body: Iterable[ast.stmt], late: bool) -> Iterator[ast.Import | ast.ImportFrom]:
    """The import statements that run: with `late`, those inside functions too; those for the type checker never."""
    for statement in body:
        if isinstance(statement, (ast.Import, ast.ImportFrom)):
            yield statement
        elif isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield from _imports(statement.body, late) if late else ()
        else:
            if not (isinstance(statement, ast.If) and _is_for_types(statement.test)):
                yield from _imports(getattr(statement, "body", ()), late)
            for field in ("orelse", "finalbody", "handlers", "cases"):
                yield from _imports(getattr(statement, field, ()), late)


def _targets(statement: ast.Import | ast.ImportFrom, package: list[str]) -> Iterator[str]:
    """The modules of the package that a statement names, without the package's own name."""
    if isinstance(statement, ast.Import):
        full = [alias.name for alias in statement.names]
    else:
        above = package[: len(package) + 1 - statement.level] if statement.level else []
        base = ".".join([*above, *([statement.module] if statement.module else [])])
        full = [f"{base}.{alias.name}" for alias in statement.names]
    for name in full:
        parts = name.split(".")
        while len(parts) > 1 and ".".join(parts[1:]) not in MODULES:
            parts.pop()
        if parts[0] == "flambeau" and len(parts) > 1:
            yield ".".join(parts[1:])


@cache
def _bodies() -> dict[str, list[ast.stmt]]:
    return {name: ast.parse(path.read_text(encoding="utf-8")).body for name, path in MODULES.items()}


@cache
def _graph(late: bool) -> dict[str, set[str]]:
    """For each module those that it imports."""
    found = {}
    for name, path in MODULES.items():
        package = ["flambeau", *path.relative_to(PACKAGE).parts[:-1]]
        statements = _imports(_bodies()[name], late)
        found[name] = {target for each in statements for target in _targets(each, package)} - {name}
    return found


def _circles(graph: dict[str, set[str]]) -> list[list[str]]:
    """The largest sets of modules that all reach each other, by Tarjan's method without recursion."""
    number: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    found = []
    for start, first in graph.items():
        work = [(start, iter(first))] if start not in number else []
        while work:
            node, rest = work[-1]
            if node not in number:
                number[node] = lowest[node] = len(number)
                stack.append(node)
            for other in rest:
                if other not in number:
                    work.append((other, iter(graph[other])))
                    break
                if other in stack:
                    lowest[node] = min(lowest[node], number[other])
            else:
                work.pop()
                if work:
                    lowest[work[-1][0]] = min(lowest[work[-1][0]], lowest[node])
                if lowest[node] == number[node]:
                    place = stack.index(node)
                    found.append(sorted(stack[place:]))
                    del stack[place:]
    return [circle for circle in found if len(circle) > 1]


def _room(module: str) -> str:
    """The public package that a module belongs to; PyTorch's private modules are packages of their own."""
    parts = module.split(".")
    return parts[1] if parts[0] == "_torch" and len(parts) > 1 else parts[0]


def picture() -> str:
    """The folders of the engine from the top down, each with those that it imports, for docs/design.md."""
    arrows: dict[str, set[str]] = {room: set() for room in (*ENGINE, "public packages")}
    for module, targets in _graph(late=True).items():
        room = _room(module) if _room(module) in ENGINE else "public packages"
        arrows[room] |= {_room(target) for target in targets} & set(ENGINE) - {room}
    rows = []
    for room in ("public packages", *reversed(ENGINE)):
        below = [other for other in reversed(ENGINE) if other in arrows[room]]
        rows.append(f"{room:>15}  {'-> ' + '  '.join(below) if below else ''}".rstrip())
    return "\n".join(rows)


def test_the_picture_of_the_engine() -> None:
    page = (PACKAGE.parent / "docs" / "design.md").read_text(encoding="utf-8")
    assert picture() in page, f"put this into docs/design.md:\n{picture()}"


def test_every_public_package_has_a_floor() -> None:
    rooms = {_room(module) for module in MODULES} - {*ENGINE, "_torch"}
    assert rooms - set(FLOORS) == set(), "give it a place in FLOORS"
    assert len(set(FLOORS)) == len(FLOORS)


def test_public_packages_import_downwards() -> None:
    floors = {room: number for number, room in enumerate(FLOORS)}
    found = set()
    for module, targets in _graph(late=True).items():
        room = _room(module)
        found |= {
            f"{room} -> {_room(target)}"
            for target in targets
            if room in floors and floors.get(_room(target), -1) > floors[room]
        }
    assert found - UPWARD == set(), "an import against the order of FLOORS: move what is imported"
    assert UPWARD - found == set(), "mended: take it out of UPWARD"


def test_circles_of_imports() -> None:
    large = {" ".join(circle) for circle in _circles(_graph(late=False)) if len(circle) > 4}
    assert large == CIRCLES


def test_circles_of_late_imports() -> None:
    sizes = sorted((len(circle) for circle in _circles(_graph(late=True)) if len(circle) > 4), reverse=True)
    assert sizes <= LATE_CIRCLES
    assert sum(sizes) <= sum(LATE_CIRCLES)


def test_circles_are_found() -> None:
    graph = {"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": {"e"}, "e": {"d"}, "f": {"a"}}
    assert sorted(_circles(graph)) == [["a", "b", "c"], ["d", "e"]]


def test_folders_of_the_engine_are_small() -> None:
    counts: dict[str, int] = {}
    for path in MODULES.values():
        folder = path.parent.relative_to(PACKAGE).as_posix()
        if folder.split("/")[0] in ENGINE and path.name != "__init__.py":
            counts[folder] = counts.get(folder, 0) + 1
    assert {folder: count for folder, count in counts.items() if count > MOST_FILES} == {}
