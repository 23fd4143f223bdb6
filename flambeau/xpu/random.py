"""Random numbers of Intel's GPUs: there are none."""

from __future__ import annotations

from .._core.names.absent import Table
from . import NOT_COMPILED

__getattr__, __dir__ = (
    Table(__name__)
    .returning(list, functions="get_rng_state_all")
    .returning(lambda: None, functions="manual_seed manual_seed_all seed seed_all set_rng_state set_rng_state_all")
    .raising(AssertionError, NOT_COMPILED, functions="get_rng_state initial_seed")
    .parts()
)
