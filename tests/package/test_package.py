"""Archives of code and data: written, read, and exchanged with PyTorch."""

from __future__ import annotations

import importlib
import io
import re
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import flambeau
from tests.support.differential import differential, outcome
from tests.support.oracle import needs_pytorch, pytorch

_MODEL = """\
import math

from packaged_helper import twice


class Model:
    def __init__(self, weight):
        self.weight = weight

    def run(self):
        return twice(self.weight) * math.floor(1.5)
"""


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """A module with a class that needs another module, both in files that nobody else knows."""
    (tmp_path / "packaged_model.py").write_text(_MODEL)
    (tmp_path / "packaged_helper.py").write_text("def twice(x):\n    return 2 * x\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()
    yield importlib.import_module("packaged_model")
    for name in ("packaged_model", "packaged_helper"):
        sys.modules.pop(name, None)


def _package(torch: Any) -> Any:
    return importlib.import_module(f"{torch.__name__}.package")


def _exported(torch: Any, model: ModuleType, *, helper: str = "intern") -> io.BytesIO:
    file = io.BytesIO()
    with warnings.catch_warnings(), _package(torch).PackageExporter(file) as exporter:
        warnings.simplefilter("ignore")  # PyTorch warns of the storages that it uses itself
        exporter.intern("packaged_model")
        getattr(exporter, helper)("packaged_helper")
        exporter.save_pickle("data.inner", "model.pkl", model.Model(torch.ones(2)))
        exporter.save_text("data", "notes.txt", "hello")
        exporter.save_binary("data", "raw.bin", b"\0\1")
        exporter.save_source_string("made.here", "VALUE = 3\nfrom . import there\n")
        exporter.save_source_string("made.there", "VALUE = 4\n")
        exporter.save_source_string("made", "", is_package=True)
    file.seek(0)
    return file


def _loaded(importer: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch warns of the storages that it uses itself
        return importer.load_pickle("data.inner", "model.pkl")


def _observed(torch: Any, file: io.BytesIO, model: ModuleType) -> Any:
    package = _package(torch)
    importer = package.PackageImporter(file)
    loaded = _loaded(importer)
    here = importer.import_module("made.here")
    own = package.OrderedImporter(importer, package.sys_importer)
    return (
        loaded.run(),
        type(loaded) is model.Model,
        re.sub(r"\d+", "n", type(loaded).__module__),
        package.is_from_package(loaded),
        package.is_from_package(model),
        importer.load_text("data", "notes.txt"),
        importer.load_binary("data", "raw.bin"),
        (here.VALUE, here.there.VALUE, importer.get_source("made.there")),
        importer.import_module("math").__name__,
        importer.python_version() is not None,
        re.sub(r"\d+", "n", importer.id()),
        str(importer.file_structure(include=["**/*.py", "data/**"])),
        importer.file_structure().has_file("made/here.py"),
        own.get_name(type(loaded)),
        own.import_module("packaged_helper").__name__.endswith(">.packaged_helper"),
        outcome(lambda: importer.import_module("subprocess"), "No module named"),
        outcome(lambda: importer.load_text("data", "nothing"), "failed locating file"),
        outcome(lambda: package.sys_importer.get_name(type(loaded)), "However, when we import"),
        outcome(lambda: package.sys_importer.get_name(model.Model, "Other"), "was not found as"),
        package.sys_importer.whichmodule(model.Model, "Model"),
    )


def test_what_is_written_is_read(model: ModuleType) -> None:
    @differential
    def scenario(torch: Any) -> Any:
        return _observed(torch, _exported(torch, model), model)

    scenario()


@needs_pytorch
def test_archives_are_exchanged_with_pytorch(model: ModuleType) -> None:
    theirs, ours = _exported(pytorch, model), _exported(flambeau, model)
    read_here = _loaded(flambeau.package.PackageImporter(theirs))
    read_there = _loaded(_package(pytorch).PackageImporter(ours))
    assert isinstance(read_here.run(), flambeau.Tensor)
    assert isinstance(read_there.run(), pytorch.Tensor)
    assert read_here.run().tolist() == read_there.run().tolist() == [2.0, 2.0]


def test_what_becomes_of_modules(model: ModuleType) -> None:
    @differential
    def scenario(torch: Any) -> Any:
        package = _package(torch)

        def with_helper(action: str, **options: Any) -> Any:
            file = _exported(torch, model, helper=action)
            return _loaded(package.PackageImporter(file, **options)).run()

        def unmatched() -> None:
            with package.PackageExporter(io.BytesIO()) as exporter:
                exporter.intern("no_such_module*", allow_empty=False)

        def undecided() -> None:
            with package.PackageExporter(io.BytesIO()) as exporter:
                exporter.save_pickle("data", "model.pkl", model.Model(1))

        return (
            with_helper("extern"),
            outcome(lambda: with_helper("mock"), "was mocked out during packaging"),
            outcome(lambda: with_helper("deny"), "Module was denied by a pattern"),
            outcome(
                lambda: with_helper("extern", module_allowed=lambda name: name != "packaged_helper"),
                "that module has been disallowed",
            ),
            outcome(unmatched, "which was marked as allow_empty=False"),
            outcome(undecided, "did not match against any action pattern"),
        )

    scenario()


def test_what_the_exporter_tells(model: ModuleType) -> None:
    @differential
    def scenario(torch: Any) -> Any:
        package = _package(torch)
        told: list[tuple[str, str]] = []
        exporter = package.PackageExporter(io.BytesIO())
        exporter.intern("packaged_model")
        exporter.mock("packaged_helper")
        handles = [
            getattr(exporter, f"register_{action}_hook")(lambda _, name, action=action: told.append((action, name)))
            for action in ("intern", "mock", "extern")
        ]
        exporter.save_module("packaged_model")
        handles[0].remove()
        found = (
            exporter.interned_modules(),
            exporter.mocked_modules(),
            exporter.externed_modules(),
            exporter.denied_modules(),
            exporter.get_rdeps("packaged_helper"),
            sorted(exporter.dependency_graph_string().splitlines()),
            exporter.get_unique_id(),
        )
        exporter.close()
        return found, sorted(told)

    scenario()


def test_sources_of_files(tmp_path: Path) -> None:
    (tmp_path / "lib" / "inner").mkdir(parents=True)
    (tmp_path / "lib" / "__init__.py").write_text("")
    (tmp_path / "lib" / "inner" / "__init__.py").write_text("from .leaf import VALUE\n")
    (tmp_path / "lib" / "inner" / "leaf.py").write_text("VALUE = 5\n")
    (tmp_path / "single.py").write_text("VALUE = 6\n")

    @differential
    def scenario(torch: Any) -> Any:
        package = _package(torch)
        file = io.BytesIO()
        with package.PackageExporter(file) as exporter:
            exporter.save_source_file("lib", str(tmp_path / "lib"))
            exporter.save_source_file("one", str(tmp_path / "single.py"))
        file.seek(0)
        importer = package.PackageImporter(file)
        reader = importer.get_resource_reader("lib.inner")
        return (
            importer.import_module("lib.inner").VALUE,
            importer.import_module("one").VALUE,
            reader.is_resource("leaf.py"),
            sorted(reader.contents()),
            reader.open_resource("leaf.py").read(),
        )

    scenario()


def test_an_archive_from_an_archive(model: ModuleType) -> None:
    package = flambeau.package
    first = package.PackageImporter(_exported(flambeau, model))
    loaded = _loaded(first)
    file = io.BytesIO()
    with package.PackageExporter(file, importer=(first, package.sys_importer)) as exporter:
        exporter.intern("packaged_*")
        exporter.save_pickle("again", "model.pkl", loaded)
    again = package.PackageImporter(file).load_pickle("again", "model.pkl")
    assert again.run().tolist() == [2.0, 2.0]
    assert type(again) is not type(loaded)
    with pytest.raises(package.ObjMismatchError), package.PackageExporter(io.BytesIO()) as exporter:
        exporter.save_pickle("again", "model.pkl", loaded)


def test_paths_between_modules(model: ModuleType) -> None:
    with flambeau.package.PackageExporter(io.BytesIO()) as exporter:
        exporter.intern("packaged_*")
        exporter.save_module("packaged_model")
        paths = exporter.all_paths("packaged_model", "packaged_helper")
    assert '"packaged_model" -> "packaged_helper";' in paths
    assert "math" not in paths


def test_reasons_and_first_uses(model: ModuleType) -> None:
    analyze = importlib.import_module("flambeau.package.analyze")
    exporter_module = importlib.import_module("flambeau.package.package_exporter")
    with pytest.raises(flambeau.package.PackagingError) as caught:
        _exported(flambeau, model, helper="deny")
    assert analyze.find_first_use_of_broken_modules(caught.value) == {
        "packaged_helper": ["<data.inner.model.pkl>", "packaged_model", "packaged_helper"]
    }
    with pytest.raises(TypeError, match="PackagingError"):
        analyze.find_first_use_of_broken_modules(ValueError())
    assert [reason.name for reason in exporter_module.PackagingErrorReason][:2] == [
        "IS_EXTENSION_MODULE",
        "NO_DUNDER_FILE",
    ]
    used = analyze.trace_dependencies(lambda number: model.Model(number).run(), [(1,), (2,)])
    assert "packaged_model" in used
    assert "packaged_helper" in used


@differential
def test_patterns_and_imports(torch: Any) -> Any:
    group = _package(torch).GlobGroup
    find = importlib.import_module(f"{torch.__name__}.package.find_file_dependencies").find_files_source_depends_on
    source = (
        "import a.b\nfrom c import d as e\nfrom . import f\nfrom .g import h\n__import__('z')\ndef x():\n  import q"
    )
    candidates = ("a", "a.b", "a.b.c", "ab", "torchvision", "x.y")
    patterns = ("a.*", "a.**", "a*", "**", "torch*", "x.*")
    return (
        [[group(pattern).matches(candidate) for candidate in candidates] for pattern in patterns],
        group(["x", "y"], exclude="y").matches("y"),
        repr(group("a.*")),
        outcome(lambda: group("a.b**"), "can only appear as an entire path segment"),
        find(source, "pkg.mod"),
    )


def test_reading_runs_nothing_before_it_is_asked_to(model: ModuleType, tmp_path: Path) -> None:
    witness = tmp_path / "ran"
    file = io.BytesIO()
    with flambeau.package.PackageExporter(file) as exporter:
        exporter.save_source_string("evil", f"open({str(witness)!r}, 'w').close()\n")
        exporter.save_text("data", "notes.txt", "hello")
    importer = flambeau.package.PackageImporter(file)
    assert importer.load_text("data", "notes.txt") == "hello"
    assert importer.file_structure().has_file("evil.py")
    assert not witness.exists()
    importer.import_module("evil")
    assert witness.exists()
