"""Functions on arrays of which kernels are made, each by the quickest code that there is for it.

A function that has only a docstring here is found by its name in the table of kernels for the class of its array
(`FUNCTIONS` in `_core/backend.py`): `cpu/lowerings.py` lists the CPU's, `cuda/lowerings.py` those of CUDA. They return
None, or something false where they write, for what they do not do: arrays of other libraries, other dtypes and layouts,
a machine without the means. Then the caller goes on with NumPy. What is worth asking for is the caller's affair: below
`LARGE` elements most is not.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np

from .._core.backend import FUNCTIONS, NO_FUNCTIONS
from .._core.process.reproducibility import REPRODUCIBILITY

if TYPE_CHECKING:  # a program without convolutions does without the file
    from .._core.geometry.moving_windows import Geometry, Shape

Array = Any
Declared = TypeVar("Declared", bound=Callable[..., Any])

_MANY = 2**16
"""From so many elements on several threads copy sooner than one."""
LEAST_OF_LIBRARY = 64**3
"""Up to so many multiplications NumPy's library has the shorter way to the product of two matrices."""
FEW_ROWS = 16
"""So many rows may be multiplied with a matrix while it is read."""
_SMALL = 512
"""A factor with no more elements than these is in no product that is worth two threads."""


def _of_array(declared: Declared, place: int = 0) -> Declared:
    """Let the function that the class of the argument at `place` has under the same name do what is declared."""
    name = declared.__name__

    @functools.wraps(declared)
    def call(*arguments: Any) -> Any:
        function = FUNCTIONS.get(type(arguments[place]), NO_FUNCTIONS)[name]
        return None if function is None else function(*arguments)

    return cast(Declared, call)


_of_second: Callable[[Declared], Declared] = functools.partial(_of_array, place=1)
_of_third: Callable[[Declared], Declared] = functools.partial(_of_array, place=2)


# ----- elements moved ------------------------------------------------------------------------------------------------


def copy_into(target: Array, source: Array) -> bool:
    """Fill `target`, whose memory is new, with the elements of `source`, of the same shape."""
    function = FUNCTIONS.get(type(target), NO_FUNCTIONS)["copy_into"]
    return function is not None and type(source) is np.ndarray and function(target, source)


def contiguous(array: Array) -> Array:
    """`array` itself if its elements lie one after another, else a copy where they do."""
    if array.flags.c_contiguous:
        return array
    function = FUNCTIONS[np.ndarray]["contiguous"] if type(array) is np.ndarray else None
    return array.copy("C") if function is None else function(array)


def duplicate(array: Array) -> Array:
    """A copy whose elements lie in the order of those of `array`."""
    if type(array) is np.ndarray and array.size >= _MANY:
        copy = np.empty_like(array)
        if copy_into(copy, array):
            return copy
    return array.copy("K")


def store(target: Array, source: Array) -> bool:
    """Overwrite a large array with another one of its dtype, broadcast to it, that shares no memory with it."""
    if type(target) is not np.ndarray or target.size < _MANY or 0 in target.strides:
        return False
    if target.shape != source.shape:
        source = np.broadcast_to(source, target.shape)
    if target.dtype is not source.dtype or np.may_share_memory(target, source):
        return False
    return copy_into(target, source)


def concatenated(arrays: Sequence[Array], dim: int, stacked: bool = False) -> Array | None:
    """Arrays of one dtype side by side along `dim`; `stacked`: that is a new dimension."""
    function = FUNCTIONS.get(type(arrays[0]), NO_FUNCTIONS)["concatenated"]
    return None if function is None else function(arrays, dim, stacked)


@_of_array
def fill_spaced(target: Array, first: float, last: float) -> bool | None:
    """Fill `target`, a new vector of at least two, with numbers at equal distances, counted from the nearer end."""


@_of_array
def fill_where(array: Array, mask: Array, value: Array) -> bool | None:
    """Write `value`, one element of the array's dtype, where the mask holds."""


@_of_array
def within(index: Array, size: int) -> bool | None:
    """Whether all positions are known to be in [0, size)."""


@_of_array
def gathered(array: Array, dim: int, index: Array) -> Array | None:
    """The elements at the positions `index` along `dim`; None also where some are out of range."""


@_of_array
def selected(array: Array, dim: int, positions: Array) -> Array | None:
    """The slices at `positions`, a vector, along `dim`; positions are in range."""


@_of_array
def selected_places(array: Array, places: Array, counts: tuple[int, ...]) -> Array | None:
    """The elements at `places`, a vector without gaps, of the last dimensions seen as one: `counts` along each.

    Places are in range.
    """


@_of_array
def flipped(array: Array, dims: tuple[int, ...]) -> Array | None:
    """A copy with the order along `dims` reversed."""


@_of_array
def triangle(array: Array, diagonal: int, lower: bool) -> Array | None:
    """The matrices of a large array with zeros above a diagonal, or below it where not the `lower` triangle stays."""


@_of_array
def scattered(target: Array, dim: int, index: Array, values: Array, how: str) -> bool | None:
    """Bring `values` to the positions `index` along `dim` of `target`; nothing is done if some are out of range.

    `how` is "write", or the name of the ufunc that combines them with what is there: "add", "maximum", ...
    """


@_of_array
def add_slices(target: Array, dim: int, positions: Array, values: Array) -> bool | None:
    """Add the slices of `values` to those of `target` at `positions`, a vector, along `dim`.

    Nothing is done if some are out of range.
    """


@_of_array
def taps_summed(array: Array, dim: int, indices: Array, weights: Array | None, counts: Array | None) -> Array | None:
    """Along `dim` for each column of `indices` the sum of the elements there, each with its weight.

    Of the taps, which are rows, a result has the first `counts`, if these are given. Positions are in range.
    """


# ----- products and reductions ----------------------------------------------------------------------------------------


@_of_array
def product(left: Array, right: Array) -> Array | None:
    """The product of two matrices of middling size."""


@_of_array
def product_of_few_rows(left: Array, right: Array) -> Array | None:
    """The product of a few rows and a matrix that is large for them."""


@_of_array
def product_of_columns(left: Array, right: Array) -> Array | None:
    """`left.T @ right`, of matrices or of all rows of two arrays, where the transpose costs nothing."""


@_of_array
def addmm_gradients(
    grad: Array,
    mat1: Array | None,
    mat2: Array | None,
    sizes: Any,
    needed: tuple[bool, bool, bool],
    of_transposed: bool,
) -> list[Array | None] | None:
    """The gradients of `row + mat1 @ mat2` or, `of_transposed`, of `row + mat1 @ mat2.T`; `sizes` are those of `mat1`.

    A factor may be None where no gradient is needed that it takes part in.
    """


@_of_array
def products_of_batch(left: Array, right: Array) -> Array | None:
    """The products of two batches of matrices by a library that is not NumPy's."""


@_of_array
def library_product(left: Array, right: Array, addend: Array | None = None) -> Array | None:
    """The product of two matrices, or of two batches of them, by a library that is not NumPy's.

    With an `addend`, a vector, every row of a product of matrices plus that; None where it takes a step of its own.
    """


def matmul(left: Array, right: Array, out: Array | None = None) -> Array:
    """`np.matmul`, whose larger products the vendor's library computes, or the threads of the pool share."""
    if REPRODUCIBILITY.product is not None and type(left) is type(right) is np.ndarray:
        result = REPRODUCIBILITY.product(left, right)
        if out is None:
            return result
        out[...] = result
        return out
    if type(left) is type(right) is np.ndarray and left.size > _SMALL < right.size and not _is_little(left, right):
        functions = FUNCTIONS[np.ndarray]
        for name in ("products_of_batch", "threaded_product") if left.ndim > 2 else ("threaded_product",):
            function = functions[name]
            done = None if function is None else function(left, right, out)
            if done is not None:
                return done
    return np.matmul(left, right, out) if out is not None else np.matmul(left, right)


_LITTLE = 2**18
"""Up to so many multiplications in all NumPy's library is called: it has the shorter way."""


def _is_little(left: Array, right: Array) -> bool:
    shape: Shape = left.shape
    return bool(shape[:-2] == right.shape[:-2] and left.size * right.shape[-1] <= _LITTLE)


def dot(left: Array, right: Array, out: Array) -> Array:
    """`np.dot` of matrices. Where neither rows nor columns are contiguous it adds in another order than `matmul`."""
    if REPRODUCIBILITY.product is not None or left.size == 1 or right.size == 1:  # zero times NaN is NaN, not for `dot`
        return matmul(left, right, out)
    return np.dot(left, right, out)


@_of_third
def sparse_product(rows: Array, columns: Array, values: Array, dense: Array, height: int) -> Array | None:
    """The product of a sparse matrix of `height` rows, by the coordinates of its values, with a dense one."""


@_of_third
def sampled_product(rows: Array, columns: Array, left: Array, right: Array) -> Array | None:
    """The elements of the product of two dense matrices at given rows and columns."""


@_of_array
def all_distances(left: Array, right: Array, p: float) -> Array | None:
    """The `p`-norms of the differences between each row of `left` and each of `right`."""


@_of_array
def distances_of_pairs(matrix: Array, p: float) -> Array | None:
    """The `p`-norms of the differences between every two rows of a matrix."""


def increased(array: Array, addend: Array) -> Array:
    """`array` itself, to which `addend` of its dtype, which may be smaller, was added."""
    if type(array) is type(addend) is np.ndarray and array.size >= _MANY and array.dtype is addend.dtype:
        function = FUNCTIONS[np.ndarray]["increased"]
        if function is not None and function(array, addend):
            return array
    array += addend
    return array


@_of_second
def reduced(kind: str, array: Array, dims: tuple[int, ...] | None, dtype: np.dtype[Any]) -> Array | None:
    """`array` reduced by the ufunc called `kind` to `dtype`, without the reduced dimensions; sums are in float64.

    Of the kinds "square" and "present" are sums too: of squares, and of the elements that are not NaN. "norm" is the
    root of a sum of squares.
    """


@_of_array
def bounds(array: Array) -> tuple[Array, Array] | None:
    """The smallest and the largest element; NaN is both. None also where that takes more than one pass."""


@_of_array
def variances(
    array: Array, dims: tuple[int, ...], free: float, keepdim: bool, root: bool
) -> tuple[Array, Array] | None:
    """Sums of squares of the distances to the means along `dims`, divided by `free`, or their roots; and these means.

    In float32 for half precision. None also where that takes more than one pass.
    """


@_of_array
def squared_deviations(array: Array, dims: tuple[int, ...], centres: Array) -> Array | None:
    """The sums of squares of the distances to `centres`, which keeps the reduced dimensions, in float64."""


@_of_array
def safe_softmax(array: Array, dim: int) -> Array | None:
    """`softmax` along `dim`, but zeros where all elements are -inf."""


@_of_second
def running(kind: str, array: Array, dim: int, fade: Array | None = None) -> Array | None:
    """`array` summed up ("add", "multiply", "logaddexp", "fading") along `dim`."""


@_of_array
def running_extremes(array: Array, dim: int, largest: bool) -> tuple[Array, Array] | None:
    """The extremes so far along `dim`, and where each was last attained."""


@_of_array
def ranked(array: Array, dim: int, keepdim: bool, kind: str, rank: int) -> tuple[Array, Array] | None:
    """The elements of a rank along `dim` and where they are: the "given" one, or that of a "median", a "nanmedian"."""


@_of_array
def leading(array: Array, dim: int, count: int, largest: bool, nan_leads: bool) -> tuple[Array, Array] | None:
    """The first `count` elements in order along `dim`, a few, and where they are; NaN comes first or last."""


@_of_array
def extremes(array: Array, dim: int, keepdim: bool, largest: bool) -> tuple[Array, Array] | None:
    """The largest or the smallest elements along `dim`, and where the first of each is; NaN is both."""


@_of_array
def gamma_integral(
    a: Array, x: Array, distance: Array, side: Array, width: Array, points: Array, weights: Array
) -> Array | None:
    """The integrals by which gamma numbers move with their shapes, for flat arrays of one type, float64 or float32."""


# ----- convolutions: each of the three products is the derivative of the others --------------------------------------


@_of_array
def correlate(
    input: Array, weight: Array, bias: Array | None, output: Shape, geometry: Geometry, last: bool
) -> Array | None:
    """The convolution of `input` with `weight`, of which the first `output` positions are wanted, plus `bias`."""


@_of_array
def correlate_transposed(
    grad: Array, weight: Array, bias: Array | None, sizes: Shape, geometry: Geometry, last: bool
) -> Array | None:
    """The transpose of `correlate` with respect to its input, of spatial `sizes`, plus `bias`."""


@_of_array
def weight_gradient(input: Array, grad: Array, kernel: Shape, geometry: Geometry, last: bool) -> Array | None:
    """The gradient of the weight of `correlate`, from the gradient of its result."""


# ----- attention ----------------------------------------------------------------------------------------------------


@_of_array
def runs_dropped_attention(query: Array, key: Array) -> bool | None:
    """Whether attention whose weights are dropped runs as one op."""


# ----- recurrent layers: whole networks, and the steps between the matrix products ----------------------------------


@_of_array
def runs_recurrent_network(
    input: Array, states: Sequence[Array], params: Sequence[Array], recurrence: Any
) -> bool | None:
    """Whether a network of several layers runs as one op."""


def _steps(name: str, gates: Array, sizes: Sequence[int]) -> Any:
    """The function of the family of recurrent steps that serves such a sequence; None: there is none."""
    kernels = FUNCTIONS.get(type(gates), NO_FUNCTIONS)["recurrent"]
    return getattr(kernels, name) if kernels is not None and kernels.serves(gates.dtype, sizes) else None


def lstm_steps(
    gates: Array, hidden: Array, cell: Array, w_hh: Array, sizes: Sequence[int], reverse: bool
) -> tuple[Array, ...] | None:
    """All steps of a layer, from the input's part of the gates, which they replace."""
    steps = _steps("lstm_forward", gates, sizes)
    return None if steps is None else steps(gates, hidden, cell, w_hh, sizes, reverse)


def lstm_steps_backward(
    of_output: Array | None, of_hidden: Array, of_cell: Array, gates: Array, before: Array, shown: Array, w_hh: Array,
    sizes: Sequence[int], reverse: bool,
) -> tuple[Array, Array, Array] | None:  # fmt: skip
    """The gradients of all gates, of the first state and of the first cell."""
    steps = _steps("lstm_backward", gates, sizes)
    given = of_output, of_hidden, of_cell, gates, before, shown, w_hh
    return None if steps is None else steps(*given, sizes, reverse)


def gru_steps(
    products: Array, hidden: Array, w_hh: Array, b_hh: Array | None, sizes: Sequence[int], reverse: bool
) -> tuple[Array, Array, Array] | None:
    """All steps of a layer, from the input's part of the gates: the states, the gates, the last state."""
    steps = _steps("gru_forward", products, sizes)
    return None if steps is None else steps(products, hidden, w_hh, b_hh, sizes, reverse)


def gru_steps_backward(
    of_output: Array | None, of_hidden: Array, gates: Array, before: Array, w_hh: Array, sizes: Sequence[int],
    reverse: bool,
) -> tuple[Array, Array, Array] | None:  # fmt: skip
    """The gradients of the products with the state, of those with the input, and of the first state."""
    steps = _steps("gru_backward", gates, sizes)
    return None if steps is None else steps(of_output, of_hidden, gates, before, w_hh, sizes, reverse)
