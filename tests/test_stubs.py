"""The stub file shows what the package has."""

from __future__ import annotations

import importlib.util
from pathlib import Path

ROOT = Path(__file__).parent.parent


def test_the_stub_files_are_up_to_date() -> None:
    specification = importlib.util.spec_from_file_location("stubs", ROOT / "tools" / "stubs.py")
    assert specification is not None
    assert specification.loader is not None
    tool = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(tool)
    for path, text in tool.stubs().items():
        assert path.read_text(encoding="utf-8") == text, f"{path.name}: run python tools/stubs.py"
