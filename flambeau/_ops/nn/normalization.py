"""batch_norm and instance_norm: statistics of each channel, of the batch or kept while training."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..._core.device import is_fake
from ..._core.dtype import uint8
from ..._core.geometry.layout import in_format_of
from ..._core.modes import THREAD
from ..._core.node import OpNode
from ..._core.process.reproducibility import REPRODUCIBILITY
from ..._core.tensor import Tensor
from ..._dispatch.changes.inplace import check_no_overlap
from ..._dispatch.composite import derivative
from ..._dispatch.dispatch import Array, Primitive, primitive
from ..._dispatch.public.protocol import as_kind, write_out
from ..._dispatch.public.registry import public
from ..._dispatch.writer import writer
from ..reduce.moments import (
    centred,
    check_parameters,
    standardised_gradient,
    sum_of_samples,
    widened,
    widened_tensor,
)


def _by_channel(values: Any, dims: int) -> Any:
    """Values of each channel, so shaped that they meet dimension 1."""
    return None if values is None else values.reshape(1, -1, *[1] * (dims - 2))


def _batch_norm_kernel(
    input: Array,
    weight: Array | None,
    bias: Array | None,
    running_mean: Array | None,
    running_var: Array | None,
    training: bool,
    eps: float,
    kept: Any,
) -> tuple[Array, Array, Array, Array]:
    """The result, then the mean and 1 / deviation that the derivative needs (of evaluation: nothing), the variance."""
    dims = input.ndim
    wide = widened(input)
    if training:
        rest, mean, variance = centred(wide, (0, *range(2, dims)))
        mean, variance = mean.reshape(-1).astype(kept, copy=False), variance.reshape(-1)
        if kept.itemsize == 2 and kept.name == "bfloat16":  # PyTorch has the sum of the squares in bfloat16 too
            count = variance.dtype.type(input.size // max(variance.size, 1))
            variance = widened((widened((variance * count).astype(kept)) / count).astype(kept))
        rstd = (1 / np.sqrt(variance + variance.dtype.type(eps))).astype(kept, copy=False)
        if kept.itemsize == 2:  # what the derivative sees is what is used
            rest = wide - _by_channel(widened(mean), dims)
    else:
        variance = widened(running_var)
        mean, rstd = running_mean, 1 / np.sqrt(variance + variance.dtype.type(eps))
        rest = wide - _by_channel(widened(mean), dims)
    rest *= _by_channel(widened(rstd) if weight is None else widened(rstd) * widened(weight), dims)
    if bias is not None:
        rest += _by_channel(widened(bias), dims)
    result = in_format_of(rest.astype(input.dtype, copy=False), input)
    if not training:
        mean = rstd = np.empty(0, kept, like=input)
    return result, mean, rstd, variance


@derivative("batch_norm_backward")
def _batch_norm_gradients(
    grads: list[Any],
    needed: tuple[bool, ...],
    input: Any,
    weight: Any,
    running_mean: Any,
    running_var: Any,
    training: bool,
    eps: float,
    result1: Any,
    result2: Any,
) -> list[Any]:
    grad, of_mean, of_rstd = (widened_tensor(each) for each in grads[:3])
    x, scale = widened_tensor(input), widened_tensor(weight)
    count = input.ndim
    dims = (0, *range(2, count))
    if training:
        mean, rstd = widened_tensor(result1), widened_tensor(result2)
    else:
        mean, rstd = widened_tensor(running_mean), 1 / (widened_tensor(running_var) + eps) ** 0.5
        of_mean = of_rstd = None
    mean, rstd, scale = (_by_channel(each, count) for each in (mean, rstd, scale))
    of_input = of_weight = of_bias = None
    if needed[0]:
        scaled = grad if grad is None or scale is None else grad * scale
        if training:
            of_mean, of_rstd = _by_channel(of_mean, count), _by_channel(of_rstd, count)
            of_input = standardised_gradient(scaled, of_mean, of_rstd, x, mean, rstd, dims)
        elif scaled is not None:
            of_input = scaled * rstd
    if needed[1] and grad is not None:
        of_weight = sum_of_samples(grad * ((x - mean) * rstd), dims)
    if needed[2] and grad is not None:
        of_bias = sum_of_samples(grad, dims)
    return [of_input, of_weight, of_bias]


def _recorded_as(name: str, node: str) -> Primitive[..., Any]:
    """Batch normalisation under the names of one of PyTorch's ops and of its node."""
    make = primitive(node, op_name=name, joint=_batch_norm_gradients, differentiable=("input", "weight", "bias"))
    return make(_batch_norm_kernel)


_native = _recorded_as("native_batch_norm", "NativeBatchNormBackward0")
_legit = _recorded_as("native_batch_norm_legit", "NativeBatchNormLegitBackward0")
_legit_without_statistics = _recorded_as("native_batch_norm_legit_no_stats", "NativeBatchNormLegitBackward1")
_with_update = _recorded_as("batch_norm_with_update", "BatchNormWithUpdateBackward0")
_without_training = _recorded_as("native_batch_norm_legit_no_training", "NativeBatchNormLegitNoTrainingBackward0")


def _check_channels(input: Tensor, **values: Tensor | None) -> None:
    channels = input._array.shape[1] if input._array.ndim > 1 else 0
    for name, each in values.items():
        if each is not None and each._array.size != channels:
            raise RuntimeError(
                f"{name} should contain {channels} elements not {each._array.size}: one for each channel of the input "
                f"of shape {list(input._array.shape)}"
            )


_CHECKED: dict[Any, Any] = {}
_MOST_CHECKED = 1024
"""For the shapes and kinds of what fits together the type in which statistics are kept."""


def _checked(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
) -> Any:
    if not training and (running_mean is None or running_var is None):
        missing = "running_mean" if running_mean is None else "running_var"
        raise RuntimeError(f"{missing} must be defined in evaluation mode")
    _check_channels(input, running_mean=running_mean, running_var=running_var, weight=weight, bias=bias)
    for each in (running_mean, running_var):
        if each is not None and each._array.ndim != 1:
            raise RuntimeError(
                f"TensorAccessor expected 1 dims but tensor has {each._array.ndim}: a running statistic of batch_norm "
                f"has the shape {list(each._array.shape)}"
            )
    if training and (running_mean is None) is not (running_var is None):
        raise ValueError("running_mean and running_var must either both be None or neither be None")
    return check_parameters("batch_norm", input, weight, bias, running_mean, running_var)


def _normalised(
    op: Primitive[..., tuple[Tensor, ...]],
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """Check, compute, and move the running statistics; the result, and what the derivative keeps of the statistics."""
    given = weight, bias, running_mean, running_var
    layouts = tuple([None if each is None else (each._array.shape, each._kind) for each in given])
    key = input._array.shape, input._kind, layouts, training
    kept = _CHECKED.get(key)
    if kept is None:  # networks repeat their shapes: these are checked once
        kept = _checked(input, weight, bias, running_mean, running_var, training)
        if len(_CHECKED) >= _MOST_CHECKED:
            _CHECKED.clear()
        _CHECKED[key] = kept
    if THREAD.modes.grad:
        for name, each in (("running_mean", running_mean), ("running_var", running_var)):
            if each is not None and each.requires_grad:
                raise RuntimeError(
                    f"The function 'native_batch_norm' is not differentiable with respect to argument '{name}'. "
                    "This input cannot have requires_grad True."
                )
    if type(momentum) is not float:
        momentum = as_kind("batch_norm", "momentum", momentum, "float")
    run = _packed_last if THREAD.modes.saved_hooks and not input._is_wrapper else _moving
    args = input, weight, bias, running_mean, running_var, training, eps, kept
    result, mean, rstd, variance = run(op, args, momentum)
    if (
        not training and input._kind.dataless and not is_fake(input._kind.device)
    ):  # there these two have a shape all the same
        mean = rstd = input.new_empty(variance._array.shape, dtype=mean.dtype)
    return result, mean, rstd


def _moving(op: Primitive[..., tuple[Tensor, ...]], args: tuple[Any, ...], momentum: float) -> tuple[Tensor, ...]:
    """The results of `op`, after it has moved the running statistics."""
    input, _, _, running_mean, running_var, training, *_ = args
    results = op(*args)
    if training and running_mean is not None and running_var is not None:
        _move_both(running_mean, running_var, results[1], results[3], momentum, input._array.size)
    return results


def _packed_last(op: Primitive[..., tuple[Tensor, ...]], args: tuple[Any, ...], momentum: float) -> tuple[Tensor, ...]:
    """`_moving`, where hooks see the saved tensors last: as in PyTorch, a checkpoint that stops there has moved the
    statistics.
    """
    modes = THREAD.modes
    hooks, modes.saved_hooks = modes.saved_hooks, []
    try:
        results = _moving(op, args, momentum)
    finally:
        modes.saved_hooks = hooks
        modes.refresh()
    node = results[0]._grad_fn
    if isinstance(node, OpNode):
        node.pack_saved(*hooks[-1])
    return results


def _refuse_at_batch() -> None:
    REPRODUCIBILITY.refuse_at_batch(
        "batch_norm",
        "in training its statistics are those of the batch. Call eval() on its module, or use group_norm",
    )


def _with_statistics(*args: Any) -> tuple[Any, Any, Any]:
    """`_normalised` for functions that hand the statistics out."""
    if args[6]:
        _refuse_at_batch()
    result, mean, rstd = _normalised(*args)
    return result, mean.detach(), rstd.detach()


@writer("move_running_statistics", writes=("running_mean", "running_var"), counted=False)
def _move_both(
    running_mean: Array, running_var: Array, mean: Array, variance: Array, momentum: float, size: int
) -> None:
    """Move the running statistics towards those of a batch of `size` elements.

    Like PyTorch's, it does not count as a change of version.
    """
    count = size // max(variance.size, 1)
    spread = variance * (count / max(count - 1, 1)) if count != 1 else np.full_like(variance, np.nan)
    _move(running_mean, mean, momentum)
    _move(running_var, spread, momentum)


@writer("average_running_statistics", writes=("running",))
def _average_running(running: Array, moved: Array, batch: int) -> None:
    """The statistics of a channel are the means of those of its instances."""
    np.copyto(running, widened(moved).reshape(batch, -1).mean(0), casting="unsafe")


def _move(running: Array, towards: Array, momentum: float) -> None:
    """A step of an exponential average."""
    moved = widened(running) * (1 - momentum) + widened(towards) * momentum
    np.copyto(running, moved, casting="unsafe")


@public(method=False, out=True)
def native_batch_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """`batch_norm`, with the mean and 1 / deviation of the batch."""
    return _with_statistics(_native, input, weight, bias, running_mean, running_var, training, momentum, eps)


@public("ops.aten._native_batch_norm_legit", method=False, out=True)
def _native_batch_norm_legit(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, *statistics_and_options: Any
) -> tuple[Tensor, Tensor, Tensor]:
    """`native_batch_norm`, called with or without `running_mean, running_var` before `training, momentum, eps`."""
    given = statistics_and_options
    if len(given) in (3, 5):
        as_kind("_native_batch_norm_legit", "training", given[-3])
    if len(given) == 5:
        for word, each in zip(
            ("running_mean", "running_var", "momentum", "eps"), (*given[:2], *given[3:]), strict=True
        ):
            as_kind("_native_batch_norm_legit", word, each)
        return _with_statistics(_legit, input, weight, bias, *given)
    if len(given) != 3:
        raise TypeError(f"_native_batch_norm_legit() takes 6 or 8 positional arguments but {len(given) + 3} were given")
    return _with_statistics(_legit_without_statistics, input, weight, bias, None, None, *given)


@public("ops.aten._native_batch_norm_legit_no_training", method=False, out=True)
def _native_batch_norm_legit_no_training(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor,
    running_var: Tensor,
    momentum: float,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """`native_batch_norm` in evaluation."""
    return _with_statistics(_without_training, input, weight, bias, running_mean, running_var, False, momentum, eps)


@public("ops.aten._batch_norm_with_update", function=False, method=False)
def _batch_norm_with_update(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor,
    running_var: Tensor,
    momentum: float,
    eps: float,
    *,
    out: Tensor | None = None,
    save_mean: Tensor | None = None,
    save_invstd: Tensor | None = None,
    reserve: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """`native_batch_norm` in training, with a fourth result, which is empty on the CPU."""
    targets = (out, save_mean, save_invstd, reserve)
    if not (all(each is None for each in targets) or all(isinstance(each, Tensor) for each in targets)):
        raise RuntimeError(
            "Overloaded torch operator invoked from Python failed to match any schema: _batch_norm_with_update takes "
            "the tensors out, save_mean, save_invstd and reserve together or not at all"
        )
    results = _with_statistics(_with_update, input, weight, bias, running_mean, running_var, True, momentum, eps)
    four = (*results, input.new_empty(0, dtype=uint8))
    return four if out is None else write_out(four, targets)


def _of_nothing(input: Tensor, weight: Tensor | None, bias: Tensor | None) -> Tensor:
    """An empty result that is connected to the parameters."""
    result = input.clone()
    if weight is not None:
        result = result * weight[0]
    return result if bias is None else result + bias[0]


@public(method=False, name="batch_norm")
def torch_batch_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool,
) -> Tensor:
    """`nn.functional.batch_norm` with its parameters in another order."""
    if training:
        _refuse_at_batch()
    return _by_channels(input, weight, bias, running_mean, running_var, training, momentum, eps)


def _by_channels(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
) -> Tensor:
    if not input._array.size:
        return _of_nothing(input, weight, bias)
    return _normalised(_native, input, weight, bias, running_mean, running_var, training, momentum, eps)[0]


@public("nn.functional.batch_norm", function=False, method=False)
def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Normalize each channel over the batch: `(input - mean) / sqrt(var + eps) * weight + bias`.

    In training the statistics are those of the batch, and `running_mean` and `running_var` move towards them by
    `momentum`; in evaluation these are what is used.
    """
    if eps <= 0 and (training or eps < 0):
        rule = "positive during training" if training else "non-negative"
        raise ValueError(f"batch_norm eps must be {rule}, but got {eps}")
    if training:
        shape = input._array.shape
        if input._array.ndim and shape[0] * math.prod(shape[2:]) == 1:
            raise ValueError(f"Expected more than 1 value per channel when training, got input size {input.size()}")
    return torch_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, True)


@public(method=False, name="instance_norm")
def torch_instance_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    use_input_stats: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool,
) -> Tensor:
    """`nn.functional.instance_norm` with its parameters in another order."""
    if not use_input_stats and (running_mean is None or running_var is None):
        raise RuntimeError("Expected running_mean and running_var to be defined when use_input_stats is false")
    if input._array.ndim < 2:
        raise RuntimeError(
            f"instance_norm: input needs a batch and a channel dimension, got shape {list(input._array.shape)}"
        )
    batch, channels = input._array.shape[:2]
    weights, biases, means, variances = (
        None if each is None else each.repeat(batch) for each in (weight, bias, running_mean, running_var)
    )
    as_channels = input.contiguous().view(1, batch * channels, *input._array.shape[2:])
    result = _by_channels(as_channels, weights, biases, means, variances, use_input_stats, momentum, eps)
    if use_input_stats and batch and not input._kind.dataless:
        for running, moved in ((running_mean, means), (running_var, variances)):
            if running is not None and moved is not None:
                check_no_overlap(running)
                _average_running(running, moved, batch)
    return result.view(input._array.shape)


@public("nn.functional.instance_norm", function=False, method=False)
def instance_norm(
    input: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """`batch_norm` with the statistics of each sample by itself."""
    if use_input_stats and math.prod(input._array.shape[2:]) == 1:
        raise ValueError(f"Expected more than 1 spatial element when training, got input size {input.size()}")
    return torch_instance_norm(input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, True)


@public("nn.functional.local_response_norm", function=False, method=False)
def local_response_norm(input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Tensor:
    """`input / (k + alpha * mean of the squares of size neighbouring channels) ** beta`."""
    dims = input._array.ndim
    if dims < 3:
        raise ValueError(f"Expected 3D or higher dimensionality                          input (got {dims} dimensions)")
    if not input._array.size:
        return input
    if size <= 0:
        raise RuntimeError(f"kernel size should be greater than zero, but got size {size} of local_response_norm")
    means = _channel_means(input * input, size)
    return input / (means * alpha + k) ** beta


def _channel_means(squares: Tensor, size: int) -> Tensor:
    """The mean over `size` neighbouring channels, those beyond the ends counting as zeros."""
    from ..shape.join import cat

    shape = list(squares._array.shape)
    before, after = size // 2, (size - 1) // 2
    edges = [squares.new_zeros([*shape[:1], each, *shape[2:]]) for each in (before, after)]
    windows = cat([edges[0], squares, edges[1]], 1).unfold(1, size, 1).sum(-1)
    return windows / size if squares.dtype.is_floating_point else windows.div(size, rounding_mode="trunc")
