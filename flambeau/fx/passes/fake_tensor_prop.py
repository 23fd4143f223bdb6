"""Values without data for all nodes of a graph, under the names of `torch.fx.passes.fake_tensor_prop`."""

from __future__ import annotations

from typing import Any

from ..._core.tensor import Tensor
from ..._torch._subclasses.fake_tensor import FakeTensorMode
from ..interpreter import Interpreter
from ..node import Node, map_aggregate

__all__ = ["FakeTensorProp"]


class FakeTensorProp(Interpreter):
    """Runs a graph on tensors without data and notes each value, in `node.meta["val"]`."""

    def __init__(self, module: Any, mode: FakeTensorMode | None = None) -> None:
        super().__init__(module)
        self._mode = FakeTensorMode(allow_non_fake_inputs=True) if mode is None else mode

    def run_node(self, n: Node) -> Any:
        """The value of a node, which is noted."""
        result = super().run_node(n)
        n.meta["val"] = map_aggregate(
            result, lambda each: each if isinstance(each, (Tensor, int, float, bool)) else None
        )
        return result

    def propagate(self, *args: Any) -> Any:
        """Run the graph on the forms without data of examples; the result."""
        fakes = [self._mode.from_tensor(each) if isinstance(each, Tensor) else each for each in args]
        return self.propagate_dont_convert_inputs(*fakes)

    def propagate_dont_convert_inputs(self, *args: Any) -> Any:
        """Run the graph on tensors that have no data already."""
        self._mode.allow_non_fake_inputs = True
        with self._mode:
            return super().run(*args)
