"""The base of all transforms, and the transforms that are made of others."""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence
from typing import Any

import flambeau
from flambeau import Size, Tensor

from .._core.names.same_as import same_as
from . import constraints
from .utils import _sum_rightmost, lazy_property

Shape = Sequence[int]


class Transform:
    """A map from `domain` to `codomain`; subclasses define `_call`, `_inverse` and `log_abs_det_jacobian`.

    With `cache_size=1` it remembers its last pair of input and output: inverting an output gives the very input back.

    Args:
        cache_size (int): 1 remembers the last pair of x and y, so that an inverse need not be computed; 0 remembers
            nothing. Default: `0`.

    Example:
        >>> class Doubled(torch.distributions.Transform):
        ...     domain = codomain = torch.distributions.constraints.real
        ...     bijective = True
        ...     def _call(self, x):
        ...         return 2 * x
        ...     def _inverse(self, y):
        ...         return y / 2
        ...     def log_abs_det_jacobian(self, x, y):
        ...         return torch.full_like(x, 2.0).log()
        >>> d = torch.distributions.TransformedDistribution(torch.distributions.Normal(0.0, 1.0), Doubled())
        >>> d.log_prob(torch.tensor(0.0))
        tensor(-1.6121)
    """

    bijective: Any = False
    domain: Any
    codomain: Any

    def __init__(self, cache_size: int = 0) -> None:
        if cache_size not in (0, 1):
            raise ValueError(f"cache_size must be 0 or 1, but got {cache_size}")
        self._cache_size = cache_size
        self._inv: Transform | None = None
        if cache_size:
            self._cached_x_y: tuple[Tensor | None, Tensor | None] = (None, None)

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_inv": None}

    @property
    def event_dim(self) -> int:
        """The number of dimensions of an event, where input and output agree about it."""
        if self.domain.event_dim != self.codomain.event_dim:
            raise ValueError("Please use either .domain.event_dim or .codomain.event_dim")
        return int(self.domain.event_dim)

    @property
    def inv(self) -> Transform:
        """The inverse transform; its own `inv` is this one."""
        if self._inv is None:
            self._inv = _InverseTransform(self)
        return self._inv

    @property
    def sign(self) -> Any:
        """1 where the transform increases, -1 where it decreases; only for univariate ones."""
        raise NotImplementedError

    def with_cache(self, cache_size: int = 1) -> Transform:
        """This transform with the given cache size."""
        if self._cache_size == cache_size:
            return self
        if type(self).__init__ is Transform.__init__:
            return type(self)(cache_size=cache_size)
        raise NotImplementedError(f"{type(self)}.with_cache is not implemented")

    def __eq__(self, other: object) -> bool:
        return self is other

    __hash__ = None  # type: ignore[assignment]  # it may change, and compares by value

    def __call__(self, x: Tensor) -> Tensor:
        """Args:
            x (Tensor): the values, in `domain`.

        Returns:
            Tensor: the values in `codomain`.

        Example:
            >>> torch.distributions.ExpTransform()(torch.tensor([0.0]))
            tensor([1.])
        """
        if self._cache_size == 0:
            return self._call(x)
        x_old, y_old = self._cached_x_y
        if x is x_old and y_old is not None:
            return y_old
        y = self._call(x)
        self._cached_x_y = x, y
        return y

    def _inv_call(self, y: Tensor) -> Tensor:
        if self._cache_size == 0:
            return self._inverse(y)
        x_old, y_old = self._cached_x_y
        if y is y_old and x_old is not None:
            return x_old
        x = self._inverse(y)
        self._cached_x_y = x, y
        return x

    def _call(self, x: Tensor) -> Tensor:
        raise NotImplementedError

    def _inverse(self, y: Tensor) -> Tensor:
        raise NotImplementedError

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """log |dy/dx| for an input and its output."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return type(self).__name__ + "()"

    def forward_shape(self, shape: Shape) -> Shape:
        """The shape of the output for an input of `shape`."""
        return shape

    def inverse_shape(self, shape: Shape) -> Shape:
        """The shape of the input for an output of `shape`."""
        return shape


class _Parameterless(Transform):
    """A transform that equals all others of its class."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, type(self))

    __hash__ = None


class _InverseTransform(Transform):
    """The inverse of a transform. It computes nothing itself, so that both share one cache."""

    def __init__(self, transform: Transform) -> None:
        super().__init__(cache_size=transform._cache_size)
        self._inv: Transform = transform

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> Any:
        return self._inv.codomain

    @constraints.dependent_property(is_discrete=False)
    def codomain(self) -> Any:
        return self._inv.domain

    @property
    def bijective(self) -> bool:
        return bool(self._inv.bijective)

    sign: Any = same_as("_inv.sign")
    inv: Transform = same_as("_inv")

    def with_cache(self, cache_size: int = 1) -> Transform:
        return self._inv.with_cache(cache_size).inv

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _InverseTransform) and self._inv == other._inv

    __hash__ = None

    def __call__(self, x: Tensor) -> Tensor:
        return self._inv._inv_call(x)

    def _inv_call(self, y: Tensor) -> Tensor:
        return self._inv(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -self._inv.log_abs_det_jacobian(y, x)

    def __repr__(self) -> str:
        return f"_InverseTransform({self._inv!r})"

    def forward_shape(self, shape: Shape) -> Shape:
        return self._inv.inverse_shape(shape)

    def inverse_shape(self, shape: Shape) -> Shape:
        return self._inv.forward_shape(shape)


# Transforms of transforms ---------------------------------------------------------------------------------------------


class ComposeTransform(Transform):
    """Several transforms, one after the other.

    Args:
        parts (list of Transforms): the transforms, the first one first.
        cache_size (int): 1 remembers the last pair of x and y, so that an inverse need not be computed; 0 remembers
            nothing. Default: `0`.

    Example:
        >>> parts = [torch.distributions.ExpTransform(), torch.distributions.AffineTransform(1.0, 2.0)]
        >>> torch.distributions.ComposeTransform(parts)(torch.tensor([0.0]))
        tensor([3.])
    """

    def __init__(self, parts: list[Transform], cache_size: int = 0) -> None:
        self.parts = [part.with_cache(cache_size) for part in parts] if cache_size else parts
        super().__init__(cache_size=cache_size)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ComposeTransform) and self.parts == other.parts

    __hash__ = None

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> Any:
        if not self.parts:
            return constraints.real
        event_dim = self.parts[-1].codomain.event_dim
        for part in reversed(self.parts):
            event_dim = max(event_dim + part.domain.event_dim - part.codomain.event_dim, part.domain.event_dim)
        return _with_event_dim(self.parts[0].domain, event_dim)

    @constraints.dependent_property(is_discrete=False)
    def codomain(self) -> Any:
        if not self.parts:
            return constraints.real
        event_dim = self.parts[0].domain.event_dim
        for part in self.parts:
            event_dim = max(event_dim + part.codomain.event_dim - part.domain.event_dim, part.codomain.event_dim)
        return _with_event_dim(self.parts[-1].codomain, event_dim)

    @lazy_property
    def bijective(self) -> bool:
        return all(part.bijective for part in self.parts)

    @lazy_property
    def sign(self) -> Any:
        return functools.reduce(operator.mul, (part.sign for part in self.parts), 1)

    @property
    def inv(self) -> Transform:
        if self._inv is None:
            self._inv = ComposeTransform([part.inv for part in reversed(self.parts)])
            self._inv._inv = self
        return self._inv

    def with_cache(self, cache_size: int = 1) -> Transform:
        return self if self._cache_size == cache_size else ComposeTransform(self.parts, cache_size)

    def __call__(self, x: Tensor) -> Tensor:
        for part in self.parts:
            x = part(x)
        return x

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        if not self.parts:
            return flambeau.zeros_like(x)
        values = [x]
        for part in self.parts[:-1]:
            values.append(part(values[-1]))
        values.append(y)
        terms = []
        event_dim = self.domain.event_dim
        for part, before, after in zip(self.parts, values, values[1:], strict=False):
            term = part.log_abs_det_jacobian(before, after)
            terms.append(_sum_rightmost(term, event_dim - part.domain.event_dim))
            event_dim += part.codomain.event_dim - part.domain.event_dim
        return functools.reduce(operator.add, terms)

    def forward_shape(self, shape: Shape) -> Shape:
        for part in self.parts:
            shape = part.forward_shape(shape)
        return shape

    def inverse_shape(self, shape: Shape) -> Shape:
        for part in reversed(self.parts):
            shape = part.inverse_shape(shape)
        return shape

    def __repr__(self) -> str:
        return "ComposeTransform(\n    " + ",\n    ".join(repr(part) for part in self.parts) + "\n)"


def _with_event_dim(constraint: Any, event_dim: int) -> Any:
    missing = event_dim - constraint.event_dim
    return constraints.independent(constraint, missing) if missing > 0 else constraint


identity_transform = ComposeTransform([])


class IndependentTransform(Transform):
    """A transform whose last `reinterpreted_batch_ndims` batch dimensions belong to the event.

    Args:
        base_transform (Transform): the transform.
        reinterpreted_batch_ndims (int): how many of the last batch dimensions belong to the event.
        cache_size (int): 1 remembers the last pair of x and y, so that an inverse need not be computed; 0 remembers
            nothing. Default: `0`.

    Example:
        >>> exponents = torch.distributions.IndependentTransform(torch.distributions.ExpTransform(), 1)
        >>> x = torch.tensor([1.0, 2.0])
        >>> exponents.log_abs_det_jacobian(x, exponents(x))       # summed over the event
        tensor(3.)
    """

    def __init__(self, base_transform: Transform, reinterpreted_batch_ndims: int, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        self.base_transform = base_transform.with_cache(cache_size)
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    def with_cache(self, cache_size: int = 1) -> Transform:
        if self._cache_size == cache_size:
            return self
        return IndependentTransform(self.base_transform, self.reinterpreted_batch_ndims, cache_size)

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> Any:
        return constraints.independent(self.base_transform.domain, self.reinterpreted_batch_ndims)

    @constraints.dependent_property(is_discrete=False)
    def codomain(self) -> Any:
        return constraints.independent(self.base_transform.codomain, self.reinterpreted_batch_ndims)

    @property
    def bijective(self) -> bool:
        return bool(self.base_transform.bijective)

    sign: Any = same_as("base_transform.sign")

    def _call(self, x: Tensor) -> Tensor:
        _check_ndims(x.shape, self.domain.event_dim)
        return self.base_transform(x)

    def _inverse(self, y: Tensor) -> Tensor:
        _check_ndims(y.shape, self.codomain.event_dim)
        return self.base_transform.inv(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return _sum_rightmost(self.base_transform.log_abs_det_jacobian(x, y), self.reinterpreted_batch_ndims)

    def __repr__(self) -> str:
        return f"IndependentTransform({self.base_transform!r}, {self.reinterpreted_batch_ndims})"

    def forward_shape(self, shape: Shape) -> Shape:
        return self.base_transform.forward_shape(shape)

    def inverse_shape(self, shape: Shape) -> Shape:
        return self.base_transform.inverse_shape(shape)


def _check_ndims(shape: Shape, ndims: int) -> None:
    if len(shape) < ndims:
        raise ValueError(f"Too few dimensions on input: expected at least {ndims}, got shape {tuple(shape)}")


class ReshapeTransform(Transform):
    """Gives the last dimensions, of shape `in_shape`, the shape `out_shape`.

    Args:
        in_shape (Shape): the shape of the last dimensions before.
        out_shape (Shape): their shape after.
        cache_size (int): 1 remembers the last pair of x and y, so that an inverse need not be computed; 0 remembers
            nothing. Default: `0`.

    Example:
        >>> torch.distributions.ReshapeTransform((4,), (2, 2))(torch.ones(3, 4)).shape
        torch.Size([3, 2, 2])
    """

    bijective = True

    def __init__(self, in_shape: Shape, out_shape: Shape, cache_size: int = 0) -> None:
        self.in_shape = Size(in_shape)
        self.out_shape = Size(out_shape)
        if self.in_shape.numel() != self.out_shape.numel():
            raise ValueError(
                f"in_shape, out_shape have different numbers of elements: {self.in_shape}, {self.out_shape}"
            )
        super().__init__(cache_size=cache_size)

    @constraints.dependent_property
    def domain(self) -> Any:
        return constraints.independent(constraints.real, len(self.in_shape))

    @constraints.dependent_property
    def codomain(self) -> Any:
        return constraints.independent(constraints.real, len(self.out_shape))

    def with_cache(self, cache_size: int = 1) -> Transform:
        if self._cache_size == cache_size:
            return self
        return ReshapeTransform(self.in_shape, self.out_shape, cache_size=cache_size)

    def _call(self, x: Tensor) -> Tensor:
        return x.reshape((*x.shape[: x.dim() - len(self.in_shape)], *self.out_shape))

    def _inverse(self, y: Tensor) -> Tensor:
        return y.reshape((*y.shape[: y.dim() - len(self.out_shape)], *self.in_shape))

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return x.new_zeros(x.shape[: x.dim() - len(self.in_shape)])

    def forward_shape(self, shape: Shape) -> Shape:
        return _replace_tail(shape, self.in_shape, self.out_shape)

    def inverse_shape(self, shape: Shape) -> Shape:
        return _replace_tail(shape, self.out_shape, self.in_shape)


def _replace_tail(shape: Shape, old: Size, new: Size) -> Size:
    _check_ndims(shape, len(old))
    cut = len(shape) - len(old)
    if tuple(shape[cut:]) != tuple(old):
        raise ValueError(f"Shape mismatch: expected {tuple(shape[cut:])} but got {old}")
    return Size((*shape[:cut], *new))


class _SequenceTransform(Transform):
    """Several transforms side by side along dimension `dim`."""

    def __init__(self, tseq: Sequence[Transform], dim: int = 0, cache_size: int = 0) -> None:
        assert all(isinstance(each, Transform) for each in tseq), "All elements of tseq must be Transform instances"
        self.transforms = [each.with_cache(cache_size) for each in tseq] if cache_size else list(tseq)
        super().__init__(cache_size=cache_size)
        self.dim = dim

    @property
    def bijective(self) -> bool:
        return all(each.bijective for each in self.transforms)

    def _check_dim(self, value: Tensor, name: str, length: int, what: str) -> None:
        assert -value.dim() <= self.dim < value.dim(), (
            f"dim {self.dim} out of range for tensor with {value.dim()} dimensions"
        )
        size = value.size(self.dim)
        assert size == length, f"{name}.size({self.dim}) = {size} must equal {what} {length}"


class CatTransform(_SequenceTransform):
    """A transform for each of the pieces, of the given `lengths`, that are joined along `dim`.

    Args:
        tseq (sequence of Transforms): the transforms, one for each piece.
        dim (int): the dimension along which the pieces stand. Default: `0`.
        lengths (sequence of ints, optional): the length of each piece; None means 1 each.
        cache_size (int): 1 remembers the last pair of x and y, so that an inverse need not be computed; 0 remembers
            nothing. Default: `0`.

    Example:
        >>> parts = [torch.distributions.ExpTransform(), torch.distributions.transforms.identity_transform]
        >>> torch.distributions.CatTransform(parts, lengths=[1, 2])(torch.zeros(3))
        tensor([1., 0., 0.])
    """

    def __init__(
        self, tseq: Sequence[Transform], dim: int = 0, lengths: Sequence[int] | None = None, cache_size: int = 0
    ) -> None:
        super().__init__(tseq, dim, cache_size)
        self.lengths = [1] * len(self.transforms) if lengths is None else list(lengths)
        assert len(self.lengths) == len(self.transforms), (
            f"lengths ({len(self.lengths)}) must match transforms ({len(self.transforms)})"
        )

    @lazy_property
    def event_dim(self) -> int:
        return max(each.event_dim for each in self.transforms)

    @lazy_property
    def length(self) -> int:
        """The size of dimension `dim`."""
        return sum(self.lengths)

    def with_cache(self, cache_size: int = 1) -> Transform:
        if self._cache_size == cache_size:
            return self
        return CatTransform(self.transforms, self.dim, self.lengths, cache_size)

    def _pieces(self, value: Tensor, name: str) -> Sequence[Tensor]:
        self._check_dim(value, name, self.length, "length")
        return value.split(self.lengths, self.dim)

    def _call(self, x: Tensor) -> Tensor:
        pieces = zip(self.transforms, self._pieces(x, "x"), strict=True)
        return flambeau.cat([each(piece) for each, piece in pieces], self.dim)

    def _inverse(self, y: Tensor) -> Tensor:
        pieces = zip(self.transforms, self._pieces(y, "y"), strict=True)
        return flambeau.cat([each.inv(piece) for each, piece in pieces], self.dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        terms = []
        for each, before, after in zip(self.transforms, self._pieces(x, "x"), self._pieces(y, "y"), strict=True):
            term = each.log_abs_det_jacobian(before, after)
            terms.append(_sum_rightmost(term, self.event_dim - each.event_dim))
        dim = (self.dim - x.dim() if self.dim >= 0 else self.dim) + self.event_dim
        return flambeau.cat(terms, dim) if dim < 0 else functools.reduce(operator.add, terms)

    @constraints.dependent_property
    def domain(self) -> Any:
        return constraints.cat([each.domain for each in self.transforms], self.dim, self.lengths)

    @constraints.dependent_property
    def codomain(self) -> Any:
        return constraints.cat([each.codomain for each in self.transforms], self.dim, self.lengths)


class StackTransform(_SequenceTransform):
    """A transform for each of the slices along `dim`.

    Args:
        tseq (sequence of Transforms): the transforms, one for each slice.
        dim (int): the dimension along which the pieces stand. Default: `0`.
        cache_size (int): 1 remembers the last pair of x and y, so that an inverse need not be computed; 0 remembers
            nothing. Default: `0`.

    Example:
        >>> parts = [torch.distributions.ExpTransform(), torch.distributions.transforms.identity_transform]
        >>> torch.distributions.StackTransform(parts)(torch.zeros(2, 1))
        tensor([[1.],
                [0.]])
    """

    def with_cache(self, cache_size: int = 1) -> Transform:
        return self if self._cache_size == cache_size else StackTransform(self.transforms, self.dim, cache_size)

    def _slices(self, value: Tensor, name: str) -> Sequence[Tensor]:
        self._check_dim(value, name, len(self.transforms), "len(transforms)")
        return value.unbind(self.dim)

    def _call(self, x: Tensor) -> Tensor:
        slices = zip(self.transforms, self._slices(x, "x"), strict=True)
        return flambeau.stack([each(piece) for each, piece in slices], self.dim)

    def _inverse(self, y: Tensor) -> Tensor:
        slices = zip(self.transforms, self._slices(y, "y"), strict=True)
        return flambeau.stack([each.inv(piece) for each, piece in slices], self.dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        slices = zip(self.transforms, self._slices(x, "x"), self._slices(y, "y"), strict=True)
        return flambeau.stack([each.log_abs_det_jacobian(*pair) for each, *pair in slices], self.dim)

    @constraints.dependent_property
    def domain(self) -> Any:
        return constraints.stack([each.domain for each in self.transforms], self.dim)

    @constraints.dependent_property
    def codomain(self) -> Any:
        return constraints.stack([each.codomain for each in self.transforms], self.dim)
