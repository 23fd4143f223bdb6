"""What functions and types are called in generated code: as PyTorch calls them, from `torch` on."""

from __future__ import annotations

import builtins
import inspect
import types
import typing
from collections.abc import Callable
from typing import Any

import flambeau

from .._core.tensor import Tensor

_OF_FUNCTIONAL = {
    **dict.fromkeys(
        [
            "adaptive_avg_pool1d", "avg_pool1d", "bilinear", "celu_", "channel_shuffle", "conv1d", "conv2d", "conv3d",
            "conv_tbc", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "cosine_similarity", "hardshrink",
            "native_channel_shuffle", "pairwise_distance", "pdist", "pixel_shuffle", "pixel_unshuffle", "prelu",
            "relu_", "rrelu_", "selu_", "threshold_",
        ],
        "torch",
    ),
    **dict.fromkeys(
        [
            "avg_pool2d", "avg_pool3d", "elu_", "gelu", "hardtanh_", "leaky_relu_", "linear", "logsigmoid", "one_hot",
            "scaled_dot_product_attention", "softplus", "softshrink",
        ],
        "torch._C._nn",
    ),
}  # fmt: skip
"""Functions of `torch.nn.functional` that stand elsewhere in PyTorch."""

_WRITTEN_IN_PYTHON = frozenset((
    "atleast_1d", "atleast_2d", "atleast_3d", "block_diag", "broadcast_shapes", "broadcast_tensors", "cartesian_prod",
    "cdist", "chain_matmul", "einsum", "lu", "meshgrid", "norm", "split", "stft", "tensordot", "unique",
    "unique_consecutive", "unravel_index",
))  # fmt: skip
"""Functions of `torch` that stand in `torch.functional`: in PyTorch, Python code above the compiled part."""

_COMPILED_SPACES = ("linalg", "special", "fft")
"""Namespaces whose functions PyTorch finds in a module of its compiled part."""

_OF_FUNCTIONAL_TOO = frozenset(("rms_norm",))
"""Functions of both namespaces, one object here and two in PyTorch: they go by the name that layers call."""

_OTHER_LAST_NAMES = {"logsigmoid": "log_sigmoid", "threshold": "_threshold"}


def in_torch(module: str) -> str:
    """A module's name as PyTorch's programs say it."""
    package, dot, rest = module.partition(".")
    return f"torch{dot}{rest}" if package == "flambeau" else module


def is_from_torch(obj: Any) -> bool:
    """Whether generated code reaches an object from `torch`."""
    module = getattr(obj, "__module__", None)
    return isinstance(module, str) and module.partition(".")[0] in ("flambeau", "torch")


def is_compiled_in_pytorch(function: Any) -> bool:
    """Whether PyTorch's function of that name takes its arguments as they come, and is no Python code."""
    space, name = _space_of(function), function.__name__
    if space == "nn.functional":
        return name in _OF_FUNCTIONAL
    return space in _COMPILED_SPACES or (space == "" and name not in _WRITTEN_IN_PYTHON)


def _space_of(function: Any) -> str | None:
    """The namespace of one of the package's public functions: '' is `torch` itself; None if it is no such function."""
    module = getattr(function, "__module__", None) or ""
    package, _, rest = module.partition(".")
    if package not in ("flambeau", "torch"):
        return None
    name = getattr(function, "__name__", "")
    if rest == "" and name in _OF_FUNCTIONAL_TOO:
        return "nn.functional"
    return "" if rest.startswith("_") and getattr(flambeau, name, None) is function else rest


def is_method(function: Any) -> bool:
    """Whether a function is a method of tensors, perhaps beside being a function."""
    name = getattr(function, "__name__", "")
    return isinstance(function, types.FunctionType) and (vars(Tensor).get(name) is function or name in _OPERATORS)


def is_only_method(function: Any) -> bool:
    """Whether a function is a method of tensors and nothing else."""
    return is_method(function) and _space_of(function) not in _PUBLIC_SPACES


_PUBLIC_SPACES = ("", "nn.functional", *_COMPILED_SPACES)
_OPERATORS = {
    "__add__": "add", "__sub__": "sub", "__mul__": "mul", "__truediv__": "div", "__mod__": "remainder",
    "__pow__": "pow", "__matmul__": "matmul", "__eq__": "eq", "__ne__": "ne", "__lt__": "lt", "__gt__": "gt",
    "__le__": "le", "__ge__": "ge", "__iadd__": "add_", "__isub__": "sub_", "__imul__": "mul_",
    "__itruediv__": "div_",
}  # fmt: skip
"""Operators that are other methods in PyTorch."""


def own_name(function: Any) -> str:
    """The last part of a function's name in PyTorch."""
    name: str = function.__name__
    if _space_of(function) is None:
        return name
    return _OPERATORS.get(name) or _OTHER_LAST_NAMES.get(name, name)


def qualified_name(function: Callable[..., Any]) -> str:
    """The full name of a function: `torch.nn.functional.relu`, `torch.ops.aten.add.Tensor`, `len`."""
    name = function.__name__
    if getattr(builtins, name, None) is function:
        return name
    if is_only_method(function):
        return f"torch.Tensor.{own_name(function)}"
    if name == "<lambda>":
        name = _name_of_lambda(function)
    space = _space_of(function)
    if space == "" and name in _WRITTEN_IN_PYTHON:
        return f"torch.functional.{name}"
    if space == "nn.functional" and name in _OF_FUNCTIONAL:
        return f"{_OF_FUNCTIONAL[name]}.{own_name(function)}"
    if space in _COMPILED_SPACES:
        return f"torch._C._{space}.{name}"
    if space in ("", "nn.functional"):
        return ".".join(filter(None, ("torch", space, own_name(function) if space else name)))
    module = in_torch(function.__module__).replace("torch._ops", "torch.ops")
    return f"{module}.{name}"


def _name_of_lambda(function: Callable[..., Any]) -> str:
    try:
        return inspect.getsource(function).split("=")[0].strip()
    except Exception as error:
        raise RuntimeError("Unable to represent lambda") from error


def type_text(obj: Any) -> str:
    """A type as an annotation writes it."""
    if isinstance(obj, type) and typing.get_origin(obj) is None:
        return obj.__qualname__ if obj.__module__ == "builtins" else f"{in_torch(obj.__module__)}.{obj.__qualname__}"
    if obj is ...:
        return "..."
    return obj.__name__ if isinstance(obj, types.FunctionType) else repr(obj)


def target_text(target: Any) -> str:
    """A node's target for people: `operator.add`, `builtins.getattr`, `torch.add`; methods and modules by name."""
    if isinstance(target, str):
        return target
    module = getattr(target, "__module__", None)
    if module == "builtins":
        return f"builtins.{target.__name__}"
    if module == "_operator":
        return f"operator.{target.__name__}"
    return qualified_name(target)
