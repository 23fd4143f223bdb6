"""Products of as many matrices on the left as on the right: `matmul` of attention and the like, recorded as one op.

PyTorch records an `expand` and a `reshape` of each operand, `bmm` and a view of its result: six nodes, eight where the
operands have to be copied. An ordinary call is one op here, whose node leads to the operands themselves; it becomes
PyTorch's nodes when somebody looks at the graph behind it (`_spelled_out`).
"""

from __future__ import annotations

import math
from typing import Any

from ..._backends import arrays
from ..._core.arrays.views import row_strides_of
from ..._core.node import next_sequence_number
from ..._core.process.reproducibility import REPRODUCIBILITY
from ..._core.tensor import PLAIN_TYPES, Tensor
from ..._dispatch.composite import composite
from ..._dispatch.dispatch import Array, primitive
from ..._dispatch.gradients.array_derivatives import TAKEN
from ..shape.view import _contiguous_clone, _expand, _reshape_alias, _unsafe_view, _view, reshaped, viewed
from .merged_nodes import become_last_view, node_before, runs_as_one, save_instead

_VIEW, _ALIAS, _COPY = 0, 1, 2
"""How three dimensions are made of an operand: as a view of what has no gaps, by other strides, by a copy."""

Shape = tuple[int, ...]


def _gradients_on_arrays(
    grads: list[Any], needed: tuple[bool, bool], left: Any, right: Any, mat2_sym_sizes: Shape, self_sym_sizes: Shape,
    ways: Any,
) -> list[Any] | None:  # fmt: skip
    grad = grads[0]
    if grad is None or REPRODUCIBILITY.product is not None:
        return None
    shape = math.prod(grad.shape[:-2]), *grad.shape[-2:]
    batch = viewed(grad, shape)
    if batch is None:
        batch = arrays.contiguous(grad).reshape(shape)
    of_right = arrays.matmul(left.swapaxes(1, 2), batch).reshape(mat2_sym_sizes) if needed[0] else None
    return [of_right, arrays.matmul(batch, right.swapaxes(1, 2)).reshape(self_sym_sizes) if needed[1] else None]


@composite("matmul_of_batches_backward", kernel=_gradients_on_arrays)
def _gradients(
    grads: list[Any], needed: tuple[bool, bool], left: Tensor, right: Tensor, mat2_sym_sizes: Shape,
    self_sym_sizes: Shape, ways: tuple[int, int],
) -> list[Tensor | None]:  # fmt: skip
    """The gradients of the right operand and of the left one, as those of `bmm`, in the operands' own shapes."""
    from .matmul import _bmm_left, _bmm_right

    grad = grads[0]
    if grad is None:
        return [None, None]
    shape = grad._array.shape
    batch = reshaped(grad, (math.prod(shape[:-2]), *shape[-2:]))
    of_right = reshaped(_bmm_right(batch, left), mat2_sym_sizes) if needed[0] else None
    return [of_right, reshaped(_bmm_left(batch, right), self_sym_sizes) if needed[1] else None]


# The right operand first: PyTorch's engine hands on its gradient first, and sums of gradients depend on that.
@primitive(
    "UnsafeViewBackward0", op_name="matmul_of_batches", fuses=False, joint=_gradients, differentiable=("mat2", "self")
)
def _matmul_of_batches(mat2: Array, self: Array, right: Array, left: Array, ways: tuple[int, int]) -> Array:
    """`self @ mat2`, which `left` and `right` are with one dimension for the batch, in one of the `ways` each."""
    return arrays.matmul(left, right).reshape(*self.shape[:-1], mat2.shape[-1])


def product_of_batches(left: Tensor, right: Tensor) -> Tensor | None:
    """The product as one op, of operands of which some need gradients; None: something about it is special."""
    kind, first, second = left._kind, left._array, right._array
    shape, other = first.shape, second.shape
    if right._kind is not kind or shape[:-2] != other[:-2] or len(shape) < 3 or shape[-1] != other[-2]:
        return None
    if not (kind.is_cpu and TAKEN[kind] and runs_as_one(kind) and first.size and second.size):
        return None
    if type(left) not in PLAIN_TYPES or type(right) not in PLAIN_TYPES:
        return None
    if REPRODUCIBILITY.product is not None or REPRODUCIBILITY.samples is not None:
        return None
    count = math.prod(shape[:-2])
    one, first_way = _in_three_dimensions(left, (count, *shape[-2:]))
    two, second_way = _in_three_dimensions(right, (count, *other[-2:]))
    next_sequence_number()  # for the node of the product, should anybody ask for it
    done = _matmul_of_batches(right, left, two, one, (second_way, first_way))
    node: Any = done._grad_fn
    if node is not None and None in node.edges:  # of one gradient, which takes the other operand
        to_right, to_left = node.edges
        node.left, node.right = to_right and node.left, to_left and node.right
    return done


def _in_three_dimensions(tensor: Tensor, shape: Shape) -> tuple[Tensor, int]:
    """An operand outside the graph with one dimension for the batch, and the way in which it was made."""
    array, counter, way = tensor._array, tensor._counter, _VIEW
    next_sequence_number()  # for the node of `expand`
    next_sequence_number()  # for that of the view
    if array.flags.c_contiguous:
        array = array.reshape(shape)
    elif row_strides_of(array.shape, array.strides, shape) is not None:
        array, way = viewed(array, shape), _ALIAS
    else:
        next_sequence_number()  # for that of the copy
        array, counter, way = arrays.contiguous(array).reshape(shape), [0, None], _COPY
    return Tensor._from_parts((array, tensor._kind, counter)), way


def _spelled_out(node: Any) -> None:
    """Make the node of such a product that of the last view, behind which those of `bmm` and its operands stand."""
    from .matmul import _bmm

    (shape, kind), *_ = node.outputs
    batch = math.prod(shape[:-2]), *shape[-2:]
    (to_right, to_left), (right_way, left_way) = node.edges, node.ways
    right = _operand_before(node, 2, to_right, node.mat2_sym_sizes, right_way, kind)
    left = _operand_before(node, 5 if right_way == _COPY else 4, to_left, node.self_sym_sizes, left_way, kind)
    product = node_before(node, 1, _bmm.node_class, None, (batch, kind))
    product.edges = left and (left, 0), right and (right, 0)
    product.self, product.mat2 = node.left, node.right
    save_instead(product.self, left)
    save_instead(product.mat2, right)
    for name in type(node).__slots__:
        setattr(node, name, None)
    node.edges, node.self_sym_sizes = ((product, 0),), batch
    become_last_view(node)


def _operand_before(node: Any, numbers: int, edge: Any, shape: Shape, way: int, kind: Any) -> Any:
    """The last node of those that make three dimensions of an operand, which was recorded `numbers` before `node`."""
    if edge is None:
        return None
    batch = math.prod(shape[:-2]), *shape[-2:]
    expanded = node_before(node, numbers + (2 if way == _COPY else 1), _expand.node_class, edge, (shape, kind))
    expanded.self_sym_sizes = shape
    if way == _COPY:
        copied = node_before(node, numbers + 1, _contiguous_clone.node_class, (expanded, 0), (shape, kind))
        last = node_before(node, numbers, _unsafe_view.node_class, (copied, 0), (batch, kind))
    else:
        view = _reshape_alias if way == _ALIAS else _view
        last = node_before(node, numbers, view.node_class, (expanded, 0), (batch, kind))
    last.self_sym_sizes = shape
    return last


_matmul_of_batches.spelled_out = _spelled_out
