"""Autocast's rules for CUDA, tried out without a GPU."""

from __future__ import annotations

import pytest

from flambeau._dispatch.arguments import autocast, casting_calls


def rules_of_cuda_on_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let tensors on the CPU have the rules of those on CUDA."""
    monkeypatch.setattr(casting_calls, "rule_for", lambda device_type, ruled: ruled.rules.get("cuda"))
    monkeypatch.setattr(casting_calls, "ELEMENTWISE_DEVICES", {"cpu", "cuda"})
    monkeypatch.setattr(autocast._THREAD, "tables", {})
