"""Updates of lists of tensors' arrays in one call: the steps of optimizers, the norm and the scaling of gradients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..._codegen.expr import Untraceable
from ..._codegen.multi import square_sums, update_list
from ..._codegen.rules import traced
from .dtypes import name_of_type


def update(rule: Callable[..., Any], number: Any, *lists: Sequence[Any]) -> tuple[int, ...] | None:
    """Run an elementwise rule on arrays of one dtype: its first tensor is one of the first list, and so on.

    Returns the positions of the lists whose arrays were changed; None if nothing was, because the rule or the arrays do
    not allow it.
    """
    name = name_of_type(lists[0][0].dtype)
    if name is None:
        return None
    try:
        program, changed, numbers = traced(rule, number, name, len(lists))
    except (Untraceable, OverflowError):  # the latter: a number that no float can hold
        return None
    parameters = name, len(lists), len(numbers), program, changed
    done = update_list(*parameters)(True, False, *numbers, *[each for arrays in lists for each in arrays])
    return changed if done else None


def norms(arrays: Sequence[Any]) -> list[Any] | None:
    """The norms of arrays of one dtype, in that dtype."""
    dtype = arrays[0].dtype
    name = name_of_type(dtype)
    flags = [each.flags for each in arrays]
    if name is None or not all(each.forc and each.aligned for each in flags):
        return None
    if any(each.dtype is not dtype for each in arrays):
        return None
    return list(np.sqrt(square_sums(name)(np.empty(len(arrays)), *arrays)).astype(dtype))
