"""What PyTorch's compiler knows of processors: it does not exist here."""

from __future__ import annotations

from flambeau._core.names.absent import Table

__getattr__, __dir__ = (
    Table(__name__)
    .absent("PyTorch's compiler does not exist here", functions="pick_vec_isa valid_vec_isa_list")
    .parts()
)
