"""Flambeau in the place of functorch, the package that PyTorch's distribution carries."""

import importlib
import sys

import torch  # noqa: F401  (from then on Flambeau stands in)

sys.modules[__name__] = importlib.import_module("flambeau.functorch")
