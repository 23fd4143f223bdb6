"""Source files as pages, so that each page of the reference links to the lines that define what it describes."""

from __future__ import annotations

import functools
import html
import inspect
import keyword
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
FOLDER = "_source"
_PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>{name}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="{up}_static/logo.svg">
<style>body{{font:15px/1.5 sans-serif;margin:1.5rem}} pre{{line-height:1.45;overflow-x:auto}} pre i{{font-style:normal}}
:target{{background:#ffd54f66}} .k{{color:#8250df}} .s{{color:#0a5c2e}} .c{{color:#59636e}} .d{{color:#b3440c}}
@media (prefers-color-scheme:dark){{body{{background:#14181e;color:#ced6dd}} a{{color:#6cb6ff}}
.k{{color:#c297ff}} .s{{color:#8fd19e}} .c{{color:#8d96a0}} .d{{color:#ffa94d}}}}</style></head>
<body><p><a href="{up}index.html">Flambeau</a> / {name}</p><pre>{code}</pre></body></html>
"""
_STRING = r'''[rbfRBF]{0,2}(?:"""[\s\S]*?"""|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\')'''
_TOKEN = re.compile(
    rf"(?P<s>{_STRING})|(?P<c>#[^\n]*)|(?<=\bdef )(?P<d>\w+)|(?<=\bclass )(?P<e>\w+)"
    rf"|(?P<k>\b(?:{'|'.join(keyword.kwlist)})\b)"
)
"""The words of a file that have a colour. Pygments tells more kinds apart, and took a third of the time of a build."""
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
    page = f"../{FOLDER}/{path.relative_to(ROOT).as_posix()}.html#line-{line}"
    return f'· <a class="reference internal" href="{page}">source</a>'


def definition(value: Any) -> tuple[Path, int] | None:
    """The file and line that define a function or class: of a generated function, those of the body it calls."""
    value = inspect.unwrap(value)
    op = getattr(value, "op", None)
    bodies = (value, getattr(op, "body", None), getattr(op, "kernel", None))
    return next(filter(None, map(_place, bodies)), None)


def _place(value: Any) -> tuple[Path, int] | None:
    if inspect.isclass(value):  # whose module may be another, as that of `Tensor`: a method knows the file
        parts = (value, *(each for each in vars(value).values() if inspect.isfunction(each)))
        paths = filter(None, map(_path, parts))
        return next(((path, line) for path in paths if (line := _classes(path).get(value.__name__))), None)
    path = _path(value)
    return (path, value.__code__.co_firstlineno) if path and hasattr(value, "__code__") else None


def _path(value: Any) -> Path | None:
    try:
        path = Path(inspect.getsourcefile(value) or "")
    except TypeError:
        return None
    return path if path.is_file() and path.is_relative_to(ROOT) else None


@functools.cache
def _classes(path: Path) -> dict[str, int]:
    """The lines on which the classes of a file begin."""
    text = path.read_text(encoding="utf-8")
    return {
        each[1]: text.count("\n", 0, each.start()) + 1 for each in re.finditer(r"^ *class (\w+)", text, re.MULTILINE)
    }


def _write(app: Any, exception: Exception | None) -> None:
    if exception is not None or app.builder.name != "html":
        return
    for path in sorted(_linked):
        name = path.relative_to(ROOT).as_posix()
        into = Path(app.outdir) / FOLDER / f"{name}.html"
        into.parent.mkdir(parents=True, exist_ok=True)
        up = "../" * (name.count("/") + 1)
        into.write_text(_PAGE.format(name=name, up=up, code=_coloured(path)), encoding="utf-8")


def _coloured(path: Path) -> str:
    """The lines of a file as HTML, each with its number as anchor."""
    text = html.escape(path.read_text(encoding="utf-8"), quote=False)
    lines = _TOKEN.sub(_colour, text).splitlines()
    return "\n".join(f'<i id="line-{number}">{line}</i>' for number, line in enumerate(lines, 1))


def _colour(found: re.Match[str]) -> str:
    kind = "d" if found.lastgroup == "e" else found.lastgroup
    return "\n".join(f'<i class="{kind}">{line}</i>' for line in found[0].split("\n"))
