"""What runs when an op is called, as text: for those who want to read or change it."""

from __future__ import annotations

import inspect
import textwrap

from ..dispatch import Primitive
from ..elementwise import Elementwise
from ..op import Op
from . import elementwise, primitive


def source_of(op: Op) -> str:
    """The function that a call of `op` runs: the one that is written for it, or that of its class."""
    if isinstance(op, Elementwise):
        return elementwise.source(len(op.parameters), op.ruled is not None, leading=True)
    if isinstance(op, Primitive) and (op.list_position is None or not op.tensor_positions):
        return primitive.source(op)
    return textwrap.dedent(inspect.getsource(type(op).__call__))


def kernel_of(op: Op) -> str:
    """The reference kernel of an op, which backends may have something quicker for."""
    kernel = inspect.unwrap(op.kernel)
    try:
        return textwrap.dedent(inspect.getsource(kernel))
    except (OSError, TypeError):  # a function of NumPy
        return f"{getattr(kernel, '__name__', kernel)} of {getattr(kernel, '__module__', None) or 'numpy'}\n"
