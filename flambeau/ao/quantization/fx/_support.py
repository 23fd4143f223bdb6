"""Whether a backend can do what a configuration wants."""

from __future__ import annotations

import warnings
from typing import Any

import flambeau as torch

from ..backend_config import DTypeConfig, DTypeWithConstraints
from ..fake_quantize import FixedQParamsFakeQuantize
from ..observer import FixedQParamsObserver


def _satisfies(watch: Any, bound: DTypeWithConstraints) -> bool:
    """Whether the codes and scales of an observer are within bounds; warns if not."""
    low, high = getattr(watch, "quant_min", None), getattr(watch, "quant_max", None)
    inner = getattr(watch, "activation_post_process", watch)
    eps = getattr(inner, "eps", None)
    problem = None
    if bound.quant_min_lower_bound is not None and bound.quant_max_upper_bound is not None:
        if low is None or high is None:
            problem = "names no range of codes"
        elif low < bound.quant_min_lower_bound or high > bound.quant_max_upper_bound:
            problem = f"has codes from {low} to {high}"
    if bound.scale_min_lower_bound is not None and (eps is None or float(eps) < bound.scale_min_lower_bound):
        problem = f"has scales from {eps}"
    if bound.scale_exact_match is not None and bound.zero_point_exact_match is not None:
        if not isinstance(watch, (FixedQParamsObserver, FixedQParamsFakeQuantize)):
            problem = "has no fixed scale and zero point"
        elif float(watch.scale) != bound.scale_exact_match or int(watch.zero_point) != bound.zero_point_exact_match:
            problem = f"has the scale {float(watch.scale)} and the zero point {int(watch.zero_point)}"
    if problem is not None:
        warnings.warn(f"QConfig {problem}, which the backend does not take ({bound}): it is ignored", stacklevel=2)
    return problem is None


def supported(qconfig: Any, dtype_configs: list[DTypeConfig], weighted_function: bool) -> bool:
    """Whether one of a pattern's combinations of types is what a configuration wants."""
    if qconfig is None:
        return False
    activation = qconfig.activation()
    dynamic = bool(getattr(activation, "is_dynamic", False))
    given = torch.float if dynamic else activation.dtype
    for types in dtype_configs:
        if types.input_dtype not in (None, activation.dtype) or types.output_dtype not in (None, given):
            continue
        if bool(types.is_dynamic) is not dynamic:
            continue
        if weighted_function and types.weight_dtype not in (None, qconfig.weight().dtype):
            continue
        bounds = [types.input_dtype_with_constraints]
        bounds += [] if dynamic else [types.output_dtype_with_constraints]
        if all(_satisfies(activation, bound) for bound in bounds):
            return True
    return False
