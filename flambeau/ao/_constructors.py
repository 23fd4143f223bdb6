"""Constructors by tables: a quantized layer takes the options of the ordinary one and a few of its own, an observer
those of the ranges that it finds. And the setters of configurations.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

import flambeau as torch

CONV = """in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1, bias=True,
    padding_mode='zeros'"""
CONV_TRANSPOSE = """in_channels, out_channels, kernel_size, stride=1, padding=0, output_padding=0, groups=1, bias=True,
    dilation=1, padding_mode='zeros'"""
EMBEDDING = """num_embeddings, embedding_dim, padding_idx=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False,
    sparse=False, _weight=None"""
EMBEDDING_BAG = """num_embeddings, embedding_dim, max_norm=None, norm_type=2.0, scale_grad_by_freq=False, mode='mean',
    sparse=False, _weight=None, include_last_offset=False"""
PLACE = "device=None, dtype=None"
RANGE = """dtype=torch.quint8, qscheme=torch.per_tensor_affine, reduce_range=False, quant_min=None, quant_max=None,
    eps=torch.finfo(torch.float32).eps, is_dynamic=False, **kwargs"""
RANGE_WITH_FACTORY = RANGE.replace("eps=", "factory_kwargs=None, eps=")
"""What observers of ranges take, without and with options for the buffers that they make."""

CONV_OPTIONS = ("in_channels", "out_channels", "kernel_size", "stride", "padding", "dilation", "groups", "padding_mode")
"""What a convolution has as attributes of the names of its options."""
EMBEDDING_OPTIONS = ("num_embeddings", "embedding_dim", "max_norm", "norm_type", "scale_grad_by_freq", "sparse")
"""What both embeddings have as attributes of the names of their options."""

Body = Callable[[Any, dict[str, Any]], None]


def takes(*options: str) -> Callable[[Body], Callable[..., None]]:
    """Give a function of an instance and its options the parameters of a constructor, as Python's source has them."""
    parameters = ", ".join(options)
    parsed = ast.parse(f"def __init__(self, {parameters}): ...").body[0]
    assert isinstance(parsed, ast.FunctionDef)
    names = [each.arg for each in (*parsed.args.args[1:], *parsed.args.kwonlyargs)]
    given = ", ".join([f"{name!r}: {name}" for name in names])
    if parsed.args.kwarg is not None:
        given += f", **{parsed.args.kwarg.arg}"
    source = f"def __init__(self, {parameters}):\n    return body(self, {{{given}}})\n"

    def decorate(body: Body) -> Callable[..., None]:
        scope: dict[str, Any] = {"body": body, "torch": torch}
        exec(compile(source, __file__, "exec"), scope)
        made: Callable[..., None] = scope["__init__"]
        made.__qualname__, made.__module__ = body.__qualname__, body.__module__
        return made

    return decorate


def shown_as(text: str) -> Any:
    """A `_get_name`: what a layer is called when it is printed, with the name of its class in place of `{}`."""
    return lambda layer: text.format(type(layer).__name__)


def attributes(layer: Any, names: tuple[str, ...]) -> dict[str, Any]:
    """The options that a layer was made with, from its attributes."""
    return {name: getattr(layer, name) for name in names}


def setter(attribute: str, doc: str | None = None, parameter: str = "") -> Any:
    """A method that sets an attribute and returns the object; its parameter has the attribute's name, or another."""
    return _Setter(attribute, doc, parameter or attribute)


class _Setter:
    def __init__(self, attribute: str, doc: str | None, parameter: str) -> None:
        self.attribute, self.doc, self.parameter = attribute, doc, parameter

    def __set_name__(self, owner: type, name: str) -> None:
        source = f"def {name}(self, {self.parameter}):\n    self.{self.attribute} = {self.parameter}\n    return self\n"
        scope: dict[str, Any] = {}
        exec(source, scope)
        made = scope[name]
        made.__doc__, made.__module__, made.__qualname__ = self.doc, owner.__module__, f"{owner.__qualname__}.{name}"
        setattr(owner, name, made)
