"""Sparse tensors: what stands in the place of an array, and the class of tensors that hold it.

A sparse tensor keeps the elements that it names, and where they are, in small dense arrays. These are the fields of a
`SparseArray`, which takes the place of the array of a tensor. It has a shape and a dtype, but whatever reads it as an
array of numbers gets an error: no kernel can take it for a dense one. `SparseTensor` is the class of the tensors that
hold one. It is no plain class, so every op hands it over to its `__torch_function__`, which is where the ops that
sparse tensors have are found. Dense tensors meet none of this.
"""

from __future__ import annotations

import copy
import math
from typing import Any, NoReturn, TypeVar, cast

import numpy as np

from .device import LAYOUTS, device, layout
from .dtype import LEGACY_NAMES, dtype, from_numpy_dtype
from .kind import Kind, kind_of, kind_of_array
from .slots import SLOTS
from .tensor import Parts, Tensor, new, new_counter
from .version import Counter

AnyArray = TypeVar("AnyArray", bound="SparseArray")
COO, CSR = LAYOUTS["sparse_coo"], LAYOUTS["sparse_csr"]
LAYOUT_NAMES = {LAYOUTS["strided"]: "Strided", COO: "Sparse", CSR: "SparseCsr"}
"""The names of layouts in PyTorch's messages."""


def _refuse(*args: Any, **kwargs: Any) -> NoReturn:
    raise NotImplementedError(
        "a sparse tensor has no array of all its elements: this operation is not implemented for it. Convert it first, "
        "with .to_dense()"
    )


class SparseArray(np.lib.mixins.NDArrayOperatorsMixin):
    """In the place of an array of numbers: a shape, a dtype, and the elements that are not zero."""

    __slots__ = ("shape", "values")
    layout: layout
    shape: tuple[int, ...]
    values: Any
    __array__ = __array_ufunc__ = __array_function__ = __getitem__ = __setitem__ = __iter__ = __bool__ = _refuse
    __hash__ = object.__hash__

    @property
    def dtype(self) -> np.dtype[Any]:
        element: np.dtype[Any] = self.values.dtype
        return element

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def itemsize(self) -> int:
        size: int = self.values.dtype.itemsize
        return size

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def base(self) -> SparseArray:
        """Not None, which would mean that an array owns its memory and may be taken over."""
        return self

    @property
    def strides(self) -> None:
        """None: there are none, and no dense array has the same."""
        return None

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # Python itself and NumPy ask what an object can do
            raise AttributeError(name)
        _refuse()

    @property
    def nnz(self) -> int:
        """How many elements (or rows of dense dimensions) are named."""
        count: int = self.values.shape[0]
        return count

    def parts(self) -> tuple[Any, ...]:
        """The arrays of places, and that of the values."""
        raise NotImplementedError

    def with_values(self: AnyArray, values: Any) -> AnyArray:
        """Other values at the same places."""
        made = self.__copy__()
        made.values = values
        return made

    def __copy__(self: AnyArray) -> AnyArray:
        made: AnyArray = new(type(self))
        made.take(self)
        return made

    def copy(self) -> SparseArray:
        """The same in memory of its own."""
        raise NotImplementedError

    def take(self, other: SparseArray) -> None:
        """Become `other`."""
        for name in (*SparseArray.__slots__, *type(self).__slots__):
            setattr(self, name, getattr(other, name))


class CooArray(SparseArray):
    """Elements by their coordinates: `indices` has a row for each sparse dimension and a column for each element.

    The values have the dense dimensions after their first. `coalesced`: the coordinates are sorted and differ.
    """

    __slots__ = ("coalesced", "indices")
    layout = COO

    def __init__(self, indices: Any, values: Any, shape: tuple[int, ...], coalesced: bool = False) -> None:
        self.indices = indices
        self.values = values
        self.shape = shape
        self.coalesced = coalesced or values.shape[0] < 2

    @property
    def sparse_dim(self) -> int:
        """How many leading dimensions are sparse."""
        count: int = self.indices.shape[0]
        return count

    def parts(self) -> tuple[Any, ...]:
        return self.indices, self.values

    def copy(self) -> CooArray:
        return CooArray(self.indices.copy(), self.values.copy(), self.shape, self.coalesced)


class CsrArray(SparseArray):
    """A matrix by rows: the elements from `crow_indices[i]` to `crow_indices[i + 1]` are those of row i."""

    __slots__ = ("col_indices", "crow_indices")
    layout = CSR

    def __init__(self, crow_indices: Any, col_indices: Any, values: Any, shape: tuple[int, ...]) -> None:
        self.crow_indices = crow_indices
        self.col_indices = col_indices
        self.values = values
        self.shape = shape

    def parts(self) -> tuple[Any, ...]:
        return self.crow_indices, self.col_indices, self.values

    def copy(self) -> CsrArray:
        return CsrArray(self.crow_indices.copy(), self.col_indices.copy(), self.values.copy(), self.shape)

    def rows(self) -> Any:
        """The row of each element."""
        return np.repeat(np.arange(self.shape[0]), np.diff(self.crow_indices))


class SparseKind(Kind):
    """A dtype on a device in a sparse layout; no op has a kernel for it, and no dense tensor the same."""

    __slots__ = ("layout",)

    def __init__(self, dtype: dtype, device: device, layout: layout) -> None:
        super().__init__(dtype, device)
        self.layout = layout
        self.is_cpu = False  # what writes to the array at once must not
        self.indirect = True

    @property
    def legacy_name(self) -> str:
        place = "" if self.device.type == "cpu" else f"{self.device.type}."
        prefix = "sparse" if self.layout is COO else "sparse_csr"
        return f"torch.{place}{prefix}.{LEGACY_NAMES[self.dtype]}Tensor"

    @staticmethod
    def tensor_from_parts(parts: Parts) -> Tensor:
        return sparse_from_parts(parts)


_KINDS: dict[tuple[dtype, device, layout], SparseKind] = {}


def sparse_kind_of(dtype: dtype, device: device, layout: layout) -> SparseKind:
    """The one kind of `dtype` on `device` in `layout`."""
    found = _KINDS.get((dtype, device, layout))
    if found is None:
        found = _KINDS.setdefault((dtype, device, layout), SparseKind(dtype, device, layout))
    return found


class SparseTensor(Tensor):
    """A tensor that keeps only the elements that it names; the others are zero."""

    __slots__ = ()
    __module__ = "flambeau"
    _has_no_other_ops = True  # its `__torch_function__` is heeded where those of users' classes are not
    _array: Any

    @classmethod
    def __torch_function__(
        cls, func: Any, types: tuple[type, ...], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        return SLOTS.run_on_sparse(func, args, kwargs or {})

    @property
    def layout(self) -> layout:
        own: layout = self._array.layout
        return own

    @property
    def is_sparse(self) -> bool:
        return self._array.layout is COO

    @property
    def is_sparse_csr(self) -> bool:
        return self._array.layout is CSR

    def stride(self, dim: int | None = None) -> Any:
        """Zeros: there are no strides."""
        strides = (0,) * len(self._array.shape)
        return strides if dim is None else strides[dim]

    @property
    def nbytes(self) -> int:
        raise RuntimeError(
            "nbytes is not defined for sparse tensors.  If you want the size of the constituent tensors, add the "
            "nbytes of the indices and values."
        )

    def data_ptr(self) -> int:
        """An error: the elements are in several arrays."""
        raise RuntimeError("Cannot access data pointer of Tensor that doesn't have storage: it is sparse")

    def untyped_storage(self) -> NoReturn:
        """An error: the elements are in several arrays."""
        raise NotImplementedError(
            "Cannot access storage of SparseTensorImpl: a sparse tensor has those of its indices and its values"
        )

    def storage_offset(self) -> int:
        """An error, as for the storage."""
        self.untyped_storage()

    def tolist(self) -> NoReturn:
        """An error: convert the tensor first."""
        raise RuntimeError("Cannot access data pointer of Tensor that doesn't have storage: use .to_dense().tolist()")

    def item(self) -> Any:
        """The one element as a Python number."""
        return dense_tensor(to_dense_array(self._array), self).item() if self._array.size == 1 else super().item()

    def __pow__(self, exponent: Any) -> Any:
        method: Any = self.pow  # the operator of dense tensors looks at the array first
        return method(exponent)

    @property
    def T(self) -> Any:
        method: Any = self.t
        return method()

    # mypy takes the options of special methods for positional
    def __repr__(self, *, tensor_contents: str | None = None) -> str:  # type: ignore[override]
        from .text.sparse_printing import sparse_repr

        return sparse_repr(self)

    def __len__(self) -> int:
        if not self._array.shape:
            raise TypeError("len() of a 0-d tensor")
        return len(self._array)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if id(self) not in memo:
            if not self.is_leaf:
                raise RuntimeError(
                    "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the "
                    "moment. Use .detach().clone() for a copy outside the graph."
                )
            made = sparse_from_parts((self._array.copy(), self._kind, new_counter()))
            made._requires_grad = self._requires_grad
            if self._grad is not None:
                made._grad = copy.deepcopy(self._grad, memo)
            memo[id(self)] = made
        return memo[id(self)]

    def __reduce_ex__(self, protocol: Any = 2) -> tuple[Any, ...]:
        tensors = tuple(dense_tensor(each, self) for each in self._array.parts())
        options = (self._array.coalesced,) if self._array.layout is COO else ()
        return rebuild_sparse, (self.layout, (*tensors, tuple(self.shape), *options), self.requires_grad)


def rebuild_sparse(layout: layout, parts: tuple[Any, ...], requires_grad: bool = False) -> SparseTensor:
    """A leaf from the tensors of its places and values, its shape and, in layout COO, whether it is coalesced."""
    array: SparseArray
    if layout is COO:
        indices, values, shape, coalesced = parts
        array = CooArray(indices._array, values._array, shape, coalesced)
    else:
        crow_indices, col_indices, values, shape = parts
        array = CsrArray(crow_indices._array, col_indices._array, values._array, shape)
    made = sparse_tensor(array, values.device)
    made._requires_grad = requires_grad
    return made


def sparse_from_parts(parts: Parts) -> SparseTensor:
    """A sparse tensor outside any graph, over a given array, kind and version counter."""
    tensor: SparseTensor = new(SparseTensor)
    tensor._array, tensor._kind, tensor._counter = parts
    tensor._requires_grad = False
    tensor._grad_fn = None
    tensor._output_nr = 0
    tensor._grad = None
    tensor._view = None
    tensor._extra = None
    return tensor


def sparse_tensor(array: SparseArray, place: device) -> SparseTensor:
    """A new sparse tensor outside any graph."""
    kind = sparse_kind_of(from_numpy_dtype(array.dtype), place, array.layout)
    return sparse_from_parts((array, kind, new_counter()))


def dense_tensor(array: Any, source: Tensor, counter: Counter | None = None) -> Tensor:
    """A dense tensor outside any graph over `array`, on the device of `source`."""
    kind = kind_of_array(array.dtype, source._kind.device)
    return Tensor._from_parts((array, kind, new_counter() if counter is None else counter))


def dense_kind(kind: Kind) -> Kind:
    """The kind of dense tensors of the same dtype on the same device."""
    return kind_of(kind.dtype, kind.device)


# ----- what needs only arrays --------------------------------------------------------------------------------------

_HALVES = ("float16", "bfloat16")


def accumulating(values: Any) -> Any:
    """`values` in the type in which sums of them are formed: half precision is added up in float32."""
    return values.astype(np.float32) if values.dtype.name in _HALVES else values


def add_groups(values: Any, starts: Any) -> Any:
    """The sums of the rows of `values` from each of `starts` to the next."""
    if values.dtype == np.bool_:
        return np.logical_or.reduceat(values, starts, axis=0)
    return np.add.reduceat(accumulating(values), starts, axis=0).astype(values.dtype, copy=False)


def group_starts(ordered: Any) -> Any:
    """Where in a sorted vector each run of equal numbers begins."""
    return np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))


def flat_indices(indices: Any, shape: tuple[int, ...]) -> Any:
    """Coordinates as single numbers that are in the same order."""
    flat = np.zeros(indices.shape[1], np.int64)
    for row, length in zip(indices, shape, strict=False):
        flat *= length
        flat += row
    return flat


def coalesced_array(array: CooArray) -> CooArray:
    """The coordinates sorted, and the values of equal ones added up."""
    if array.coalesced:
        return array
    flat = flat_indices(array.indices, array.shape)
    order = np.argsort(flat, kind="stable")
    starts = group_starts(flat[order])
    values = add_groups(array.values[order], starts) if len(starts) < len(order) else array.values[order]
    return CooArray(np.take(array.indices, order[starts], axis=1), values, array.shape, True)


def to_dense_array(array: Any) -> Any:
    """All elements, as an ordinary array."""
    result = np.zeros(array.shape, array.dtype)
    if isinstance(array, CsrArray):
        array = coo_from_csr(array, coalesced=False)
    array = coalesced_array(array)
    if array.sparse_dim:
        result[tuple(array.indices)] = array.values
    elif array.nnz:
        result[...] = array.values[0]
    return result


def coo_from_dense(array: Any, sparse_dim: int) -> CooArray:
    """The elements, or with fewer sparse dimensions than all the slices, that are not zero."""
    if sparse_dim == 0:
        return CooArray(np.zeros((0, 1), np.int64), array[None].copy(), array.shape, True)
    present = array != 0
    if sparse_dim < array.ndim:
        present = present.any(axis=tuple(range(sparse_dim, array.ndim)))
    where = present.nonzero()
    return CooArray(np.stack(where).astype(np.int64, copy=False), array[where], array.shape, True)


def coo_from_csr(array: CsrArray, coalesced: bool = True) -> CooArray:
    """The same matrix by coordinates."""
    indices = np.stack((array.rows(), array.col_indices.astype(np.int64)))
    return CooArray(indices, array.values, array.shape, coalesced)


def csr_from_coo(array: CooArray) -> CsrArray:
    """The same matrix by rows."""
    array = coalesced_array(array)
    counts = np.bincount(array.indices[0], minlength=array.shape[0])
    crow = np.concatenate(([0], np.cumsum(counts))).astype(np.int64)
    return CsrArray(crow, array.indices[1].copy(), array.values.copy(), array.shape)


def positions_in(mask: Any, wanted: Any) -> tuple[Any, Any]:
    """For each of the numbers `wanted` its place in the sorted vector `mask`, and whether it is there."""
    if not len(mask):
        return np.zeros(len(wanted), np.int64), np.zeros(len(wanted), bool)
    places = np.minimum(np.searchsorted(mask, wanted), len(mask) - 1)
    return places, mask[places] == wanted


def values_at(array: Any, mask: CooArray) -> Any:
    """The elements of a dense or a sparse array of coordinates at the coordinates of `mask`."""
    if not isinstance(array, SparseArray):
        return array[tuple(mask.indices)] if mask.sparse_dim else np.repeat(array[None], mask.nnz, 0)
    source = coalesced_array(coo_from_csr(array) if isinstance(array, CsrArray) else cast(CooArray, array))
    shape = mask.shape
    places, found = positions_in(flat_indices(source.indices, shape), flat_indices(mask.indices, shape))
    values = np.zeros((mask.nnz, *source.values.shape[1:]), source.dtype)
    values[found] = source.values[places[found]]
    return values


def no_elements(array: CooArray, array_type: Any) -> CooArray:
    """A sparse array of the same shape without elements."""
    values = np.zeros((0, *array.values.shape[1:]), array_type)
    return CooArray(np.zeros((array.sparse_dim, 0), np.int64), values, array.shape, True)
