"""`torch.fx._symbolic_trace`: tracing is not built yet, so nothing is ever being traced."""

from __future__ import annotations

from .._core.names.absent import Table

__getattr__, __dir__ = Table(__name__).elsewhere("Tracer symbolic_trace wrap", "fx").parts()


def is_fx_tracing() -> bool:
    """Whether a graph is being recorded."""
    return False


is_fx_symbolic_tracing = is_fx_tracing
