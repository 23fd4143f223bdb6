"""Ready-made parametrizations: orthogonal matrices, weight and spectral normalisation."""

from __future__ import annotations

from enum import Enum, auto
from typing import Any, TypeVar

from ... import linalg
from ..._core.dtype import finfo
from ..._core.tensor import Tensor
from ..._ops.create.constants import eye
from ..._ops.create.like import zeros_like
from ..._ops.nn.weight_norm import _weight_norm, norm_except_dim
from ..._ops.shape.join import cat
from ...autograd.grad_mode import no_grad
from .. import functional as F
from ..modules.conv import ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from ..modules.module import Module
from . import parametrize

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]

M = TypeVar("M", bound=Module)


# ----- orthogonal ---------------------------------------------------------------------------------------------------


def _is_orthogonal(Q: Any, eps: float | None = None) -> bool:
    rows, columns = Q.shape[-2:]
    identity = eye(columns, dtype=Q.dtype, device=Q.device)
    tolerance = 10.0 * rows * finfo(Q.dtype).eps if eps is None else eps
    return bool((Q.mH @ Q).allclose(identity.expand(*Q.shape[:-2], -1, -1), atol=tolerance))


def _make_orthogonal(A: Any) -> Any:
    """The orthogonal factor of a decomposition of tall matrices, with signs that make it unique."""
    reflectors, factors = A.geqrf()
    Q = linalg.householder_product(reflectors, factors)
    return Q * reflectors.diagonal(dim1=-2, dim2=-1).sgn().unsqueeze(-2)


class _OrthMaps(Enum):
    matrix_exp = auto()
    cayley = auto()
    householder = auto()


class _Orthogonal(Module):
    """Any matrix to an orthogonal one: by an exponential, by Cayley's map or by reflections.

    `base`, if there is one, is a matrix around which the map works: the inverse only has to change that.
    """

    base: Tensor | None

    def __init__(self, weight: Tensor, orthogonal_map: _OrthMaps, *, use_trivialization: bool = True) -> None:
        super().__init__()
        if weight.is_complex() and orthogonal_map is _OrthMaps.householder:
            raise ValueError("The householder parametrization does not support complex tensors.")
        self.shape = weight.shape
        self.orthogonal_map = orthogonal_map
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, X: Any) -> Any:
        """The orthogonal matrix, or one with orthonormal rows or columns."""
        wide = X.shape[-2] < X.shape[-1]
        if wide:
            X = X.mT
        reflected = self.orthogonal_map is _OrthMaps.householder
        Q = self._by_reflections(X) if reflected else self._by_skew_matrix(X)
        if hasattr(self, "base") and self.base is not None:
            Q = self.base @ Q
        return Q.mT if wide else Q

    def _by_skew_matrix(self, X: Any) -> Any:
        rows, columns = X.shape[-2:]
        A = X.tril()
        if rows != columns:
            A = cat([A, A.new_zeros(rows, rows - columns).expand(*A.shape[:-2], -1, -1)], -1)
        A = A - A.mH
        if self.orthogonal_map is _OrthMaps.matrix_exp:
            Q = A.matrix_exp()
        else:
            identity = eye(rows, dtype=A.dtype, device=A.device)
            Q = linalg.solve(identity.add(A, alpha=-0.5), identity.add(A, alpha=0.5))
        return Q[..., :columns] if rows != columns else Q

    def _by_reflections(self, X: Any) -> Any:
        A = X.tril(diagonal=-1)
        Q = linalg.householder_product(A, 2.0 / (1.0 + (A * A).sum(-2)))
        # The diagonal holds signs, 1 or -1, and no gradient.
        return Q * X.diagonal(dim1=-2, dim2=-1).int().unsqueeze(-2)

    def right_inverse(self, Q: Any) -> Any:
        """A matrix from which `forward` makes `Q`, or the orthogonal matrix next to it."""
        with no_grad():
            if Q.shape != self.shape:
                raise ValueError(
                    f"Expected a matrix or batch of matrices of shape {self.shape}. Got a tensor of shape {Q.shape}."
                )
            wide = Q.shape[-2] < Q.shape[-1]
            X = self._inverse(Q.mT if wide else Q)
            return X.mT if wide else X

    def _inverse(self, Q: Any) -> Any:
        rows, columns = Q.shape[-2:]
        if not hasattr(self, "base"):
            if self.orthogonal_map is not _OrthMaps.householder:
                raise NotImplementedError(
                    "It is not possible to assign to the matrix exponential or the Cayley parametrizations when "
                    "use_trivialization=False."
                )
            A, factors = Q.geqrf()
            diagonal = A.diagonal(dim1=-2, dim2=-1).sign_()
            diagonal[factors == 0.0] *= -1  # no reflection there, while `forward` knows only reflections
            return A
        if rows == columns:
            Q = Q.clone() if _is_orthogonal(Q) else _make_orthogonal(Q)
        else:
            # Completed by random columns: the map starts from a square matrix.
            others = Q.new_empty(*Q.shape[:-2], rows, rows - columns).normal_()
            Q = _make_orthogonal(cat([Q, others], -1))
        self.base = Q
        # Minus the identity is mapped to the identity by all three maps, given what they make of the diagonal.
        identity = zeros_like(Q)
        identity.diagonal(dim1=-2, dim2=-1).fill_(-1.0)
        return identity[..., :columns]


def orthogonal(
    module: M, name: str = "weight", orthogonal_map: str | None = None, *, use_trivialization: bool = True
) -> M:
    """Keep a matrix, or each of a batch, orthogonal: with orthonormal columns, or rows if it is wide.

    `orthogonal_map` is "matrix_exp", "cayley" or "householder"; by default the first for square and for complex
    matrices, the last for others.

    >>> layer = flambeau.nn.utils.parametrizations.orthogonal(flambeau.nn.Linear(3, 3))
    >>> flambeau.allclose(layer.weight @ layer.weight.T, flambeau.eye(3), atol=1e-5)
    True

    Args:
        module (M): the module.
        name (str): the name of the parameter. Default: `"weight"`.
        orthogonal_map (str, optional): how the matrix is made: "matrix_exp", "cayley" or "householder"; None chooses.
        use_trivialization (bool): whether the map starts from the present weight, which makes optimisation easier.
            Default: `True`.

    Returns:
        Module: `module` itself.
    """
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    if weight.ndim < 2:
        raise ValueError(f"Expected a matrix or batch of matrices. Got a tensor of {weight.ndim} dimensions.")
    if orthogonal_map is None:
        square = weight.shape[-2] == weight.shape[-1]
        orthogonal_map = "matrix_exp" if square or weight.is_complex() else "householder"
    if not isinstance(orthogonal_map, str):
        raise TypeError(f"orthogonal_map must be str, not {type(orthogonal_map).__name__}")
    if orthogonal_map not in _OrthMaps.__members__:
        raise ValueError(
            f'orthogonal_map has to be one of "matrix_exp", "cayley", "householder". Got: {orthogonal_map}'
        )
    parametrization = _Orthogonal(weight, _OrthMaps[orthogonal_map], use_trivialization=use_trivialization)
    return parametrize.register_parametrization(module, name, parametrization, unsafe=True)


# ----- weight norm --------------------------------------------------------------------------------------------------


class _WeightNorm(Module):
    """Lengths and directions to a weight."""

    def __init__(self, dim: int | None = 0) -> None:
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g: Tensor, weight_v: Tensor) -> Tensor:
        """The weight with lengths `weight_g` and directions `weight_v`."""
        return _weight_norm(weight_v, weight_g, self.dim)

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        """The lengths of a weight, and the weight itself for the directions."""
        return norm_except_dim(weight, 2, self.dim), weight


def weight_norm(module: M, name: str = "weight", dim: int | None = 0) -> M:
    """Make a weight of a direction and a length for each slice along `dim`; one length for all if `dim` is None.

    The state dict has them as `parametrizations.weight.original1` and `original0`; one of the older
    `nn.utils.weight_norm` can be loaded too.

    Args:
        module (M): the module.
        name (str): the name of the parameter. Default: `"weight"`.
        dim (int, optional): the dimension along which each slice has a length of its own; None means one length for
            all. Default: `0`.

    Returns:
        Module: `module` itself.

    Example:
        >>> layer = torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(2, 3))
        >>> [(name, tuple(each.shape)) for name, each in layer.named_parameters()]
        [('bias', (3,)), ('parametrizations.weight.original0', (3, 1)), ('parametrizations.weight.original1', (3, 2))]
    """
    parametrize.register_parametrization(module, name, _WeightNorm(dim), unsafe=True)

    def rename(state_dict: Any, prefix: str, *others: Any) -> None:
        older = f"{prefix}{name}_g", f"{prefix}{name}_v"
        if all(key in state_dict for key in older):
            for number, key in enumerate(older):
                state_dict[f"{prefix}parametrizations.{name}.original{number}"] = state_dict.pop(key)

    module._register_load_state_dict_pre_hook(rename)
    return module


# ----- spectral norm ------------------------------------------------------------------------------------------------


class _SpectralNorm(Module):
    """A weight divided by its largest singular value, which power iterations follow through training."""

    _u: Tensor
    _v: Tensor

    def __init__(self, weight: Any, n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12) -> None:
        super().__init__()
        ndim = weight.ndim
        if dim >= ndim or dim < -ndim:
            raise IndexError(f"Dimension out of range (expected to be in range of [-{ndim}, {ndim - 1}] but got {dim})")
        if n_power_iterations <= 0:
            raise ValueError(
                f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}"
            )
        self.dim = dim if dim >= 0 else dim + ndim
        self.eps = eps
        if ndim > 1:
            self.n_power_iterations = n_power_iterations
            matrix = self._reshape_weight_to_matrix(weight)
            rows, columns = matrix.shape
            u = matrix.new_empty(rows).normal_(0, 1)
            v = matrix.new_empty(columns).normal_(0, 1)
            self.register_buffer("_u", F.normalize(u, dim=0, eps=eps))
            self.register_buffer("_v", F.normalize(v, dim=0, eps=eps))
            self._power_method(matrix, 15)  # a good start, whatever the number of iterations later

    def _reshape_weight_to_matrix(self, weight: Any) -> Any:
        if self.dim != 0:
            weight = weight.permute(self.dim, *[d for d in range(weight.dim()) if d != self.dim])
        return weight.flatten(1)

    def _power_method(self, weight_mat: Any, n_power_iterations: int) -> None:
        with no_grad():
            for _ in range(n_power_iterations):
                self._u = F.normalize(weight_mat.mv(self._v), dim=0, eps=self.eps, out=self._u)
                self._v = F.normalize(weight_mat.mH.mv(self._u), dim=0, eps=self.eps, out=self._v)

    def forward(self, weight: Any) -> Any:
        """The weight with a largest singular value of about one. In training, the iterations go on."""
        if weight.ndim == 1:
            return F.normalize(weight, dim=0, eps=self.eps)
        matrix = self._reshape_weight_to_matrix(weight)
        if self.training:
            self._power_method(matrix, self.n_power_iterations)
        # Copies: the next iteration changes the vectors in place, and backward still needs these.
        u = self._u.clone()
        v = self._v.clone()
        return weight / u.vdot(matrix.mv(v))

    def right_inverse(self, value: Tensor) -> Tensor:
        """The value itself: it is normalised when it is read."""
        return value


def spectral_norm(
    module: M, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> M:
    """Divide a weight by its largest singular value, of the matrix whose rows are the slices along `dim`.

    `dim` is 0 by default, for transposed convolutions 1.

    Args:
        module (M): the module.
        name (str): the name of the parameter. Default: `"weight"`.
        n_power_iterations (int): how many steps of the power iteration each forward pass does. Default: `1`.
        eps (float): a small number that is added to norms, so that they are never zero. Default: `1e-12`.
        dim (int, optional): the dimension of the outputs; None means 1 for transposed convolutions and 0 for all
            others.

    Returns:
        Module: `module` itself.

    Example:
        >>> _ = torch.manual_seed(0)
        >>> layer = torch.nn.utils.parametrizations.spectral_norm(torch.nn.Linear(4, 4), n_power_iterations=20)
        >>> round(torch.linalg.matrix_norm(layer.weight, 2).item(), 2)
        1.0
    """
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    if dim is None:
        dim = 1 if isinstance(module, (ConvTranspose1d, ConvTranspose2d, ConvTranspose3d)) else 0
    parametrization = _SpectralNorm(weight, n_power_iterations, dim, eps)
    return parametrize.register_parametrization(module, name, parametrization)
