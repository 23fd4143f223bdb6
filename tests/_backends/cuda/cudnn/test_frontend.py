"""The front end of cuDNN is loaded without what only dresses it, which would import PyTorch."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from flambeau._backends.cuda.cudnn import descriptors as cudnn_descriptors
from flambeau._backends.cuda.cudnn import frontend as cudnn

PACKAGE = "front_end_of_a_test"
DRESSED = """
from . import _compiled_module

import a_large_library
"""
COMPILED = """
import importlib
from types import SimpleNamespace

HANDLES = []
_set_dlhandle_cudnn = HANDLES.append
data_type = SimpleNamespace(HALF=1, FLOAT=2)
heur_mode = SimpleNamespace(A=1, FALLBACK=2)
cudnnGraphNotSupportedError = NotImplementedError

class tensor: ...

class pygraph:
    def __init__(self, **options):
        self.done = []

    def sdpa_backward(self):  # as the vendor's does
        return isinstance(tensor(), importlib.import_module(__package__).tensor)

    def get_workspace_size(self):
        return 0

    def serialize(self):
        return [1]

    def _execute(self, pointers, workspace, handle): ...

    def __getattr__(self, name):
        return lambda *args: None

def backend_version():
    return 91300
"""


@pytest.fixture
def front_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A front end like the vendor's, and a library with a handle."""
    (tmp_path / PACKAGE).mkdir()
    (tmp_path / PACKAGE / "__init__.py").write_text(DRESSED, encoding="utf-8")
    (tmp_path / PACKAGE / "_compiled_module.py").write_text(COMPILED, encoding="utf-8")
    (tmp_path / "a_large_library.py").write_text("", encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(cudnn, "_FRONT_END", PACKAGE)
    monkeypatch.setattr(cudnn, "_COMPILED_PART", f"{PACKAGE}._compiled_module")
    monkeypatch.setattr(cudnn_descriptors, "library", lambda: SimpleNamespace(_handle=7))
    yield cudnn.library.__wrapped__
    for name in (PACKAGE, f"{PACKAGE}._compiled_module", "a_large_library"):
        sys.modules.pop(name, None)


def test_only_the_compiled_part_is_loaded(front_end: Any) -> None:
    found = front_end()
    assert found.HANDLES == [7]
    assert found.backend_version() == 91300
    assert PACKAGE not in sys.modules
    assert "a_large_library" not in sys.modules


def test_whoever_imports_the_front_end_later_finds_the_same_part(front_end: Any) -> None:
    found = front_end()
    whole = importlib.import_module(PACKAGE)
    assert whole._compiled_module is found
    assert front_end() is found
    assert "a_large_library" in sys.modules


def test_one_that_is_imported_already_is_taken(front_end: Any) -> None:
    whole = importlib.import_module(PACKAGE)
    assert front_end() is whole._compiled_module


def test_there_may_be_none(front_end: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cudnn, "_COMPILED_PART", f"{PACKAGE}._another_part")
    assert front_end() is None
    monkeypatch.setattr(cudnn, "_FRONT_END", "no_front_end_of_a_test")
    assert front_end() is None


def test_one_that_cannot_be_loaded_leaves_nothing_behind(front_end: Any, tmp_path: Path) -> None:
    (tmp_path / PACKAGE / "_compiled_module.py").write_text("raise OSError('no GPU')", encoding="utf-8")
    importlib.invalidate_caches()
    assert front_end() is None
    assert f"{PACKAGE}._compiled_module" not in sys.modules


def test_a_version_with_other_names_is_as_good_as_none(front_end: Any, tmp_path: Path) -> None:
    part = tmp_path / PACKAGE / "_compiled_module.py"
    part.write_text(COMPILED.replace("class pygraph", "class graph_of_another_name"), encoding="utf-8")
    importlib.invalidate_caches()
    assert front_end() is None


@pytest.mark.parametrize("failure", [TypeError, AttributeError, ValueError])
def test_a_graph_that_cannot_be_described_is_refused(
    front_end: Any, monkeypatch: pytest.MonkeyPatch, failure: type[Exception]
) -> None:
    found = front_end()
    monkeypatch.setattr(cudnn, "library", lambda: found)
    monkeypatch.setattr(cudnn, "handle", lambda stream: 1)
    monkeypatch.setattr(cudnn, "driver", lambda: SimpleNamespace(queue=lambda: 0, identity=lambda: "a device"))
    monkeypatch.setenv("FLAMBEAU_CACHE", "0")

    def describe(graph: Any) -> None:
        raise failure("another signature")

    with pytest.raises(cudnn.Refused, match="another signature"):
        cudnn.Plan("float16", describe)


@pytest.mark.parametrize("imported", [False, True])
def test_a_plan_needs_no_more_than_that_part(front_end: Any, monkeypatch: pytest.MonkeyPatch, imported: bool) -> None:
    if imported:
        importlib.import_module(f"{PACKAGE}._compiled_module")
        setattr(sys.modules[PACKAGE], "tensor", sys.modules[f"{PACKAGE}._compiled_module"].tensor)  # noqa: B010
    found = front_end()
    monkeypatch.setattr(cudnn, "library", lambda: found)
    monkeypatch.setattr(cudnn, "handle", lambda stream: 1)
    monkeypatch.setattr(cudnn, "driver", lambda: SimpleNamespace(queue=lambda: 0, identity=lambda: "a device"))
    monkeypatch.setenv("FLAMBEAU_CACHE", "0")
    seen = []
    cudnn.Plan("float16", lambda graph: seen.append(graph.sdpa_backward()))({})
    assert seen == [True]
    assert (PACKAGE in sys.modules) is imported
    assert ("a_large_library" in sys.modules) is imported
