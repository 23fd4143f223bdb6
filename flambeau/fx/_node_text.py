"""Nodes and their arguments as text for people."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from .._core.tensor import Tensor
from ._target_names import target_text, type_text

if TYPE_CHECKING:
    from .node import Node


def argument_text(arg: Any, max_list_len: float = float("inf")) -> str:
    """An argument with nodes as `%name`; lists and tuples up to a length."""
    if hasattr(arg, "_custom_fx_repr_fn"):
        return str(arg._custom_fx_repr_fn())
    if isinstance(arg, (list, tuple)):
        items = [argument_text(each) for number, each in enumerate(arg) if number < max_list_len]
        rest = "" if len(arg) < max_list_len + 1 else f", ...[total_len={len(arg)}]"
        if isinstance(arg, list):
            return f"[{', '.join(items)}{rest}]"
        return f"({', '.join(items)}{',' if len(arg) == 1 else ''}{rest})"
    if isinstance(arg, dict):
        return "{" + ", ".join(f"{key}: {argument_text(value)}" for key, value in arg.items()) + "}"
    return f"%{arg}" if _is_node(arg) else str(arg)


def _is_node(arg: Any) -> bool:
    from .node import Node

    return isinstance(arg, Node)


def shape_text(shape: Iterable[Any]) -> str:
    """Sizes as a list."""
    return f"[{', '.join(str(size) for size in shape)}]"


def line(
    node: Node, placeholder_names: list[str] | None, return_typename: list[str] | None, with_metadata: bool
) -> str | None:
    """A node in one line; None for an input that went to `placeholder_names` instead."""
    annotation = f"{type_text(node.type)} " if node.type is not None else ""
    start = f"%{node.name} : {annotation}[num_users={len(node.users)}] = {node.op}"
    if node.op == "placeholder":
        if placeholder_names:
            placeholder_names.append(node.target)
            return None
        default = f"(default={node.args[0]})" if node.args else ""
        return f"{start}[target={node.target}]{default}"
    if node.op == "get_attr":
        return f"{start}[target={target_text(node.target)}]"
    if node.op == "output":
        if node.type and return_typename:
            return_typename[0] = f" -> {type_text(node.type)}"
        return f"return {node.args[0]}"
    value = value_of(node)
    if with_metadata and isinstance(value, Tensor):
        annotation = f'Tensor "{tensor_text(value, stride=True, device=True)}"'
        start = f"%{node.name} : {annotation}[num_users={len(node.users)}] = {node.op}"
    return (
        f"{start}[target={target_text(node.target)}](args = {argument_text(node.args)}, "
        f"kwargs = {argument_text(node.kwargs)})"
    )


def value_of(node: Node) -> Any:
    """What is known of a node's value: an example of it, or its properties."""
    meta = node.meta
    return meta.get("val", meta.get("tensor_meta", meta.get("example_value")))


_SHORT_DTYPES = {
    "bfloat16": "bf16", "float64": "f64", "float32": "f32", "float16": "f16", "float8_e4m3fn": "f8e4m3fn",
    "float8_e5m2": "f8e5m2", "float8_e4m3fnuz": "f8e4m3fnuz", "float8_e5m2fnuz": "f8e5m2fnuz",
    "float8_e8m0fnu": "f8e8m0fnu", "float4_e2m1fn_x2": "f4e2m1fnx2", "complex32": "c32", "complex64": "c64",
    "complex128": "c128", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64", "bool": "b8", "uint8": "u8",
    "uint16": "u16", "uint32": "u32", "uint64": "u64",
}  # fmt: skip


def dtype_text(dtype: Any) -> str:
    """A dtype in few letters: `f32`."""
    name = str(dtype).rpartition(".")[2]
    return _SHORT_DTYPES.get(name, name)


def tensor_text(value: Tensor, stride: bool = False, device: bool = False) -> str:
    """What a tensor is, in few letters: `f32[2, 3]`."""
    strides = shape_text(value.stride()) if stride else ""
    return f"{dtype_text(value.dtype)}{shape_text(value.shape)}{strides}{value.device if device else ''}"
