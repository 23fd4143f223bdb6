"""Noise for training: dropout in its forms, and samples from a softmax."""

from __future__ import annotations

import math
import warnings
from typing import Any

from ..._core.backend import as_array
from ..._core.device import contiguous_format
from ..._core.dtype import LEGACY_NAMES, bool_, float32
from ..._core.generator import default_generator
from ..._core.modes import THREAD
from ..._core.process.reproducibility import REPRODUCIBILITY
from ..._core.random import sampling
from ..._core.tensor import Tensor
from ..._dispatch.arguments.precision import in_single
from ..._dispatch.axes import ELEMENTS_OF_FIRST
from ..._dispatch.backend_op import BackendOp
from ..._dispatch.changes.inplace import run_inplace
from ..._dispatch.dispatch import Array, primitive, several
from ..._dispatch.public.registry import public
from ..._dispatch.writer import writer
from ..create.like import empty_like, zeros_like

_SELU_FLOOR = 1.7580993408473766
"""Where selu saturates, without the sign: the value that alpha dropout puts in place of what it drops."""


def _noise(input: Any, p: float, features: bool) -> Tensor:
    """Ones with probability 1 - p, else zeros: for each element, or for each feature of each sample."""
    if not features:
        noise = empty_like(input)
    else:
        if input.dim() < 2:
            raise RuntimeError(
                "Feature dropout requires at least 2 dimensions in the input, a batch and a channel dimension, but it "
                f"has shape {list(input.shape)}"
            )
        noise = input.new_empty([*input.shape[:2], *[1] * (input.dim() - 2)])
    return noise.bernoulli_(1 - p)


def _refuse_at_batch() -> None:
    REPRODUCIBILITY.refuse_at_batch(
        "dropout",
        "its random mask follows the places of samples in a batch. Call model.eval(), or train with p=0",
    )


def kept_factors(like: Any, shape: tuple[int, ...], p: float) -> Tensor:
    """What `dropout` multiplies a tensor of `shape` by: zeros with probability `p` < 1, else what keeps the mean."""
    _refuse_at_batch()
    factors: Tensor = like.new_empty(shape).bernoulli_(1 - p).div_(1 - p)
    return factors


def _dropped(input: Tensor, p: float, features: bool, alpha: bool) -> Tensor:
    if p == 1:
        return input * input.new_zeros(())
    _refuse_at_batch()
    noise = _noise(input, p, features)
    if not alpha:
        return input * noise.div_(1 - p)
    # What is dropped becomes the floor of selu; then scaled and shifted so that mean and variance stay.
    scale = 1 / math.sqrt((_SELU_FLOOR * _SELU_FLOOR * p + 1) * (1 - p))
    shift = (noise - 1).mul_(_SELU_FLOOR * scale).add_(_SELU_FLOOR * scale * p)
    return input * noise.mul_(scale) + shift


def _dropout(
    input: Tensor, p: float, train: bool, inplace: bool, features: bool = False, alpha: bool = False
) -> Tensor:
    if not 0.0 <= p <= 1.0:
        raise RuntimeError(f"dropout probability has to be between 0 and 1, but got {p:g}")
    if p == 0 or not train or not input._array.size:
        return input
    kind = input._kind
    if kind.device.type == "cuda" and p < 1 and not (inplace or features or alpha) and kind.dtype.is_floating_point:
        # As PyTorch does there: other numbers, and another node.
        at_once = _drawn_at_once(input, p) if kind.backend.costs_per_call else None
        return native_dropout(input, p, True)[0] if at_once is None else at_once[0]
    if inplace:
        return run_inplace(_dropped, "dropout", input, (p, features, alpha), {})
    return _dropped(input, p, features, alpha)


# ----- the functions of the package --------------------------------------------------------------------------------


def _publish(name: str, features: bool, alpha: bool, doc: str) -> None:
    def new(input: Tensor, p: float, train: bool) -> Tensor:
        return _dropout(input, p, train, False, features, alpha)

    def changing(input: Tensor, p: float, train: bool) -> Tensor:
        return _dropout(input, p, train, True, features, alpha)

    new.__doc__ = doc
    changing.__doc__ = f"In-place form of `{name}`."
    public(method=False, name=name)(new)
    public(method=False, name=f"{name}_")(changing)


_publish("dropout", False, False, "In training: each element dropped with probability `p`, the others scaled up.")
_publish("feature_dropout", True, False, "`dropout` of whole features of each sample.")
_publish("alpha_dropout", False, True, "`dropout` that keeps mean and variance of what selu gives.")
_publish("feature_alpha_dropout", True, True, "`alpha_dropout` of whole features of each sample.")


def _scaled_by_mask(grad: Tensor, mask: Tensor, scale: float) -> Tensor:
    return _native_dropout_backward(grad, mask, scale)


@primitive("NativeDropoutBackwardBackward0", axes=ELEMENTS_OF_FIRST, grad_output=_scaled_by_mask)
@in_single
def _native_dropout_backward(grad_output: Array, mask: Array, scale: float) -> Array:
    return grad_output * mask * scale


@public("ops.aten.native_dropout_backward", function=False, method=False)
def native_dropout_backward(grad_output: Tensor, mask: Tensor, scale: float) -> Tensor:
    """`grad_output * mask * scale`: the derivative of dropout."""
    if not grad_output.dtype.is_floating_point or mask.dtype is not bool_:
        return grad_output * mask * scale
    return _native_dropout_backward(grad_output, mask, float(scale))


def _scale(p: float, train: bool) -> float:
    if not train:
        return 1.0
    return 0.0 if p == 1 else 1 / (1 - p)


@several(
    "NativeDropoutBackward0",
    fuses=False,
    axes=ELEMENTS_OF_FIRST,
    input=lambda grad, p, train, result1: _native_dropout_backward(grad, result1, _scale(p, train)),
)
@in_single
def _native_dropout(input: Array, mask: Array, p: float, train: bool) -> tuple[Array, Array]:
    return (input * mask * _scale(p, train) if train else input.copy("K")), as_array(mask)


@writer("dropout_mask_", writes=("self",), counted=False, draws=True)
def _dropout_mask(self: Array, generator: Any, keep: float, itemsize: int) -> None:
    """True with probability `keep`. On a GPU a thread draws for as many neighbours as 16 bytes of the input hold."""
    sampling.fill_bernoulli(self, generator, keep)


def mask_of_dropout(like: Any, shape: tuple[int, ...], p: float) -> Tensor:
    """The mask that `dropout` of a float32 tensor of `shape` draws on a GPU: true with probability `1 - p`."""
    _refuse_at_batch()
    mask: Tensor = like.new_empty(shape, dtype=bool_)
    _dropout_mask(mask, default_generator, 1 - p, float32.itemsize)
    return mask


_draw_and_drop = BackendOp("draw_and_drop", records=True)
"""`(input, generator, keep)`: what a mask keeps, and the mask, which is drawn by the same kernel."""


def _drawn_at_once(input: Tensor, p: float) -> tuple[Tensor, Tensor] | None:
    """The result and the mask from one kernel, on a device that waits for its next call."""
    if REPRODUCIBILITY.product is not None:
        _refuse_at_batch()
    found: tuple[Tensor, Tensor] | None = _draw_and_drop(input, default_generator, 1 - p)
    modes = THREAD.modes
    if found is not None and modes.grad and input.requires_grad and not modes.inference:
        _native_dropout.record_plainly((input, found[1], p, True), [*found])
    return found


@public(method=False)
def native_dropout(input: Tensor, p: float, train: bool | None) -> tuple[Tensor, Tensor]:
    """`dropout` and its mask; with `train` None as in training."""
    if not input._array.size:
        return input, empty_like(input)
    if not input.dtype.is_floating_point:
        raise RuntimeError(
            f"result type Float can't be cast to the desired output type {LEGACY_NAMES[input.dtype]}: native_dropout "
            "is for floating-point numbers"
        )
    if train is not False:
        _refuse_at_batch()
    if train is not False and 0 <= p < 1 and input._kind.backend.costs_per_call:
        at_once = _drawn_at_once(input, p)
        if at_once is not None:
            return at_once
    mask = empty_like(input, dtype=bool_)
    if train is False:
        mask.fill_(True)
    elif mask.is_cuda:
        _dropout_mask(mask, default_generator, 1 - p, input.itemsize)
    else:
        mask.bernoulli_(1 - p)
    result, kept = _native_dropout(input, mask, p, train is not False)
    return result, kept


# ----- nn.functional -----------------------------------------------------------------------------------------------


def _check_probability(p: float) -> None:
    if p < 0.0 or p > 1.0:  # NaN is found later, by a check with another error
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")


@public("nn.functional.dropout", function=False, method=False)
def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """In training: each element set to zero with probability `p`, the others scaled up so that the mean stays."""
    _check_probability(p)
    return _dropout(input, p, training, inplace)


@public("nn.functional.alpha_dropout", function=False, method=False)
def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """`dropout` that keeps mean and variance of what selu gives."""
    _check_probability(p)
    return _dropout(input, p, training, inplace, alpha=True)


@public("nn.functional.feature_alpha_dropout", function=False, method=False)
def feature_alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """`alpha_dropout` of whole features of each sample."""
    _check_probability(p)
    return _dropout(input, p, training, inplace, features=True, alpha=True)


def _warn_of_rank(name: str, dims: int, spatial: int) -> None:
    warnings.warn(
        f"{name}: Received a {dims}-D input to {name}, which is deprecated and will result in an error in a future "
        f"release. It is for {spatial} spatial dimensions, a channel dimension and possibly a batch dimension; "
        "feature_dropout takes any input.",
        UserWarning,
        stacklevel=4,
    )


def _dropout_of_channels(input: Any, p: float, training: bool, inplace: bool, batched: bool) -> Tensor:
    if batched:
        return _dropout(input, p, training, inplace, features=True)
    result = _dropout(input.unsqueeze(0), p, training, inplace, features=True)
    return input if inplace else result.squeeze(0)


@public("nn.functional.dropout1d", function=False, method=False)
def dropout1d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """`dropout` of whole channels of (batch, channels, length) or (channels, length)."""
    _check_probability(p)
    if input.dim() not in (2, 3):
        raise RuntimeError(
            f"dropout1d: Expected 2D or 3D input, but received a {input.dim()}D input. It drops channels of inputs "
            "with one spatial dimension, a channel dimension and possibly a batch dimension."
        )
    return _dropout_of_channels(input, p, training, inplace, input.dim() == 3)


@public("nn.functional.dropout2d", function=False, method=False)
def dropout2d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """`dropout` of whole channels of (batch, channels, height, width)."""
    _check_probability(p)
    if input.dim() not in (3, 4):
        _warn_of_rank("dropout2d", input.dim(), 2)
    elif input.dim() == 3:
        warnings.warn(
            "dropout2d: Received a 3D input to dropout2d and assuming that channel-wise 1D dropout behavior is "
            "desired: its dimensions are taken as (batch, channels, length). For that, use dropout1d.",
            UserWarning,
            stacklevel=3,
        )
    return _dropout(input, p, training, inplace, features=True)


@public("nn.functional.dropout3d", function=False, method=False)
def dropout3d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """`dropout` of whole channels of (batch, channels, depth, height, width), the batch being optional."""
    _check_probability(p)
    if input.dim() not in (4, 5):
        _warn_of_rank("dropout3d", input.dim(), 3)
    return _dropout_of_channels(input, p, training, inplace, input.dim() == 5)


@public("nn.functional.gumbel_softmax", function=False, method=False)
def gumbel_softmax(logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1) -> Tensor:
    """A sample of a category with these logits, softened by the temperature `tau`.

    `hard`: one-hot samples, with the gradient of the soft ones.
    """
    if eps != 1e-10:
        warnings.warn("`eps` parameter is deprecated and has no effect.", UserWarning, stacklevel=3)
    noise = -empty_like(logits, memory_format=contiguous_format).exponential_().log()
    soft = ((logits + noise) / tau).softmax(dim)
    if not hard:
        return soft
    chosen = zeros_like(logits, memory_format=contiguous_format).scatter_(dim, soft.max(dim, keepdim=True)[1], 1.0)
    return chosen - soft.detach() + soft
