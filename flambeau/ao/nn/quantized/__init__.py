"""Layers whose weights are integers, under the names of `torch.ao.nn.quantized`: those that compute with floats."""

from __future__ import annotations

from . import dynamic as dynamic
from .weight_only import WeightOnlyLinear as WeightOnlyLinear
