"""Instance normalisation: each channel of each sample by itself."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar

from ..._core.tensor import Tensor
from ..._core.text.inherited_docs import documented_like
from .. import functional as F
from .batchnorm import BatchNorm1d, _LazyNormBase, _NormBase

__all__ = [
    "InstanceNorm1d",
    "InstanceNorm2d",
    "InstanceNorm3d",
    "LazyInstanceNorm1d",
    "LazyInstanceNorm2d",
    "LazyInstanceNorm3d",
]


class _InstanceNorm(_NormBase):
    _unbatched: ClassVar[int]  # the number of dimensions of one sample

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)

    def _get_no_batch_dim(self) -> int:
        return self._unbatched

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() not in (self._unbatched, self._unbatched + 1):
            raise ValueError(f"expected {self._unbatched}D or {self._unbatched + 1}D input (got {input.dim()}D input)")

    def _load_from_state_dict(
        self, state_dict: dict[str, Any], prefix: str, local_metadata: dict[str, Any], *further: Any
    ) -> None:
        # Before version 1 had a number, layers kept statistics whether they tracked them or not.
        if local_metadata.get("version") is None and not self.track_running_stats:
            found = [name for name in ("running_mean", "running_var") if prefix + name in state_dict]
            if found:
                names = " and ".join(f'"{prefix}{name}"' for name in found)
                error_msgs: list[str] = further[-1]
                error_msgs.append(
                    f"Unexpected running stats buffer(s) {names} for {type(self).__name__} with "
                    "track_running_stats=False. The state dict was saved before the layer distinguished the two: "
                    "make the layer with track_running_stats=True, or remove these keys"
                )
                for name in found:
                    state_dict.pop(prefix + name)
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *further)

    def _normalized(self, input: Tensor) -> Tensor:
        return F.instance_norm(
            input,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.training or not self.track_running_stats,
            self.momentum if self.momentum is not None else 0.0,
            self.eps,
        )

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        dim = input.dim() - self._unbatched
        if input.size(dim) != self.num_features:
            if self.affine:
                raise ValueError(
                    f"expected input's size at dim={dim} to match num_features ({self.num_features}), "
                    f"but got: {input.size(dim)}."
                )
            warnings.warn(
                f"input's size at dim={dim} does not match num_features ({self.num_features}, not {input.size(dim)}); "
                "with affine=False the layer does not need num_features, so this changes nothing",
                stacklevel=2,
            )
        if input.dim() == self._unbatched:
            return self._normalized(input.unsqueeze(0)).squeeze(0)
        return self._normalized(input)


@documented_like(BatchNorm1d)
class InstanceNorm1d(_InstanceNorm):
    """Normalises each channel of each sample of (N, C, L) over its positions.

    `output = (input - mean) / sqrt(var + eps) * weight + bias`, with the biased variance; factor and bias with `affine`
    only.

    Args:
        affine (bool): whether the module learns a factor and a bias for each channel. Default: `False`.
        track_running_stats (bool): whether the module keeps running statistics, which it uses in evaluation; otherwise
            it always uses those of its input. Default: `False`.

    Shape:
        input: (N, C, L) or (C, L)
        output: the shape of the input

    Raises:
        ValueError: the input has another number of dimensions, or in training a single position; raised by the call.

    Example:
        >>> layer = flambeau.nn.InstanceNorm1d(1)
        >>> layer(flambeau.tensor([1.0, 3.0]).view(1, 2)).flatten().tolist()
        [-0.9999949932098389, 0.9999949932098389]
    """

    _unbatched = 2


@documented_like(InstanceNorm1d)
class InstanceNorm2d(_InstanceNorm):
    """Normalises each channel of each sample of (N, C, H, W) over its positions.

    Shape:
        input: (N, C, H, W) or (C, H, W)
        output: the shape of the input

    Example:
        >>> layer = flambeau.nn.InstanceNorm2d(1)
        >>> layer(flambeau.tensor([1.0, 3.0]).view(1, 1, 2)).flatten().tolist()
        [-0.9999949932098389, 0.9999949932098389]
    """

    _unbatched = 3


@documented_like(InstanceNorm1d)
class InstanceNorm3d(_InstanceNorm):
    """Normalises each channel of each sample of (N, C, D, H, W) over its positions.

    Shape:
        input: (N, C, D, H, W) or (C, D, H, W)
        output: the shape of the input

    Example:
        >>> layer = flambeau.nn.InstanceNorm3d(1)
        >>> layer(flambeau.tensor([1.0, 3.0]).view(1, 1, 1, 2)).flatten().tolist()
        [-0.9999949932098389, 0.9999949932098389]
    """

    _unbatched = 4


@documented_like(BatchNorm1d)
class LazyInstanceNorm1d(_LazyNormBase, _InstanceNorm):
    """An `InstanceNorm1d` that takes `num_features` from its first input.

    After the first call the module is an `InstanceNorm1d`.

    Shape:
        input: (N, C, L) or (C, L)
        output: the shape of the input

    Example:
        >>> layer = flambeau.nn.LazyInstanceNorm1d()
        >>> layer(flambeau.ones(2, 4, 3)).shape
        torch.Size([2, 4, 3])
        >>> layer.num_features
        4
    """

    cls_to_become = InstanceNorm1d
    _unbatched = 2


@documented_like(LazyInstanceNorm1d)
class LazyInstanceNorm2d(_LazyNormBase, _InstanceNorm):
    """An `InstanceNorm2d` that takes `num_features` from its first input.

    After the first call the module is an `InstanceNorm2d`.

    Shape:
        input: (N, C, H, W) or (C, H, W)
        output: the shape of the input

    Example:
        >>> layer = flambeau.nn.LazyInstanceNorm2d()
        >>> layer(flambeau.ones(2, 4, 3, 3)).shape
        torch.Size([2, 4, 3, 3])
        >>> layer.num_features
        4
    """

    cls_to_become = InstanceNorm2d
    _unbatched = 3


@documented_like(LazyInstanceNorm1d)
class LazyInstanceNorm3d(_LazyNormBase, _InstanceNorm):
    """An `InstanceNorm3d` that takes `num_features` from its first input.

    After the first call the module is an `InstanceNorm3d`.

    Shape:
        input: (N, C, D, H, W) or (C, D, H, W)
        output: the shape of the input

    Example:
        >>> layer = flambeau.nn.LazyInstanceNorm3d()
        >>> layer(flambeau.ones(2, 4, 3, 3, 3)).shape
        torch.Size([2, 4, 3, 3, 3])
        >>> layer.num_features
        4
    """

    cls_to_become = InstanceNorm3d
    _unbatched = 4
