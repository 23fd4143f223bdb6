"""`StridedNestedTensor`: nested tensors of the layout `torch.strided`, whose rows may have any shapes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import flambeau as torch

from ..._core.device import LAYOUTS
from ..._core.tensor import Tensor
from ..._torch._subclasses.carrier import Carrier

Shape = tuple[int, ...]


class Row(NamedTuple):
    """Where a row lies in the memory of all: its shape, its strides in elements, and where it begins."""

    shape: Shape
    strides: Shape
    start: int

    @property
    def numel(self) -> int:
        """The number of its elements."""
        return _numel(self.shape)

    def is_contiguous(self) -> bool:
        """Whether its elements lie one after the other, in order."""
        return self.strides == _contiguous(self.shape) or self.numel == 0


def _numel(shape: Shape) -> int:
    count = 1
    for size in shape:
        count *= size
    return count


def _contiguous(shape: Shape) -> Shape:
    strides: list[int] = []
    step = 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


def end_to_end(shapes: Sequence[Shape]) -> tuple[Row, ...]:
    """Contiguous rows of these shapes, each where the one before it ends."""
    rows, start = [], 0
    for shape in shapes:
        rows.append(Row(shape, _contiguous(shape), start))
        start += _numel(shape)
    return tuple(rows)


class StridedNestedTensor(Carrier):
    """A tensor whose rows have the same number of dimensions, and any sizes.

    Its elements, those of all rows, are an ordinary tensor of one dimension, which autograd follows.
    """

    if TYPE_CHECKING:
        _rows: tuple[Row, ...]

    is_nested = True
    _has_no_other_ops = True  # its `__torch_function__` is heeded where those of users' classes are not

    def __new__(cls, elements: Tensor, rows: Sequence[Row]) -> StridedNestedTensor:
        made = object.__new__(cls)
        made._carry(elements)
        made._rows = tuple(rows)
        return made

    def __init__(self, elements: Tensor, rows: Sequence[Row]) -> None:
        """Everything is done by `__new__`, as for all tensors."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        from .strided_rules import run

        return run(func, args, kwargs or {})

    def like(self, elements: Tensor) -> StridedNestedTensor:
        """Other elements in the same rows."""
        return StridedNestedTensor(elements, self._rows)

    def _around(self, inner: Tensor) -> StridedNestedTensor:
        return self.like(inner)

    # ----- its parts ----------------------------------------------------------------------------------------------

    def rows(self) -> list[Tensor]:
        """Each row as an ordinary tensor: a window on the memory of all."""
        return [self._inner.as_strided(*row) for row in self._rows]

    def values(self) -> Tensor:
        """The elements of all rows in one dimension; shares memory and place in the graph."""
        return self._inner

    def covers_its_memory(self) -> bool:
        """Whether each element of the memory belongs to one row."""
        return sum(row.numel for row in self._rows) == self._inner.numel()

    def is_contiguous(self, memory_format: Any = None) -> bool:
        """Whether the rows are, and lie end to end from the beginning of the memory."""
        place = 0
        for row in self._rows:
            if row.start != place or not row.is_contiguous():
                return False
            place += row.numel
        return True

    def packed(self) -> StridedNestedTensor:
        """The tensor itself if it is contiguous and has its memory to itself, else a copy for which that holds."""
        if self.is_contiguous() and self.covers_its_memory():
            return self
        return packed(self.rows(), self.dtype)

    def to_padded_tensor(self, padding: float, output_size: Any = None) -> Tensor:
        """The rows one above the other in an ordinary tensor, as large as the largest, with `padding` around."""
        from .strided_rules import padded

        return padded(self, padding, output_size)

    # ----- what it is ---------------------------------------------------------------------------------------------

    @property
    def shape(self) -> Any:
        """Nothing says it: the rows' sizes differ."""
        raise RuntimeError(
            "Internal error: NestedTensorImpl doesn't support sizes: rows differ in theirs. Use size(dim), or the "
            "shapes of unbind()'s rows"
        )

    def size(self, dim: int | None = None) -> Any:
        """The number of rows (dimension 0), or a size that all rows have."""
        if dim is None:
            return self.shape
        place = dim + self.dim() if dim < 0 else dim
        if not 0 <= place < self.dim():
            raise IndexError(
                f"Dimension out of range (expected to be in range of [{-self.dim()}, {self.dim() - 1}], but got {dim})"
            )
        if place == 0:
            return len(self._rows)
        found = {row.shape[place - 1] for row in self._rows}
        if len(found) != 1:
            raise RuntimeError(f"Given dimension {place} is irregular and does not have a size.")
        return found.pop()

    def dim(self) -> int:
        """The number of dimensions, that of the rows included."""
        return 1 + (len(self._rows[0].shape) if self._rows else 0)

    @property
    def ndim(self) -> int:
        """The number of dimensions, that of the rows included."""
        return self.dim()

    def numel(self) -> int:
        """The number of elements of all rows."""
        return sum(row.numel for row in self._rows)

    def stride(self, dim: int | None = None) -> Any:
        """Nothing says it: the rows' strides differ."""
        raise RuntimeError("Internal error: NestedTensorImpl doesn't support strides: each row has its own")

    @property
    def layout(self) -> Any:
        """The layout, which is `torch.strided`."""
        return LAYOUTS["strided"]

    def _nested_tensor_size(self) -> Tensor:
        return torch.tensor([row.shape for row in self._rows], dtype=torch.int64)

    def _nested_tensor_strides(self) -> Tensor:
        return torch.tensor([row.strides for row in self._rows], dtype=torch.int64)

    def _nested_tensor_storage_offsets(self) -> Tensor:
        return torch.tensor([row.start for row in self._rows], dtype=torch.int64)

    def __len__(self) -> int:
        return len(self.shape)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.rows())

    def _as_text(self) -> str:
        rows = [
            "\n".join(f"  {line}" for line in repr(row.detach().requires_grad_(self.requires_grad)).split("\n"))
            for row in self.rows()
        ]
        graph = ""
        if self.grad_fn is not None:
            graph = f", grad_fn=<{self.grad_fn.name()}>"
        elif self.requires_grad:
            graph = ", requires_grad=True"
        return "nested_tensor([\n" + ",\n".join(rows) + f"\n]{graph})"


def packed(rows: Sequence[Tensor], dtype: Any = None) -> StridedNestedTensor:
    """The nested tensor of rows, which are copied end to end; gradients flow back to them."""
    for number, row in enumerate(rows):
        if row.dim() != rows[0].dim():
            raise RuntimeError(
                f"All Tensors given to nested_tensor must have the same dimension. Found dimension {row.dim()} for "
                f"Tensor at index {number} and dimension {rows[0].dim()} for Tensor at index 0."
            )
    if not rows:
        return StridedNestedTensor(torch.empty(0, dtype=dtype), ())
    kind = rows[0].dtype if dtype is None else dtype
    elements = torch.cat([row.reshape(-1).to(kind) for row in rows])
    return StridedNestedTensor(elements, end_to_end([tuple(row.shape) for row in rows]))
