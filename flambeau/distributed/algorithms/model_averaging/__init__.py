"""Averages of models that are trained apart for a while, under the names of `torch.distributed.algorithms`."""

from __future__ import annotations

from ...._core.names.absent import Table

__getattr__, __dir__ = Table(__name__).submodules("averagers hierarchical_model_averager utils").parts()
