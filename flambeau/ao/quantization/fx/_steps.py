"""The steps to codes and back, as nodes of a graph."""

from __future__ import annotations

from typing import Any, TypeGuard

import flambeau as torch

from ....fx.node import Node


def is_call(node: Any, op: str, *targets: Any) -> TypeGuard[Node]:
    """Whether something is a node that calls one of these."""
    return isinstance(node, Node) and node.op == op and node.target in targets


def is_dequantize(node: Any) -> TypeGuard[Any]:
    """A step from codes to floats."""
    return is_call(node, "call_method", "dequantize")


def is_quantize(node: Any) -> TypeGuard[Any]:
    """A step from floats to codes of one scale that is known."""
    return is_call(node, "call_function", torch.quantize_per_tensor)


def is_dynamic(node: Any) -> TypeGuard[Any]:
    """Floats as codes of a scale that is found as they come, and back."""
    return is_dequantize(node) and is_call(node.args[0], "call_function", torch.quantize_per_tensor_dynamic)


def from_codes(node: Any) -> bool:
    """Whether something is the floats of codes that a graph has."""
    return is_dequantize(node) and not is_dynamic(node)


def codes_behind(arg: Any) -> Any:
    """The codes in the place of their floats, in lists too."""
    if isinstance(arg, (list, tuple)):
        return type(arg)(map(codes_behind, arg))
    return arg.args[0] if from_codes(arg) else arg


def all_from_codes(arg: Any) -> bool:
    """Whether an argument, or all of a list, are the floats of codes."""
    return bool(arg) and all(map(from_codes, arg)) if isinstance(arg, (list, tuple)) else from_codes(arg)
