"""Ranges of ops for the profilers of vendors, and what of PyTorch's own profiler is there."""

from __future__ import annotations

from typing import Any

from .._core.names.absent import refusal
from .._dispatch.public.registry import in_namespace
from . import itt

__all__ = ["emit_itt", "emit_nvtx", "kineto_available"]


@in_namespace  # compiled in PyTorch: a class whose attribute it is does not bind it
def kineto_available() -> bool:
    """Whether `profile` takes activities and schedules, and writes traces: it does."""
    return True


class _Ranges:
    """A context in which every op would be a range; it can be entered once."""

    _kind = ""

    def __init__(self, enabled: bool = True, record_shapes: bool = False) -> None:
        self.enabled, self.record_shapes, self.entered = enabled, record_shapes, False

    def __enter__(self) -> Any:
        if not self.enabled:
            return None
        if self.entered:
            raise RuntimeError(f"{self._kind} annotation context manager is not reentrant")
        self.entered = True
        self._start()
        return self

    def __exit__(self, *exception: object) -> None:
        pass

    def _start(self) -> None:
        raise NotImplementedError


class emit_itt(_Ranges):
    """Ranges for Intel's profilers: as where these are not installed, an error unless it is switched off."""

    _kind = "ITT"

    def _start(self) -> None:
        itt.range_push("emit_itt")


class emit_nvtx(_Ranges):
    """Ranges for NVIDIA's profilers: an error unless it is switched off; `cuda.nvtx.range` marks parts by hand."""

    _kind = "NVTX"

    def _start(self) -> None:
        from ..cuda import synchronize

        synchronize()
        raise refusal("torch.autograd.profiler.emit_nvtx", "ops are not marked; cuda.nvtx.range marks parts by hand")
