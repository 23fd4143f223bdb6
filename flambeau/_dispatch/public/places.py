"""Where PyTorch has the public functions: in its compiled part or in Python code, as functions or as methods."""

from __future__ import annotations

import sys
import types
from typing import Any

from ..._core.tensor import Tensor
from .overrides import original_of

_PACKAGE = __name__.partition(".")[0]

COMPILED_SPACES = ("fft", "linalg", "special")
"""The namespaces whose functions PyTorch has in a module of its compiled part, under names such as `linalg_inv`."""

OF_FUNCTIONAL = {
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

OF_SPARSE = frozenset(("addmm", "log_softmax", "mm", "sampled_addmm", "softmax", "spdiags"))
"""Functions of `torch.sparse` that PyTorch has compiled."""

WRITTEN_IN_PYTHON = frozenset((
    "atleast_1d", "atleast_2d", "atleast_3d", "block_diag", "broadcast_shapes", "broadcast_tensors", "cartesian_prod",
    "cdist", "chain_matmul", "einsum", "lu", "meshgrid", "norm", "split", "stft", "tensordot", "unique",
    "unique_consecutive", "unravel_index",
))  # fmt: skip
"""Functions of `torch` that stand in `torch.functional`: in PyTorch, Python code above the compiled part."""

_PYTHON_ELSEWHERE = frozenset((
    "from_dlpack", "get_rng_state", "initial_seed", "is_storage", "is_tensor", "lobpcg", "manual_seed", "pca_lowrank",
    "seed", "set_default_tensor_type", "set_rng_state", "svd_lowrank", "thread_safe_generator", "typename",
))  # fmt: skip
"""Further functions of `torch` that are Python code there."""
_PYTHON = WRITTEN_IN_PYTHON | _PYTHON_ELSEWHERE

_OF_FUNCTIONAL_TOO = frozenset(("rms_norm",))
"""Functions of both namespaces, one object here and two in PyTorch: they go by the name that layers call."""


_PUBLIC_SPACES = ("", "nn.functional", *COMPILED_SPACES)
OPERATORS = {
    "__add__": "add", "__sub__": "sub", "__mul__": "mul", "__truediv__": "div", "__mod__": "remainder",
    "__pow__": "pow", "__matmul__": "matmul", "__eq__": "eq", "__ne__": "ne", "__lt__": "lt", "__gt__": "gt",
    "__le__": "le", "__ge__": "ge", "__iadd__": "add_", "__isub__": "sub_", "__imul__": "mul_",
    "__itruediv__": "div_",
}  # fmt: skip
"""Operators that are other methods in PyTorch."""


def is_compiled_in_pytorch(function: Any) -> bool:
    """Whether PyTorch's function of that name takes its arguments as they come, and is no Python code."""
    return is_compiled_at(space_of(function), function.__name__)


def is_compiled_at(space: str | None, name: str) -> bool:
    """Whether a function of a namespace is no Python code in PyTorch."""
    if space == "nn.functional":
        return name in OF_FUNCTIONAL
    if space == "sparse":
        return name in OF_SPARSE
    return space in COMPILED_SPACES or (space == "" and "." not in name and name not in _PYTHON)


def space_of(function: Any) -> str | None:
    """The namespace of one of the package's public functions: '' is `torch` itself; None if it is no such function."""
    module = getattr(function, "__module__", None) or ""
    package, _, rest = module.partition(".")
    if package not in ("flambeau", "torch"):
        return None
    name = getattr(function, "__name__", "")
    if rest == "" and name in _OF_FUNCTIONAL_TOO:
        return "nn.functional"
    if not rest.startswith("_"):
        return rest
    return "" if original_of(getattr(sys.modules[_PACKAGE], name, None)) is original_of(function) else rest


def is_method(function: Any) -> bool:
    """Whether a function is a method of tensors, perhaps beside being a function."""
    name = getattr(function, "__name__", "")
    return isinstance(function, types.FunctionType) and (vars(Tensor).get(name) is function or name in OPERATORS)


def is_only_method(function: Any) -> bool:
    """Whether a function is a method of tensors and nothing else."""
    return is_method(function) and space_of(function) not in _PUBLIC_SPACES
