"""Fusion by oneDNN in TorchScript: a setting that programs make, and of which Python has no use."""

from __future__ import annotations

__all__ = ["enable_onednn_fusion", "onednn_fusion_enabled"]

_enabled = False


def enable_onednn_fusion(enabled: bool) -> None:
    """Ask for fused kernels in scripted modules."""
    global _enabled
    _enabled = bool(enabled)


def onednn_fusion_enabled() -> bool:
    """Whether fused kernels were asked for."""
    return _enabled
