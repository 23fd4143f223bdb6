"""The table of readers: for an operator of ONNX's, a function that computes it with Flambeau's ops.

    @reader("Gather")
    def gather(node: Operator, data: Tensor, indices: Tensor) -> Tensor:
        ...

It is given the node, for its attributes, and a tensor for each operand; None for one that is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from ..._core.tensor import Tensor


@dataclass(slots=True)
class Operator:
    """A node as its reader sees it."""

    kind: str
    opset: int
    attributes: Mapping[str, Any]
    results: int = 1
    """How many results are read."""
    name: str = ""
    graphs: Mapping[str, Callable[..., list[Any]]] = field(default_factory=dict)
    """The bodies of `If`, `Loop` and `Scan`."""

    def get(self, name: str, otherwise: Any = None) -> Any:
        """An attribute, or what stands for it if it is not there."""
        return self.attributes.get(name, otherwise)


Reader = Callable[..., Any]
Function = TypeVar("Function", bound=Reader)

READERS: dict[tuple[str, str], Reader] = {}
"""By domain and operator."""


def reader(*kinds: str, domain: str = "") -> Callable[[Function], Function]:
    """Make the decorated function the reader of these operators."""

    def enter(function: Function) -> Function:
        for kind in kinds:
            if (domain, kind) in READERS:
                raise TypeError(f"there is a reader for {kind!r} already")
            READERS[domain, kind] = function
        return function

    return enter


class NotRead(NotImplementedError):
    """A form of an operator that is not read: why."""


def numbers(value: Tensor) -> list[Any]:
    """The elements of a tensor as Python's numbers."""
    found = value.reshape(-1).tolist()
    assert isinstance(found, list)
    return found


def axes_of(node: Operator, given: Tensor | None) -> list[int] | None:
    """Axes are an attribute in earlier opsets and an operand in later ones."""
    if given is not None:
        return [int(each) for each in numbers(given)]
    found = node.get("axes")
    return None if found is None else [int(each) for each in found]
