"""How dimensions of an op's tensors go into those of its results: the field `axes` of an op's record.

`vmap` puts a dimension of examples in front of the tensors, DTensor cuts tensors along a dimension. Both ask the same
question: which dimensions are independent of one another? A record answers it by one of these:

    @primitive("CumsumBackward0", axes=Along("dim"), ...)

Ops to which none of them applies have rules of their own, by name, in `func/_batching` and `distributed/tensor/_rules`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Elements:
    """An element of the results depends on one element of each tensor; the tensors are broadcast."""

    by_first: bool = False
    """Whether the first tensor has the shape of the results: only the others are broadcast."""
    reduction: str | None = None
    """The parameter that says how the elements are reduced to a number in the end, as losses have it."""


@dataclass(frozen=True)
class Last:
    """The last `count` dimensions belong together, as those of a matrix do; those before them are independent."""

    count: int | Callable[..., int]
    """How many, or a function of the op's arguments that says it."""
    vectors: tuple[str, ...] = ()
    """The parameters whose tensors have one dimension less than the others."""


class Along:
    """The dimensions that some parameters name belong together; the others are independent."""

    def __init__(self, *dims: str, extra: int = 0, sizes: str | None = None) -> None:
        self.dims = dims
        self.extra = extra
        """How many dimensions more than the tensor those are counted in: those of the result."""
        self.sizes = sizes
        """The parameter that is the shape of the result, in whose dimensions they are counted."""


@dataclass(frozen=True)
class Images:
    """Channels and the sizes of an image are the last dimensions; there is at most one, of the batch, before them."""

    kept: int | None = None
    """How many dimensions an image has; None: one more than the op's name or its second argument says."""
    sizes: str | None = None
    """The parameter that is a whole shape, the batch included."""
    channels: bool = True
    """Whether channels are independent of one another too."""

    def dimensions(self, name: str, args: Sequence[Any]) -> int:
        """How many dimensions an image has, its channels included, in a call of the op `name`."""
        if self.kept is not None:
            return self.kept
        found = re.search(r"(\d)d", name)
        return int(found[1]) + 1 if found else len(args[1]) + 1


@dataclass(frozen=True)
class Whole:
    """All elements belong together, as in `x.sum()`."""

    along: str
    """The op that does the same along the dimensions that its second parameter names."""
    flat: bool = False
    """Whether that takes one dimension only."""


Axes = Elements | Last | Along | Images | Whole

ELEMENTS = Elements()
ELEMENTS_OF_FIRST = Elements(by_first=True)
LOSS = Elements(reduction="reduction")
MATRICES = Last(2)
