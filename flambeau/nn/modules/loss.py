"""Losses: how far an output is from its target."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any, ClassVar

from ..._core.reduction import REDUCTIONS
from ..._core.tensor import Tensor
from ..._core.text.inherited_docs import documented_like
from ..._ops.nn.loss.common import reduction_number
from .. import functional as F
from .distance import PairwiseDistance
from .linear import Linear
from .linear_cross_entropy_options import LinearCrossEntropyOptions
from .module import Module

__all__ = [
    "BCELoss",
    "BCEWithLogitsLoss",
    "CTCLoss",
    "CosineEmbeddingLoss",
    "CrossEntropyLoss",
    "GaussianNLLLoss",
    "HingeEmbeddingLoss",
    "HuberLoss",
    "KLDivLoss",
    "L1Loss",
    "LinearCrossEntropyLoss",
    "MSELoss",
    "MarginRankingLoss",
    "MultiLabelMarginLoss",
    "MultiLabelSoftMarginLoss",
    "MultiMarginLoss",
    "NLLLoss",
    "NLLLoss2d",
    "PoissonNLLLoss",
    "SmoothL1Loss",
    "SoftMarginLoss",
    "TripletMarginLoss",
    "TripletMarginWithDistanceLoss",
]


class _Loss(Module):
    """A loss of single elements or samples.

    Args:
        size_average (bool, optional): deprecated; use `reduction`.
        reduce (bool, optional): deprecated; use `reduction`.
        reduction (str): what becomes of the single losses: "mean", "sum", or "none" to keep them. Default: `"mean"`.
    """

    reduction: str

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if cls.__module__ == __name__:
            documented_like(_Loss)(cls)

    def __init__(self, size_average: Any = None, reduce: Any = None, reduction: str = "mean") -> None:
        super().__init__()
        if size_average is not None or reduce is not None:
            reduction = REDUCTIONS[reduction_number("mean", size_average, reduce)]
        self.reduction = reduction


class _WeightedLoss(_Loss):
    weight: Tensor | None

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: Any = None,
        reduce: Any = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)


class _PlainLoss(_Loss):
    """A loss of an input and a target that has no setting but the reduction."""

    __constants__: ClassVar[list[str]] = ["reduction"]
    _function: ClassVar[str]

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        result: Tensor = getattr(F, self._function)(input, target, reduction=self.reduction)
        return result


class L1Loss(_PlainLoss):
    """The absolute difference between input and target.

    `loss = abs(input - target)`

    Shape:
        input, target: any shape, the same for both
        output: a scalar, or with `reduction="none"` the shape of the input

    Raises:
        RuntimeError: the shapes cannot be broadcast together.
        ValueError: `reduction` is none of the three.

    Example:
        >>> flambeau.nn.L1Loss()(flambeau.tensor([1.0, 5.0]), flambeau.tensor([0.0, 2.0]))
        tensor(2.)
    """

    _function = "l1_loss"


@documented_like(L1Loss)
class MSELoss(_PlainLoss):
    """The squared difference between input and target.

    `loss = (input - target) ** 2`

    Raises:
        RuntimeError: the shapes cannot be broadcast together.
        ValueError: `reduction` is none of the three.

    Example:
        >>> flambeau.nn.MSELoss()(flambeau.tensor([1.0, 5.0]), flambeau.tensor([0.0, 2.0]))
        tensor(5.)
    """

    _function = "mse_loss"


class SoftMarginLoss(_PlainLoss):
    """The logistic loss of two classes, -1 and 1.

    `loss = log(1 + exp(-target * input))`

    Shape:
        input, target: any shape, the same for both; targets are -1 or 1
        output: a scalar, or with `reduction="none"` the shape of the input

    Example:
        >>> flambeau.nn.SoftMarginLoss()(flambeau.tensor([0.0, 2.0]), flambeau.tensor([1.0, 1.0]))
        tensor(0.4100)
    """

    _function = "soft_margin_loss"


class MultiLabelMarginLoss(_PlainLoss):
    """The hinge loss of samples with several right classes, which the target lists.

    For each sample the sum over right classes j and wrong classes i of `max(0, 1 - (input[j] - input[i])) / C`. Targets
    list the right classes first; -1 ends the list.

    Shape:
        input: (N, C) or (C,)
        target: int64, the shape of the input
        output: a scalar, or with `reduction="none"` (N,)

    Example:
        >>> scores, right = flambeau.tensor([[0.1, 0.2, 0.4, 0.8]]), flambeau.tensor([[3, 0, -1, 1]])
        >>> flambeau.nn.MultiLabelMarginLoss()(scores, right)
        tensor(0.8500)
    """

    _function = "multilabel_margin_loss"


class NLLLoss(_WeightedLoss):
    """The negative log-likelihood of the right class; the input holds log-probabilities.

    `loss = -weight[target] * input[target]`; the mean is divided by the sum of the weights of the targets.

    Args:
        weight (Tensor, optional): (C,), what each class counts for; None means 1.
        ignore_index (int): targets with this value count neither in the loss nor in its mean. Default: `-100`.

    Shape:
        input: (N, C), (C,) or (N, C, *), log-probabilities such as those of `LogSoftmax`
        target: int64, (N,), () or (N, *), each from 0 to C - 1
        output: a scalar, or with `reduction="none"` the shape of the target

    Raises:
        IndexError: a target is no class.
        ValueError: `reduction` is none of the three, or there are not as many targets as samples.

    Example:
        >>> log_probabilities = flambeau.tensor([[0.5, 0.5], [0.25, 0.75]]).log()
        >>> flambeau.nn.NLLLoss()(log_probabilities, flambeau.tensor([0, 0]))
        tensor(1.0397)
    """

    __constants__: ClassVar[list[str]] = ["ignore_index", "reduction"]

    ignore_index: int

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: Any = None,
        ignore_index: int = -100,
        reduce: Any = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index = ignore_index

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.nll_loss(input, target, weight=self.weight, ignore_index=self.ignore_index, reduction=self.reduction)


class NLLLoss2d(NLLLoss):
    """The old name of `NLLLoss` for images; deprecated.

    Args:
        weight (Tensor, optional): (C,), what each class counts for; None means 1.
        ignore_index (int): targets with this value count neither in the loss nor in its mean. Default: `-100`.

    Shape:
        input: (N, C, H, W), log-probabilities
        target: int64, (N, H, W)
        output: a scalar, or with `reduction="none"` the shape of the target

    Example:
        >>> import warnings
        >>> with warnings.catch_warnings():
        ...     warnings.simplefilter("ignore")
        ...     loss = flambeau.nn.NLLLoss2d()
        >>> loss(flambeau.zeros(1, 2, 1, 1), flambeau.zeros(1, 1, 1, dtype=flambeau.int64))
        tensor(0.)
    """

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: Any = None,
        ignore_index: int = -100,
        reduce: Any = None,
        reduction: str = "mean",
    ) -> None:
        warnings.warn(
            "`NLLLoss2d` has been deprecated. Please use `NLLLoss`, which takes images too", FutureWarning, stacklevel=2
        )
        super().__init__(weight, size_average, ignore_index, reduce, reduction)


class PoissonNLLLoss(_Loss):
    """The negative log-likelihood of counts under Poisson distributions.

    `loss = exp(input) - target * input`, or with `log_input=False` `input - target * log(input + eps)`.

    Args:
        log_input (bool): whether the input is the logarithm of the distribution's mean. Default: `True`.
        full (bool): whether to add Stirling's approximation of `log(target!)` for targets above 1. Default: `False`.
        eps (float): a number added to the input before its logarithm is taken, with `log_input=False`. Default:
            `1e-08`.

    Shape:
        input, target: any shape, the same for both
        output: a scalar, or with `reduction="none"` the shape of the input

    Example:
        >>> flambeau.nn.PoissonNLLLoss()(flambeau.zeros(2), flambeau.tensor([1.0, 3.0]))
        tensor(1.)
    """

    __constants__: ClassVar[list[str]] = ["log_input", "full", "eps", "reduction"]

    log_input: bool
    full: bool
    eps: float

    def __init__(
        self,
        log_input: bool = True,
        full: bool = False,
        size_average: Any = None,
        eps: float = 1e-8,
        reduce: Any = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.log_input = log_input
        self.full = full
        self.eps = eps

    def forward(self, log_input: Tensor, target: Tensor) -> Tensor:
        return F.poisson_nll_loss(
            log_input, target, log_input=self.log_input, full=self.full, eps=self.eps, reduction=self.reduction
        )


class GaussianNLLLoss(_Loss):
    """The negative log-likelihood of numbers under normal distributions.

    `loss = 0.5 * (log(max(var, eps)) + (input - target) ** 2 / max(var, eps))`. Calls take `(input, target, var)`.

    Args:
        full (bool): whether to add the constant `0.5 * log(2 * pi)`. Default: `False`.
        eps (float): the smallest variance that counts. Default: `1e-06`.

    Shape:
        input, target: any shape, the same for both: the means and the numbers
        var: the variances, of the input's shape, or with a last dimension of size 1, or a float
        output: a scalar, or with `reduction="none"` the shape of the input

    Example:
        >>> loss = flambeau.nn.GaussianNLLLoss()
        >>> loss(flambeau.tensor([0.0, 1.0]), flambeau.tensor([2.0, 1.0]), flambeau.ones(2))
        tensor(1.)
    """

    __constants__: ClassVar[list[str]] = ["full", "eps", "reduction"]

    full: bool
    eps: float

    def __init__(self, *, full: bool = False, eps: float = 1e-6, reduction: str = "mean") -> None:
        super().__init__(reduction=reduction)
        self.full = full
        self.eps = eps

    def forward(self, input: Tensor, target: Tensor, var: Tensor | float) -> Tensor:
        return F.gaussian_nll_loss(input, target, var, full=self.full, eps=self.eps, reduction=self.reduction)


class KLDivLoss(_Loss):
    """The Kullback-Leibler divergence of the target's distribution from the input's.

    `loss = target * (log(target) - input)`: the input holds log-probabilities, the target probabilities.
    `reduction="batchmean"` divides the sum by the size of the batch, which is the mathematical definition; `"mean"`
    divides by the number of elements.

    Args:
        reduction (str): what becomes of the single losses: "batchmean", "mean", "sum", or "none" to keep them. Default:
            `"mean"`.
        log_target (bool): whether the target holds log-probabilities too. Default: `False`.

    Shape:
        input, target: any shape, the same for both
        output: a scalar, or with `reduction="none"` the shape of the input

    Raises:
        ValueError: `reduction` is none of the four.

    Example:
        >>> loss = flambeau.nn.KLDivLoss(reduction="batchmean")
        >>> loss(flambeau.tensor([[0.5, 0.5]]).log(), flambeau.tensor([[1.0, 0.0]]))
        tensor(0.6931)
    """

    __constants__: ClassVar[list[str]] = ["reduction"]

    log_target: bool

    def __init__(
        self, size_average: Any = None, reduce: Any = None, reduction: str = "mean", log_target: bool = False
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.log_target = log_target

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.kl_div(input, target, reduction=self.reduction, log_target=self.log_target)


class BCELoss(_WeightedLoss):
    """The cross entropy of probabilities of yes; the target says how far it is yes.

    `loss = -weight * (target * log(input) + (1 - target) * log(1 - input))`, with logarithms kept above -100. For
    logits `BCEWithLogitsLoss` is more exact.

    Args:
        weight (Tensor, optional): factors of the losses, of a shape that broadcasts with the input's.

    Shape:
        input, target: any shape, the same for both; numbers from 0 to 1
        output: a scalar, or with `reduction="none"` the shape of the input

    Raises:
        RuntimeError: an element of the input is not between 0 and 1.
        ValueError: the shapes of input and target differ.

    Example:
        >>> flambeau.nn.BCELoss()(flambeau.tensor([0.5, 0.5]), flambeau.tensor([1.0, 0.0]))
        tensor(0.6931)
    """

    __constants__: ClassVar[list[str]] = ["reduction"]

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.binary_cross_entropy(input, target, weight=self.weight, reduction=self.reduction)


class BCEWithLogitsLoss(_Loss):
    """The cross entropy of logits of yes: a sigmoid and `BCELoss` in one, exact for large logits too.

    `loss = -weight * (pos_weight * target * log(sigmoid(input)) + (1 - target) * log(1 - sigmoid(input)))`

    Args:
        weight (Tensor, optional): factors of the losses, of a shape that broadcasts with the input's.
        pos_weight (Tensor, optional): what a yes counts for, of a shape that broadcasts with the target's; None means
            1.

    Shape:
        input, target: any shape, the same for both; targets from 0 to 1
        output: a scalar, or with `reduction="none"` the shape of the input

    Raises:
        ValueError: the shapes of input and target differ.

    Example:
        >>> flambeau.nn.BCEWithLogitsLoss()(flambeau.tensor([0.0, 100.0]), flambeau.tensor([1.0, 1.0]))
        tensor(0.3466)
    """

    weight: Tensor | None
    pos_weight: Tensor | None

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: Any = None,
        reduce: Any = None,
        reduction: str = "mean",
        pos_weight: Tensor | None = None,
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)
        self.register_buffer("pos_weight", pos_weight)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.binary_cross_entropy_with_logits(
            input, target, self.weight, pos_weight=self.pos_weight, reduction=self.reduction
        )


class HingeEmbeddingLoss(_Loss):
    """The loss of distances: similar pairs should be near, unlike ones further apart than a margin.

    `loss = input if target == 1 else max(0, margin - input)`

    Args:
        margin (float): how far apart unlike pairs should be. Default: `1.0`.

    Shape:
        input, target: any shape, the same for both; targets are 1 for similar pairs and -1 for unlike ones
        output: a scalar, or with `reduction="none"` the shape of the input

    Example:
        >>> flambeau.nn.HingeEmbeddingLoss()(flambeau.tensor([0.5, 0.5]), flambeau.tensor([1.0, -1.0]))
        tensor(0.5000)
    """

    __constants__: ClassVar[list[str]] = ["margin", "reduction"]

    margin: float

    def __init__(
        self, margin: float = 1.0, size_average: Any = None, reduce: Any = None, reduction: str = "mean"
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.margin = margin

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.hinge_embedding_loss(input, target, margin=self.margin, reduction=self.reduction)


@documented_like(L1Loss)
class SmoothL1Loss(_Loss):
    """The absolute difference, rounded off to a parabola near zero.

    `loss = 0.5 * d ** 2 / beta if d < beta else d - 0.5 * beta`, with `d = abs(input - target)`

    Args:
        beta (float): where the parabola ends; 0 gives `L1Loss`. Default: `1.0`.

    Raises:
        RuntimeError: `beta` is negative; raised by the call.

    Example:
        >>> flambeau.nn.SmoothL1Loss(reduction="none")(flambeau.tensor([0.5, 5.0]), flambeau.zeros(2))
        tensor([0.1250, 4.5000])
    """

    __constants__: ClassVar[list[str]] = ["reduction"]

    beta: float

    def __init__(
        self, size_average: Any = None, reduce: Any = None, reduction: str = "mean", beta: float = 1.0
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.beta = beta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.smooth_l1_loss(input, target, reduction=self.reduction, beta=self.beta)


@documented_like(L1Loss)
class HuberLoss(_Loss):
    """Half the squared difference near zero, a straight line beyond.

    `loss = 0.5 * d ** 2 if d < delta else delta * (d - 0.5 * delta)`, with `d = abs(input - target)`

    Args:
        delta (float): where the line begins; positive. Default: `1.0`.

    Raises:
        RuntimeError: `delta` is not positive; raised by the call.

    Example:
        >>> flambeau.nn.HuberLoss(reduction="none")(flambeau.tensor([0.5, 5.0]), flambeau.zeros(2))
        tensor([0.1250, 4.5000])
    """

    __constants__: ClassVar[list[str]] = ["reduction", "delta"]

    delta: float

    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        super().__init__(reduction=reduction)
        if not isinstance(delta, (float, int)):
            raise TypeError(f"delta must be a float or int, got: {type(delta)}")
        self.delta = delta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.huber_loss(input, target, reduction=self.reduction, delta=self.delta)


@documented_like(NLLLoss)
class CrossEntropyLoss(_WeightedLoss):
    """The cross entropy of the logits of classes: a softmax, a logarithm and `NLLLoss` in one.

    `loss = -weight[target] * log(softmax(input)[target])`; the mean is divided by the sum of the weights of the
    targets. A target of floats holds a probability for each class:
    `loss = -sum(weight * target * log(softmax(input)))`.

    Args:
        label_smoothing (float): the share of the target that is spread evenly over all classes, between 0 and 1.
            Default: `0.0`.

    Shape:
        input: (N, C), (C,) or (N, C, *), logits
        target: int64, (N,), () or (N, *), each from 0 to C - 1; or probabilities in the shape of the input
        output: a scalar, or with `reduction="none"` the shape of a target of classes

    Example:
        >>> loss = flambeau.nn.CrossEntropyLoss()
        >>> loss(flambeau.tensor([[0.0, 0.0], [5.0, 0.0]]), flambeau.tensor([1, 0]))
        tensor(0.3499)
        >>> loss(flambeau.zeros(1, 2), flambeau.tensor([[0.3, 0.7]]))
        tensor(0.6931)
    """

    __constants__: ClassVar[list[str]] = ["ignore_index", "reduction", "label_smoothing"]

    ignore_index: int
    label_smoothing: float

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: Any = None,
        ignore_index: int = -100,
        reduce: Any = None,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.cross_entropy(
            input,
            target,
            weight=self.weight,
            ignore_index=self.ignore_index,
            reduction=self.reduction,
            label_smoothing=self.label_smoothing,
        )


class LinearCrossEntropyLoss(_WeightedLoss):
    """A linear layer to logits and their cross entropy in one, which need not hold the logits of the whole batch.

    `loss = CrossEntropyLoss()(input @ linear.weight.T + linear.bias, target)`

    Args:
        in_features (int): the size of the input's last dimension.
        num_classes (int): how many classes there are.
        out_features (tuple of ints): the sizes of further dimensions of the logits, for several predictions per sample.
            Default: `()`.
        bias (bool): whether the linear layer has a bias. Default: `False`.
        device (device, optional): where the parameters and buffers lie; None means the default device.
        dtype (dtype, optional): the dtype of the parameters and buffers; None means the default dtype.
        weight (Tensor, optional): (C,), what each class counts for; None means 1.
        ignore_index (int, optional): targets with this value do not count; None means that all count.
        label_smoothing (float): the share of the target that is spread evenly over all classes, between 0 and 1.
            Default: `0.0`.
        options (LinearCrossEntropyOptions, optional): how the batch is cut into chunks.

    Shape:
        input: (N, in_features) or (in_features,)
        target: int64, (N, *out_features), each from 0 to num_classes - 1; or probabilities (N, num_classes,
            *out_features)
        output: a scalar, or with `reduction="none"` the shape of a target of classes

    Raises:
        RuntimeError: `weight` has another shape than (num_classes,), or `label_smoothing` is not from 0 to 1.

    Attributes:
        linear (Linear): the layer that makes logits

    Example:
        >>> loss = flambeau.nn.LinearCrossEntropyLoss(3, 2)
        >>> loss(flambeau.zeros(4, 3), flambeau.tensor([0, 1, 1, 0]))
        tensor(0.6931, grad_fn=<NllLossBackward0>)
    """

    __constants__: ClassVar[list[str]] = ["num_classes", "out_features", "reduction", "ignore_index", "label_smoothing"]

    num_classes: int
    out_features: tuple[int, ...]
    ignore_index: int | None
    label_smoothing: float
    options: LinearCrossEntropyOptions | None

    def __init__(
        self,
        in_features: int,
        num_classes: int,
        *,
        out_features: tuple[int, ...] = (),
        bias: bool = False,
        device: Any = None,
        dtype: Any = None,
        reduction: str = "mean",
        weight: Tensor | None = None,
        ignore_index: int | None = None,
        label_smoothing: float = 0.0,
        options: LinearCrossEntropyOptions | None = None,
    ) -> None:
        if weight is not None and tuple(weight.shape) != (num_classes,):
            raise RuntimeError(f"expected weight shape to be {(num_classes,)}, got {tuple(weight.shape)}")
        if not 0 <= label_smoothing <= 1:
            raise RuntimeError(f"expected label_smoothing to be in range [0, 1], got {label_smoothing}")
        super().__init__(weight, reduction=reduction)
        self.num_classes = num_classes
        self.out_features = out_features
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing
        self.options = options
        self.linear = Linear(in_features, num_classes * math.prod(out_features), bias=bias, device=device, dtype=dtype)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        linear = self.linear
        logits_shape = (self.num_classes, *self.out_features)
        return F.linear_cross_entropy(
            input,
            linear.weight.reshape(*logits_shape, linear.in_features),
            target,
            linear_bias=None if linear.bias is None else linear.bias.reshape(logits_shape),
            weight=self.weight,
            reduction=self.reduction,
            ignore_index=self.ignore_index,
            label_smoothing=self.label_smoothing,
            options=self.options,
        )

    def extra_repr(self) -> str:
        return (
            f"in_features={self.linear.in_features}, num_classes={self.num_classes}, "
            f"out_features={self.out_features}, bias={self.linear.bias is not None}, reduction={self.reduction}, "
            f"ignore_index={self.ignore_index}, label_smoothing={self.label_smoothing}, options={self.options}"
        )


class MultiLabelSoftMarginLoss(_WeightedLoss):
    """The logistic loss of samples for which each class is yes or no.

    For each sample the mean over the classes of
    `-weight * (target * log(sigmoid(input)) + (1 - target) * log(sigmoid(-input)))`.

    Args:
        weight (Tensor, optional): (C,), what each class counts for; None means 1.

    Shape:
        input: (N, C) or (C,), logits
        target: the shape of the input, 0 or 1
        output: a scalar, or with `reduction="none"` (N,)

    Example:
        >>> flambeau.nn.MultiLabelSoftMarginLoss()(flambeau.zeros(1, 3), flambeau.tensor([[1.0, 0.0, 1.0]]))
        tensor(0.6931)
    """

    __constants__: ClassVar[list[str]] = ["reduction"]

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.multilabel_soft_margin_loss(input, target, weight=self.weight, reduction=self.reduction)


class CosineEmbeddingLoss(_Loss):
    """The loss of angles: similar pairs should point the same way, unlike ones should not.

    `loss = 1 - cos(input1, input2) if target == 1 else max(0, cos(input1, input2) - margin)`

    Args:
        margin (float): the cosine up to which unlike pairs cost nothing, from -1 to 1. Default: `0.0`.

    Shape:
        input1, input2: (N, D) or (D,)
        target: (N,) or (), 1 for similar pairs and -1 for unlike ones
        output: a scalar, or with `reduction="none"` the shape of the target

    Example:
        >>> a, b = flambeau.tensor([[1.0, 0.0]]), flambeau.tensor([[0.0, 2.0]])
        >>> flambeau.nn.CosineEmbeddingLoss()(a, b, flambeau.tensor([1.0]))
        tensor(1.)
    """

    __constants__: ClassVar[list[str]] = ["margin", "reduction"]

    margin: float

    def __init__(
        self, margin: float = 0.0, size_average: Any = None, reduce: Any = None, reduction: str = "mean"
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.margin = margin

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        return F.cosine_embedding_loss(input1, input2, target, margin=self.margin, reduction=self.reduction)


class MarginRankingLoss(_Loss):
    """The loss of two scores in the wrong order.

    `loss = max(0, -target * (input1 - input2) + margin)`

    Args:
        margin (float): by how much the scores should differ. Default: `0.0`.

    Shape:
        input1, input2, target: (N,) or (); a target of 1 wants the first score larger, -1 the second
        output: a scalar, or with `reduction="none"` the shape of the inputs

    Example:
        >>> first, second = flambeau.tensor([3.0, 1.0]), flambeau.tensor([1.0, 2.0])
        >>> flambeau.nn.MarginRankingLoss()(first, second, flambeau.tensor([1.0, 1.0]))
        tensor(0.5000)
    """

    __constants__: ClassVar[list[str]] = ["margin", "reduction"]

    margin: float

    def __init__(
        self, margin: float = 0.0, size_average: Any = None, reduce: Any = None, reduction: str = "mean"
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.margin = margin

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        return F.margin_ranking_loss(input1, input2, target, margin=self.margin, reduction=self.reduction)


class MultiMarginLoss(_WeightedLoss):
    """The hinge loss of classes: the right one should lead every other by a margin.

    For each sample with right class y the sum over the other classes i of
    `weight[y] * max(0, margin - input[y] + input[i]) ** p / C`.

    Args:
        p (int): the exponent, 1 or 2. Default: `1`.
        margin (float): by how much the right class should lead. Default: `1.0`.
        weight (Tensor, optional): (C,), what each class counts for; None means 1.

    Shape:
        input: (N, C) or (C,)
        target: int64, (N,) or ()
        output: a scalar, or with `reduction="none"` the shape of the target

    Raises:
        ValueError: `p` is neither 1 nor 2, or `weight` is not a vector.

    Example:
        >>> flambeau.nn.MultiMarginLoss()(flambeau.tensor([[0.25, 0.75]]), flambeau.tensor([1]))
        tensor(0.2500)
    """

    __constants__: ClassVar[list[str]] = ["p", "margin", "reduction"]

    margin: float
    p: int

    def __init__(
        self,
        p: int = 1,
        margin: float = 1.0,
        weight: Tensor | None = None,
        size_average: Any = None,
        reduce: Any = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        if p not in (1, 2):
            raise ValueError(f"only p == 1 and p == 2 supported, got p={p}")
        if weight is not None and weight.dim() != 1:
            raise ValueError(f"MultiMarginLoss: expected weight to be None or 1D tensor, got {weight.dim()}D instead")
        self.p = p
        self.margin = margin

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.multi_margin_loss(
            input, target, p=self.p, margin=self.margin, weight=self.weight, reduction=self.reduction
        )


def _check_margin(loss: Module, margin: float) -> None:
    if margin <= 0:
        raise ValueError(f"{type(loss).__name__}: expected margin to be greater than 0, got {margin} instead")


class TripletMarginLoss(_Loss):
    """The loss of triplets: an anchor should be nearer to the positive example than to the negative one.

    `loss = max(0, d(anchor, positive) - d(anchor, negative) + margin)`, with `d` the p-norm of the difference. Calls
    take `(anchor, positive, negative)`.

    Args:
        margin (float): by how much nearer; positive. Default: `1.0`.
        p (float): the order of the norm. Default: `2.0`.
        eps (float): a number added to the differences. Default: `1e-06`.
        swap (bool): whether the distance between positive and negative counts, where it is smaller than that to the
            anchor. Default: `False`.

    Shape:
        anchor, positive, negative: (N, D) or (D,)
        output: a scalar, or with `reduction="none"` (N,) or ()

    Example:
        >>> loss = flambeau.nn.TripletMarginLoss()
        >>> loss(flambeau.zeros(1, 2), flambeau.tensor([[3.0, 4.0]]), flambeau.tensor([[0.0, 2.0]]))
        tensor(4.0000)
    """

    __constants__: ClassVar[list[str]] = ["margin", "p", "eps", "swap", "reduction"]

    margin: float
    p: float
    eps: float
    swap: bool

    def __init__(
        self,
        margin: float = 1.0,
        p: float = 2.0,
        eps: float = 1e-6,
        swap: bool = False,
        size_average: Any = None,
        reduce: Any = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        _check_margin(self, margin)
        self.margin = margin
        self.p = p
        self.eps = eps
        self.swap = swap

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        return F.triplet_margin_loss(
            anchor,
            positive,
            negative,
            margin=self.margin,
            p=self.p,
            eps=self.eps,
            swap=self.swap,
            reduction=self.reduction,
        )


class TripletMarginWithDistanceLoss(_Loss):
    """`TripletMarginLoss` with any distance.

    `loss = max(0, d(anchor, positive) - d(anchor, negative) + margin)`. Calls take `(anchor, positive, negative)`.

    Args:
        distance_function (callable, optional): a function of two tensors that returns their distances; None means
            `PairwiseDistance`.
        margin (float): by how much nearer; positive. Default: `1.0`.
        swap (bool): whether the distance between positive and negative counts, where it is smaller than that to the
            anchor. Default: `False`.

    Shape:
        anchor, positive, negative: any shape that the distance takes
        output: a scalar, or with `reduction="none"` the shape of the distances

    Example:
        >>> loss = flambeau.nn.TripletMarginWithDistanceLoss(distance_function=lambda a, b: (a - b).abs().sum(-1))
        >>> loss(flambeau.zeros(1, 2), flambeau.tensor([[3.0, 4.0]]), flambeau.tensor([[0.0, 2.0]]))
        tensor(6.)
    """

    __constants__: ClassVar[list[str]] = ["margin", "swap", "reduction"]

    margin: float
    swap: bool

    def __init__(
        self,
        *,
        distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
        margin: float = 1.0,
        swap: bool = False,
        reduction: str = "mean",
    ) -> None:
        super().__init__(reduction=reduction)
        _check_margin(self, margin)
        self.distance_function = distance_function if distance_function is not None else PairwiseDistance()
        self.margin = margin
        self.swap = swap

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        return F.triplet_margin_with_distance_loss(
            anchor,
            positive,
            negative,
            distance_function=self.distance_function,
            margin=self.margin,
            swap=self.swap,
            reduction=self.reduction,
        )


class CTCLoss(_Loss):
    """The negative log-likelihood of label sequences over all their alignments with longer sequences of frames.

    Calls take `(log_probs, targets, input_lengths, target_lengths)`. "mean" divides each loss by the length of its
    target before it averages over the batch.

    Args:
        blank (int): the class that stands for no label. Default: `0`.
        zero_infinity (bool): whether infinite losses, of targets that do not fit into their frames, and their gradients
            become 0. Default: `False`.

    Shape:
        log_probs: (T, N, C) or (T, C), log-probabilities of each class in each frame
        targets: int, (N, S) with padding, or all targets one after the other
        input_lengths, target_lengths: (N,) or (), tensors or tuples
        output: a scalar, or with `reduction="none"` (N,)

    Example:
        >>> log_probs = flambeau.tensor([[[0.5, 0.5]], [[0.5, 0.5]]]).log()
        >>> flambeau.nn.CTCLoss()(log_probs, flambeau.tensor([[1]]), (2,), (1,))
        tensor(0.2877)
    """

    __constants__: ClassVar[list[str]] = ["blank", "reduction"]

    blank: int
    zero_infinity: bool

    def __init__(self, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False) -> None:
        super().__init__(reduction=reduction)
        self.blank = blank
        self.zero_infinity = zero_infinity

    def forward(self, log_probs: Tensor, targets: Tensor, input_lengths: Tensor, target_lengths: Tensor) -> Tensor:
        return F.ctc_loss(
            log_probs, targets, input_lengths, target_lengths, self.blank, self.reduction, self.zero_infinity
        )
