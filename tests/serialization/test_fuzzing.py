"""A short run of the fuzzer; `python -m tests.serialization.fuzzing` is the long one."""

from __future__ import annotations

from .fuzzing import corpus, findings


def test_valid_inputs_load() -> None:
    for name, read, content in corpus():
        if name != "call":
            read(content)


def test_no_findings() -> None:
    lines = list(findings(seconds=8, seed=0, most=4000))
    assert [line[:1000] for line in lines if line.startswith("FINDING")] == []
    assert len(lines) == len(corpus())
