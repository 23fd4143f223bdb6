"""The stub file shows what the package has."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import flambeau

ROOT = Path(__file__).parent.parent


def test_the_stub_file_is_up_to_date() -> None:
    specification = importlib.util.spec_from_file_location("stubs", ROOT / "tools" / "stubs.py")
    assert specification is not None
    assert specification.loader is not None
    stubs = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(stubs)
    on_disk = Path(flambeau.__file__).with_suffix(".pyi").read_text(encoding="utf-8")
    assert on_disk == stubs.stub(), "run: python tools/stubs.py"
