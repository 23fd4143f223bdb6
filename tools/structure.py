"""The structure of the package: which file imports which, as lists, as the table and as the picture of docs/design.md.

    python -m tools.structure          # writes docs/structure.svg, and prints the table

Rooms are folders, arrows are imports; those inside functions count, those for the type checker do not.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from html import escape
from math import log2
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1] / "flambeau"
PICTURE = PACKAGE.parent / "docs" / "structure.svg"

ENGINE = ("_core", "_codegen", "_backends", "_dispatch", "_ops", "autograd", "compiler")
"""Ranked by `tests/test_layers.py`; the public packages are above it."""

PUBLIC = "public packages"


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
def graph(late: bool) -> dict[str, set[str]]:
    """For each module those that it imports."""
    found = {}
    for name, path in MODULES.items():
        package = ["flambeau", *path.relative_to(PACKAGE).parts[:-1]]
        statements = _imports(_bodies()[name], late)
        found[name] = {target for each in statements for target in _targets(each, package)} - {name}
    return found


def circles(graph: dict[str, set[str]]) -> list[list[str]]:
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


def room_of(module: str) -> str:
    """The public package that a module belongs to; PyTorch's private modules are packages of their own."""
    parts = module.split(".")
    return parts[1] if parts[0] == "_torch" and len(parts) > 1 else parts[0]


def arrows() -> Counter[tuple[str, str]]:
    """How many imports lead from one floor to another: each package of the engine, and the public ones as one."""
    found: Counter[tuple[str, str]] = Counter()
    for module, targets in graph(late=True).items():
        found.update((_floor(module), _floor(target)) for target in targets if _floor(module) != _floor(target))
    return found


def _floor(module: str) -> str:
    return room_of(module) if room_of(module) in ENGINE else PUBLIC


def table() -> str:
    """The folders of the engine from the top down, each with those that it imports, for docs/design.md."""
    leading = {(source, target) for source, target in arrows() if target != PUBLIC}
    rows = []
    for source in (PUBLIC, *reversed(ENGINE)):
        below = [target for target in reversed(ENGINE) if (source, target) in leading]
        rows.append(f"{source:>15}  {'-> ' + '  '.join(below) if below else ''}".rstrip())
    return "\n".join(rows)


def rooms() -> dict[str, dict[str, tuple[int, int]]]:
    """For each floor its rooms, each with its files and lines: folders of the engine, public packages."""
    found: dict[str, dict[str, tuple[int, int]]] = {floor: {} for floor in (PUBLIC, *reversed(ENGINE))}
    for module, path in MODULES.items():
        floor, parts = _floor(module), path.relative_to(PACKAGE).parts
        if floor == PUBLIC:
            name = parts[0] if len(parts) > 1 else OWN_FILES
        else:
            name = parts[1] if len(parts) > 2 else OWN_FILES
        files, lines = found[floor].get(name, (0, 0))
        found[floor][name] = files + 1, lines + path.read_text(encoding="utf-8").count("\n")
    return found


OWN_FILES = "own files"
"""The room of the files that are in no folder of their floor."""

# ----- the picture ------------------------------------------------------------------------------------------------

_WIDTH, _MARGIN, _ROOMS = 1000, 8, (160, 760)
"""Of the picture; its edge; where the rooms of a floor begin and end."""
_ROW, _GAP, _ACROSS = 22, 4, 6.3
"""The height of a room, what is between two, and the width of a character."""
_FEW = 4
"""Public packages of fewer files share a room."""
_INK, _PAPER, _FLOOR, _UP = "#222222", "#ffffff", "#f2f4f5", "#c0392b"
_COLORS = ("#8a6d3b", "#2a7f86", "#5b5ea6", "#9b2335", "#557a2b", "#7d4f9e", "#b35a1f", "#44607c")


def svg() -> str:
    """The picture: floors of rooms one above the other, and at their right side the imports, thicker where many."""
    top, places, parts = 40.0, {}, []
    for number, (floor, inside) in enumerate(rooms().items()):
        boxes, height = _boxes(_joined(inside), top + _GAP)
        files, lines = (sum(each) for each in zip(*inside.values(), strict=True))
        parts += [
            f'<rect x="{_MARGIN}" y="{top:.0f}" width="{_ROOMS[1]}" height="{height:.0f}" fill="{_FLOOR}"/>',
            f'<text x="16" y="{top + 18:.0f}" font-weight="bold" fill="{_COLORS[number]}">{floor}</text>',
            f'<text x="16" y="{top + 33:.0f}" font-size="10">{files} files, {lines // 1000},000 lines</text>',
            *boxes,
        ]
        places[floor] = number, top + 12, top + height - 12
        top += height + 10
    for (source, target), count in sorted(arrows().items()):
        parts.append(_arrow(source, target, count, places))
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {top:.0f}" role="img" '
        f'font-family="Helvetica, Arial, sans-serif" font-size="11" fill="{_INK}">'
    )
    title = "Folders of the package, and which imports which"
    paper = f'<rect width="{_WIDTH}" height="{top:.0f}" fill="{_PAPER}"/>'
    shown = f'<text x="16" y="24" font-size="15">{title}</text>'
    return "\n".join([head, f"<title>{title}</title>", paper, shown, *parts, "</svg>", ""])


def _joined(inside: dict[str, tuple[int, int]]) -> list[tuple[str, int, int]]:
    """Name, files, lines of the rooms, the largest first; small ones of a full floor as one."""
    small = {name for name, (files, _) in inside.items() if files < _FEW} if len(inside) > 20 else set()
    found = [(name, *counts) for name, counts in inside.items() if name not in small]
    found.sort(key=lambda each: (each[0] == OWN_FILES, -each[2]))
    if small:
        files, lines = (sum(inside[name][which] for name in small) for which in (0, 1))
        found.append((f"{len(small)} smaller ones", files, lines))
    return found


def _boxes(found: list[tuple[str, int, int]], top: float) -> tuple[list[str], float]:
    """The rooms of a floor from left to right in as many rows as they need, and the height of the floor."""
    x, y, parts = float(_ROOMS[0]), top, []
    for name, files, lines in found:
        label = f"{name} {files}"
        width = len(label) * _ACROSS + 12
        if x + width > _ROOMS[1]:
            x, y = float(_ROOMS[0]), y + _ROW + _GAP
        parts.append(
            f"<g><title>{escape(name)}: {files} files, {_thousands(lines)}</title>"
            f'<rect x="{x:.0f}" y="{y:.0f}" width="{width:.0f}" height="{_ROW}" rx="3" fill="{_PAPER}" '
            'stroke="#c4c9cc"/>'
            f'<text x="{x + 6:.0f}" y="{y + 15:.0f}">{escape(name)} <tspan fill="#7a8288">{files}</tspan></text></g>'
        )
        x += width + _GAP
    return parts, max(y + _ROW + _GAP - top + _GAP, 42)


def _thousands(lines: int) -> str:
    return f"{lines:,} lines" if lines < 1000 else f"{round(lines / 1000)} thousand lines"


def _arrow(source: str, target: str, count: int, places: dict[str, tuple[int, float, float]]) -> str:
    """A bow at the right side, from one floor to another. It ends higher up the nearer the two are."""
    (start, start_top, start_bottom), (end, end_top, end_bottom) = places[source], places[target]
    span, last = abs(end - start), len(places) - 1
    leaves = start_bottom - (start_bottom - start_top) * (span - 1) / last
    arrives = end_top + (end_bottom - end_top) * (span - 1) / last
    x = _MARGIN + _ROOMS[1]
    bend = x + 34 * span
    color = _COLORS[start] if end > start else _UP
    return (
        f"<g><title>{source} imports {target}: {count} times</title>"
        f'<path d="M{x} {leaves:.0f}C{bend} {leaves:.0f} {bend} {arrives:.0f} {x + 7} {arrives:.0f}" fill="none" '
        f'stroke="{color}" stroke-opacity=".75" stroke-width="{0.6 + log2(count + 1) / 2.5:.1f}"/>'
        f'<path d="M{x} {arrives:.0f}l8 -4v8z" fill="{color}"/></g>'
    )


def main() -> None:
    """Write the picture, print the table."""
    PICTURE.write_text(svg(), encoding="utf-8")
    print(table())
    print(f"{len(MODULES)} files, {sum(arrows().values())} imports between floors")


if __name__ == "__main__":
    main()
