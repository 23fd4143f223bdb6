"""The API reference: a page for each public module, class and function.

Those of modules are Markdown, written before Sphinx reads pages; `object_pages` makes HTML of the others.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from flambeau._dispatch.public.docstrings.examples import as_method

from .modules import GROUPS, HELPERS, HIDDEN
from .source_pages import source_link

PACKAGE = "flambeau"
_SECTION = re.compile(r"^(Args|Shape|Returns|Yields|Raises|Attributes|Note|Example|Examples):$", re.MULTILINE)
_ENTRY = re.compile(r"^    (\*{0,2}\w[\w, ]*?)( \(.*?\))?: ?", re.MULTILINE)
_LISTS = ("Args", "Shape", "Raises", "Attributes")
_TITLES = {"Args": "Parameters", "Example": "Examples"}


class Member(NamedTuple):
    """What a page describes: a function, a class, or one of its methods."""

    kind: str
    name: str
    signature: str
    text: str
    """Its docstring as Markdown."""


class Page(NamedTuple):
    """A page of the reference: the object it is about, and its methods where it is a class."""

    name: str
    title: str
    parent: str
    source: str
    """HTML of the link to the source, or nothing."""
    members: list[Member]


class Entry(NamedTuple):
    """A public object: its full name, and the object itself."""

    name: str
    value: Any

    @property
    def page(self) -> str:
        """Its page's name; upper and lower case differ in Python, not on every file system."""
        return self.name + ("-class" if inspect.isclass(self.value) else "")

    @property
    def kind(self) -> str:
        """What Sphinx calls it."""
        if inspect.isclass(self.value):
            return "class"
        return "method" if self.name.startswith(f"{PACKAGE}.Tensor.") else "function"


def write(folder: Path) -> list[Page]:
    """Write the pages of modules below `folder`, and return those of what they hold.

    Files that would not change are left alone, so that Sphinx need not read them.
    """
    folder.mkdir(exist_ok=True)
    texts, pages = {"index.md": _index()}, []
    for module in (each for modules in GROUPS.values() for each in modules):
        entries = list(public_entries(module))
        texts[f"{_full(module)}.md"] = _module_page(module, entries)
        pages += [_object_page(entry, module) for entry in entries]
    for stale in {each.name for each in folder.glob("*.md")} - set(texts):
        (folder / stale).unlink()
    for name, text in texts.items():
        path = folder / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
    return pages


def public_entries(module: str) -> Iterator[Entry]:
    """The callables that a module, or the class `Tensor`, lists as public."""
    home = _home(module)
    names = getattr(home, "__all__", None) or [each for each in dir(home) if not each.startswith("_")]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in sorted(set(names), key=str.lower):
            value = getattr(home, name, None)
            value = on_a_device(value, name)
            hidden = name.startswith("_") or name in HIDDEN or f"{module}.{name}" in HELPERS
            if callable(value) and not isinstance(value, ModuleType) and _is_shown(value) and not hidden:
                yield Entry(f"{_full(module)}.{name}", value)


def on_a_device(value: Any, name: str) -> Any:
    """What a function of `torch.cuda` is where there is a device: without one, another stands in for it."""
    for module in getattr(value, "__device_modules__", "").split():
        found = getattr(importlib.import_module(f"{PACKAGE}.cuda.{module}"), name, None)
        if found is not None:
            return found
    return value


def documented(value: Any) -> Any:
    """What has the docstring of a public object: of an instance that can be called, its `__call__`."""
    others = (functools.partial, ModuleType)
    is_instance = not (inspect.isclass(value) or inspect.isroutine(value) or isinstance(value, others))
    return type(value).__call__ if is_instance else value


def _full(module: str) -> str:
    return f"{PACKAGE}.{module}" if module else PACKAGE


def _home(module: str) -> Any:
    return importlib.import_module(PACKAGE).Tensor if module == "Tensor" else importlib.import_module(_full(module))


def _is_shown(value: Any) -> bool:
    """Whether the package defines it, and it can be used: what a module merely imports (`Any`) is left out."""
    module = str(getattr(value, "__module__", None) or PACKAGE)
    ours = module.partition(".")[0] in (PACKAGE, "torch") and not module.startswith(f"{PACKAGE}._core.names")
    return ours and not hasattr(value, "__unusable__")


def _doc(value: Any) -> str:
    own, called = inspect.getdoc(value) or "", documented(value)
    if called is value:
        return own
    return f"{own}\n\n{inspect.getdoc(called) or ''}"


def _summary(value: Any) -> str:
    """The first paragraph of a docstring, on one line of a table."""
    return " ".join(_doc(value).split("\n\n")[0].split()).replace("|", "\\|")


def _index() -> str:
    lines = ["# API reference", "", "Every public module, class and function; `import flambeau as torch`.", ""]
    for group, modules in GROUPS.items():
        lines += [f"## {group}", "", "| module | content |", "|---|---|"]
        lines += [f"| [{_full(each)}]({_full(each)}.md) | {_summary(_home(each))} |" for each in modules]
        lines.append("")
    lines += ["```{toctree}", ":hidden:", "", *(_full(each) for modules in GROUPS.values() for each in modules), "```"]
    return "\n".join(lines) + "\n"


def _module_page(module: str, entries: list[Entry]) -> str:
    lines = [f"# {_full(module)}", "", *_markdown(_doc(_home(module))), ""]
    for title, are_classes in (("Classes", True), ("Methods" if module == "Tensor" else "Functions", False)):
        chosen = [each for each in entries if inspect.isclass(each.value) is are_classes]
        if chosen:
            lines += [f"## {title}", "", "| name | what it does |", "|---|---|"]
            lines += [
                f'| <a class="reference internal" href="{each.page}.html">{each.name.rpartition(".")[2]}</a> '
                f"| {_summary(each.value)} |"
                for each in chosen
            ]
            lines.append("")
    return "\n".join(lines) + "\n"


def _object_page(entry: Entry, module: str) -> Page:
    members = [_described(entry.kind, entry.name, entry.value)]
    if inspect.isclass(entry.value) and entry.name != f"{PACKAGE}.Tensor":  # whose methods have pages of their own
        members += [_described("method", f"{entry.name}.{name}", value) for name, value in _own_methods(entry.value)]
    title = entry.name.removeprefix(f"{PACKAGE}.")
    return Page(entry.page, title, _full(module), source_link(entry.value), members)


def _described(kind: str, name: str, value: Any) -> Member:
    doc, own = _doc(value), name.rpartition(".")[2]
    if name == f"{PACKAGE}.Tensor.{own}":
        doc = as_method(doc, own, own)
    return Member(kind, name, _signature(value), "\n".join(_markdown(doc)))


def _own_methods(cls: type) -> Iterator[tuple[str, Any]]:
    """The public methods that a class defines itself."""
    for name, value in sorted(vars(cls).items()):
        if not name.startswith("_") and inspect.isfunction(value):
            yield name, value


def _signature(value: Any) -> str:
    """The signature as Sphinx reads it, without annotations that say nothing."""
    try:
        signature = inspect.signature(value)
        shown = [
            each.replace(
                annotation=each.empty if str(each.annotation) == "Any" else each.annotation,
                default=each.default if each.default is each.empty else _Default(each.default),
            )
            for each in signature.parameters.values()
        ]
        text = str(signature.replace(parameters=shown))
    except (TypeError, ValueError):
        return "(*args, **kwargs)"
    return text.replace("'", "").replace(f"{PACKAGE}.", "").removesuffix(" -> Any")


class _Default:
    """A default as documentation shows it: without addresses or class names in angle brackets."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __repr__(self) -> str:
        text = f'"{self.value}"' if isinstance(self.value, str) else repr(self.value)
        return getattr(self.value, "__name__", "...") if "<" in text or "\n" in text else text


def _markdown(doc: str) -> list[str]:
    """A docstring as Markdown: sections get headings, parameters a list, examples a fence."""
    first, *rest = _SECTION.split(doc)
    lines = _fenced(first.strip("\n"))
    for title, text in zip(rest[::2], rest[1::2], strict=True):
        lines += ["", f"**{_TITLES.get(title, title)}**", ""]
        if title in _LISTS:
            lines += _ENTRY.sub(
                lambda found: f"- **{_escaped(found[1])}**{_kind(found[2])}: ", text.strip("\n")
            ).splitlines()
        else:
            lines += _fenced(inspect.cleandoc(text.strip("\n")))
    return lines


def _escaped(name: str) -> str:
    return name.replace("*", "\\*").replace("_", "\\_")


def _kind(kind: str | None) -> str:
    return f" (*{kind[2:-1]}*)" if kind else ""


def _fenced(text: str) -> list[str]:
    """The lines of a text, with a fence around each example that begins with a prompt."""
    lines: list[str] = []
    indent = -1
    for line in text.splitlines():
        if indent < 0 and line.lstrip().startswith(">>>"):
            indent = len(line) - len(line.lstrip())
            lines += ["", "```pycon"]
        if indent >= 0 and not line.strip():
            lines.append("```")
            indent = -1
        lines.append(line[max(indent, 0) :])
    return lines if indent < 0 else [*lines, "```"]
