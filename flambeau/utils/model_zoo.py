"""Weights from elsewhere, under the older name of `torch.hub`'s functions."""

from __future__ import annotations

from .._core.names.absent import Table
from ..hub import load_state_dict_from_url

__all__ = ["load_state_dict_from_url", "load_url"]

load_url = load_state_dict_from_url

__getattr__, __dir__ = Table(__name__).elsewhere("tqdm", "hub").parts()
