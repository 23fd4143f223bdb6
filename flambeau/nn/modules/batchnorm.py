"""Batch normalisation, with running statistics."""

from __future__ import annotations

from typing import Any, ClassVar, cast

from ..._core.dtype import int64
from ..._core.process.reproducibility import REPRODUCIBILITY
from ..._core.tensor import Tensor
from ..._core.text.inherited_docs import documented_like
from ..._ops.create.constants import ones, tensor, zeros
from ..._ops.shape.join import cat
from .. import functional as F
from ..parameter import UninitializedBuffer, UninitializedParameter
from .lazy import LazyModuleMixin
from .module import Module
from .normalization import _ScaleAndShift

__all__ = [
    "BatchNorm1d",
    "BatchNorm2d",
    "BatchNorm3d",
    "LazyBatchNorm1d",
    "LazyBatchNorm2d",
    "LazyBatchNorm3d",
    "SyncBatchNorm",
]


class _NormBase(_ScaleAndShift):
    """Scale, shift and running statistics of each feature."""

    _version = 2  # 1: without num_batches_tracked
    __constants__: ClassVar[list[str]] = ["track_running_stats", "momentum", "eps", "num_features", "affine"]

    num_features: int
    eps: float
    momentum: float | None
    affine: bool
    track_running_stats: bool
    running_mean: Tensor | None
    running_var: Tensor | None
    num_batches_tracked: Tensor | None

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        tracked = track_running_stats
        self.register_buffer("running_mean", zeros(num_features, device=device, dtype=dtype) if tracked else None)
        self.register_buffer("running_var", ones(num_features, device=device, dtype=dtype) if tracked else None)
        self.register_buffer("num_batches_tracked", tensor(0, dtype=int64, device=device) if tracked else None)
        self._make_parameters(num_features, device, dtype, weight=affine, bias=affine and bias)

    def reset_running_stats(self) -> None:
        """Forget the batches seen: mean 0, variance 1."""
        if self.track_running_stats:
            cast(Tensor, self.running_mean).zero_()
            cast(Tensor, self.running_var).fill_(1)
            cast(Tensor, self.num_batches_tracked).zero_()

    def reset_parameters(self) -> None:
        """Forget the batches seen; scale by 1, shift by 0."""
        self.reset_running_stats()
        super().reset_parameters()

    def _check_input_dim(self, input: Tensor) -> None:
        raise NotImplementedError(f"{type(self).__name__} does not say which inputs it takes (_check_input_dim)")

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"bias={self.bias is not None}, track_running_stats={self.track_running_stats}"
        )

    def _load_from_state_dict(
        self, state_dict: dict[str, Any], prefix: str, local_metadata: dict[str, Any], *further: Any
    ) -> None:
        if (local_metadata.get("version") or 0) < 2 and self.track_running_stats:
            count = self.num_batches_tracked
            if count is None or count.device.type == "meta":
                count = tensor(0, dtype=int64)
            state_dict.setdefault(prefix + "num_batches_tracked", count)
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *further)


class _BatchNorm(_NormBase):
    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        return self._normalized(input)

    def _normalized(self, input: Tensor) -> Tensor:
        training, tracked = self.training, self.track_running_stats
        factor = self.momentum
        if training and tracked and (count := self.num_batches_tracked) is not None:
            count.add_(1)
            if factor is None:  # the mean of all batches
                factor = 1.0 / float(count)
        mean, variance = self.running_mean, self.running_var
        of_batch = training or (mean is None and variance is None)
        if training and not tracked:
            mean = variance = None
        return F.batch_norm(
            input, mean, variance, self.weight, self.bias, of_batch, 0.0 if factor is None else factor, self.eps
        )


class _InputOf1d:
    """Which inputs a layer takes; the mixins of lazy layers and their final classes share it."""

    def _check_input_dim(self, input: Tensor) -> None:
        if input._array.ndim not in (2, 3):
            raise ValueError(f"expected 2D or 3D input (got {input.dim()}D input)")


class _InputOf2d:
    def _check_input_dim(self, input: Tensor) -> None:
        if input._array.ndim != 4:
            raise ValueError(f"expected 4D input (got {input.dim()}D input)")


class _InputOf3d:
    def _check_input_dim(self, input: Tensor) -> None:
        if input._array.ndim != 5:
            raise ValueError(f"expected 5D input (got {input.dim()}D input)")


class BatchNorm1d(_InputOf1d, _BatchNorm):
    """Normalises each channel of (N, C) or (N, C, L) over the batch and all positions.

    `output = (input - mean) / sqrt(var + eps) * weight + bias`

    In training, mean and biased variance are the batch's, and running statistics follow them:
    `running = (1 - momentum) * running + momentum * batch`, with the unbiased variance. In evaluation the running
    statistics are used.

    Args:
        num_features (int): how many channels C the input has.
        eps (float): a number added to the variance before its root is taken, so that no denominator is zero. Default:
            `1e-05`.
        momentum (float, optional): the weight of the new batch in the running statistics; None averages over all
            batches alike. Default: `0.1`.
        affine (bool): whether the module learns a factor and a bias for each channel. Default: `True`.
        track_running_stats (bool): whether the module keeps running statistics, which it uses in evaluation; otherwise
            it always uses those of its input. Default: `True`.
        device (device, optional): where the parameters and buffers lie; None means the default device.
        dtype (dtype, optional): the dtype of the parameters and buffers; None means the default dtype.
        bias (bool): whether there is a bias, if `affine`. Default: `True`.

    Shape:
        input: (N, C) or (N, C, L)
        output: the shape of the input

    Raises:
        ValueError: the input has another number of dimensions; raised by the call.

    Attributes:
        weight, bias (Parameter or None): (C,), the learned factor and bias
        running_mean, running_var (Tensor or None): (C,), buffers
        num_batches_tracked (Tensor or None): how many batches the running statistics have seen

    Example:
        >>> layer = flambeau.nn.BatchNorm1d(1)
        >>> layer(flambeau.tensor([1.0, 3.0]).view(2, 1)).flatten().tolist()
        [-0.9999949932098389, 0.9999949932098389]
        >>> layer.running_mean
        tensor([0.2000])
    """


@documented_like(BatchNorm1d)
class BatchNorm2d(_InputOf2d, _BatchNorm):
    """Normalises each channel of (N, C, H, W) over the batch and all positions.

    `output = (input - mean) / sqrt(var + eps) * weight + bias`

    In training, mean and biased variance are the batch's, and running statistics follow them:
    `running = (1 - momentum) * running + momentum * batch`, with the unbiased variance. In evaluation the running
    statistics are used.

    Shape:
        input: (N, C, H, W)
        output: the shape of the input

    Example:
        >>> layer = flambeau.nn.BatchNorm2d(1)
        >>> layer(flambeau.tensor([1.0, 3.0]).view(2, 1, 1, 1)).flatten().tolist()
        [-0.9999949932098389, 0.9999949932098389]
        >>> layer.running_mean
        tensor([0.2000])
    """


@documented_like(BatchNorm1d)
class BatchNorm3d(_InputOf3d, _BatchNorm):
    """Normalises each channel of (N, C, D, H, W) over the batch and all positions.

    Shape:
        input: (N, C, D, H, W)
        output: the shape of the input

    Example:
        >>> layer = flambeau.nn.BatchNorm3d(1)
        >>> layer(flambeau.tensor([1.0, 3.0]).view(2, 1, 1, 1, 1)).flatten().tolist()
        [-0.9999949932098389, 0.9999949932098389]
        >>> layer.running_mean
        tensor([0.2000])
    """


class _LazyNormBase(LazyModuleMixin, _NormBase):
    """A normalisation that reads its number of features off its first input."""

    def __init__(
        self,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        # Affine and tracking are switched on afterwards: there is nothing to make before the first input.
        super().__init__(0, eps, momentum, False, False, device, dtype, bias=bias)
        self.affine = affine
        self.track_running_stats = track_running_stats
        if affine:
            self.weight = UninitializedParameter(device=device, dtype=dtype)
            if bias:
                self.bias = UninitializedParameter(device=device, dtype=dtype)
        if track_running_stats:
            self.running_mean = UninitializedBuffer(device=device, dtype=dtype)
            self.running_var = UninitializedBuffer(device=device, dtype=dtype)
            self.num_batches_tracked = tensor(0, dtype=int64, device=device)

    def reset_parameters(self) -> None:
        if not self.has_uninitialized_params() and self.num_features != 0:
            super().reset_parameters()

    def initialize_parameters(self, input: Tensor) -> None:
        """Give parameters and statistics one element for each channel of `input`."""
        if not self.has_uninitialized_params():
            return
        self.num_features = input.shape[1]
        waiting: list[Any] = [self.weight, self.bias] if self.affine else []
        if self.track_running_stats:
            waiting += [self.running_mean, self.running_var]
        for each in waiting:
            if each is not None:
                each.materialize((self.num_features,))
        self.reset_parameters()


@documented_like(BatchNorm1d)
class LazyBatchNorm1d(_InputOf1d, _LazyNormBase, _BatchNorm):
    """A `BatchNorm1d` that takes `num_features` from its first input.

    Until then its parameters have no shape; after the first call the module is a `BatchNorm1d`.

    Example:
        >>> layer = flambeau.nn.LazyBatchNorm1d()
        >>> layer(flambeau.ones(2, 4)).shape
        torch.Size([2, 4])
        >>> layer.num_features
        4
    """

    cls_to_become = BatchNorm1d


@documented_like(LazyBatchNorm1d)
class LazyBatchNorm2d(_InputOf2d, _LazyNormBase, _BatchNorm):
    """A `BatchNorm2d` that takes `num_features` from its first input.

    Until then its parameters have no shape; after the first call the module is a `BatchNorm2d`.

    Shape:
        input: (N, C, H, W)
        output: the shape of the input

    Example:
        >>> layer = flambeau.nn.LazyBatchNorm2d()
        >>> layer(flambeau.ones(2, 4, 3, 3)).shape
        torch.Size([2, 4, 3, 3])
        >>> layer.num_features
        4
    """

    cls_to_become = BatchNorm2d


@documented_like(LazyBatchNorm1d)
class LazyBatchNorm3d(_InputOf3d, _LazyNormBase, _BatchNorm):
    """A `BatchNorm3d` that takes `num_features` from its first input.

    Until then its parameters have no shape; after the first call the module is a `BatchNorm3d`.

    Shape:
        input: (N, C, D, H, W)
        output: the shape of the input

    Example:
        >>> layer = flambeau.nn.LazyBatchNorm3d()
        >>> layer(flambeau.ones(2, 4, 3, 3, 3)).shape
        torch.Size([2, 4, 3, 3, 3])
        >>> layer.num_features
        4
    """

    cls_to_become = BatchNorm3d


@documented_like(BatchNorm1d)
class SyncBatchNorm(_BatchNorm):
    """Batch normalisation over the batches of all processes of a group; `BatchNorm` where there is one process.

    It computes what `BatchNorm1d` to `BatchNorm3d` compute, for inputs with any number of positions, with the
    statistics of the joined batch. `SyncBatchNorm.convert_sync_batchnorm(model)` replaces all `BatchNorm` layers of a
    model.

    Args:
        process_group (ProcessGroup, optional): the processes whose batches count together; None means all.

    Shape:
        input: (N, C, *)
        output: the shape of the input

    Example:
        >>> model = flambeau.nn.Sequential(flambeau.nn.Conv2d(1, 4, 3), flambeau.nn.BatchNorm2d(4))
        >>> flambeau.nn.SyncBatchNorm.convert_sync_batchnorm(model)[1]
        SyncBatchNorm(4, eps=1e-05, momentum=0.1, affine=True, bias=True, track_running_stats=True)
    """

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        process_group: Any = None,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)
        self.process_group = process_group

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() < 2:
            raise ValueError(f"expected at least 2D input (got {input.dim()}D input)")

    def _check_non_zero_input_channels(self, input: Tensor) -> None:
        if input.size(1) == 0:
            raise ValueError("SyncBatchNorm number of input channels should be non-zero")

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        self._check_non_zero_input_channels(input)
        if self.training:
            from ...distributed import get_world_size, is_initialized

            if is_initialized() and get_world_size(self.process_group) > 1:
                return self._normalized_over_all(input)
        return self._normalized(input)

    def _normalized_over_all(self, input: Tensor) -> Tensor:
        """Normalised by the mean and the variance over the batches of all processes."""
        REPRODUCIBILITY.refuse_at_batch(
            "SyncBatchNorm", "in training its statistics are those of the batch. Call eval() on it, or use GroupNorm"
        )
        from ...distributed.nn.functional import all_reduce

        dims = [dim for dim in range(input.dim()) if dim != 1]
        shape = [1, -1] + [1] * (input.dim() - 2)
        own = input.numel() // input.shape[1]
        sums = cat([input.sum(dims), input.new_full((1,), own)])
        totals = all_reduce(sums, group=self.process_group)
        count = totals[-1].detach()
        mean = totals[:-1] / count
        centred = input - mean.view(shape)
        variance = all_reduce((centred * centred).sum(dims), group=self.process_group) / count
        self._move_statistics(mean.detach(), variance.detach() * (count / (count - 1)))
        result = centred * (variance + self.eps).rsqrt().view(shape)
        if self.weight is not None:
            result = result * self.weight.view(shape)
        return result if self.bias is None else result + self.bias.view(shape)

    def _move_statistics(self, mean: Tensor, variance: Tensor) -> None:
        if self.running_mean is None or self.running_var is None or self.num_batches_tracked is None:
            return
        self.num_batches_tracked.add_(1)
        step = 1 / float(self.num_batches_tracked) if self.momentum is None else self.momentum
        self.running_mean.mul_(1 - step).add_(mean, alpha=step)
        self.running_var.mul_(1 - step).add_(variance, alpha=step)

    @classmethod
    def convert_sync_batchnorm(cls, module: Module, process_group: Any = None) -> Module:
        """`module` with a `SyncBatchNorm` for every `BatchNorm`, which has its parameters and statistics."""
        result = module
        if isinstance(module, _BatchNorm):
            synced = cls(
                module.num_features,
                module.eps,
                module.momentum,
                module.affine,
                module.track_running_stats,
                process_group,
                bias=module.bias is not None,
            )
            synced.weight, synced.bias = module.weight, module.bias
            synced.running_mean, synced.running_var = module.running_mean, module.running_var
            synced.num_batches_tracked = module.num_batches_tracked
            synced.training = module.training
            if hasattr(module, "qconfig"):
                synced.qconfig = module.qconfig
            result = synced
        for name, child in module.named_children():
            result.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return result
