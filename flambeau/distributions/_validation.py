"""Whether parameters and samples lie where they must: asked of every small distribution as it is made and used."""

from __future__ import annotations

from typing import Any

import numpy as np

from flambeau import Tensor

from .._core.modes import THREAD, recording
from .._core.tensor import PLAIN_TYPES
from . import constraints as regions

_OF_ARRAYS_TOO = frozenset((
    regions._Real, regions._Boolean, regions._IntegerInterval, regions._IntegerLessThan, regions._IntegerGreaterThan,
    regions._GreaterThan, regions._GreaterThanEq, regions._LessThan, regions._Interval, regions._HalfOpenInterval,
    regions._OneHot, regions._Simplex,
))  # fmt: skip
"""What they do with a tensor can be done with an array, in a fraction of the time if that is small."""

_FEW = 128
"""Of so many elements arrays have the same sums as tensors."""

_all = np.logical_and.reduce  # the method of arrays is a function of Python's around it

_NUMBERS, _INTEGERS = frozenset((int, float)), frozenset((int,))


def holds(constraint: Any, value: Tensor) -> bool:
    """Whether all of `value` satisfies the constraint."""
    with recording(False):
        if type(constraint) in _OF_ARRAYS_TOO and _is_few(constraint, value):
            return bool(_all(constraint.check(value._array), None))
        return bool(constraint.check(value).all())


def _is_few(constraint: Any, value: Tensor) -> bool:
    """Whether there are few elements, and a constraint sees in their array what it would see in the tensor."""
    if type(value) not in PLAIN_TYPES or value._array.size > _FEW or value._kind not in THREAD.modes.direct:
        return False
    kind = value._kind
    if not kind.is_cpu or kind.indirect or kind.dtype.itemsize < 4 or kind.dtype.is_complex:
        return False
    return (_NUMBERS if kind.differentiable else _INTEGERS).issuperset(map(type, vars(constraint).values()))
