"""Functions and modules of codes in the place of floats between steps from codes and to codes."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import flambeau as torch

from .... import nn
from ....fx.graph_module import GraphModule
from ....fx.node import Node
from ....nn import functional as F
from ....ops import quantized
from ...nn import intrinsic as nni
from ...nn import quantized as nnq
from ...nn.intrinsic import quantized as nniq
from ...nn.intrinsic.quantized import dynamic as nniqd
from ...nn.quantized import dynamic as nnqd
from ...nn.quantized import reference as nnqr
from ..backend_config import _families as families
from . import _steps as steps
from .fuse import modules_of
from .fuse_handler import set_module
from .utils import get_linear_prepack_op_for_dtype, get_new_attr_name_with_prefix, get_qconv_prepack_op

_CONVOLUTIONS = ("Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d")
_STATIC: dict[type, Any] = {getattr(nnqr, name): getattr(nnq, name) for name in ("Linear", *_CONVOLUTIONS)}
_STATIC_FUSED: dict[type, Any] = {
    getattr(nni, name): getattr(nniq, name)
    for name in (
        "LinearReLU",
        "LinearLeakyReLU",
        "LinearTanh",
        "ConvReLU1d",
        "ConvReLU2d",
        "ConvReLU3d",
        "ConvAdd2d",
        "ConvAddReLU2d",
    )
}
_DYNAMIC: dict[type, Any] = {
    **{
        getattr(nnqr, name): getattr(nnqd, name) for name in ("Linear", "GRUCell", "LSTMCell", "RNNCell", "LSTM", "GRU")
    },
    nni.LinearReLU: nniqd.LinearReLU,
}
_WEIGHT_ONLY: dict[type, Any] = {nnqr.Embedding: nnq.Embedding, nnqr.EmbeddingBag: nnq.EmbeddingBag}
_WITH_SCALE: dict[type, Any] = {
    **{
        getattr(nn, name): getattr(nnq, name)
        for name in ("BatchNorm2d", "BatchNorm3d", "ELU", "LeakyReLU", "Hardswish", "InstanceNorm1d", "InstanceNorm2d",
                     "InstanceNorm3d", "LayerNorm", "Dropout", "Softmax", "PReLU")
    },
    nni.BNReLU2d: nniq.BNReLU2d,
    nni.BNReLU3d: nniq.BNReLU3d,
}  # fmt: skip
_FUNCTIONS_WITH_SCALE: dict[Any, Callable[..., Any]] = {
    F.elu: quantized.elu,
    F.leaky_relu: quantized.leaky_relu,
    F.hardswish: quantized.hardswish,
    F.instance_norm: quantized.instance_norm,
    F.layer_norm: quantized.layer_norm,
    F.group_norm: quantized.group_norm,
    F.dropout: quantized.dropout,
}
_BINARY: dict[Any, tuple[Any, Any]] = {
    **dict.fromkeys((operator.add, torch.add), (quantized.add, quantized.add_relu)),
    **dict.fromkeys((operator.mul, torch.mul), (quantized.mul, quantized.mul_relu)),
    torch.matmul: (quantized.matmul, None),
}
_WEIGHTED: dict[Any, tuple[Any, Any]] = {
    F.linear: (quantized.linear, quantized.linear_relu),
    **{
        getattr(F, name): (vars(quantized)[name], vars(quantized).get(f"{name}_relu"))
        for name in ("conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d")
    },
}
_DYNAMIC_LINEAR = {
    torch.qint8: (quantized.linear_dynamic, quantized.linear_relu_dynamic),
    torch.float16: (quantized.linear_dynamic_fp16, quantized.linear_relu_dynamic_fp16),
}
_ON_CODES = frozenset(
    config.pattern
    for config in (*families.same_codes([]), *families.known_ranges([]), *families.concatenation([]))
    if config.pattern is not nn.Softmax
)
"""What does on codes what it does on floats."""


class Lowering:
    """The way of one graph from floats with steps around them to codes."""

    def __init__(self, model: GraphModule, qconfigs: dict[str, Any]) -> None:
        self.model, self.graph = model, model.graph
        self.modules = modules_of(model)
        self.originals = dict(self.modules)  # a module that is called twice is looked at as it was
        self.qconfigs = qconfigs

    def run(self) -> None:
        """All rules, in the order in which they see each other's results."""
        for rule in (self.static_module, self.dynamic_module, self.weight_only, self.function, self.dynamic_function):
            self._everywhere(rule)
        for rule in (self.binary, self.on_codes, self.with_scale, self.shape):
            self._everywhere(rule)
        self.graph.eliminate_dead_code()

    def _everywhere(self, rule: Callable[[Node], None]) -> None:
        for node in list(self.graph.nodes):
            if node.op in ("call_module", "call_function", "call_method"):
                rule(node)

    def _module(self, node: Any) -> Any:
        return self.originals[str(node.target)] if isinstance(node, Node) and node.op == "call_module" else None

    def _without_relu(self, node: Any) -> tuple[Any, bool]:
        """What comes before a rectifier, and whether there is one."""
        relu = steps.is_call(node, "call_function", *families.EVERY_RELU) or type(self._module(node)) is nn.ReLU
        return (node.args[0], True) if relu else (node, False)

    def _configured(self, node: Node) -> bool:
        return self.qconfigs.get(node.name) is not None

    def _value(self, node: Node) -> Any:
        return getattr(self.model, str(node.target))

    def _codes_instead(self, quantize: Node, made: Node) -> None:
        """Let a node that gives codes stand for a step to codes."""
        quantize.replace_all_uses_with(made)
        self.graph.erase_node(quantize)

    # ----- layers ----------------------------------------------------------------------------------------------------

    def static_module(self, quantize: Node) -> None:
        """A layer between steps, whose result has a known scale."""
        if not steps.is_quantize(quantize):
            return
        node: Any = quantize.args[0]
        module = self._module(node)
        fused = _STATIC_FUSED.get(type(module))
        own = fused if fused is not None and type(module[0]) in _STATIC else _STATIC.get(type(module))
        if own is None or not self._configured(node) or not all(map(steps.from_codes, node.args)):
            return
        scale, zero_point = (self._value(each) for each in quantize.args[1:3])
        set_module(self.modules, str(node.target), own.from_reference(module, float(scale), int(zero_point)))
        node.args = tuple(map(steps.codes_behind, node.args))
        self._codes_instead(quantize, node)

    def dynamic_module(self, node: Node) -> None:
        """A layer that finds the scale of its input itself."""
        module = self._module(node)
        own = _DYNAMIC.get(type(module))
        fused = type(module) is nni.LinearReLU and type(module[0]) is not nnqr.Linear
        if own is None or fused or not node.args or not steps.is_dynamic(node.args[0]):
            return
        set_module(self.modules, str(node.target), own.from_reference(module))
        node.args = tuple(each.args[0].args[0] if steps.is_dynamic(each) else each for each in node.args)

    def weight_only(self, node: Node) -> None:
        """A table whose vectors are codes."""
        module = self._module(node)
        own = _WEIGHT_ONLY.get(type(module))
        if own is not None:
            set_module(self.modules, str(node.target), own.from_reference(module))

    # ----- functions with weights ------------------------------------------------------------------------------------

    def _packed(self, node: Any) -> Node | None:
        """The packed weight of a function, as a node before it; None if its weight is no value of the model."""
        function, (_, weight, *bias_and_options) = node.target, node.args
        quantize: Any = weight.args[0] if steps.is_dequantize(weight) else None
        if quantize is None or not steps.is_call(quantize.args[0], "get_attr", quantize.args[0].target):
            return None
        bias, *options = bias_and_options or [None]
        bias = node.kwargs.get("bias", bias)
        if bias is not None and bias.op != "get_attr":
            return None
        values = [self._get(each) if isinstance(each, Node) else each for each in quantize.args]
        own_bias = None if bias is None else self._get(bias)
        if quantize.op == "call_method":  # to numbers of 16 bits
            packed = get_linear_prepack_op_for_dtype(torch.float16)(values[0], own_bias)
        elif function is F.linear:
            packed = quantized.linear_prepack(quantize.target(*values), own_bias)
        else:
            named = [node.kwargs.get(name, default) for name, default in (("stride", 1), ("padding", 0))]
            filled = [*options, *named[len(options) :]] if len(options) < 2 else options
            further = _further_options(function, filled[2:], node.kwargs)
            packed = get_qconv_prepack_op(function)(quantize.target(*values), own_bias, *filled[:2], *further)
        name = self._free_name("_packed_weight_")
        setattr(self.model, name, packed)
        with self.graph.inserting_before(node):
            return self.graph.create_node("get_attr", name)

    def _free_name(self, prefix: str) -> str:
        return get_new_attr_name_with_prefix(prefix)(self.model)

    def _get(self, node: Node) -> Any:
        value: Any = self.model
        for part in str(node.target).split("."):
            value = getattr(value, part)
        return value.detach() if isinstance(value, torch.Tensor) else value

    def function(self, quantize: Node) -> None:
        """A linear map or a convolution as a function, with a rectifier after it or not."""
        if not steps.is_quantize(quantize):
            return
        node, relu = self._without_relu(quantize.args[0])
        if not (isinstance(node, Node) and node.op == "call_function" and node.target in _WEIGHTED):
            return
        function = _WEIGHTED[node.target][relu]
        if function is None or not self._configured(node) or not steps.from_codes(node.args[0]):
            return
        packed = self._packed(node)
        if packed is None:
            return
        node.target, node.kwargs = function, {}
        node.args = (steps.codes_behind(node.args[0]), packed)
        for parameter in quantize.args[1:3]:  # they stand after the function, whose result they were for
            node.prepend(parameter)
        node.args = (*node.args, *quantize.args[1:3])
        self._codes_instead(quantize, node)

    def dynamic_function(self, node: Node) -> None:
        """A linear map as a function that finds the scale of its input itself."""
        before, relu = self._without_relu(node)
        if not (steps.is_call(before, "call_function", F.linear) and steps.is_dynamic(before.args[0])):
            return
        if not relu and any(self._without_relu(user)[1] for user in before.users) and len(before.users) == 1:
            return  # the rectifier itself comes later
        kind = before.args[0].args[0].args[1]
        packed = self._packed(before)
        if packed is None:
            return
        reduced = () if kind is torch.float16 else (before.args[0].args[0].args[2],)
        weight = torch.float16 if kind is torch.float16 else torch.qint8
        before.target, before.kwargs = _DYNAMIC_LINEAR[weight][relu], {}
        before.args = (before.args[0].args[0].args[0], packed, *reduced)
        if relu:
            node.replace_all_uses_with(before)
            self.graph.erase_node(node)

    # ----- functions without weights ---------------------------------------------------------------------------------

    def binary(self, quantize: Node) -> None:
        """A sum or a product."""
        if not steps.is_quantize(quantize):
            return
        node, relu = self._without_relu(quantize.args[0])
        if not (isinstance(node, Node) and node.op == "call_function" and node.target in _BINARY):
            return
        function = _BINARY[node.target][relu]
        tensors = [each for each in node.args if isinstance(each, Node)]
        if function is None or not self._configured(node) or not tensors or not all(map(steps.from_codes, tensors)):
            return
        arguments = tuple(map(steps.codes_behind, node.args))
        if len(tensors) == 2:
            arguments += tuple(quantize.args[1:3])
        elif not isinstance(node.args[0], Node):
            arguments = arguments[::-1]
        with self.graph.inserting_before(quantize):
            made = self.graph.call_function(function, arguments)
        self._codes_instead(quantize, made)

    def on_codes(self, quantize: Node) -> None:
        """What does on codes what it does on floats; between codes it does so whether it is configured or not."""
        if not steps.is_quantize(quantize):
            return
        node: Any = quantize.args[0]
        module = self._module(node)
        own = type(module) if module is not None else node.target
        if own not in _ON_CODES or not steps.all_from_codes(node.args[0]):
            return
        node.args = (steps.codes_behind(node.args[0]), *node.args[1:])
        self._codes_instead(quantize, node)

    def with_scale(self, quantize: Node) -> None:
        """Activations and norms, whose result has a scale of its own."""
        if not steps.is_quantize(quantize):
            return
        node: Any = quantize.args[0]
        module = self._module(node)
        if not node.args or not steps.from_codes(node.args[0]):
            return
        if type(module) in _WITH_SCALE:
            scale, zero_point = (self._value(each) for each in quantize.args[1:3])
            own = _WITH_SCALE[type(module)]
            make = own.from_float if not hasattr(own, "from_reference") else own.from_reference
            set_module(self.modules, str(node.target), make(module, float(scale), int(zero_point)))
            node.args = (steps.codes_behind(node.args[0]), *node.args[1:])
            self._codes_instead(quantize, node)
        elif node.op == "call_function" and node.target in _FUNCTIONS_WITH_SCALE:
            arguments, named = _of_codes(node)
            names = ("output_scale", "output_zero_point")
            named.update(zip(names, quantize.args[1:3], strict=True))
            with self.graph.inserting_before(quantize):
                made = self.graph.call_function(_FUNCTIONS_WITH_SCALE[node.target], arguments, named)
            self._codes_instead(quantize, made)

    def shape(self, node: Node) -> None:
        """What gives no tensor: codes have a shape too."""
        asks = steps.is_call(node, "call_method", "size") or (
            steps.is_call(node, "call_function", getattr) and node.args[1] in ("shape", "ndim")
        )
        if asks and steps.from_codes(node.args[0]):
            node.args = (steps.codes_behind(node.args[0]), *node.args[1:])


_UNUSED_OF_CODES = {
    F.instance_norm: ("running_mean", "running_var", "use_input_stats", "momentum"),
    F.hardswish: ("inplace",),
    F.elu: ("inplace",),
    F.dropout: ("inplace",),
}
"""Arguments of functions that those of codes do not have."""


def _of_codes(node: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of a function for the one of codes."""
    arguments = (steps.codes_behind(node.args[0]), *node.args[1:])
    named = {name: value for name, value in node.kwargs.items() if name not in _UNUSED_OF_CODES.get(node.target, ())}
    return arguments, named


def _further_options(function: Any, given: list[Any], named: Any) -> list[Any]:
    """What comes after stride and padding, in the order of the packing function."""
    transposed = "transpose" in function.__name__
    names = [("output_padding", 0), ("groups", 1), ("dilation", 1)] if transposed else [("dilation", 1), ("groups", 1)]
    found = [given[at] if at < len(given) else named.get(name, default) for at, (name, default) in enumerate(names)]
    return [found[0], found[2], found[1]] if transposed else found
