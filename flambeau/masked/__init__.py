"""Reductions and normalizations of the elements that a mask selects, under the names of `torch.masked`."""

from __future__ import annotations

from .._dispatch.public.registry import namespace
from .._ops.reduce.masked_reduce import input_mask as _input_mask
from .._ops.reduce.masked_reduce import output_mask as _output_mask

__getattr__, __all__ = namespace("masked")
