"""Random numbers of CUDA devices: there are none, and nothing to seed."""

from __future__ import annotations

from .._core.names.absent import Table
from ._missing import NOT_COMPILED

__getattr__, __dir__ = (
    Table(__name__)
    .returning(list, functions="get_rng_state_all")
    .returning(lambda: None, functions="manual_seed manual_seed_all seed seed_all set_rng_state set_rng_state_all")
    .raising(AssertionError, NOT_COMPILED, functions="get_rng_state initial_seed")
    .parts()
)
