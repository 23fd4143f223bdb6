"""Shapes and dtypes of all values of a graph, under the names of `torch.fx.passes.shape_prop`."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..._core.device import channels_last, channels_last_3d, contiguous_format
from ..._core.tensor import Tensor
from ...utils._pytree import tree_map
from ..graph_module import GraphModule
from ..interpreter import Interpreter
from ..node import Node, map_aggregate

__all__ = ["ShapeProp", "TensorMetadata"]


class TensorMetadata(NamedTuple):
    """What a tensor is, without its elements."""

    shape: Any
    dtype: Any
    requires_grad: bool
    stride: tuple[int, ...]
    memory_format: Any
    is_quantized: bool
    qparams: dict[str, Any]


def _extract_tensor_metadata(result: Tensor, include_contiguity: bool = True) -> TensorMetadata:
    formats = [contiguous_format]
    if result.dim() == 4:
        formats.append(channels_last)
    if result.dim() == 5:
        formats.append(channels_last_3d)
    fitting = (each for each in formats if include_contiguity and result.is_contiguous(memory_format=each))
    return TensorMetadata(
        result.shape, result.dtype, result.requires_grad, tuple(result.stride()), next(fitting, None), False, {}
    )


class ShapeProp(Interpreter):
    """Runs a graph on examples and notes what each value is, in `node.meta["tensor_meta"]` and `["type"]`.

    With a `fake_mode` nothing is computed: the examples are looked at for their shapes.
    """

    def __init__(self, gm: GraphModule, fake_mode: Any = None) -> None:
        super().__init__(gm)
        self.fake_mode = fake_mode

    def run_node(self, n: Node) -> Any:
        """The value of a node, which is noted."""
        result = super().run_node(n)
        found = False

        def described(value: Any) -> Any:
            nonlocal found
            if not isinstance(value, Tensor):
                return value
            found = True
            return _extract_tensor_metadata(value)

        meta = map_aggregate(result, described)
        if found:
            n.meta["tensor_meta"] = meta
        n.meta["type"] = type(result)
        return result

    def get_attr(self, target: Any, args: Any, kwargs: Any) -> Any:
        """An attribute, as a tensor without data if nothing is computed."""
        return self._faked(super().get_attr(target, args, kwargs))

    def _faked(self, value: Any) -> Any:
        is_real = isinstance(value, Tensor) and self.fake_mode is not None
        return self.fake_mode.from_tensor(value) if is_real else value

    def propagate(self, *args: Any) -> Any:
        """Run the graph on examples; the result."""
        if self.fake_mode is None:
            return super().run(*args)
        self.fake_mode.allow_non_fake_inputs = True
        with self.fake_mode:
            return super().run(*tree_map(self._faked, args))
