"""Sums of products by Einstein's convention: `einsum("bij,bjk->bik", a, b)`.

Every operand is brought to one order of dimensions: those of the output, then those that are summed away; dimensions
that an operand lacks have size 1. Two operands at a time are then multiplied and summed as a batch of matrix products.
"""

from __future__ import annotations

import math
import string
from functools import lru_cache
from typing import Any, NamedTuple

from ..._core.modes import Ruled
from ..._core.tensor import PLAIN_TYPES, Tensor
from ..._dispatch.abstract.list_rules import unrecorded
from ..._dispatch.arguments.autocast_rules import LOWER, RULED, on
from ..._dispatch.arguments.promotion import Operand
from ..._dispatch.public.overrides import ARRANGED
from ..._dispatch.public.registry import public
from ..pointwise.binary import mul
from ..shape.parts import diagonal
from ..shape.view import _permute, _view, reshaped, unsqueeze
from .matmul import bmm

_bmm = Ruled(RULED["bmm"], bmm)

_ELLIPSIS = "."
_LETTERS = string.ascii_uppercase + string.ascii_lowercase
"""Labels in the order in which an implicit output has them, and by the number that a subscript list gives them."""


Shape = tuple[int, ...]


class Equation(NamedTuple):
    """The labels of each operand's dimensions and of the output's (None: implicit); "." stands for an ellipsis."""

    inputs: list[list[str]]
    output: list[str] | None


@public(method=False, autocast=on(cuda=LOWER))
def einsum(*args: Operand) -> Tensor:
    """Sum of products of the operands' elements, as the equation says."""
    if len(args) < 2:
        raise ValueError(
            "einsum(): must specify the equation string and at least one operand, or at least one operand and "
            "its subscripts list"
        )
    operands: list[Any]
    if isinstance(args[0], Tensor):
        equation, operands = _from_lists(args)
    elif isinstance(args[0], str):
        operands = list(args[1:])
        if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
            operands = list(operands[0])
        equation = _parsed(args[0])
        if len(operands) == 2 and PLAIN_TYPES.issuperset(map(type, operands)):
            plan = _plan_of_two(args[0], *[each._array.shape for each in operands])
            if plan is not None:
                return _by_plan(plan, *operands)
    else:
        raise TypeError(f"einsum(): argument 'equation' (position 1) must be str, not {type(args[0]).__name__}")
    if len(equation.inputs) != len(operands):
        which = "fewer" if len(operands) < len(equation.inputs) else "more"
        raise RuntimeError(
            f"einsum(): {which} operands were provided than specified in the equation: {len(operands)} operands, "
            f"{len(equation.inputs)} subscripts"
        )
    return _contracted(equation, operands)


def _one_by_one(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """An equation, and operands one by one: what those who override `einsum` are given."""
    if not isinstance(args[0], str):
        equation, operands = _from_lists(args)
        left = ",".join("".join(each) for each in equation.inputs)
        text = left if equation.output is None else f"{left}->{''.join(equation.output)}"
        return text.replace(_ELLIPSIS, "..."), *operands
    return (args[0], *args[1]) if len(args) == 2 and isinstance(args[1], (list, tuple)) else args


ARRANGED["einsum"] = _one_by_one


# ----- two operands -------------------------------------------------------------------------------------------------


class _Plan(NamedTuple):
    """A sum of products of two operands as one batch of matrix products, as it depends on the equation and shapes."""

    swapped: bool
    """Whether the second operand is on the left."""
    orders: tuple[Shape, Shape]
    """The operands' dimensions: those of the batch first; then rows and summed ones, or summed ones and columns."""
    shapes: tuple[Shape, Shape]
    """What they are seen as, as batches of matrices."""
    shape: Shape
    """The sizes of batch, rows and columns."""
    order: Shape
    """Where the output's dimensions are among these."""


@lru_cache(512)
def _plan_of_two(text: str, one: Shape, two: Shape) -> _Plan | None:
    """None for what needs a second look: ellipses, diagonals, sizes that do not fit or are 1, sums of one operand."""
    equation = _parsed(text)
    if len(equation.inputs) != 2 or equation.output is None:
        return None
    first, second, output = *equation.inputs, equation.output
    sizes = dict(zip([*first, *second], [*one, *two], strict=False))
    wanted = [(first, one), (second, two), (output, tuple([sizes.get(each, 0) for each in output]))]
    for labels, shape in wanted:
        fits = len(labels) == len(shape) and shape == tuple([sizes[each] for each in labels if each in sizes])
        if not fits or len(set(labels)) != len(labels) or _ELLIPSIS in labels or min(shape, default=2) < 2:
            return None
    summed = [each for each in _LETTERS if each in first and each in second and each not in output]
    alone = [each for each in sizes if each not in output and each not in summed]
    batch = [each for each in output if each in first and each in second]
    rows, columns = ([each for each in output if each in own and each not in batch] for own in (first, second))
    if alone or not summed:
        return None
    # The other way round, the result need not be transposed.
    swapped = bool(rows and columns and output.index(columns[-1]) < output.index(rows[0]))
    if swapped:
        first, second, rows, columns = second, first, columns, rows
    left, right = [*batch, *rows, *summed], [*batch, *summed, *columns]
    b, r, s, c = (math.prod([sizes[each] for each in labels]) for labels in (batch, rows, summed, columns))
    places = [*batch, *rows, *columns]
    return _Plan(
        swapped,
        (tuple([first.index(each) for each in left]), tuple([second.index(each) for each in right])),
        ((b, r, s), (b, s, c)),
        tuple([sizes[each] for each in places]),
        tuple([places.index(each) for each in output]),
    )


def _by_plan(plan: _Plan, left: Tensor, right: Tensor) -> Tensor:
    if plan.swapped:
        left, right = right, left
    result = reshaped(_bmm(_seen(left, 0, plan), _seen(right, 1, plan)), plan.shape)
    if not unrecorded((left, right)):  # the last nodes are PyTorch's, whether or not anything changes places
        result = _permute(result, plan.order)
        return _view(result, result._array.shape)
    return result if plan.order == _IN_ORDER[: len(plan.order)] else _permute(result, plan.order)


def _seen(operand: Tensor, number: int, plan: _Plan) -> Tensor:
    order = plan.orders[number]
    turned = operand if order == _IN_ORDER[: len(order)] else _permute(operand, order)
    return reshaped(turned, plan.shapes[number])


_IN_ORDER = tuple(range(64))


# ----- reading the equation -----------------------------------------------------------------------------------------


def _from_lists(args: tuple[Any, ...]) -> tuple[Equation, list[Any]]:
    operands = list(args[0 : len(args) - len(args) % 2 : 2])
    inputs = [_labels(each) for each in args[1::2]]
    output = _labels(args[-1]) if len(args) % 2 else None
    return Equation(inputs, output), operands


def _labels(subscripts: Any) -> list[str]:
    labels = []
    for each in subscripts:
        if each is ...:
            labels.append(_ELLIPSIS)
        elif 0 <= each < len(_LETTERS):
            labels.append(_LETTERS[each])
        else:
            raise ValueError(f"einsum(): subscript in subscript list is not within the valid range [0, 52): {each}")
    return labels


@lru_cache(256)
def _parsed(text: str) -> Equation:
    left, arrow, right = text.partition("->")
    inputs: list[list[str]] = [[]]
    start = 0
    for position, character in enumerate(left):
        if character == ",":
            inputs.append([])
        else:
            start = _read(character, position, left, inputs[-1], f"operand {len(inputs) - 1}", start)
    if not arrow:
        return Equation(inputs, None)
    output: list[str] = []
    start = 0
    for position, character in enumerate(right):
        start = _read(character, position, right, output, "the output", start, len(left) + 2)
    return Equation(inputs, output)


def _read(character: str, position: int, text: str, labels: list[str], where: str, skip: int, offset: int = 0) -> int:
    """Add the label at `position` to `labels`; gives the position up to which dots belong to an ellipsis."""
    if character == " ":
        return skip
    if character == ".":
        if position < skip:
            return skip
        if _ELLIPSIS in labels:
            raise RuntimeError(f"einsum(): found '.' for {where} for which an ellipsis was already found")
        if text[position : position + 3] != "...":
            raise RuntimeError(f"einsum(): found '.' for {where} that is not part of any ellipsis")
        labels.append(_ELLIPSIS)
        return position + 3
    if character not in _LETTERS:
        raise RuntimeError(
            f"einsum(): invalid subscript given at index {position + offset} in the equation string, subscripts must "
            "be in [a-zA-Z]"
        )
    labels.append(character)
    return skip


# ----- bringing the operands to one order ---------------------------------------------------------------------------


def _contracted(equation: Equation, operands: list[Any]) -> Tensor:
    width = _ellipsis_width(equation, operands)
    counts: dict[str, int] = {}
    for labels in equation.inputs:
        for label in labels:
            counts[label] = counts.get(label, 0) + 1
    order, kept = _dimension_order(equation, counts, width)
    sizes: dict[Any, int] = {}
    arranged = [
        _arranged(operand, labels, order, width, number, sizes)
        for number, (operand, labels) in enumerate(zip(operands, equation.inputs, strict=True))
    ]
    return _multiplied(arranged, kept)


def _ellipsis_width(equation: Equation, operands: list[Any]) -> int:
    width = 0
    for number, (labels, operand) in enumerate(zip(equation.inputs, operands, strict=True)):
        ndim = operand._array.ndim
        named = len(labels) - (_ELLIPSIS in labels)
        if _ELLIPSIS in labels:
            if named > ndim:
                raise RuntimeError(
                    f"einsum(): the number of subscripts in the equation ({named}) is more than the number of "
                    f"dimensions ({ndim}) for operand {number}"
                )
            width = max(width, ndim - named)
        elif named != ndim:
            raise RuntimeError(
                f"einsum(): the number of subscripts in the equation ({named}) does not match the number of dimensions "
                f"({ndim}) for operand {number} and no ellipsis was given"
            )
    return width


def _dimension_order(equation: Equation, counts: dict[str, int], width: int) -> tuple[dict[Any, int], int]:
    """The position of each label, the ellipsis' dimensions labelled 0, 1, ...; and how many the output keeps."""
    order: dict[Any, int] = {}
    output = equation.output
    if output is None:
        output = [_ELLIPSIS, *(each for each in _LETTERS if counts.get(each) == 1)]
    for label in output:
        if label == _ELLIPSIS:
            for number in range(width):
                order[number] = len(order)
            continue
        if label in order:
            raise RuntimeError(f"einsum(): output subscript {label} appears more than once in the output")
        if label not in counts:
            raise RuntimeError(
                f"einsum(): output subscript {label} does not appear in the equation for any input operand"
            )
        order[label] = len(order)
    kept = len(order)
    for label in (*range(width), *[each for each in _LETTERS if each in counts]):
        if label not in order:
            order[label] = len(order)
    return order, kept


def _arranged(
    operand: Tensor, labels: list[str], order: dict[Any, int], width: int, number: int, sizes: dict[Any, int]
) -> Tensor:
    """`operand` with its dimensions in `order`; repeated labels become diagonals, missing ones dimensions of size 1."""
    own = operand._array.ndim - len(labels) + 1
    names: list[Any] = []
    for label in labels:
        names += range(width - own, width) if label == _ELLIPSIS else [label]
    seen: list[Any] = []
    for name in names:
        dim = len(seen)
        size = operand._array.shape[dim]
        if name in seen:
            first = seen.index(name)
            if operand._array.shape[first] != size:
                raise RuntimeError(
                    f"einsum(): subscript {name} is repeated for operand {number} but the sizes don't match, {size} != "
                    f"{operand._array.shape[first]}"
                )
            ndim = operand._array.ndim - 1
            # The diagonal comes last; it goes where the label stood first.
            moved = [*range(first), ndim - 1, *range(first, ndim - 1)]
            operand = _permute(diagonal(operand, 0, first, dim), tuple(moved))
            continue
        seen.append(name)
        known = sizes.get(name, 1)
        if size != 1:
            if known not in (1, size):
                raise RuntimeError(_size_message(name, dim, size, known, number))
            sizes[name] = size
    for name in order:
        if name not in seen:
            operand = unsqueeze(operand, operand._array.ndim)
            seen.append(name)
    places = [0] * len(seen)
    for dim, name in enumerate(seen):
        places[order[name]] = dim
    return _permute(operand, tuple(places))


def _size_message(name: Any, dim: int, size: int, known: int, number: int) -> str:
    if isinstance(name, int):
        return (
            f"einsum(): dimension {dim} covered by ellipsis in operand {number} has size {size} which does not "
            f"broadcast with previously seen ellipsis with size {known} for the respective dimension"
        )
    return (
        f"einsum(): subscript {name} has size {size} for operand {number} which does not broadcast with previously "
        f"seen size {known}"
    )


# ----- multiplying --------------------------------------------------------------------------------------------------


def _multiplied(operands: list[Tensor], kept: int) -> Tensor:
    ndim = operands[0]._array.ndim
    result = operands[0]
    if len(operands) == 1:
        return result.sum(list(range(kept, ndim))) if ndim > kept else result
    users = [sum(each._array.shape[dim] != 1 for each in operands) for dim in range(ndim)]
    for operand in operands[1:]:
        together: list[int] = []
        alone: tuple[list[int], list[int]] = ([], [])
        for dim in range(kept, ndim):
            left, right = result._array.shape[dim] != 1, operand._array.shape[dim] != 1
            if left and right:
                users[dim] -= 1
                if users[dim] == 1:
                    together.append(dim)
                    users[dim] = 0
            elif users[dim] == 1 and (left or right):
                alone[0 if left else 1].append(dim)
                users[dim] = 0
        if alone[0]:
            result = result.sum(alone[0], keepdim=True)
        if alone[1]:
            operand = operand.sum(alone[1], keepdim=True)
        result = _product_sum(result, operand, together, len(operands) == 2) if together else mul(result, operand)
    return reshaped(result, result._array.shape[:kept]) if ndim > kept else result


def _product_sum(left: Tensor, right: Tensor, summed: list[int], only_two: bool) -> Tensor:
    """The product of two tensors of as many dimensions, summed over the dimensions `summed`, which stay with size 1."""
    one, two = left._array.shape, right._array.shape
    free = [dim for dim in range(len(one)) if dim not in summed]
    batch = [dim for dim in free if one[dim] != 1 and two[dim] != 1]
    rows = [dim for dim in free if one[dim] != 1 and two[dim] == 1]
    columns = [dim for dim in free if one[dim] == 1]
    wide = [dim for dim in columns if two[dim] != 1]
    if only_two and rows and wide and wide[-1] < rows[0]:  # the other way round, the result need not be transposed
        return _product_sum(right, left, summed, False)
    sizes = [
        math.prod([shape[dim] for dim in dims])
        for shape, dims in ((one, batch), (one, rows), (one, summed), (two, columns))
    ]
    left = reshaped(_permute(left, (*batch, *rows, *summed, *columns)), (sizes[0], sizes[1], sizes[2]))
    right = reshaped(_permute(right, (*batch, *summed, *columns, *rows)), (sizes[0], sizes[2], sizes[3]))
    places = [*batch, *rows, *summed, *columns]
    shape = tuple(
        [one[dim] for dim in batch] + [one[dim] for dim in rows] + [1] * len(summed) + [two[dim] for dim in columns]
    )
    inverse = [0] * len(places)
    for position, dim in enumerate(places):
        inverse[dim] = position
    return _permute(reshaped(_bmm(left, right), shape), tuple(inverse))
