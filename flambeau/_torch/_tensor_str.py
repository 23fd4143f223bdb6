"""How tensors print, under the names of `torch._tensor_str`."""

from __future__ import annotations

from typing import Any

from flambeau._core.arrays.lazy_signs import content
from flambeau._core.backend import to_host
from flambeau._core.dtype import get_default_dtype
from flambeau._core.tensor import Tensor
from flambeau._core.text.printing import _append_suffixes as _add
from flambeau._core.text.printing import _format_values, get_printoptions, printoptions, set_printoptions, tensor_repr
from flambeau._core.text.printing import _options as PRINT_OPTS

__all__ = ["PRINT_OPTS", "get_printoptions", "printoptions", "set_printoptions"]


def _str(self: Tensor, *, tensor_contents: Any = None) -> str:
    """The text of a tensor."""
    return repr(self)


def _str_intern(inp: Tensor, *, tensor_contents: str | None = None) -> str:
    """The text of a tensor, whose values may be given as text."""
    prefix = "tensor(" if type(inp) is Tensor else f"{type(inp).__name__}("
    return tensor_repr(inp, prefix=prefix, contents=tensor_contents, default_dtype=get_default_dtype())


def _tensor_str(self: Tensor, indent: int, summarize: bool | None = None) -> str:
    """The values of a tensor as text."""
    return _format_values(to_host(content(self)), indent)


def _add_suffixes(tensor_str: str, suffixes: list[str], indent: int, force_newline: bool) -> str:
    """A text with what else is to be said about a tensor, closed by a parenthesis."""
    return _add(tensor_str, suffixes, indent, force_newline)
