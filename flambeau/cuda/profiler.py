"""Profiles of CUDA devices: there are none."""

from __future__ import annotations

from .._core.names.absent import Table
from ._missing import NOT_COMPILED

__getattr__, __dir__ = Table(__name__).raising(AssertionError, NOT_COMPILED, functions="profile start stop").parts()
