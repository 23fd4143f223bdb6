"""Losses: how far an output is from its target."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any, ClassVar

from ..._core.reduction import REDUCTIONS
from ..._core.tensor import Tensor
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
    reduction: str

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
    """Absolute difference."""

    _function = "l1_loss"


class MSELoss(_PlainLoss):
    """Squared difference."""

    _function = "mse_loss"


class SoftMarginLoss(_PlainLoss):
    """Logistic loss of two classes, -1 and 1."""

    _function = "soft_margin_loss"


class MultiLabelMarginLoss(_PlainLoss):
    """Hinge loss of several classes at once, the right ones listed first in the target."""

    _function = "multilabel_margin_loss"


class NLLLoss(_WeightedLoss):
    """Negative log-likelihood of classes; the input holds log-probabilities."""

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
        result: Tensor = F.nll_loss(
            input, target, weight=self.weight, ignore_index=self.ignore_index, reduction=self.reduction
        )
        return result


class NLLLoss2d(NLLLoss):
    """The old name of `NLLLoss` for images."""

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
    """Negative log-likelihood of counts; the input is the mean of a Poisson distribution or its logarithm."""

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
        result: Tensor = F.poisson_nll_loss(
            log_input, target, log_input=self.log_input, full=self.full, eps=self.eps, reduction=self.reduction
        )
        return result


class GaussianNLLLoss(_Loss):
    """Negative log-likelihood of numbers; the input holds means, `var` variances."""

    __constants__: ClassVar[list[str]] = ["full", "eps", "reduction"]

    full: bool
    eps: float

    def __init__(self, *, full: bool = False, eps: float = 1e-6, reduction: str = "mean") -> None:
        super().__init__(reduction=reduction)
        self.full = full
        self.eps = eps

    def forward(self, input: Tensor, target: Tensor, var: Tensor | float) -> Tensor:
        result: Tensor = F.gaussian_nll_loss(input, target, var, full=self.full, eps=self.eps, reduction=self.reduction)
        return result


class KLDivLoss(_Loss):
    """Divergence of the target's distribution from the input's, which is given by log-probabilities."""

    __constants__: ClassVar[list[str]] = ["reduction"]

    log_target: bool

    def __init__(
        self, size_average: Any = None, reduce: Any = None, reduction: str = "mean", log_target: bool = False
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.log_target = log_target

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        result: Tensor = F.kl_div(input, target, reduction=self.reduction, log_target=self.log_target)
        return result


class BCELoss(_WeightedLoss):
    """Cross entropy of probabilities of yes."""

    __constants__: ClassVar[list[str]] = ["reduction"]

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        result: Tensor = F.binary_cross_entropy(input, target, weight=self.weight, reduction=self.reduction)
        return result


class BCEWithLogitsLoss(_Loss):
    """Cross entropy of logits of yes."""

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
        result: Tensor = F.binary_cross_entropy_with_logits(
            input, target, self.weight, pos_weight=self.pos_weight, reduction=self.reduction
        )
        return result


class HingeEmbeddingLoss(_Loss):
    """Distances of similar pairs (target 1), and by how much unlike ones (-1) are nearer than `margin`."""

    __constants__: ClassVar[list[str]] = ["margin", "reduction"]

    margin: float

    def __init__(
        self, margin: float = 1.0, size_average: Any = None, reduce: Any = None, reduction: str = "mean"
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.margin = margin

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        result: Tensor = F.hinge_embedding_loss(input, target, margin=self.margin, reduction=self.reduction)
        return result


class SmoothL1Loss(_Loss):
    """Absolute difference, quadratic below `beta`."""

    __constants__: ClassVar[list[str]] = ["reduction"]

    beta: float

    def __init__(
        self, size_average: Any = None, reduce: Any = None, reduction: str = "mean", beta: float = 1.0
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.beta = beta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        result: Tensor = F.smooth_l1_loss(input, target, reduction=self.reduction, beta=self.beta)
        return result


class HuberLoss(_Loss):
    """Half the squared difference, linear above `delta`."""

    __constants__: ClassVar[list[str]] = ["reduction", "delta"]

    delta: float

    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        super().__init__(reduction=reduction)
        if not isinstance(delta, (float, int)):
            raise TypeError(f"delta must be a float or int, got: {type(delta)}")
        self.delta = delta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        result: Tensor = F.huber_loss(input, target, reduction=self.reduction, delta=self.delta)
        return result


class CrossEntropyLoss(_WeightedLoss):
    """Cross entropy of the logits of classes; the target holds classes or probabilities."""

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
        result: Tensor = F.cross_entropy(
            input,
            target,
            weight=self.weight,
            ignore_index=self.ignore_index,
            reduction=self.reduction,
            label_smoothing=self.label_smoothing,
        )
        return result


class LinearCrossEntropyLoss(_WeightedLoss):
    """A linear layer to logits and their cross entropy, in one."""

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
        result: Tensor = F.linear_cross_entropy(
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
        return result

    def extra_repr(self) -> str:
        return (
            f"in_features={self.linear.in_features}, num_classes={self.num_classes}, "
            f"out_features={self.out_features}, bias={self.linear.bias is not None}, reduction={self.reduction}, "
            f"ignore_index={self.ignore_index}, label_smoothing={self.label_smoothing}, options={self.options}"
        )


class MultiLabelSoftMarginLoss(_WeightedLoss):
    """Logistic loss of several classes at once, each yes or no."""

    __constants__: ClassVar[list[str]] = ["reduction"]

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        result: Tensor = F.multilabel_soft_margin_loss(input, target, weight=self.weight, reduction=self.reduction)
        return result


class CosineEmbeddingLoss(_Loss):
    """One minus the cosine of similar pairs (target 1), and by how much that of unlike ones (-1) exceeds `margin`."""

    __constants__: ClassVar[list[str]] = ["margin", "reduction"]

    margin: float

    def __init__(
        self, margin: float = 0.0, size_average: Any = None, reduce: Any = None, reduction: str = "mean"
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.margin = margin

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        result: Tensor = F.cosine_embedding_loss(input1, input2, target, margin=self.margin, reduction=self.reduction)
        return result


class MarginRankingLoss(_Loss):
    """By how much two scores miss the order that the target asks for: 1, the first is larger; -1, the second."""

    __constants__: ClassVar[list[str]] = ["margin", "reduction"]

    margin: float

    def __init__(
        self, margin: float = 0.0, size_average: Any = None, reduce: Any = None, reduction: str = "mean"
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.margin = margin

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        result: Tensor = F.margin_ranking_loss(input1, input2, target, margin=self.margin, reduction=self.reduction)
        return result


class MultiMarginLoss(_WeightedLoss):
    """Hinge loss of classes: by how much others come nearer than `margin` to the right one."""

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
        result: Tensor = F.multi_margin_loss(
            input, target, p=self.p, margin=self.margin, weight=self.weight, reduction=self.reduction
        )
        return result


def _check_margin(loss: Module, margin: float) -> None:
    if margin <= 0:
        raise ValueError(f"{type(loss).__name__}: expected margin to be greater than 0, got {margin} instead")


class TripletMarginLoss(_Loss):
    """By how much the anchor is not nearer, by `margin`, to the positive example than to the negative one."""

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
        result: Tensor = F.triplet_margin_loss(
            anchor,
            positive,
            negative,
            margin=self.margin,
            p=self.p,
            eps=self.eps,
            swap=self.swap,
            reduction=self.reduction,
        )
        return result


class TripletMarginWithDistanceLoss(_Loss):
    """`TripletMarginLoss` with any distance."""

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
        result: Tensor = F.triplet_margin_with_distance_loss(
            anchor,
            positive,
            negative,
            distance_function=self.distance_function,
            margin=self.margin,
            swap=self.swap,
            reduction=self.reduction,
        )
        return result


class CTCLoss(_Loss):
    """Negative log-likelihood of label sequences over all their alignments with the frames."""

    __constants__: ClassVar[list[str]] = ["blank", "reduction"]

    blank: int
    zero_infinity: bool

    def __init__(self, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False) -> None:
        super().__init__(reduction=reduction)
        self.blank = blank
        self.zero_infinity = zero_infinity

    def forward(self, log_probs: Tensor, targets: Tensor, input_lengths: Tensor, target_lengths: Tensor) -> Tensor:
        result: Tensor = F.ctc_loss(
            log_probs, targets, input_lengths, target_lengths, self.blank, self.reduction, self.zero_infinity
        )
        return result
