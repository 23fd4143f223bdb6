"""docs/names.md and the list of absences say what is so; the list only becomes shorter."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import flambeau

ROOT = Path(__file__).parent.parent.parent
TOOL = ROOT / "tools" / "names.py"


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("names_tool", TOOL)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_and_the_list_are_true() -> None:
    command = [sys.executable, str(TOOL), "--check"]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout[-4000:] + run.stderr[-2000:]


def test_what_is_missing_or_refuses_is_noticed(tool: ModuleType) -> None:
    def function() -> None: ...

    assert tool.state_of("torch.no_such_name", function) is tool.State.ABSENT
    assert tool.state_of("torch.no_such_module.name", function) is tool.State.ABSENT
    assert tool.state_of("torch.utils.cpp_extension.load", function) is tool.State.REFUSES
    assert tool.state_of("torch.utils.cpp_extension.BuildExtension", int) is tool.State.REFUSES
    assert tool.state_of("torch.add", function) is tool.State.PRESENT
    assert tool.state_of("torch.pi", function) is tool.State.ABSENT  # a number where PyTorch had a function


def test_what_refuses_says_why_and_where_to_look() -> None:
    from flambeau.utils import cpp_extension

    with pytest.raises(NotImplementedError, match=r"torch\.utils\.cpp_extension\.load .*C\+\+.*names\.html"):
        cpp_extension.load("name", [])

    class Derived(cpp_extension.BuildExtension):  # type: ignore[misc]
        """Naming and inheriting is not using."""

    assert not isinstance(flambeau.nn.Linear(1, 1), cpp_extension.BuildExtension)
    with pytest.raises(NotImplementedError):
        Derived()
