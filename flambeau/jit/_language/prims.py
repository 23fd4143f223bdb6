"""The primitives of the language: `ops.prim.…` and the functions that are written without a namespace."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from ..._core.device import device
from ..._core.tensor import Tensor
from . import plain
from .numbers_of import number_of_dtype, number_of_layout, words
from .types import NotInLanguage


class Raised(Exception):
    """An exception that the program itself raises."""

    def __init__(self, text: str, kind: str) -> None:
        super().__init__(text)
        self.text, self.kind = text, kind


def _raise(message: Any = "", kind: Any = None) -> Any:
    text = str(message)
    raise Raised(text, str(kind) if kind else "RuntimeError")


def _number_to_tensor(value: Any) -> Tensor:
    from flambeau import tensor

    return tensor(value)


def _read(convert: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: convert(value.item() if isinstance(value, Tensor) else value)


def _unwrapped(value: Any) -> Any:
    if value is None:
        raise RuntimeError("Unwrapping null optional")
    return value


def _tensor_attribute(name: str) -> Callable[[Any], Any]:
    def read(value: Any) -> Any:
        if not isinstance(value, Tensor):
            raise NotInLanguage(f"prim::{name} of {type(value).__name__}")
        return getattr(value, name)

    return read


def _dtype(value: Tensor) -> int:
    return number_of_dtype(value.dtype)


def _layout(value: Tensor) -> int:
    return number_of_layout(value.layout)


def _device_attribute(name: str) -> Callable[[Any], Any]:
    return lambda value: getattr(value, name) if isinstance(value, device) else _tensor_attribute(name)(value)


def _device(text: Any, *index: Any) -> Any:
    return device(text, *index)


def _print(*values: Any) -> None:
    sys.stdout.write(" ".join(map(plain.text_of, values)) + "\n")


def _all_defined(*values: Any) -> bool:
    return any(each is not None and bool(each.any()) for each in values if isinstance(each, Tensor))


_TENSOR_ATTRIBUTES = words(
    "is_cuda is_cpu is_xpu is_mps is_meta is_sparse is_sparse_csr is_mkldnn is_quantized is_nested is_vulkan is_ipu "
    "requires_grad grad data itemsize nbytes is_leaf is_mtia is_xla"
)

PRIMS: dict[str, Callable[..., Any]] = {
    "RaiseException": _raise,
    "NumToTensor": _number_to_tensor,
    "unchecked_unwrap_optional": _unwrapped,
    "min": plain.PLAIN["min"],
    "max": plain.PLAIN["max"],
    "abs": abs,
    "rangelist": plain._range_list,
    "dtype": _dtype,
    "layout": _layout,
    "device": _tensor_attribute("device"),
    "shape": lambda value: list(value.shape),
    "name": lambda value: value.name,
    "type": _device_attribute("type"),
    "index": _device_attribute("index"),
    "Print": _print,
    "AutogradAnyNonZero": _all_defined,
    "AutogradAllNonZero": lambda *values: all(bool(each.any()) for each in values),
    "isinstance": lambda *values: True,
    "unsqueeze": lambda value, dim: value.unsqueeze(dim),
    "str": plain.text_of,
    **{name: _tensor_attribute(name) for name in _TENSOR_ATTRIBUTES},
}
"""By the primitive's name without `prim::`."""

FREE: dict[str, Callable[..., Any]] = {
    "int": _read(int),
    "float": _read(float),
    "complex": lambda *parts: complex(*[each.item() if isinstance(each, Tensor) else each for each in parts]),
    "bool": _read(bool),
    "str": plain.text_of,
    "print": _print,
    "range": range,
    "len": len,
    "ord": ord,
    "chr": chr,
    "abs": abs,
    "min": plain.PLAIN["min"],
    "max": plain.PLAIN["max"],
    "sum": sum,
    "all": all,
    "any": any,
    "round": plain.PLAIN["round"],
    "list": list,
    "sorted": sorted,
    "enumerate": lambda values, start=0: list(enumerate(values, start)),
    "zip": lambda *values: list(zip(*values, strict=False)),
    "device": _device,
}
"""What is written without a namespace."""
