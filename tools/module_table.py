"""Which documented names of the modules around a model exist and are used in the tests: writes docs/modules.md.

    python -m tools.module_table           write the page
    python -m tools.module_table --left    print the names that no test mentions

A documented name is one that PyTorch's module lists in `__all__`, or defines with a docstring where it lists none. It
is exercised if a test of the module has it as a name, as an attribute or in a list of names; comments and sentences do
not count.
"""

from __future__ import annotations

import argparse
import ast
import functools
import importlib
import inspect
import json
from pathlib import Path
from typing import Any, NamedTuple

from .names import LIST, State, state_of

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "modules.md"


class Subject(NamedTuple):
    """A module, with the tests about it."""

    modules: str
    tests: str


SUBJECTS = {
    "fx": Subject("fx fx.passes.shape_prop fx.passes.split_module fx.experimental.optimization", "fx modules"),
    "export": Subject("export", "export modules"),
    "onnx": Subject("onnx", "onnx modules"),
    "jit": Subject("jit", "jit modules names/test_namespaces.py"),
    "profiler": Subject("profiler autograd.profiler", "profiler modules"),
    "library": Subject("library", "ops/test_library.py names/test_library.py modules"),
    "multiprocessing": Subject("multiprocessing", "multiprocessing modules"),
    "futures": Subject("futures", "names modules"),
    "hub": Subject("hub", "names modules"),
    "quasirandom": Subject("quasirandom", "names/test_quasirandom.py"),
    "nested": Subject("nested", "nested"),
    "package": Subject("package", "package modules"),
    "utils.benchmark": Subject("utils.benchmark", "utils names modules"),
    "ao.quantization": Subject("ao.quantization", "ao modules"),
    "nn.attention.flex_attention": Subject("nn.attention.flex_attention", "nn/test_flex_attention.py modules"),
}


def documented(module: str) -> set[str]:
    """The names that PyTorch documents in a module."""
    theirs = importlib.import_module(f"torch.{module}")
    listed = getattr(theirs, "__all__", None)
    if listed is not None:  # some of which PyTorch itself has not
        return {each for each in listed if not each.startswith("_") and hasattr(theirs, each)}
    return {name for name, value in vars(theirs).items() if not name.startswith("_") and _is_described(value, theirs)}


def _is_described(value: Any, owner: Any) -> bool:
    is_own = getattr(value, "__module__", "").startswith(owner.__name__)
    return is_own and (inspect.isclass(value) or callable(value)) and bool(inspect.getdoc(value))


def is_present(module: str, name: str) -> bool:
    """Whether Flambeau has the name, and it does not refuse its work."""
    full = f"torch.{module}.{name}"
    return state_of(full, getattr(importlib.import_module(f"torch.{module}"), name, None)) is State.PRESENT


@functools.cache
def mentioned(path: Path) -> frozenset[str]:
    """The names and attributes in a file of tests."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Name):
            found.add(node.id)
        elif isinstance(node, ast.Attribute):
            found.add(node.attr)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            words = node.value.split()
            found |= set(words) if all(each.isidentifier() for each in words) else set()  # a list of names
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            found |= {each.name.rpartition(".")[2] for each in node.names}
    return frozenset(found)


def exercised(subject: Subject) -> set[str]:
    """What the tests about a module mention."""
    found: set[str] = set()
    for each in subject.tests.split():
        path = ROOT / "tests" / each
        for file in [path] if path.suffix else sorted(path.rglob("*.py")):
            if file.exists():
                found |= mentioned(file)
    return found


def rows() -> dict[str, tuple[set[str], set[str], set[str]]]:
    """For each module its documented names, those that exist, and those that tests use."""
    table = {}
    for title, subject in SUBJECTS.items():
        names = {(module, name) for module in subject.modules.split() for name in documented(module)}
        used = exercised(subject)
        present = {name for module, name in names if is_present(module, name)}
        table[title] = {name for _, name in names}, present, present & used
    return table


def reasons() -> dict[str, list[str]]:
    """The absent names of all modules, by the reason that the list of names has for them."""
    modules = [each for subject in SUBJECTS.values() for each in subject.modules.split()]
    found: dict[str, list[str]] = {}
    for reason, spaces in json.loads(LIST.read_text(encoding="utf-8")).items():
        for module in modules:
            space = f"torch.{module}"
            for name in sorted(documented(module)):
                # A function may stand under the name of the file that it is in.
                if name in spaces.get(space, ()) or name in spaces.get(f"{space}.{name}", ()):
                    found.setdefault(reason, []).append(f"{module}.{name}")
    return found


def page() -> str:
    """The text of the page."""
    lines = [
        "# The modules around a model",
        "",
        "The names that PyTorch's modules list as their own, those of them that Flambeau has, and those that its tests",
        "use; most of these tests run one program under both libraries. `python -m tools.module_table` writes this",
        "page.",
        "",
        "| module | documented | present | exercised | tests | absent, or refuses | present, not exercised |",
        "|---|---|---|---|---|---|---|",
    ]
    for title, (names, present, used) in rows().items():
        tests = " ".join(f"`{each}`" for each in SUBJECTS[title].tests.split() if (ROOT / "tests" / each).exists())
        absent, left = (" ".join(sorted(each)) for each in (names - present, present - used))
        lines.append(f"| `{title}` | {len(names)} | {len(present)} | {len(used)} | {tests} | {absent} | {left} |")
    lines += ["", "Why names are absent:", ""]
    lines += [f"- {' '.join(f'`{each}`' for each in names)}: {reason}" for reason, names in reasons().items()]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Write the page, or say what is left."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--left", action="store_true", help="print the names that no test mentions")
    if parser.parse_args().left:
        for title, (names, present, used) in rows().items():
            print(title, len(names), len(present), len(used))
            print("  absent:", *sorted(names - present))
            print("  not exercised:", *sorted(present - used))
        return
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
