"""Reductions and normalizations of the elements that a mask selects, under the names of `torch.masked`."""

from __future__ import annotations

import importlib
from typing import Any

from .._dispatch.public.registry import namespace
from .._ops.reduce.masked_reduce import input_mask as _input_mask
from .._ops.reduce.masked_reduce import output_mask as _output_mask

_function_named, __all__, __dir__ = namespace("masked")
_OF_TENSORS = {
    "MaskedTensor": "core",
    "as_masked_tensor": "creation",
    "is_masked_tensor": "core",
    "masked_tensor": "creation",
}
__all__ += list(_OF_TENSORS)


def __getattr__(name: str) -> Any:
    if name == "maskedtensor":
        return importlib.import_module("flambeau.masked.maskedtensor")
    if name in _OF_TENSORS:
        return getattr(importlib.import_module(f"flambeau.masked.maskedtensor.{_OF_TENSORS[name]}"), name)
    return _function_named(name)
