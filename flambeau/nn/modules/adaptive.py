"""Softmax over very many classes: frequent ones at full width, rare ones in clusters of narrower layers."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from ..._core.tensor import Tensor
from ..._ops.index.masked import where
from ..._ops.shape.join import cat
from .. import functional as F
from .container import ModuleList, Sequential
from .linear import Linear
from .module import Module

__all__ = ["AdaptiveLogSoftmaxWithLoss"]

_ASMoutput = namedtuple("_ASMoutput", ["output", "loss"])


class AdaptiveLogSoftmaxWithLoss(Module):
    """The softmax and loss of very many classes: frequent ones at full width, rare ones in clusters of narrower layers.

    Classes are numbered by falling frequency. `log_prob(input)` gives the log-probabilities of all classes,
    `predict(input)` the likeliest ones.

    Args:
        in_features (int): the size of the input's last dimension.
        n_classes (int): how many classes there are.
        cutoffs (sequence of ints): the first class of each cluster, in ascending order.
        div_value (float): by how much each cluster is narrower than the one before. Default: `4.0`.
        head_bias (bool): whether the layer of the frequent classes has a bias. Default: `False`.
        device (device, optional): where the parameters and buffers lie; None means the default device.
        dtype (dtype, optional): the dtype of the parameters and buffers; None means the default dtype.

    Shape:
        input: (N, in_features) or (in_features,)
        target: int64, (N,) or ()
        output: a named tuple: `output`, (N,) or (), the log-probabilities of the targets, and `loss`, their negative
            mean

    Raises:
        ValueError: `cutoffs` are not ascending or not between 1 and n_classes - 1.

    Example:
        >>> layer = flambeau.nn.AdaptiveLogSoftmaxWithLoss(16, 20, cutoffs=[4, 10])
        >>> output, loss = layer(flambeau.ones(3, 16), flambeau.tensor([0, 5, 19]))
        >>> output.shape, loss.shape
        (torch.Size([3]), torch.Size([]))
    """

    in_features: int
    n_classes: int
    cutoffs: list[int]
    div_value: float
    head_bias: bool
    head: Linear
    tail: ModuleList

    def __init__(
        self,
        in_features: int,
        n_classes: int,
        cutoffs: Sequence[int],
        div_value: float = 4.0,
        head_bias: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        cutoffs = list(cutoffs)
        if not cutoffs:
            raise ValueError("cutoffs should be a sequence of length larger than 0")
        bounds = [0, *cutoffs, n_classes]
        whole = all(int(cutoff) == cutoff for cutoff in cutoffs)
        if not whole or any(low >= high for low, high in pairwise(bounds)):
            raise ValueError(
                "cutoffs should be a sequence of unique, positive integers sorted in an increasing order, "
                f"each between 1 and n_classes-1 = {n_classes - 1}, got {cutoffs}"
            )
        self.in_features = in_features
        self.n_classes = n_classes
        self.cutoffs = [*cutoffs, n_classes]
        self.div_value = div_value
        self.head_bias = head_bias
        self.shortlist_size = self.cutoffs[0]
        self.n_clusters = len(self.cutoffs) - 1
        self.head_size = self.shortlist_size + self.n_clusters
        self.head = Linear(in_features, self.head_size, bias=head_bias, device=device, dtype=dtype)
        self.tail = ModuleList()
        for number, (low, high) in enumerate(pairwise(self.cutoffs), 1):
            width = int(in_features // (div_value**number))
            self.tail.append(
                Sequential(
                    Linear(in_features, width, bias=False, device=device, dtype=dtype),
                    Linear(width, high - low, bias=False, device=device, dtype=dtype),
                )
            )

    def reset_parameters(self) -> None:
        """Draw all weights anew."""
        self.head.reset_parameters()
        for inwards, outwards in self.tail:
            inwards.reset_parameters()
            outwards.reset_parameters()

    def forward(self, input_: Tensor, target_: Tensor) -> _ASMoutput:
        if target_.dim() == 0:
            if input_.dim() != 1:
                raise RuntimeError(
                    f"0D target tensor expects 1D input tensors, but found inputs with size {input_.shape}"
                )
            output, loss = self.forward(input_.unsqueeze(0), target_.unsqueeze(0))
            return _ASMoutput(output.squeeze(0), loss)
        self._check(input_, target_)
        cluster: Any = sum((target_ >= cutoff).long() for cutoff in self.cutoffs[:-1])
        column = where(cluster == 0, target_, self.shortlist_size - 1 + cluster)
        output = F.log_softmax(self.head(input_), 1).gather(1, column.unsqueeze(1)).squeeze(1)
        for number, layers in enumerate(self.tail):
            rows = (cluster == number + 1).nonzero().squeeze(1)
            if rows.numel():
                within = (target_[rows] - self.cutoffs[number]).unsqueeze(1)
                local = F.log_softmax(layers(input_[rows]), 1).gather(1, within)
                output = output.index_add(0, rows, local.squeeze(1))
        return _ASMoutput(output, (-output).mean())

    def _check(self, input: Tensor, target: Tensor) -> None:
        if target.dim() > 1:
            raise RuntimeError(f"0D or 1D target tensor expected, multi-target not supported, got {target.dim()}D")
        if input.shape[0] != target.shape[0]:
            raise RuntimeError(
                "Input and target should have the same size in the batch dimension, "
                f"got shapes {tuple(input.shape)} and {tuple(target.shape)}"
            )
        lowest, highest = target.min().item(), target.max().item()
        if lowest < 0 or highest >= self.n_classes:
            raise RuntimeError(
                f"Target values should be in [0, {self.n_classes - 1}], "
                f"but values in range [{lowest}, {highest}] were found. "
            )

    def _get_full_log_prob(self, input: Tensor, head_output: Tensor) -> Tensor:
        """The log-probabilities of all classes, from the head's output."""
        head = F.log_softmax(head_output, 1)
        parts = [head[:, : self.shortlist_size]]
        for number, layers in enumerate(self.tail):
            column = self.shortlist_size + number
            parts.append(F.log_softmax(layers(input), 1) + head[:, column : column + 1])
        return cat(parts, 1)

    def log_prob(self, input: Tensor) -> Tensor:
        """Log-probabilities of all classes, (N, n_classes)."""
        return self._get_full_log_prob(input, self.head(input))

    def predict(self, input: Tensor) -> Tensor:
        """The likeliest class of each row: as `log_prob(input).argmax(1)`, but clusters are asked only where needed."""
        head_output = self.head(input)
        output: Tensor = head_output.argmax(1)
        rows = (output >= self.shortlist_size).nonzero().squeeze(1)
        if rows.numel():
            output[rows] = self._get_full_log_prob(input[rows], head_output[rows]).argmax(1)
        return output
