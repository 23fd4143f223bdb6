"""Writing the parameters and settings of layers to the nodes that call them."""

from __future__ import annotations

from typing import Any

from ... import nn
from ..graph_module import GraphModule

__all__ = ["default_matching", "extract_attrs_for_lowering", "lift_lowering_attrs_to_nodes"]


def default_matching(name: str, target_version: int) -> str:
    """The name under which a layer of a version has an attribute: the same."""
    return name


_ATTRIBUTES: dict[type, tuple[int, tuple[str, ...]]] = {
    nn.Linear: (1, ("weight", "bias")),
    nn.Conv2d: (
        1,
        ("weight", "bias", "kernel_size", "stride", "padding", "dilation", "groups", "padding_mode"),
    ),
    nn.BatchNorm2d: (2, ("weight", "bias", "running_mean", "running_var", "eps")),
    nn.AdaptiveAvgPool2d: (1, ()),
    nn.MaxPool2d: (1, ("kernel_size", "stride", "padding", "dilation", "return_indices", "ceil_mode")),
    nn.ReLU: (1, ("inplace",)),
}
"""The newest version of each class of layers that is known, and what is fetched of it."""


def extract_attrs_for_lowering(mod: nn.Module) -> dict[str, Any]:
    """The name of a layer's class, and its parameters and settings; layers of other classes are refused."""
    full = f"torch.{type(mod).__module__.partition('.')[2]}.{type(mod).__name__}"
    if type(mod) not in _ATTRIBUTES:
        raise RuntimeError(f"{full} is not in the module_fetch_book yet: what is to be fetched of it is not known")
    newest, names = _ATTRIBUTES[type(mod)]
    if mod._version < newest:
        raise RuntimeError(f"{full} has version {mod._version}, and what is fetched is known of version {newest}")
    return {"name": full, **{name: getattr(mod, default_matching(name, mod._version)) for name in names}}


def lift_lowering_attrs_to_nodes(fx_module: GraphModule) -> None:
    """Write what layers have to the nodes that call them, as `attrs_for_lowering`; in graphs inside too."""
    modules = dict(fx_module.named_modules())
    for node in fx_module.graph.nodes:
        if node.op == "call_module":
            inner = modules[str(node.target)]
            if isinstance(inner, GraphModule):
                lift_lowering_attrs_to_nodes(inner)
            else:
                node.attrs_for_lowering = extract_attrs_for_lowering(inner)
