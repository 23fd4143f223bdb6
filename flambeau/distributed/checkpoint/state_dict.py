"""States of models spread over processes: not built yet."""

from __future__ import annotations

from ..._core.names.absent import Table

__getattr__, __dir__ = (
    Table(__name__)
    .absent(
        "distributed is not built yet",
        functions="get_model_state_dict get_optimizer_state_dict get_state_dict set_model_state_dict "
        "set_optimizer_state_dict set_state_dict",
        classes="StateDictOptions",
    )
    .parts()
)
