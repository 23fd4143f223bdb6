"""Autocast's rules for CUDA, tried out without a GPU."""

from __future__ import annotations

import pytest

from flambeau._dispatch.arguments import autocast, autocast_rules


def rules_of_cuda_on_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let tensors on the CPU have the rules of those on CUDA."""
    monkeypatch.setitem(autocast_rules.RULES, "cpu", autocast_rules.RULES["cuda"])
    monkeypatch.setitem(autocast_rules.ELEMENTWISE, "cpu", autocast_rules.ELEMENTWISE["cuda"])
    monkeypatch.setattr(autocast._THREAD, "tables", {})
