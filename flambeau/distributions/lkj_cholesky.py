"""The LKJ distribution over Cholesky factors of correlation matrices."""

from __future__ import annotations

import math
from collections.abc import Sequence

import flambeau
from flambeau import Size, Tensor

from . import constraints
from .beta import Beta
from .distribution import Distribution
from .utils import broadcast_all

__all__ = ["LKJCholesky"]


class LKJCholesky(Distribution):
    """Cholesky factors of `dim` x `dim` correlation matrices M with density ~ det(M) ** (concentration - 1).

    After D. Lewandowski, D. Kurowicka and H. Joe, "Generating random correlation matrices based on vines and extended
    onion method", 2009.

    Args:
        dim (int): the number of rows and columns of the matrices.
        concentration (Tensor or float): above 1, matrices near the identity are likelier; at 1 all are equally likely.
            Default: `1.0`.

    Example:
        >>> torch.distributions.LKJCholesky(3, 0.5).sample().shape
        torch.Size([3, 3])
    """

    arg_constraints = constraints.by_name(concentration=constraints.positive)
    support = constraints.corr_cholesky
    _batched = ("_beta",)
    _kept = ("dim",)
    dim: int

    def __init__(self, dim: int, concentration: Tensor | float = 1.0, validate_args: bool | None = None) -> None:
        if dim < 2:
            raise ValueError(f"Expected dim to be an integer greater than or equal to 2. Found dim={dim}.")
        self.dim = dim
        (self.concentration,) = broadcast_all(concentration)
        # Row i of the factor: its squared length left of the diagonal has a beta distribution.
        marginal = self.concentration + 0.5 * (dim - 2)
        offset = flambeau.arange(dim - 1, dtype=marginal.dtype, device=marginal.device)
        offset = flambeau.cat([offset.new_zeros((1,)), offset])
        self._beta = Beta(offset + 0.5, marginal.unsqueeze(-1) - 0.5 * offset)
        super().__init__(self.concentration.size(), (dim, dim), validate_args=validate_args)

    def sample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        """By the onion method: row by row, a random direction of a random length."""
        with flambeau.no_grad():
            squares = self._beta.sample(sample_shape).unsqueeze(-1)
            shape = self._extended_shape(sample_shape)
            normals = flambeau.randn(shape, dtype=squares.dtype, device=squares.device).tril(-1)
            directions = normals / normals.norm(dim=-1, keepdim=True)
            directions[..., 0, :] = 0.0  # nothing stands before the first element
            rows = squares.sqrt() * directions
            tiny = flambeau.finfo(rows.dtype).tiny
            diagonal = (1 - (rows**2).sum(-1)).clamp(min=tiny).sqrt()
            return rows + diagonal.diag_embed()

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        before = self.dim - 1
        diagonal = value.diagonal(dim1=-1, dim2=-2)[..., 1:]
        order = flambeau.arange(2, self.dim + 1, device=self.concentration.device)
        order = 2 * (self.concentration - 1).unsqueeze(-1) + self.dim - order
        unnormalized = (order * diagonal.log()).sum(-1)
        alpha = self.concentration + 0.5 * before
        normalizer = (
            0.5 * before * math.log(math.pi) + flambeau.mvlgamma(alpha - 0.5, before) - flambeau.lgamma(alpha) * before
        )
        return unnormalized - normalizer
