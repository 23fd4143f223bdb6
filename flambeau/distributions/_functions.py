"""The functions of other namespaces that distributions use, with the types of these uses."""

from __future__ import annotations

from collections.abc import Callable

import flambeau
from flambeau import Tensor, linalg, special
from flambeau.nn import functional

where: Callable[[Tensor, Tensor | float, Tensor | float], Tensor] = flambeau.where
softplus: Callable[[Tensor], Tensor] = functional.softplus
logsigmoid: Callable[[Tensor], Tensor] = functional.logsigmoid
one_hot: Callable[[Tensor, int], Tensor] = functional.one_hot
cholesky: Callable[[Tensor], Tensor] = linalg.cholesky
gammainc: Callable[[Tensor, Tensor], Tensor] = special.gammainc
i0e: Callable[[Tensor], Tensor] = special.i0e
i1e: Callable[[Tensor], Tensor] = special.i1e


def binary_cross_entropy(logits: Tensor, target: Tensor) -> Tensor:
    """-log of the probability of `target`, a number between zero and one, for each of the log-odds."""
    return functional.binary_cross_entropy_with_logits(logits, target, reduction="none")


def solve_lower(factor: Tensor, columns: Tensor) -> Tensor:
    """X with factor @ X = columns, where `factor` is lower triangular."""
    return linalg.solve_triangular(factor, columns, upper=False)


def log_abs_det(matrix: Tensor) -> Tensor:
    """The logarithm of the absolute determinant."""
    result: Tensor = linalg.slogdet(matrix).logabsdet
    return result
