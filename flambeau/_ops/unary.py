"""Functions of one tensor, element by element."""

from __future__ import annotations

import numpy as np

from .._core.dtype import BOOL
from .binary import conj
from .elementwise import FLOATING, unary
from .registry import export_method

neg = unary("neg", np.negative, "negative", refuses=(BOOL,), derivative=lambda grad: -grad, doc="`-input`.")
exp = unary("exp", np.exp, "special.exp", rule=FLOATING, derivative=lambda grad, result: grad * conj(result), doc="e ** input.")
cos = unary("cos", np.cos, rule=FLOATING, derivative=lambda grad, self: grad * -conj(self.sin()), doc="Cosine.")
sin = unary("sin", np.sin, rule=FLOATING, derivative=lambda grad, self: grad * conj(self.cos()), doc="Sine.")
reciprocal = unary(
    "reciprocal", lambda x: np.true_divide(1, x, dtype=x.dtype), rule=FLOATING,
    derivative=lambda grad, result: -grad * conj(result * result), doc="1 / input.",
)  # fmt: skip

export_method(neg, "__neg__")
