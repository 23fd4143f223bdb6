"""Functions on arrays of which kernels are made, each by the quickest code that there is for it.

They return None, or False where they write, for what they do not do: arrays of other libraries, other dtypes and
layouts, a machine without the means. Then the caller goes on with NumPy. What is worth asking for is the caller's
affair: below `LARGE` elements most is not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._core.backend import STAND_INS, faster_for, is_of_host
from .._core.process.reproducibility import REPRODUCIBILITY
from .tiers import FAMILIES, generated, library

Array = Any

_MANY = 2**16
"""From so many elements on several threads copy sooner than one."""
_SMALL = 512
"""A factor with no more elements than these is in no product that is worth two threads."""


def _kernels(family: str, array: Array) -> Any:
    """The generated kernels of a family, where they can read `array`."""
    if type(array) is not np.ndarray:
        return STAND_INS.get(type(array), _no_kernels)(family)
    try:
        return FAMILIES[family]  # as `generated` has them, once it was asked
    except KeyError:
        return generated(family)


def _no_kernels(family: str) -> None:
    """For arrays of other libraries."""


# ----- elements moved ------------------------------------------------------------------------------------------------


def copy_into(target: Array, source: Array) -> bool:
    """Fill `target`, whose memory is new, with the elements of `source`, of the same shape."""
    kernels = _kernels("copy", target)
    return kernels is not None and type(source) is np.ndarray and kernels.copy_into(target, source)


def contiguous(array: Array) -> Array:
    """`array` itself if its elements lie one after another, else a copy where they do."""
    if array.flags.c_contiguous:
        return array
    kernels = _kernels("copy", array) if type(array) is np.ndarray else None
    return array.copy("C") if kernels is None else kernels.contiguous(array)


def duplicate(array: Array) -> Array:
    """A copy whose elements lie in the order of those of `array`."""
    if type(array) is np.ndarray and array.size >= _MANY:
        copy = np.empty_like(array)
        if copy_into(copy, array):
            return copy
    return array.copy("K")


def store(target: Array, source: Array) -> bool:
    """Overwrite a large array with another one of its shape and dtype that shares no memory with it."""
    if type(target) is not np.ndarray or target.size < _MANY or 0 in target.strides:
        return False
    if target.shape != source.shape or target.dtype is not source.dtype or np.may_share_memory(target, source):
        return False
    return copy_into(target, source)


def concatenated(arrays: Sequence[Array], dim: int, stacked: bool = False) -> Array | None:
    """Arrays of one dtype, without gaps, side by side along `dim`; `stacked`: that is a new dimension."""
    kernels = _kernels("join", arrays[0])
    return None if kernels is None else kernels.concatenated(arrays, dim, stacked)


def fill_spaced(target: Array, first: float, last: float) -> bool:
    """Fill `target`, a new vector of at least two, with numbers at equal distances, counted from the nearer end."""
    kernels = _kernels("ranges", target)
    return kernels is not None and kernels.fill_spaced(target, first, last)


def fill_where(array: Array, mask: Array, value: Array) -> bool:
    """Write `value`, one element of the array's dtype, where the mask holds."""
    kernels = _kernels("masks", array)
    return kernels is not None and kernels.fill(array, mask, value)


def within(index: Array, size: int) -> bool:
    """Whether all positions are known to be in [0, size)."""
    kernels = _kernels("gather", index)
    return kernels is not None and kernels.within(index, size)


def gathered(array: Array, dim: int, index: Array) -> Array | None:
    """The elements at the positions `index` along `dim`; None also where some are out of range."""
    kernels = _kernels("gather", array)
    return None if kernels is None else kernels.gathered(array, dim, index)


def selected(array: Array, dim: int, positions: Array) -> Array | None:
    """The slices at `positions`, a vector, along `dim`; positions are in range."""
    kernels = _kernels("gather", array)
    return None if kernels is None else kernels.selected(array, dim, positions)


def selected_places(array: Array, places: Array, counts: tuple[int, ...]) -> Array | None:
    """The elements at `places`, a vector without gaps, of the last dimensions seen as one: `counts` along each.

    Places are in range.
    """
    kernels = _kernels("gather", array)
    return None if kernels is None else kernels.selected_places(array, places, counts)


def embedding(weight: Array, indices: Array) -> Array | None:
    """The rows of a table whose numbers are in `indices`; None also where some of them are not its rows' numbers."""
    kernels = _kernels("gather", weight)
    return None if kernels is None else kernels.embedding(weight, indices)


def flipped(array: Array, dims: tuple[int, ...]) -> Array | None:
    """A copy with the order along `dims` reversed."""
    kernels = _kernels("copy", array)
    return None if kernels is None else kernels.flipped(array, dims)


def scattered(target: Array, dim: int, index: Array, values: Array, how: str) -> bool:
    """Bring `values` to the positions `index` along `dim` of `target`; nothing is done if some are out of range.

    `how` is "write", or the name of the ufunc that combines them with what is there: "add", "maximum", ...
    """
    kernels = _kernels("gather", target)
    return kernels is not None and kernels.scattered(target, dim, index, values, how)


def add_slices(target: Array, dim: int, positions: Array, values: Array) -> bool:
    """Add the slices of `values` to those of `target` at `positions`, a vector, along `dim`.

    Nothing is done if some are out of range.
    """
    kernels = _kernels("gather", target) if is_of_host(type(target)) else faster_for(target, "row_sums")
    return kernels is not None and kernels.add_slices(target, dim, positions, values)


def taps_summed(array: Array, dim: int, indices: Array, weights: Array | None, counts: Array | None) -> Array | None:
    """Along `dim` for each column of `indices` the sum of the elements there, each with its weight.

    Of the taps, which are rows, a result has the first `counts`, if these are given. Positions are in range.
    """
    kernels = _kernels("window_sums", array)
    return None if kernels is None else kernels.summed(array, dim, indices, weights, counts)


# ----- products and reductions ----------------------------------------------------------------------------------------


def product(left: Array, right: Array) -> Array | None:
    """The product of two matrices of middling size."""
    kernels = _kernels("matmul", left)
    return None if kernels is None else kernels.product(left, right)


def matmul(left: Array, right: Array, out: Array | None = None) -> Array:
    """`np.matmul`, whose larger products the vendor's library computes, or the threads of the pool share."""
    if REPRODUCIBILITY.product is not None and type(left) is type(right) is np.ndarray:
        result = REPRODUCIBILITY.product(left, right)
        if out is None:
            return result
        out[...] = result
        return out
    if type(left) is type(right) is np.ndarray and left.size > _SMALL < right.size:
        kernels = library() if left.ndim > 2 else None
        done = None if kernels is None else kernels.products_of_batch(left, right, out)
        if done is not None:
            return done
        kernels = _kernels("threaded_blas", left)
        done = None if kernels is None else kernels.product(left, right, out)
        if done is not None:
            return done
    return np.matmul(left, right, out) if out is not None else np.matmul(left, right)


def product_of_few_rows(left: Array, right: Array) -> Array | None:
    """The product of a few rows and a matrix that is large for them."""
    kernels = _kernels("matmul", left)
    return None if kernels is None else kernels.product_of_few_rows(left, right)


def sparse_product(rows: Array, columns: Array, values: Array, dense: Array, height: int) -> Array | None:
    """The product of a sparse matrix of `height` rows, by the coordinates of its values, with a dense one."""
    own = is_of_host(type(values))
    kernels = _kernels("sparse_product", values) if own else faster_for(values, "sparse_product")
    return None if kernels is None else kernels.sparse_product(rows, columns, values, dense, height)


def sampled_product(rows: Array, columns: Array, left: Array, right: Array) -> Array | None:
    """The elements of the product of two dense matrices at given rows and columns."""
    kernels = None if is_of_host(type(left)) else faster_for(left, "sparse_product")
    return None if kernels is None else kernels.sampled_product(rows, columns, left, right)


def all_distances(left: Array, right: Array, p: float) -> Array | None:
    """The `p`-norms of the differences between each row of `left` and each of `right`."""
    kernels = _kernels("distances", left)
    return None if kernels is None else kernels.all_distances(left, right, p)


def distances_of_pairs(matrix: Array, p: float) -> Array | None:
    """The `p`-norms of the differences between every two rows of a matrix."""
    kernels = _kernels("distances", matrix)
    return None if kernels is None else kernels.distances_of_pairs(matrix, p)


def library_product(left: Array, right: Array) -> Array | None:
    """The product of two matrices, or of two batches of them, by a library that is not NumPy's."""
    if type(left) is np.ndarray:
        kernels = library()
    else:
        kernels = faster_for(left, "library" if is_of_host(type(left)) else "products")
    return None if kernels is None else kernels.product(left, right)


def increased(array: Array, addend: Array) -> Array:
    """`array` itself, to which `addend` of its dtype, which may be smaller, was added."""
    if type(array) is type(addend) is np.ndarray and array.size >= _MANY and array.dtype is addend.dtype:
        kernels = _kernels("pointwise", array)
        if kernels is not None and kernels.increased(array, addend):
            return array
    array += addend
    return array


def reduced(kind: str, array: Array, dims: tuple[int, ...] | None, dtype: np.dtype[Any]) -> Array | None:
    """`array` reduced by the ufunc called `kind` to `dtype`, without the reduced dimensions; sums are in float64.

    Of the kinds "square" and "present" are sums too: of squares, and of the elements that are not NaN. "norm" is the
    root of a sum of squares.
    """
    kernels = _kernels("reduce", array)
    return None if kernels is None else kernels.reduced(kind, array, dims, dtype)


def bounds(array: Array) -> tuple[Array, Array] | None:
    """The smallest and the largest element; NaN is both. None also where that takes more than one pass."""
    kernels = _kernels("reduce", array)
    return None if kernels is None else kernels.bounds(array)


def variances(
    array: Array, dims: tuple[int, ...], free: float, keepdim: bool, root: bool
) -> tuple[Array, Array] | None:
    """Sums of squares of the distances to the means along `dims`, divided by `free`, or their roots; and these means.

    In float32 for half precision. None also where that takes more than one pass.
    """
    kernels = _kernels("reduce", array)
    return None if kernels is None else kernels.variances(array, dims, free, keepdim, root)


def squared_deviations(array: Array, dims: tuple[int, ...], centres: Array) -> Array | None:
    """The sums of squares of the distances to `centres`, which keeps the reduced dimensions, in float64."""
    kernels = _kernels("reduce", array)
    return None if kernels is None else kernels.squared_deviations(array, dims, centres)


def safe_softmax(array: Array, dim: int) -> Array | None:
    """`softmax` along `dim`, but zeros where all elements are -inf."""
    kernels = _kernels("rows", array)
    return None if kernels is None else kernels.safe_softmax(array, dim)


def running(kind: str, array: Array, dim: int, fade: Array | None = None) -> Array | None:
    """`array` summed up ("add", "multiply", "logaddexp", "fading") along `dim`."""
    kernels = _kernels("scan", array)
    return None if kernels is None else kernels.running(kind, array, dim, fade)


def running_extremes(array: Array, dim: int, largest: bool) -> tuple[Array, Array] | None:
    """The extremes so far along `dim`, and where each was last attained."""
    kernels = _kernels("scan", array)
    return None if kernels is None else kernels.extremes(array, dim, largest)


def ranked(array: Array, dim: int, keepdim: bool, kind: str, rank: int) -> tuple[Array, Array] | None:
    """The elements of a rank along `dim` and where they are: the "given" one, or that of a "median", a "nanmedian"."""
    kernels = _kernels("select", array)
    return None if kernels is None else kernels.selected(array, dim, keepdim, kind, rank)


def leading(array: Array, dim: int, count: int, largest: bool, nan_leads: bool) -> tuple[Array, Array] | None:
    """The first `count` elements in order along `dim`, a few, and where they are; NaN comes first or last."""
    kernels = _kernels("select", array)
    return None if kernels is None else kernels.leading(array, dim, count, largest, nan_leads)


def extremes(array: Array, dim: int, keepdim: bool, largest: bool) -> tuple[Array, Array] | None:
    """The largest or the smallest elements along `dim`, and where the first of each is; NaN is both."""
    kernels = _kernels("select", array)
    return None if kernels is None else kernels.extremes(array, dim, keepdim, largest)


def gamma_integral(
    a: Array, x: Array, distance: Array, side: Array, width: Array, points: Array, weights: Array
) -> Array | None:
    """The integrals by which gamma numbers move with their shapes, for flat arrays of one type, float64 or float32."""
    kernels = _kernels("gamma_gradient", a)
    return None if kernels is None else kernels.gamma_integral(a, x, distance, side, width, points, weights)


# ----- recurrent layers: whole networks, and the steps between the matrix products ----------------------------------


def runs_recurrent_network(input: Array, states: Sequence[Array], params: Sequence[Array], recurrence: Any) -> bool:
    """Whether a network of several layers runs as one op."""
    kernels = None if is_of_host(type(input)) else faster_for(input, "recurrent_network")
    return kernels is not None and kernels.serves(input, states, params, recurrence)


def _recurrent_kernels(gates: Array, sizes: Sequence[int]) -> Any:
    if type(gates) is np.ndarray:
        kernels = FAMILIES.get("recurrent") or generated("recurrent")
    else:
        kernels = faster_for(gates, "recurrent")
    return kernels if kernels is not None and kernels.serves(gates.dtype, sizes) else None


def lstm_steps(
    gates: Array, hidden: Array, cell: Array, w_hh: Array, sizes: Sequence[int], reverse: bool
) -> tuple[Array, ...] | None:
    """All steps of a layer, from the input's part of the gates, which they replace."""
    kernels = _recurrent_kernels(gates, sizes)
    return None if kernels is None else kernels.lstm_forward(gates, hidden, cell, w_hh, sizes, reverse)


def lstm_steps_backward(
    of_output: Array | None, of_hidden: Array, of_cell: Array, gates: Array, before: Array, shown: Array, w_hh: Array,
    sizes: Sequence[int], reverse: bool,
) -> tuple[Array, Array, Array] | None:  # fmt: skip
    """The gradients of all gates, of the first state and of the first cell."""
    kernels = _recurrent_kernels(gates, sizes)
    if kernels is None:
        return None
    given = of_output, of_hidden, of_cell, gates, before, shown, w_hh
    found: tuple[Array, Array, Array] = kernels.lstm_backward(*given, sizes, reverse)
    return found


def gru_steps(
    products: Array, hidden: Array, w_hh: Array, b_hh: Array | None, sizes: Sequence[int], reverse: bool
) -> tuple[Array, Array, Array] | None:
    """All steps of a layer, from the input's part of the gates: the states, the gates, the last state."""
    kernels = _recurrent_kernels(products, sizes)
    return None if kernels is None else kernels.gru_forward(products, hidden, w_hh, b_hh, sizes, reverse)


def gru_steps_backward(
    of_output: Array | None, of_hidden: Array, gates: Array, before: Array, w_hh: Array, sizes: Sequence[int],
    reverse: bool,
) -> tuple[Array, Array, Array] | None:  # fmt: skip
    """The gradients of the products with the state, of those with the input, and of the first state."""
    kernels = _recurrent_kernels(gates, sizes)
    if kernels is None:
        return None
    found: tuple[Array, Array, Array] = kernels.gru_backward(of_output, of_hidden, gates, before, w_hh, sizes, reverse)
    return found
