"""The compiler's folders are its pipeline: imports point one way, and no files import each other."""

from __future__ import annotations

import ast
from graphlib import TopologicalSorter
from pathlib import Path

from flambeau.compiler.capture import Capture
from flambeau.compiler.capture.trace import Trace
from flambeau.compiler.capture.values import ValueRecorder
from flambeau.jit._recording import Recording

COMPILER = Path(__file__).parents[2] / "flambeau" / "compiler"

ORDER = ("program", "capture", "passes", "plan", "emit", "ahead", "tools")
"""From what all others use to what uses them; the files in `compiler/` itself stand beside them."""


def _imports(file: Path) -> set[str]:
    """The files of the compiler that one imports, inside functions too, but not for annotations alone."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    for_types = {
        inner
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level and node not in for_types:
            base = file.parents[node.level - 1].joinpath(*(node.module or "").split("."))
            for path in (base, *[base / each.name for each in node.names]):
                for each in (path.with_suffix(".py"), path / "__init__.py"):
                    if each.is_file() and each.is_relative_to(COMPILER) and each != file:
                        found.add(each.relative_to(COMPILER).as_posix())
    return found


def _graph() -> dict[str, set[str]]:
    return {each.relative_to(COMPILER).as_posix(): _imports(each) for each in COMPILER.rglob("*.py")}


def test_files_do_not_import_each_other() -> None:
    graph = _graph()
    assert "capture/recorder.py" in graph["_compiled.py"]
    assert len([*TopologicalSorter(graph).static_order()]) == len(graph)  # a circle raises


def test_folders_stand_in_the_order_of_the_pipeline() -> None:
    wrong = [
        (file, each)
        for file, imported in _graph().items()
        for each in imported
        if file.split("/")[0] in ORDER
        and each.split("/")[0] in ORDER
        and ORDER.index(file.split("/")[0]) < ORDER.index(each.split("/")[0])
    ]
    assert wrong == []


def test_recorders_number_tensors_in_one_place() -> None:
    """`torch.compile`, `export`, ONNX, `make_fx` and `jit.trace` tell tensors apart in the same way."""
    package = COMPILER.parent
    files = [each for each in sorted(package.rglob("*.py")) if "Value(len(" in each.read_text(encoding="utf-8")]
    assert [each.relative_to(package).as_posix() for each in files] == ["compiler/capture/values.py"]
    for recorder in (Capture(), Trace(bool), Recording({})._ops):
        assert isinstance(recorder, ValueRecorder)
