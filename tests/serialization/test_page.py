"""The programs of docs/checkpoints.md run."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "checkpoints.md"


def test_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    programs = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    assert len(programs) == 3
    monkeypatch.chdir(tmp_path)
    module = ModuleType("page")
    monkeypatch.setitem(sys.modules, "page", module)
    exec("\n".join(programs), vars(module))
    assert capsys.readouterr().out == "0.1\n"
    assert vars(module)["rows"].shape == (2, 2)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model.pt", "model.safetensors", "settings.pt"]
