"""Calls of ops whose operator takes other arguments than the op does, but gives the same results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..._core.device import contiguous_format
from ..._core.dtype import int32
from ..._core.generator import default_generator
from ..._core.kind import kind_of_array
from ..._core.tensor import Tensor

Call = tuple[str, tuple[Any, ...], dict[str, Any]]
"""The operator with its overload, its arguments by position and by name."""


def _drawing(operator: str) -> Callable[..., Call]:
    """Fills a tensor with random numbers."""

    def call(self: Any, generator: Any, *numbers: Any) -> Call:
        options = {} if generator in (None, default_generator) else {"generator": generator}
        return operator, (self, *numbers), options

    return call


def _resized(operator: str, has_corners: bool, count: int) -> Callable[..., Call]:
    """What resizing along `count` dimensions calls, as PyTorch has it."""

    def call(self: Any, size: Any, corners: Any, scales: Any) -> Call:
        given = [None if not each else float(each) for each in scales or ()]
        last = max((number + 1 for number, each in enumerate(given) if each is not None), default=0)
        positional = (self, list(size), bool(corners)) if has_corners else (self, list(size))
        return operator, (*positional, *given[:last]), {}

    return call


def _strided(size: Any, stride: Any, value: Any, kind: Any) -> Call:
    options = {"dtype": kind.dtype, "device": kind.device}
    if value is None:
        return "empty_strided.default", (list(size), list(stride)), options
    return "full.default", (list(size), value), options


def _norm_backward(operator: str) -> Callable[..., Call | None]:
    """The gradients of a norm; None where the statistics have gradients, too, which the operator does not know."""

    def call(grads: Any, needed: Any, input: Any, *rest: Any) -> Call | None:
        if grads[0] is None or any(each is not None for each in grads[1:]):
            return None
        if operator.startswith("native_batch"):
            weight, mean, var, training, eps, *saved = rest
            return operator, (grads[0], input, weight, mean, var, *saved, training, eps, list(needed)), {}
        if operator.startswith("native_layer"):
            shape, weight, bias, mean, rstd = rest
            return operator, (grads[0], input, list(shape), mean, rstd, weight, bias, list(needed)), {}
        weight, *sizes, _, mean, rstd = rest
        return operator, (grads[0], input, mean, rstd, weight, *sizes, list(needed)), {}

    return call


def _convolution_backward(
    grad: Any, input: Any, weight: Any, stride: Any, padding: Any, dilation: Any, transposed: bool,
    output_padding: Any, groups: int, needed: Any,
) -> Call:  # fmt: skip
    channels = weight.shape[1] * groups if transposed else weight.shape[0]
    sizes = [int(channels)] if needed[2] else None
    options = [list(each) for each in (stride, padding, dilation)]
    rest = transposed, list(output_padding), groups, list(needed)
    return "convolution_backward.default", (grad, input, weight, sizes, *options, *rest), {}


def _pool_backward(
    grad: Any, input: Any, indices: Any, kernel_size: Any, stride: Any, padding: Any, dilation: Any
) -> Call:
    sizes = [list(each) for each in (kernel_size, stride, padding, dilation)]
    return "max_pool2d_with_indices_backward.default", (grad, input, *sizes, False, indices), {}


def _softmax_backward(operator: str) -> Callable[..., Call]:
    return lambda grad, output, dim: (operator, (grad, output, dim, output.dtype), {})


def _reduced(name: str) -> Callable[..., Call]:
    """A reduction that is another overload for all dimensions, for one, and for several."""

    def call(self: Any, dim: tuple[int, ...], keepdim: bool) -> Call:
        if len(dim) == self.ndim != 1 and not keepdim:
            return f"{name}.default", (self,), {}
        last = (True,) if keepdim else ()
        return (
            (f"{name}.dim", (self, dim[0], *last), {}) if len(dim) == 1 else (f"{name}.dims", (self, [*dim], *last), {})
        )

    return call


def _indexed(operator: str) -> Callable[..., Call]:
    """Indexing: positions that are arrays are tensors to the operator, and None at the end is left out."""

    def call(target: Any, indices: Sequence[Any], _: Any, *rest: Any) -> Call:
        positions = [_as_tensor(each, target) for each in indices]
        while positions and positions[-1] is None:
            positions.pop()
        return operator, (target, positions, *rest[: None if any(rest[1:]) else 1]), {}

    return call


def _as_tensor(index: Any, target: Any) -> Any:
    if index is None or isinstance(index, Tensor):
        return index
    return Tensor._from_parts((index, kind_of_array(index.dtype, target.device), [0, None]))


def _distinct(self: Any, dim: int | None) -> Call:
    if dim is None:
        return "_unique2.default", (self, True, True, True), {}
    return "unique_dim.default", (self, dim, True, True, True), {}


def _sorted_into(sorted_sequence: Any, values: Any, right: bool, dtype: Any) -> Call:
    options = {"out_int32": True} if dtype is int32 else {}
    return "searchsorted.Tensor", (sorted_sequence, values), {**options, **({"right": True} if right else {})}


def _drawn_around(mean: Any, std: Any, generator: Any) -> Call:
    kinds = ["Tensor" if isinstance(each, Tensor) else "float" for each in (mean, std)]
    options = {} if generator in (None, default_generator) else {"generator": generator}
    return f"normal.{'_'.join(kinds)}", (mean, std), options


_RESIZED = {
    **{f"upsample_nearest{n}d": (f"upsample_nearest{n}d", False, n) for n in (1, 2, 3)},
    **{f"upsample_nearest_exact{n}d": (f"_upsample_nearest_exact{n}d", False, n) for n in (1, 2, 3)},
    "upsample_bilinear2d": ("upsample_bilinear2d", True, 2),
    "upsample_bicubic2d": ("upsample_bicubic2d", True, 2),
    "upsample_trilinear3d": ("upsample_trilinear3d", True, 3),
    "upsample_bilinear2d_aa": ("_upsample_bilinear2d_aa", True, 2),
    "upsample_bicubic2d_aa": ("_upsample_bicubic2d_aa", True, 2),
}
_DRAWN = {
    **{
        name: f"{name}.default"
        for name in ("normal_", "uniform_", "cauchy_", "exponential_", "geometric_", "log_normal_")
    },
    "bernoulli_number_": "bernoulli_.float",
    "bernoulli_tensor_": "bernoulli_.Tensor",
    "random_between_": "random_.from",
}

CALLS: dict[str, Callable[..., Call | None]] = {
    **{name: _reduced(name) for name in ("all", "any")},
    "cdist": lambda x1, x2, p: ("_cdist_forward.default", (x1, x2, p, None), {}),
    "cross": lambda self, other, dim: ("linalg_cross.default", (self, other), {} if dim == -1 else {"dim": dim}),
    "histc": lambda self, bins, low, high: ("histc.default", (self, bins, low, high), {}),
    "index": _indexed("index.Tensor"),
    "index_put": _indexed("index_put.default"),
    "lstsq": lambda self, b, rcond, driver: ("linalg_lstsq.default", (self, b, rcond), {"driver": driver}),
    "matrix_exp": lambda self: ("linalg_matrix_exp.default", (self,), {}),
    "norm_along": lambda self, ord, dim, keepdim: (
        "norm.ScalarOpt_dim",
        (self, ord, list(dim), *((True,) if keepdim else ())),
        {},
    ),
    **dict.fromkeys(("normal_around", "normal_each"), _drawn_around),
    "pdist": lambda self, p: ("_pdist_forward.default", (self, p), {}),
    "searchsorted": _sorted_into,
    "shifted": lambda self, other: ("add.Scalar", (self, other), {}),
    "unique": _distinct,
    "unique_consecutive": lambda self, dim: ("unique_consecutive.default", (self, True, True, dim), {}),
    "batch_norm_backward": _norm_backward("native_batch_norm_backward.default"),
    "contiguous_clone": lambda self: ("clone.default", (self,), {"memory_format": contiguous_format}),
    "convolution_backward": _convolution_backward,
    "div_floor": lambda self, other: ("div.Tensor_mode", (self, other), {"rounding_mode": "floor"}),
    "div_trunc": lambda self, other: ("div.Tensor_mode", (self, other), {"rounding_mode": "trunc"}),
    "full_strided": _strided,
    "group_norm": lambda input, weight, bias, N, C, HxW, group, eps, kept: (
        "native_group_norm.default",
        (input, weight, bias, N, C, HxW, group, eps),
        {},
    ),
    "group_norm_backward": _norm_backward("native_group_norm_backward.default"),
    "layer_norm": lambda input, shape, weight, bias, eps, kept: (
        "native_layer_norm.default",
        (input, list(shape), weight, bias, eps),
        {},
    ),
    "layer_norm_backward": _norm_backward("native_layer_norm_backward.default"),
    "leaky_relu_backward": lambda grad, self, slope: ("leaky_relu_backward.default", (grad, self, slope, False), {}),
    "log_softmax_backward": _softmax_backward("_log_softmax_backward_data.default"),
    "max_pool2d_backward": _pool_backward,
    "reshape_alias": lambda self, size: ("view.default", (self, list(size)), {}) if self.is_contiguous() else None,
    "softmax_backward": _softmax_backward("_softmax_backward_data.default"),
    **{name: _resized(f"{operator}.default", corners, n) for name, (operator, corners, n) in _RESIZED.items()},
    **{name: _drawing(operator) for name, operator in _DRAWN.items()},
}
"""By the name of an op its operator's call, from the op's arguments; None where no operator does what this one does."""
