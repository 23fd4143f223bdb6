"""Which calls do nothing but make their results."""

from __future__ import annotations

from ..._dispatch.composite import Composite
from ..._dispatch.dispatch import Primitive
from ..._dispatch.elementwise import Elementwise
from ..._dispatch.factory import Factory
from ..._dispatch.gradients.fused_derivatives import Derivative
from .items import Call

_PURE = (Primitive, Elementwise, Composite, Factory, Derivative)


def is_pure(call: Call) -> bool:
    """Whether a call does nothing but make its results, the same ones from the same arguments."""
    return isinstance(call.op, _PURE) and not call.op.writes and not call.op.draws
