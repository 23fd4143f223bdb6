"""Reductions and normalizations of the elements that a mask selects, under the names of `torch.masked`."""

from __future__ import annotations

from .._ops.masked_reduce import input_mask as _input_mask
from .._ops.masked_reduce import output_mask as _output_mask
from .._ops.registry import namespace

__getattr__, __all__ = namespace("masked")
