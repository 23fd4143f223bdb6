"""Flambeau in the place of PyTorch: `import torch` gives Flambeau's modules."""

from flambeau import stand_in_for_torch

__flambeau__ = True

stand_in_for_torch()
