"""Flambeau: PyTorch's programming model and API, written in Python."""

from __future__ import annotations

from ._core import dtype as _dtype
from ._core.device import device, layout, memory_format
from ._core.dtype import dtype, finfo, get_default_dtype, iinfo, promote_types, set_default_dtype
from ._core.size import Size
from ._core.tensor import Tensor
from ._ops import registry as _registry
from . import autograd
from .autograd.grad_mode import enable_grad, inference_mode, no_grad, set_grad_enabled

globals().update(_dtype.NAMES)
globals().update(_registry.FUNCTIONS[""])
