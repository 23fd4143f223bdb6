"""What is known of a pattern that was found: one class for all, under the names that PyTorch has for each kind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ....fx.node import Node
from ....nn.modules.module import Module
from ..backend_config import BackendPatternConfig, DTypeConfig, ObservationType
from ..utils import NodePattern

__all__ = [
    "BatchNormQuantizeHandler", "BinaryOpQuantizeHandler", "CatQuantizeHandler", "ConvReluQuantizeHandler",
    "CopyNodeQuantizeHandler", "CustomModuleQuantizeHandler", "DefaultNodeQuantizeHandler",
    "EmbeddingQuantizeHandler", "FixedQParamsOpQuantizeHandler", "GeneralTensorShapeOpQuantizeHandler",
    "LinearReLUQuantizeHandler", "QuantizeHandler", "RNNDynamicQuantizeHandler", "StandaloneModuleQuantizeHandler",
]  # fmt: skip


def _innermost(node_pattern: NodePattern) -> Any:
    while isinstance(node_pattern, (tuple, list)):
        node_pattern = node_pattern[-1]
    return node_pattern


class QuantizeHandler:
    """A pattern that was found: where it begins, how many tensors it takes, and where its observers stand."""

    config = BackendPatternConfig()

    def __init__(
        self,
        node_pattern: NodePattern,
        modules: dict[str, Module],
        root_node_getter: Callable[[NodePattern], Node] | None = None,
        is_custom_module: bool = False,
        is_standalone_module: bool = False,
    ) -> None:
        self.node_pattern = node_pattern
        self.modules = modules
        self.root_node: Any = (root_node_getter or _innermost)(node_pattern)
        self.is_custom_module_ = is_custom_module
        self.is_standalone_module_ = is_standalone_module
        inputs = self.root_node.args[:2] if isinstance(self.root_node, Node) else ()
        self.num_tensor_args = sum(isinstance(each, Node) for each in inputs)

    @property
    def observation_type(self) -> ObservationType:
        """Where observers stand, which may depend on how many of the arguments are tensors."""
        return self.config._num_tensor_args_to_observation_type.get(self.num_tensor_args, self.config.observation_type)

    @property
    def dtype_configs(self) -> list[DTypeConfig]:
        """The types that the backend takes."""
        return self.config.dtype_configs

    def is_general_tensor_value_op(self) -> bool:
        """Whether the result has the scale of the input."""
        return self.observation_type is ObservationType.OUTPUT_SHARE_OBSERVER_WITH_INPUT

    def is_custom_module(self) -> bool:
        """Whether a user has given classes of their own for the module."""
        return self.is_custom_module_

    def is_standalone_module(self) -> bool:
        """Whether the module is quantized apart."""
        return self.is_standalone_module_


def handler_for(config: BackendPatternConfig) -> type[QuantizeHandler]:
    """The handler of a backend's pattern."""
    return type("ConfiguredQuantizeHandler", (QuantizeHandler,), {"config": config})


class BinaryOpQuantizeHandler(QuantizeHandler):
    """The handler of sums and products of two tensors."""


class CatQuantizeHandler(QuantizeHandler):
    """Tensors end to end."""


class ConvReluQuantizeHandler(QuantizeHandler):
    """The handler of convolutions, with or without a rectifier."""


class LinearReLUQuantizeHandler(QuantizeHandler):
    """The handler of linear layers, with or without a rectifier."""


class BatchNormQuantizeHandler(QuantizeHandler):
    """The handler of batch norms, with or without a rectifier."""


class EmbeddingQuantizeHandler(QuantizeHandler):
    """The handler of embeddings and bags of them."""


class RNNDynamicQuantizeHandler(QuantizeHandler):
    """The handler of recurrent layers and cells."""


class DefaultNodeQuantizeHandler(QuantizeHandler):
    """What takes and gives codes."""


class FixedQParamsOpQuantizeHandler(QuantizeHandler):
    """What gives numbers of a known range."""


class CopyNodeQuantizeHandler(QuantizeHandler):
    """What works on codes as it does on floats."""


class GeneralTensorShapeOpQuantizeHandler(QuantizeHandler):
    """What changes the shape alone."""


class CustomModuleQuantizeHandler(QuantizeHandler):
    """A user's module with classes of its own."""


class StandaloneModuleQuantizeHandler(QuantizeHandler):
    """A module that is quantized apart."""
