"""Source files as pages, so that each page of the reference links to the lines that define what it describes."""

from __future__ import annotations

import functools
import inspect
from pathlib import Path
from typing import Any

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

ROOT = Path(__file__).parents[2]
FOLDER = "_source"
_PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>{name}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>body{{font:15px/1.5 sans-serif;margin:1.5rem}} pre{{line-height:1.45;overflow-x:auto}}
:target{{background:#ffd54f66;display:block}} {style}
@media (prefers-color-scheme:dark){{body{{background:#14181e;color:#ced6dd}} a{{color:#6cb6ff}} {dark}}}</style></head>
<body><p><a href="{up}index.html">Flambeau</a> / {name}</p>{code}</body></html>
"""
_linked: set[Path] = set()


def setup(app: Any) -> dict[str, Any]:
    """Called by Sphinx."""
    app.connect("build-finished", _write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def source_link(value: Any) -> str:
    """A link to the lines that define a function or class; nothing for what has no source in the package."""
    found = definition(value)
    if found is None:
        return ""
    path, line = found
    _linked.add(path)
    return f'· <a href="../{FOLDER}/{path.relative_to(ROOT).as_posix()}.html#line-{line}">source</a>'


def definition(value: Any) -> tuple[Path, int] | None:
    """The file and line that define a function or class: of a generated function, those of the body it calls."""
    value = inspect.unwrap(value)
    op = getattr(value, "op", None)
    bodies = (value, getattr(op, "body", None), getattr(op, "kernel", None))
    return next(filter(None, map(_place, bodies)), None)


def _place(value: Any) -> tuple[Path, int] | None:
    try:
        path = Path(inspect.getsourcefile(value) or "")
        line = inspect.getsourcelines(value)[1]
    except (TypeError, OSError):
        return None
    return (path, line) if path.is_file() and path.is_relative_to(ROOT) else None


def _write(app: Any, exception: Exception | None) -> None:
    if exception is not None or app.builder.name != "html":
        return
    light, dark = (_formatter(each).get_style_defs(".highlight") for each in ("default", "github-dark"))
    for path in sorted(_linked):
        name = path.relative_to(ROOT).as_posix()
        into = Path(app.outdir) / FOLDER / f"{name}.html"
        if into.exists() and into.stat().st_mtime > path.stat().st_mtime:
            continue
        into.parent.mkdir(parents=True, exist_ok=True)
        code = highlight(path.read_text(encoding="utf-8"), PythonLexer(), _formatter("default"))
        up = "../" * (name.count("/") + 1)
        into.write_text(_PAGE.format(name=name, up=up, code=code, style=light, dark=dark), encoding="utf-8")


@functools.cache
def _formatter(style: str) -> Any:
    return HtmlFormatter(style=style, linespans="line")
