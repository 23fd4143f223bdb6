"""`NestedTensor`: rows of unequal lengths end to end in one tensor."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ..._core.device import LAYOUTS
from ..._core.size import Size
from ..._core.tensor import Tensor
from ..._torch._subclasses.carrier import Carrier
from .ragged_size import RaggedSize, ragged_size


class NestedTensor(Carrier):
    """A tensor whose rows are of unequal lengths along one dimension.

    Its dimension 0 are the rows; `_ragged_idx` is the one along which they differ, and stands end to end in dimension
    `_ragged_idx - 1` of the values. Autograd follows the values.
    """

    if TYPE_CHECKING:
        _offsets: Tensor
        _lengths: Tensor | None
        _ragged_idx: int

    is_nested = True
    _has_no_other_ops = True  # its `__torch_function__` is heeded where those of users' classes are not

    def __new__(
        cls, values: Tensor, offsets: Tensor, lengths: Tensor | None = None, *, ragged: int = 1
    ) -> NestedTensor:
        made = object.__new__(cls)
        made._carry(values)
        made._offsets = offsets
        made._lengths = lengths
        made._ragged_idx = ragged
        return made

    def __init__(self, values: Tensor, offsets: Tensor, lengths: Tensor | None = None, *, ragged: int = 1) -> None:
        """Everything is done by `__new__`, as for all tensors."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        from .rules import run

        return run(func, args, kwargs or {})

    def like(self, values: Tensor, ragged: int | None = None) -> NestedTensor:
        """Other values with the same rows."""
        return NestedTensor(values, self._offsets, self._lengths, ragged=self._ragged_idx if ragged is None else ragged)

    def _around(self, inner: Tensor) -> NestedTensor:
        return self.like(inner)

    # ----- its parts ----------------------------------------------------------------------------------------------

    def values(self) -> Tensor:
        """The rows end to end; shares memory and place in the graph."""
        return self._inner

    def offsets(self) -> Tensor:
        """Where each row begins in the values, and where the last one ends."""
        return self._offsets

    def lengths(self) -> Tensor | None:
        """How long each row is; None if each ends where the next begins."""
        return self._lengths

    def row_lengths(self) -> Tensor:
        """How long each row is."""
        return self._offsets.diff() if self._lengths is None else self._lengths

    def _get_max_seqlen(self) -> int:
        return int(self.row_lengths().max().item())

    def _get_min_seqlen(self) -> int:
        return int(self.row_lengths().min().item())

    def to_padded_tensor(self, padding: float, output_size: Any = None) -> Tensor:
        """The rows one above the other in an ordinary tensor, with `padding` where they end."""
        from .padding import padded

        return padded(self, padding, output_size)

    # ----- what it is ---------------------------------------------------------------------------------------------

    @property
    def _ragged_size(self) -> RaggedSize:
        return ragged_size(self._offsets if self._lengths is None else self._lengths)

    @property
    def shape(self) -> Any:
        """The sizes, with a word for the one that differs."""
        sizes: list[Any] = [self._offsets.size(0) - 1, *self._inner.shape]
        sizes[self._ragged_idx] = self._ragged_size
        return tuple.__new__(Size, sizes)

    def size(self, dim: int | None = None) -> Any:
        """All sizes, or one of them."""
        return self.shape if dim is None else self.shape[dim]

    def dim(self) -> int:
        """The number of dimensions, that of the rows included."""
        return self._inner.dim() + 1

    @property
    def ndim(self) -> int:
        """The number of dimensions, that of the rows included."""
        return self._inner.dim() + 1

    def stride(self, dim: int | None = None) -> Any:
        """The strides of the values, and the length of a row in elements."""
        inner = self._inner.stride()
        strides = (inner[self._ragged_idx - 1] * self._ragged_size, *inner)
        return strides if dim is None else strides[dim]

    @property
    def layout(self) -> Any:
        """`torch.jagged`."""
        return LAYOUTS["jagged"]

    def is_contiguous(self, memory_format: Any = None) -> bool:
        """Whether the values are, and have nothing between the rows."""
        return self._lengths is None and bool(self._inner.is_contiguous())

    def __len__(self) -> int:
        return int(self._offsets.size(0)) - 1

    def __iter__(self) -> Iterator[Any]:
        return iter(self.unbind())

    def _as_text(self) -> str:
        sizes = ", ".join(map(repr, self.shape))
        graph = ""
        if self.grad_fn is not None:
            graph = f", grad_fn={self.grad_fn}"
        elif self.requires_grad:
            graph = ", requires_grad=True"
        return f"NestedTensor(size=({sizes}), offsets={self._offsets}{graph}, contiguous={self.is_contiguous()})"


def from_rows(rows: list[Tensor]) -> NestedTensor:
    """The nested tensor of tensors that differ in the size of one dimension."""
    from ... import cat, tensor

    if not rows:
        raise RuntimeError("Cannot construct a nested tensor from an empty tensor list")
    first = rows[0]
    if any(row.dim() != first.dim() for row in rows):
        raise RuntimeError("all tensors of a nested tensor have the same number of dimensions")
    if first.dim() == 0:
        raise RuntimeError("Cannot construct a nested tensor with jagged layout from a list of 0-d tensors")
    unequal = [place for place in range(first.dim()) if any(row.size(place) != first.size(place) for row in rows)]
    if len(unequal) > 1:
        raise RuntimeError(
            "Cannot represent given tensor list as a nested tensor with the jagged layout. Note that the jagged layout "
            f"only allows for a single ragged dimension, and these differ in the dimensions {unequal}: "
            f"{[tuple(row.shape) for row in rows]}"
        )
    place = unequal[0] if unequal else 0
    bounds = [0]
    for row in rows:
        bounds.append(bounds[-1] + row.size(place))
    return NestedTensor(cat(rows, place), tensor(bounds, device=first.device), ragged=place + 1)
