"""What stands in the place of an array in a sparse tensor: places and values in small dense arrays.

A `SparseArray` has a shape and a dtype, but whatever reads it as an array of numbers gets an error: no kernel can take
it for a dense one. `CooArray` names each element by its coordinates; a `CompressedArray` is a matrix by rows or by
columns, of single elements or of blocks.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar, NoReturn, TypeVar

import numpy as np

from ..backend import to_host
from ..device import LAYOUTS, layout

AnyArray = TypeVar("AnyArray", bound="SparseArray")
COO, CSR, CSC = LAYOUTS["sparse_coo"], LAYOUTS["sparse_csr"], LAYOUTS["sparse_csc"]
BSR, BSC = LAYOUTS["sparse_bsr"], LAYOUTS["sparse_bsc"]


def _refuse(*args: Any, **kwargs: Any) -> NoReturn:
    raise NotImplementedError(
        "a sparse tensor has no array of all its elements: this operation is not implemented for it. Convert it first, "
        "with .to_dense()"
    )


class SparseArray(np.lib.mixins.NDArrayOperatorsMixin):
    """In the place of an array of numbers: a shape, a dtype, and the elements that are not zero."""

    __slots__ = ("shape", "values")
    layout: layout
    part_names: ClassVar[tuple[str, ...]]
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

    def by_coordinates(self, coalesced: bool = True) -> CooArray:
        """The tensor in the layout of coordinates (COO), which are sorted only with `coalesced`."""
        raise NotImplementedError

    def like(self, array: CooArray) -> SparseArray:
        """What another array names by coordinates, in the layout of this one."""
        raise NotImplementedError

    def with_values(self: AnyArray, values: Any) -> AnyArray:
        """Other values at the same places."""
        made = self.__copy__()
        made.values = values
        return made

    def __copy__(self: AnyArray) -> AnyArray:
        made: AnyArray = object.__new__(type(self))
        made.take(self)
        return made

    def copy(self) -> SparseArray:
        """A copy in memory of its own."""
        raise NotImplementedError

    def moved(self: AnyArray, backend: Any) -> AnyArray:
        """The array with all its parts as arrays of a backend."""
        if all(type(each) is backend.array_class for each in self.parts()):
            return self
        made = self.__copy__()
        for name in self.part_names:
            part = getattr(made, name)
            if type(part) is not backend.array_class:
                setattr(made, name, backend.from_host(to_host(part)))
        return made

    def take(self, other: SparseArray) -> None:
        """Become `other`."""
        for cls in type(self).__mro__:
            for name in vars(cls).get("__slots__", ()):
                setattr(self, name, getattr(other, name))


class CooArray(SparseArray):
    """Elements by their coordinates: `indices` has a row for each sparse dimension and a column for each element.

    The values have the dense dimensions after their first. `coalesced`: the coordinates are sorted and differ.
    """

    __slots__ = ("coalesced", "indices")
    layout = COO
    part_names = ("indices", "values")

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

    def by_coordinates(self, coalesced: bool = True) -> CooArray:
        return self

    def like(self, array: CooArray) -> CooArray:
        return array

    def copy(self) -> CooArray:
        return CooArray(self.indices.copy(), self.values.copy(), self.shape, self.coalesced)


class CompressedArray(SparseArray):
    """A matrix by rows, or by columns: row i has what stands from `compressed[i]` to `compressed[i + 1]`.

    `plain` has the other coordinate of each element. In the layouts of blocks both count blocks, and each value is one.
    """

    __slots__ = ("compressed", "plain")
    part_names = ("compressed", "plain", "values")
    by_rows: ClassVar[bool]
    of_blocks: ClassVar[bool] = False

    def __init__(self, compressed: Any, plain: Any, values: Any, shape: tuple[int, ...]) -> None:
        self.compressed = compressed
        self.plain = plain
        self.values = values
        self.shape = shape

    def parts(self) -> tuple[Any, ...]:
        return self.compressed, self.plain, self.values

    def copy(self) -> SparseArray:
        return type(self)(self.compressed.copy(), self.plain.copy(), self.values.copy(), self.shape)

    @property
    def blocksize(self) -> tuple[int, int]:
        """The height and width of a value."""
        height, width = self.values.shape[1:] if self.of_blocks else (1, 1)
        return height, width

    def coordinates(self) -> tuple[Any, Any]:
        """The row and the column of each value: of blocks, where there are blocks."""
        groups = group_numbers(self.compressed, self.plain.shape[0])
        others = self.plain.astype(np.int64)
        return (groups, others) if self.by_rows else (others, groups)

    def by_coordinates(self, coalesced: bool = True) -> CooArray:
        rows, columns = self.coordinates()
        values = self.values
        if self.of_blocks:
            height, width = self.blocksize
            rows = rows[:, None, None] * height + np.arange(height, like=rows)[:, None]
            columns = columns[:, None, None] * width + np.arange(width, like=rows)
            rows, columns = (np.broadcast_to(each, values.shape).reshape(-1) for each in (rows, columns))
            values = values.reshape(-1)
        found = CooArray(np.stack((rows, columns)), values, self.shape, False)
        return coalesced_array(found) if coalesced else found  # the columns of a row need not be in order

    def transposed(self) -> CompressedArray:
        """The transposed matrix: these arrays, with rows read as columns."""
        values = np.swapaxes(self.values, 1, 2) if self.of_blocks else self.values
        other = COMPRESSED[{CSR: CSC, CSC: CSR, BSR: BSC, BSC: BSR}[self.layout]]
        return other(self.compressed, self.plain, values, self.shape[::-1])

    def like(self, array: CooArray) -> CompressedArray:
        """A matrix by coordinates in the layout of this one."""
        return compressed_from_coo(array, self.layout, self.blocksize)


class CsrArray(CompressedArray):
    """A matrix by rows."""

    __slots__ = ()
    layout = CSR
    by_rows = True


class CscArray(CompressedArray):
    """A matrix by columns."""

    __slots__ = ()
    layout = CSC
    by_rows = False


class BsrArray(CompressedArray):
    """A matrix of blocks, by rows of them."""

    __slots__ = ()
    layout = BSR
    by_rows = True
    of_blocks = True


class BscArray(CompressedArray):
    """A matrix of blocks, by columns of them."""

    __slots__ = ()
    layout = BSC
    by_rows = False
    of_blocks = True


COMPRESSED: dict[layout, type[CompressedArray]] = {CSR: CsrArray, CSC: CscArray, BSR: BsrArray, BSC: BscArray}
"""The classes of compressed arrays."""


_HALVES = ("float16", "bfloat16")


def accumulating(values: Any) -> Any:
    """`values` in the type in which sums of them are formed: half precision is added up in float32."""
    return values.astype(np.float32) if values.dtype.name in _HALVES else values


def add_groups(values: Any, starts: Any) -> Any:
    """The sums of the rows of `values` from each of `starts` to the next."""
    if values.dtype == np.bool_:
        return np.maximum.reduceat(values.view(np.uint8), starts, axis=0).view(np.bool_)
    return np.add.reduceat(accumulating(values), starts, axis=0).astype(values.dtype, copy=False)


def group_starts(ordered: Any) -> Any:
    """Where in a sorted vector each run of equal numbers begins."""
    return np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))


def group_numbers(starts: Any, count: int) -> Any:
    """For each of `count` elements the number of its group; group i begins at `starts[i]`, which may be empty."""
    if type(starts) is np.ndarray:
        return np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    return np.searchsorted(starts, np.arange(count, like=starts), side="right") - 1


def flat_indices(indices: Any, shape: tuple[int, ...]) -> Any:
    """Coordinates as single numbers that are in the same order."""
    flat = np.zeros(indices.shape[1], np.int64, like=indices)
    for row, length in zip(each_row(indices), shape, strict=False):
        flat *= length
        flat += row
    return flat


def each_row(indices: Any) -> tuple[Any, ...]:
    """The coordinates along each dimension."""
    return tuple([indices[each] for each in range(indices.shape[0])])


def rows_of(indices: Any, dims: Any) -> Any:
    """The coordinates along some of the dimensions, in this order."""
    if not dims:
        return np.zeros((0, indices.shape[1]), np.int64, like=indices)
    return np.stack([indices[each] for each in dims])


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
    result = np.zeros(array.shape, array.dtype, like=array.values)
    array = coalesced_array(array.by_coordinates(coalesced=False))
    if array.sparse_dim:
        result[each_row(array.indices)] = array.values
    elif array.nnz:
        result[...] = array.values[0]
    return result


def coo_from_dense(array: Any, sparse_dim: int) -> CooArray:
    """The elements, or with fewer sparse dimensions than all the slices, that are not zero."""
    if sparse_dim == 0:
        return CooArray(np.zeros((0, 1), np.int64, like=array), array[None].copy(), array.shape, True)
    present = array != 0
    if sparse_dim < array.ndim:
        present = present.any(axis=tuple(range(sparse_dim, array.ndim)))
    where = present.nonzero()
    return CooArray(np.stack(where).astype(np.int64, copy=False), array[where], array.shape, True)


def compressed_from_coo(array: CooArray, kept_as: layout, blocksize: tuple[int, int] = (1, 1)) -> CompressedArray:
    """A COO matrix in a layout of rows or columns, of elements or of blocks whose size divides the matrix's."""
    cls = COMPRESSED[kept_as]
    array = coalesced_array(array)
    height, width = blocksize
    rows, columns = array.indices[0] // height, array.indices[1] // width
    counts = array.shape[0] // height, array.shape[1] // width
    major, minor = (rows, columns) if cls.by_rows else (columns, rows)
    groups, others = counts if cls.by_rows else counts[::-1]
    flat = major * others + minor
    if cls.of_blocks:
        found, place = np.unique(flat, return_inverse=True)
        values = np.zeros((len(found), height, width), array.dtype, like=found)
        values[place.reshape(-1), array.indices[0] % height, array.indices[1] % width] = array.values
        major, plain = found // others, found % others
    else:
        order = np.argsort(flat, kind="stable")
        major, plain, values = major[order], minor[order], array.values[order]
    starts = np.concatenate(([0], np.cumsum(np.bincount(major, minlength=groups)))).astype(np.int64)
    return cls(starts, plain, values, array.shape)


def positions_in(mask: Any, wanted: Any) -> tuple[Any, Any]:
    """For each of the numbers `wanted` its place in the sorted vector `mask`, and whether it is there."""
    if not len(mask):
        return np.zeros(len(wanted), np.int64, like=wanted), np.zeros(len(wanted), bool, like=wanted)
    places = np.minimum(np.searchsorted(mask, wanted), len(mask) - 1)
    return places, mask[places] == wanted


def values_at(array: Any, mask: CooArray) -> Any:
    """The elements of a dense or a sparse array of coordinates at the coordinates of `mask`."""
    if not isinstance(array, SparseArray):
        return array[each_row(mask.indices)] if mask.sparse_dim else np.repeat(array[None], mask.nnz, 0)
    source = coalesced_array(array.by_coordinates())
    shape = mask.shape
    places, found = positions_in(flat_indices(source.indices, shape), flat_indices(mask.indices, shape))
    kept = found.reshape(-1, *[1] * (source.values.ndim - 1))
    if not source.nnz:
        return np.zeros((mask.nnz, *source.values.shape[1:]), source.dtype, like=source.values)
    return np.where(kept, source.values[places], np.zeros((), source.dtype, like=source.values))


def no_elements(array: CooArray, array_type: Any) -> CooArray:
    """A sparse array of the same shape without elements."""
    values = np.zeros((0, *array.values.shape[1:]), array_type, like=array.values)
    return CooArray(np.zeros((array.sparse_dim, 0), np.int64, like=array.values), values, array.shape, True)
