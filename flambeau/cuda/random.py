"""The seed and the state of the random numbers of CUDA devices."""

from __future__ import annotations

from .._core.names.absent import Table
from ._missing import NOT_COMPILED, where_present

__getattr__, __dir__ = where_present(
    "_random",
    Table(__name__)
    .returning(list, functions="get_rng_state_all")
    .returning(lambda: None, functions="manual_seed manual_seed_all seed seed_all set_rng_state set_rng_state_all")
    .raising(AssertionError, NOT_COMPILED, functions="get_rng_state initial_seed"),
)
