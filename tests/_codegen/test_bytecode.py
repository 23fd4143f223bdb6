"""Long source is compiled by Python once, and found on disk from then on."""

from __future__ import annotations

import builtins
from pathlib import Path
from typing import Any

import pytest

from flambeau._codegen.machine import bytecode

LINES = 3000
TEXT = "def count(x):\n" + "    x += 1\n" * LINES + "    return x\n"


def test_long_source_is_compiled_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[str] = []

    def counting(text: str, file: str, mode: str) -> Any:
        compiled.append(file)
        return builtins.compile(text, file, mode)

    def counted() -> int:
        namespace: dict[str, Any] = {}
        for code in bytecode.compiled_sources([("<flambeau counting>", TEXT)]):
            exec(code, namespace)
        assert namespace["count"](1) == LINES + 1
        return len(compiled)

    monkeypatch.setenv("FLAMBEAU_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(bytecode, "compile", counting, raising=False)
    assert [counted(), counted()] == [1, 1]
    (kept,) = tmp_path.iterdir()
    kept.write_bytes(kept.read_bytes()[:-1])  # what is damaged is not run
    assert [counted(), counted()] == [2, 2]
