"""How dimensions of an op's tensors go into those of its results: the field `axes` of an op's record.

`vmap` puts a dimension of examples in front of the tensors, DTensor cuts tensors along a dimension. Both ask the same
question: which dimensions are independent of one another? A record answers it by one of these:

    @primitive("CumsumBackward0", axes=Along("dim"), ...)

Ops to which none of them applies have rules of their own, by name, in `func/_batching` and `distributed/tensor/_rules`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any


class Elements:
    """An element of the results depends on one element of each tensor; the tensors are broadcast."""

    def __init__(self, by_first: bool = False, reduction: str | None = None) -> None:
        self.by_first = by_first
        """Whether the first tensor has the shape of the results: only the others are broadcast."""
        self.reduction = reduction
        """The parameter that says how the elements are reduced to a number in the end, as losses have it."""


class Last:
    """The last `count` dimensions belong together, as those of a matrix do; those before them are independent."""

    def __init__(self, count: int | Callable[..., int], vectors: tuple[str, ...] = ()) -> None:
        self.count = count
        """How many, or a function of the op's arguments that says it."""
        self.vectors = vectors
        """The parameters whose tensors have one dimension less than the others."""


class Along:
    """The dimensions that some parameters name belong together; the others are independent."""

    def __init__(self, *dims: str, extra: int = 0, sizes: str | None = None) -> None:
        self.dims = dims
        self.extra = extra
        """How many dimensions more than the tensor those are counted in: those of the result."""
        self.sizes = sizes
        """The parameter that is the shape of the result, in whose dimensions they are counted."""


class Images:
    """Channels and the sizes of an image are the last dimensions; there is at most one, of the batch, before them."""

    def __init__(self, kept: int | None = None, sizes: str | None = None, channels: bool = True) -> None:
        self.kept = kept
        """How many dimensions an image has; None: one more than the op's name or its second argument says."""
        self.sizes = sizes
        """The parameter that is a whole shape, the batch included."""
        self.channels = channels
        """Whether channels are independent of one another too."""

    def dimensions(self, name: str, args: Sequence[Any]) -> int:
        """How many dimensions an image has, its channels included, in a call of the op `name`."""
        if self.kept is not None:
            return self.kept
        found = re.search(r"(\d)d", name)
        return int(found[1]) + 1 if found else len(args[1]) + 1


class Whole:
    """All elements belong together, as in `x.sum()`."""

    def __init__(self, along: str, flat: bool = False) -> None:
        self.along = along
        """The op that does the same along the dimensions that its second parameter names."""
        self.flat = flat
        """Whether that takes one dimension only."""


Axes = Elements | Last | Along | Images | Whole

ELEMENTS = Elements()
ELEMENTS_OF_FIRST = Elements(by_first=True)
LOSS = Elements(reduction="reduction")
MATRICES = Last(2)
