"""Bits and truth values of two operands."""

from __future__ import annotations

import numpy as np

from ..._core.dtype import BOOL, COMPLEX, FLOAT
from ..._dispatch.elementwise import TO_BOOL, binary

_NO_BITS = (FLOAT, COMPLEX)
_NOTHING_TO_SHIFT = (BOOL, *_NO_BITS)
bitwise_and = binary("bitwise_and", np.bitwise_and, refuses=_NO_BITS, doc="Bitwise `input & other`.")
bitwise_or = binary("bitwise_or", np.bitwise_or, refuses=_NO_BITS, doc="Bitwise `input | other`.")
bitwise_xor = binary("bitwise_xor", np.bitwise_xor, refuses=_NO_BITS, doc="Bitwise `input ^ other`.")
bitwise_left_shift = binary(
    "bitwise_left_shift", np.left_shift, refuses=_NOTHING_TO_SHIFT, doc="Bits shifted up: `input << other`."
)
bitwise_right_shift = binary(
    "bitwise_right_shift", np.right_shift, refuses=_NOTHING_TO_SHIFT, doc="Bits shifted down: `input >> other`."
)
logical_and = binary(
    "logical_and", np.logical_and, rule=TO_BOOL, tensors_only=True, doc="Whether both elements are nonzero."
)
logical_or = binary(
    "logical_or", np.logical_or, rule=TO_BOOL, tensors_only=True, doc="Whether one of the elements is nonzero."
)
logical_xor = binary(
    "logical_xor",
    np.logical_xor,
    rule=TO_BOOL,
    tensors_only=True,
    doc="Whether exactly one of the elements is nonzero.",
)
