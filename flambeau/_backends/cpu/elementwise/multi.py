"""Updates of lists of tensors' arrays in one call: the steps of optimizers, the norm and the scaling of gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...._codegen.elements.multi import square_sums, update_list
from ...._codegen.expr import Program
from ..runtime.dtypes import name_of_type


def update(program: Program, changed: tuple[int, ...], numbers: Sequence[float], *lists: Sequence[Any]) -> bool:
    """Run a program on arrays of one dtype: its first input is an element of the first list, and so on.

    Its results go to the lists `changed`. False: nothing was done, because the arrays do not allow it.
    """
    kernel = updating(program, changed, len(numbers), len(lists), lists[0][0].dtype)
    return kernel is not None and bool(kernel(True, False, *numbers, *[each for arrays in lists for each in arrays]))


def updating(program: Program, changed: tuple[int, ...], numbers: int, lists: int, dtype: np.dtype[Any]) -> Any:
    """The kernel of such updates: `(True, False, *numbers, *arrays of all lists)`, whether it was done; or None."""
    name = name_of_type(dtype)
    return None if name is None else update_list(name, lists, numbers, program, changed)


def norms(arrays: Sequence[Any]) -> list[Any] | None:
    """The norms of arrays of one dtype, in that dtype."""
    dtype = arrays[0].dtype
    name = name_of_type(dtype)
    if name is None or any([each.dtype is not dtype for each in arrays]):  # noqa: C419 (few, quicker)
        return None
    if not all([(flags := each.flags).forc and flags.aligned for each in arrays]):  # noqa: C419
        return None
    return list(np.sqrt(square_sums(name)(np.empty(len(arrays)), *arrays)).astype(dtype))
