"""How tensors print, under the names of `torch._tensor_str`."""

from __future__ import annotations

from typing import Any

from ._core.tensor import Tensor
from ._core.text.printing import _options as PRINT_OPTS
from ._core.text.printing import get_printoptions, printoptions, set_printoptions

__all__ = ["PRINT_OPTS", "get_printoptions", "printoptions", "set_printoptions"]


def _str(self: Tensor, *, tensor_contents: Any = None) -> str:
    """The text of a tensor."""
    return repr(self)
