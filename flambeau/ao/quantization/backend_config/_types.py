"""The combinations of types that backends have."""

from __future__ import annotations

import flambeau as torch

from .backend_config import DTypeConfig, DTypeWithConstraints

QUINT8 = DTypeConfig(torch.quint8, torch.quint8)
WEIGHTED = DTypeConfig(torch.quint8, torch.quint8, torch.qint8, torch.float)
FLOAT_WEIGHTED = DTypeConfig(torch.quint8, torch.quint8, torch.float, torch.float)
HALF = DTypeConfig(torch.float16, torch.float16, torch.float16, torch.float16)
DYNAMIC = DTypeConfig(torch.quint8, torch.float, torch.qint8, torch.float, is_dynamic=True)
DYNAMIC_HALF = DTypeConfig(torch.float16, torch.float, torch.float16, torch.float, is_dynamic=True)
WEIGHT_ONLY = DTypeConfig(torch.float, torch.float, torch.quint8)
WEIGHT_ONLY_4_BITS = DTypeConfig(torch.float, torch.float, torch.quint4x2)
SIGNED_WEIGHT_ONLY = DTypeConfig(torch.float, torch.float, torch.qint8)

# Kernels of phones want scales that are not too small, and weights without the lowest code.
_BOUND = DTypeWithConstraints(torch.qint8, scale_min_lower_bound=2**-12)
_WEIGHT_BOUND = DTypeWithConstraints(torch.qint8, -127, 127, scale_min_lower_bound=2**-12)
QINT8 = DTypeConfig(_BOUND, _BOUND)
SYMMETRIC = DTypeConfig(_BOUND, _BOUND, _WEIGHT_BOUND, torch.float)
SYMMETRIC_DYNAMIC = DTypeConfig(_BOUND, torch.float, _WEIGHT_BOUND, torch.float, is_dynamic=True)
