"""Tables of vectors that are looked up by number."""

from __future__ import annotations

from typing import Any, ClassVar

from ..._core.tensor import Tensor
from ..._ops.create.constants import empty
from ...autograd.grad_mode import no_grad
from .. import functional as F
from .. import init
from ..parameter import Parameter
from .module import Module

__all__ = ["Embedding", "EmbeddingBag"]


class _Table(Module):
    """A weight with one row for each number, and how its rows are used."""

    num_embeddings: int
    embedding_dim: int
    padding_idx: int | None
    max_norm: float | None
    norm_type: float
    scale_grad_by_freq: bool
    sparse: bool
    weight: Parameter

    def _make_weight(self, given: Tensor | None, trained: bool, device: Any, dtype: Any) -> None:
        shape = (self.num_embeddings, self.embedding_dim)
        if given is None:
            self.weight = Parameter(empty(shape, device=device, dtype=dtype), requires_grad=trained)
            self.reset_parameters()
            return
        if tuple(given.shape) != shape:
            raise AssertionError(
                "Shape of weight does not match num_embeddings and embedding_dim: "
                f"_weight has shape {tuple(given.shape)}, not {shape}"
            )
        self.weight = Parameter(given, requires_grad=trained)

    def reset_parameters(self) -> None:
        """Draw the rows from the standard normal distribution, the padding's row apart, which is zero."""
        init.normal_(self.weight)
        self._fill_padding_idx_with_zero()

    def _fill_padding_idx_with_zero(self) -> None:
        if self.padding_idx is not None:
            with no_grad():
                self.weight[self.padding_idx].fill_(0)


def _row(padding_idx: int | None, num_embeddings: int, name: str) -> int | None:
    """`padding_idx`, counted from the start."""
    if padding_idx is None:
        return None
    if not -num_embeddings <= padding_idx < num_embeddings:
        raise AssertionError(f"{name} must be within num_embeddings: {padding_idx} is no row of {num_embeddings}")
    return padding_idx % num_embeddings


def _check_pretrained(embeddings: Tensor) -> tuple[int, int]:
    if embeddings.dim() != 2:
        raise AssertionError(
            f"Embeddings parameter is expected to be 2-dimensional, but has shape {tuple(embeddings.shape)}"
        )
    rows, columns = embeddings.shape
    return rows, columns


class Embedding(_Table):
    """A table of learned vectors, looked up by number.

    `output = weight[input]`. `Embedding.from_pretrained(vectors)` makes one from given vectors.

    Args:
        num_embeddings (int): how many vectors there are.
        embedding_dim (int): how many numbers a vector has.
        padding_idx (int, optional): the number whose vector starts as zeros and gets no gradient.
        max_norm (float, optional): vectors with a larger norm are scaled down to it when they are looked up.
        norm_type (float): the order of that norm. Default: `2.0`.
        scale_grad_by_freq (bool): whether a vector's gradient is divided by how often it was looked up in the batch.
            Default: `False`.
        sparse (bool): whether the gradient of the table is a sparse tensor. Default: `False`.
        device (device, optional): where the parameters and buffers lie; None means the default device.
        dtype (dtype, optional): the dtype of the parameters and buffers; None means the default dtype.

    Shape:
        input: integers from 0 to num_embeddings - 1, any shape
        output: (*, embedding_dim)

    Attributes:
        weight (Parameter): (num_embeddings, embedding_dim), drawn from a standard normal distribution

    Raises:
        IndexError: an index of the input is negative, or not below `num_embeddings`.

    Example:
        >>> layer = flambeau.nn.Embedding.from_pretrained(flambeau.tensor([[1.0, 2.0], [3.0, 4.0]]))
        >>> layer(flambeau.tensor([1, 0, 1]))
        tensor([[3., 4.],
                [1., 2.],
                [3., 4.]])
        >>> flambeau.nn.Embedding(10, 3)(flambeau.tensor([[1, 2], [4, 5]])).shape
        torch.Size([2, 2, 3])
    """

    __constants__: ClassVar[list[str]] = [
        "num_embeddings",
        "embedding_dim",
        "padding_idx",
        "max_norm",
        "norm_type",
        "scale_grad_by_freq",
        "sparse",
    ]

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        _weight: Tensor | None = None,
        _freeze: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.padding_idx = _row(padding_idx, num_embeddings, "Padding_idx")
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self._make_weight(_weight, not _freeze, device, dtype)
        self.sparse = sparse

    def forward(self, input: Tensor) -> Tensor:
        return F.embedding(
            input, self.weight, self.padding_idx, self.max_norm, self.norm_type, self.scale_grad_by_freq, self.sparse
        )

    def extra_repr(self) -> str:
        text = f"{self.num_embeddings}, {self.embedding_dim}"
        if self.padding_idx is not None:
            text += f", padding_idx={self.padding_idx}"
        if self.max_norm is not None:
            text += f", max_norm={self.max_norm}"
        if self.norm_type != 2:
            text += f", norm_type={self.norm_type}"
        if self.scale_grad_by_freq is not False:
            text += f", scale_grad_by_freq={self.scale_grad_by_freq}"
        return text + (", sparse=True" if self.sparse is not False else "")

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Tensor,
        freeze: bool = True,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
    ) -> Embedding:
        """A layer whose weight is `embeddings`; with `freeze`, it is not trained."""
        rows, columns = _check_pretrained(embeddings)
        return cls(
            rows,
            columns,
            padding_idx,
            max_norm,
            norm_type,
            scale_grad_by_freq,
            sparse,
            _weight=embeddings,
            _freeze=freeze,
        )


class EmbeddingBag(_Table):
    """The sum, mean or maximum of the vectors of each bag of numbers, without the single vectors in between.

    Calls take `(input, offsets=None, per_sample_weights=None)`.

    Args:
        num_embeddings (int): how many vectors there are.
        embedding_dim (int): how many numbers a vector has.
        max_norm (float, optional): vectors with a larger norm are scaled down to it when they are looked up.
        norm_type (float): the order of that norm. Default: `2.0`.
        scale_grad_by_freq (bool): whether a vector's gradient is divided by how often it was looked up in the batch.
            Default: `False`.
        mode (str): what a bag gives: "sum", "mean" or "max". Default: `"mean"`.
        sparse (bool): whether the gradient of the table is a sparse tensor. Default: `False`.
        include_last_offset (bool): whether the last offset is the end of the last bag. Default: `False`.
        padding_idx (int, optional): a number that counts in no bag and gets no gradient.
        device (device, optional): where the parameters and buffers lie; None means the default device.
        dtype (dtype, optional): the dtype of the parameters and buffers; None means the default dtype.

    Shape:
        input: integers, (B, n) for B bags of n numbers, or (N,) with `offsets`
        offsets: (B,), where each bag begins
        per_sample_weights: floats in the shape of the input, factors of the vectors; with `mode="sum"` only
        output: (B, embedding_dim)

    Raises:
        ValueError: the input is a matrix and `offsets` are given, or it is a vector and they are not.

    Example:
        >>> layer = flambeau.nn.EmbeddingBag.from_pretrained(flambeau.tensor([[1.0, 2.0], [3.0, 4.0]]), mode="sum")
        >>> layer(flambeau.tensor([0, 1, 1]), flambeau.tensor([0, 2]))
        tensor([[4., 6.],
                [3., 4.]])
    """

    __constants__: ClassVar[list[str]] = [
        "num_embeddings",
        "embedding_dim",
        "max_norm",
        "norm_type",
        "scale_grad_by_freq",
        "mode",
        "sparse",
        "include_last_offset",
        "padding_idx",
    ]

    mode: str
    include_last_offset: bool

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        _weight: Tensor | None = None,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self.padding_idx = _row(padding_idx, num_embeddings, "padding_idx")
        self._make_weight(_weight, True, device, dtype)
        self.mode = mode
        self.sparse = sparse
        self.include_last_offset = include_last_offset

    def forward(self, input: Tensor, offsets: Tensor | None = None, per_sample_weights: Tensor | None = None) -> Tensor:
        return F.embedding_bag(
            input,
            self.weight,
            offsets,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.mode,
            self.sparse,
            per_sample_weights,
            self.include_last_offset,
            self.padding_idx,
        )

    def extra_repr(self) -> str:
        text = f"{self.num_embeddings}, {self.embedding_dim}"
        if self.max_norm is not None:
            text += f", max_norm={self.max_norm}"
        if self.norm_type != 2:
            text += f", norm_type={self.norm_type}"
        if self.scale_grad_by_freq is not False:
            text += f", scale_grad_by_freq={self.scale_grad_by_freq}"
        text += f", mode={self.mode!r}"
        return text + (f", padding_idx={self.padding_idx}" if self.padding_idx is not None else "")

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Tensor,
        freeze: bool = True,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
    ) -> EmbeddingBag:
        """A layer whose weight is `embeddings`; with `freeze`, it is not trained."""
        rows, columns = _check_pretrained(embeddings)
        layer = cls(
            rows,
            columns,
            max_norm,
            norm_type,
            scale_grad_by_freq,
            mode,
            sparse,
            embeddings,
            include_last_offset,
            padding_idx,
        )
        layer.weight.requires_grad = not freeze
        return layer
