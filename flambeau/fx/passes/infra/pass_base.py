"""A pass over a graph, under the names of `torch.fx.passes.infra.pass_base`."""

from __future__ import annotations

import abc
from typing import Any, NamedTuple

__all__ = ["PassBase", "PassResult"]


class PassResult(NamedTuple):
    """What a pass made of a module, and whether it changed something."""

    graph_module: Any
    modified: bool


class PassBase(abc.ABC):
    """A pass: `call` does the work, `requires` looks at the module before, `ensures` after."""

    def __call__(self, graph_module: Any) -> PassResult | None:
        self.requires(graph_module)
        result = self.call(graph_module)
        self.ensures(graph_module)
        return result

    @abc.abstractmethod
    def call(self, graph_module: Any) -> PassResult | None:
        """The module after the pass."""

    def requires(self, graph_module: Any) -> None:  # noqa: B027  (a pass need not ask for anything)
        """An error if the pass cannot run on a module."""

    def ensures(self, graph_module: Any) -> None:  # noqa: B027
        """An error if the pass has not done what it should."""
