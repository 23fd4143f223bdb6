"""`TensorMethods`: the base class of `Tensor` that stands for what ops put on it.

At run time it is empty: ops register their methods on `Tensor` itself. For type checkers and editors `methods.pyi`,
which `tools/stubs.py` generates from the registered ops, lists them all.
"""

from __future__ import annotations


class TensorMethods:
    """The methods of the ops."""

    __slots__ = ()
