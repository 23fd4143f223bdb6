"""Apple's GPUs, for which there are no kernels."""

from __future__ import annotations

from .._core.names.absent import Table

__getattr__, __dir__ = (
    Table(__name__)
    .returning(lambda: False, functions="is_available is_built")
    .raising(AttributeError, "torch.backends.mps.{name} needs an Apple GPU", functions="get_core_count get_name")
    .raising(
        RuntimeError,
        "Cannot execute torch.backends.mps.{name}() without MPS backend",
        functions="is_macos13_or_newer is_macos_or_newer",
    )
    .parts()
)
