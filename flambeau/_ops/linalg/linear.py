"""Linear layers: `input @ weight.T + bias`.

PyTorch records two nodes for a layer: that of `weight.t()` and that of `addmm`; before them one that makes a matrix of
an input that is none. A small layer would spend much of its time on these. Here an ordinary call is one op, whose node
leads to the weight and the input themselves; it becomes PyTorch's nodes when somebody looks at the graph behind it
(`_spelled_out`).
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from ..._core.modes import THREAD
from ..._core.node import SavedTensor, next_sequence_number
from ..._core.process.reproducibility import REPRODUCIBILITY
from ..._core.tensor import PLAIN_TYPES, Tensor
from ..._dispatch.arguments.autocast_rules import LOWER
from ..._dispatch.backend_op import BackendOp
from ..._dispatch.dispatch import Array, primitive
from ..._dispatch.gradients.array_derivatives import TAKEN, on_arrays
from ..._dispatch.public.registry import public
from ..pointwise.binary import add, conj
from ..shape.view import _contiguous_clone, _t, _view, reshaped
from .addmm import _addmm, _addmm_added, _addmm_left, _addmm_right, _check_addmm, _combined, gradients_by_plan
from .matmul import _NUMBERS, _is_column_major, _mm, _mm_left, _mm_right, matmul, write_product
from .merged_nodes import become_last_view, node_before, save_instead
from .over_samples import samples_product
from .products import array_dot, product_of_columns, product_plus, rows_product


def _as_matrix(sizes: tuple[int, ...]) -> tuple[int, int]:
    """The sizes of the matrix whose rows are those of a tensor."""
    return math.prod(sizes[:-1]), sizes[-1]


def _rows_of(array: Any) -> Any:
    return array.reshape(_as_matrix(array.shape))


def _matrix_of(tensor: Tensor) -> Tensor:
    return tensor if tensor._array.ndim == 2 else reshaped(tensor, _as_matrix(tensor._array.shape))


def _input_array(grad: Any, mat2: Any, mat1_sym_sizes: Any, mat1_sym_strides: Any, alpha: Any) -> Any:
    if len(mat1_sym_sizes) != 2:
        return array_dot(grad, mat2).reshape(mat1_sym_sizes)
    return None if _is_column_major(mat1_sym_sizes, mat1_sym_strides) else array_dot(grad, mat2)


@on_arrays(_input_array)
def _input_gradient(grad: Tensor, mat2: Tensor, mat1_sym_sizes: Any, mat1_sym_strides: Any, alpha: Any) -> Any:
    if len(mat1_sym_sizes) != 2:
        sizes = _as_matrix(mat1_sym_sizes)
        return reshaped(_addmm_left(grad, _t(mat2), sizes, (sizes[1], 1), alpha), mat1_sym_sizes)
    return _addmm_left(grad, _t(mat2), mat1_sym_sizes, mat1_sym_strides, alpha)


def _weight_array(grad: Any, mat1: Any, mat2_sym_sizes: Any, mat2_sym_strides: Any, alpha: Any) -> Any:
    return product_of_columns(grad, mat1) if REPRODUCIBILITY.samples is None else None


@on_arrays(_weight_array)
def _weight_gradient(grad: Tensor, mat1: Tensor, mat2_sym_sizes: Any, mat2_sym_strides: Any, alpha: Any) -> Any:
    if REPRODUCIBILITY.samples is not None:
        return samples_product(grad, conj(mat1))
    return _t(_addmm_right(grad, _matrix_of(mat1), mat2_sym_sizes[::-1], mat2_sym_strides[::-1], alpha))


@primitive(
    "AddmmBackward0",
    op_name="addmm_of_transposed",
    fuses=False,
    self=_addmm_added,
    mat1=_input_gradient,
    mat2=_weight_gradient,
)
def _addmm_of_transposed(self: Array, mat1: Array, mat2: Array, beta: float, alpha: float) -> Array:
    """`addmm(self, mat1, mat2.t())`, of row-major weights, with no factors; `mat1` may be any tensor of rows."""
    if mat1.ndim != 2:
        mat1 = _rows_of(mat1)
    if mat1.dtype.num not in _NUMBERS:
        return _combined(self, mat1, mat2.T, array_dot, "addmm_impl_cpu_", beta, alpha)
    return product_plus(mat1, mat2.T, self)


def _spelled_out(node: Any) -> None:
    """Make the node of such a call that of `addmm`, behind which those of the transpose and of the matrix stand."""
    _, given, weight = node.edges
    kind = node.outputs[0][1]
    transposed: Any = None
    if weight is not None:
        node.mat2_sym_sizes = node.mat2_sym_sizes[::-1]
        node.mat2_sym_strides = node.mat2_sym_strides[::-1]
        transposed = node_before(node, 1, _t.node_class, weight, (node.mat2_sym_sizes, kind))
    matrix: Any = None
    if given is not None and len(node.mat1_sym_sizes) != 2:
        sizes = _as_matrix(node.mat1_sym_sizes)
        matrix = node_before(node, 2, _view.node_class, given, (sizes, kind))
        matrix.self_sym_sizes = node.mat1_sym_sizes
        node.mat1_sym_sizes, node.mat1_sym_strides = sizes, (sizes[1], 1)
    node.edges = (node.edges[0], given if matrix is None else (matrix, 0), transposed and (transposed, 0))
    save_instead(node.mat2, transposed, lambda array: array.T)
    if type(node.mat1) is SavedTensor and node.mat1.tensor is not None and _is_saved_as_matrix(node.mat1):
        save_instead(node.mat1, matrix, _rows_of)
    node.__class__ = _addmm.node_class


def _is_saved_as_matrix(saved: SavedTensor) -> bool:
    """Whether PyTorch's node keeps a matrix of these rows: sums that are trees over samples ask what a sample is."""
    return _array_of(saved).ndim != 2 and REPRODUCIBILITY.samples is None


def _array_of(saved: SavedTensor) -> Any:
    return saved.tensor._array if saved.grad_fn is None else saved.tensor[0]


_addmm_of_transposed.spelled_out = _spelled_out
_addmm_of_transposed.gradients_by_plan = functools.partial(gradients_by_plan, of_transposed=True)


# ----- without bias ---------------------------------------------------------------------------------------------------


def _rows_array(grad: Any, mat2: Any, self_sym_sizes: Any, self_sym_strides: Any) -> Any:
    if len(self_sym_sizes) == 2 and _is_column_major(self_sym_sizes, self_sym_strides):
        return None
    found = rows_product(grad, mat2)
    return found if grad.ndim == len(self_sym_sizes) else found.reshape(self_sym_sizes)


@on_arrays(_rows_array)
def _rows_gradient(grad: Tensor, mat2: Tensor, self_sym_sizes: Any, self_sym_strides: Any) -> Tensor:
    """The gradient of the input, where `mat2` is the weight."""
    if len(self_sym_sizes) == 2:
        return _mm_left(grad, _t(mat2), self_sym_sizes, self_sym_strides)
    sizes = _as_matrix(self_sym_sizes)
    return reshaped(_mm_left(_matrix_of(grad), _t(mat2), sizes, (sizes[1], 1)), self_sym_sizes)


def _factor_array(grad: Any, self: Any, mat2_sym_sizes: Any, mat2_sym_strides: Any) -> Any:
    return product_of_columns(grad, self) if REPRODUCIBILITY.samples is None else None


@on_arrays(_factor_array)
def _factor_gradient(grad: Tensor, self: Tensor, mat2_sym_sizes: Any, mat2_sym_strides: Any) -> Tensor:
    """The gradient of the weight."""
    if REPRODUCIBILITY.samples is not None:
        found: Tensor = samples_product(grad, conj(self))
        return found
    return _t(_mm_right(_matrix_of(grad), _matrix_of(self), mat2_sym_sizes[::-1], mat2_sym_strides[::-1]))


@primitive("MmBackward0", op_name="mm_of_transposed", fuses=False, self=_rows_gradient, mat2=_factor_gradient)
def _mm_of_transposed(self: Array, mat2: Array) -> Array:
    """`mm(self, mat2.t())`, of row-major weights."""
    return array_dot(self, mat2.T)


@primitive("UnsafeViewBackward0", op_name="rows_of_transposed", fuses=False, self=_rows_gradient, mat2=_factor_gradient)
def _rows_of_transposed(self: Array, mat2: Array) -> Array:
    """Rows of a contiguous tensor times a transposed matrix; one node stands for the product and both views."""
    return rows_product(self, mat2.T)


def _spelled_out_product(node: Any) -> None:
    """Make the node of such a product that of `mm`, behind which that of the transpose stands."""
    given, weight = node.edges
    transposed: Any = None
    if weight is not None:
        node.mat2_sym_sizes = node.mat2_sym_sizes[::-1]
        node.mat2_sym_strides = node.mat2_sym_strides[::-1]
        transposed = node_before(node, 1, _t.node_class, weight, (node.mat2_sym_sizes, node.outputs[0][1]))
    node.edges = (given, transposed and (transposed, 0))
    save_instead(node.mat2, transposed, lambda array: array.T)
    node.__class__ = _mm.node_class


def _spelled_out_rows(node: Any) -> None:
    """Make the node of such rows that of the last view, behind which those of `mm` and its operands stand."""
    given, weight = node.edges
    (shape, kind), *_ = node.outputs
    product = node_before(node, 1, type(node), weight, (_as_matrix(shape), kind))
    for name in type(node).__slots__:
        setattr(product, name, getattr(node, name))
        setattr(node, name, None)
    matrix: Any = None
    if given is not None:
        sizes = _as_matrix(product.self_sym_sizes)
        matrix = node_before(node, 2, _view.node_class, given, (sizes, kind))
        matrix.self_sym_sizes = product.self_sym_sizes
        product.self_sym_sizes, product.self_sym_strides = sizes, (sizes[1], 1)
    product.edges = (matrix and (matrix, 0), weight)
    if type(product.self) is SavedTensor and product.self.tensor is not None and _is_saved_as_matrix(product.self):
        save_instead(product.self, matrix, _rows_of)
    product.sequence -= 1  # that of the transpose comes before that of the matrix
    _spelled_out_product(product)
    product.sequence += 1
    node.edges, node.self_sym_sizes = ((product, 0),), _as_matrix(shape)
    become_last_view(node)


_mm_of_transposed.spelled_out = _spelled_out_product
_rows_of_transposed.spelled_out = _spelled_out_rows
_rows_of_transposed.gradient_in_rows = True


def _rows_by_rows(input: Any, weight: Any) -> Any:
    """The product on the host as `matmul` computes it; None: it does more."""
    if type(input) is not np.ndarray or input.dtype.num not in _NUMBERS or weight.ndim != 2 or input.ndim < 2:
        return None
    if input.shape[-1] != weight.shape[1] or (input.ndim > 2 and not (input.size and input.flags.c_contiguous)):
        return None
    if input.ndim == 2:
        return array_dot(input, weight.T)
    shape = input.shape
    return array_dot(input.reshape(-1, shape[-1]), weight.T).reshape(*shape[:-1], weight.shape[0])


_product_by_rows = BackendOp("product_by_rows", elsewhere=_rows_by_rows)
"""`(input, weight)`: `input @ weight.T`, without a view in between."""


@public("nn.functional.linear", function=False, method=False, out=write_product, autocast=LOWER)
def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """`input @ weight.T + bias`."""
    kind, rows, factor = input._kind, input._array, weight._array
    samples = REPRODUCIBILITY.samples
    if samples is not None and rows.ndim > 2 and not rows.flags.c_contiguous:
        input = _contiguous_clone(input)  # one order of sums for all layouts
        rows = input._array
    modes, dims = THREAD.modes, rows.ndim
    # One op may read the weight in place of its transpose, where nobody watches. Where sums are trees over samples it
    # does so for watchers, too: rows of a matrix do not say which sample is theirs.
    if (
        weight._kind is kind
        and (kind in modes.direct or samples is not None)
        and TAKEN[kind]
        and type(input) in PLAIN_TYPES
        and type(weight) in PLAIN_TYPES
        and factor.ndim == 2
        and (dims > 1 or (dims and bias is not None))
        and rows.size
        and factor.size
        and factor.flags.c_contiguous
        and rows.shape[-1] == factor.shape[1]
        and (dims == 2 or rows.flags.c_contiguous)
    ):
        if modes.grad:  # the nodes that are left out, should anybody ask for them
            next_sequence_number()  # that of the transpose
            if dims != 2:
                next_sequence_number()  # that of the matrix
                if bias is None:
                    next_sequence_number()  # that of the product
        if bias is None:
            return (_mm_of_transposed if dims == 2 else _rows_of_transposed)(input, weight)
        if type(bias) in PLAIN_TYPES and bias._kind is kind:
            added = bias._array
            if added.shape == factor.shape[:1] and (dims == 2 or added.flags.c_contiguous):
                result = _addmm_of_transposed(bias, input, weight, 1, 1)
                return result if dims == 2 else _view(result, (*rows.shape[:-1], factor.shape[0]))
    elif bias is None and weight._kind is kind:
        is_quick = not kind.is_cpu or (not modes.grad and rows.dtype.num in _NUMBERS)
        product: Tensor | None = _product_by_rows(input, weight) if is_quick else None
        if product is not None:
            return product
    dims, weight_dims = rows.ndim, factor.ndim
    if dims == 0 or weight_dims == 0:
        raise RuntimeError(f"both arguments to linear need to be at least 1D, but they are {dims}D and {weight_dims}D")
    if weight_dims > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {weight_dims}D")
    if bias is None:
        return matmul(input, _t(weight))
    if not isinstance(bias, Tensor):
        raise TypeError(f"linear(): argument 'bias' (position 3) must be Tensor, not {type(bias).__name__}")
    if weight_dims == 1:
        raise RuntimeError(f"mat2 must be a matrix, got {weight_dims}-D tensor")
    if dims != 2 and not (bias._array.ndim == 1 and bias._array.flags.c_contiguous and rows.flags.c_contiguous):
        return add(matmul(input, _t(weight)), bias)
    matrix, transposed = _matrix_of(input), _t(weight)
    outputs = factor.shape[0]
    fits = weight._kind is kind and bias._kind is kind and bias._array.shape == (outputs,)
    if not (fits and rows.shape[-1] == factor.shape[1]):
        _check_addmm(bias, matrix, transposed)
    result = _addmm(bias, matrix, transposed, 1, 1)
    return result if dims == 2 else _view(result, (*rows.shape[:-1], outputs))
