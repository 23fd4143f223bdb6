"""Which modules a piece of source imports."""

from __future__ import annotations

import ast


def find_files_source_depends_on(src: str, package: str) -> list[tuple[str, str | None]]:
    """Pairs of a module and, for `from module import name`, the name, which may be a module too."""
    found: dict[tuple[str, str | None], bool] = {}
    for node in sorted(_imports(ast.parse(src)), key=lambda each: (each.lineno, each.col_offset)):
        if isinstance(node, ast.Import):
            found.update({(alias.name, None): True for alias in node.names})
        elif isinstance(node, ast.ImportFrom):
            module = _absolute(node.module, node.level, package)
            found.update({(module, alias.name): True for alias in node.names})
        else:
            name = node.args[0]
            if isinstance(name, ast.Constant) and isinstance(name.value, str):
                found[(name.value, None)] = True
    return list(found)


def _imports(tree: ast.AST) -> list[ast.Import | ast.ImportFrom | ast.Call]:
    kept: list[ast.Import | ast.ImportFrom | ast.Call] = []
    for node in ast.walk(tree):
        is_call = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "__import__"
        if isinstance(node, (ast.Import, ast.ImportFrom)) or (is_call and isinstance(node, ast.Call) and node.args):
            kept.append(node)
    return kept


def _absolute(module: str | None, level: int, package: str) -> str:
    if not level:
        return module or ""
    parts = package.split(".")
    above = parts[: len(parts) - level + 1]
    return ".".join([*above, module] if module else above)
