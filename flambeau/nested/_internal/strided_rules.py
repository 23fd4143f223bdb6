"""How functions run on nested tensors of the strided layout: on all elements at once, or row by row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import flambeau as torch

from ..._core.tensor import Tensor
from ..._dispatch.public.overrides import original_of
from ..._torch._subclasses.carrier import is_no_op
from ..._torch._subclasses.functions import changes_its_first, is_elementwise
from .rules import ALIKE
from .strided import Row, Shape, StridedNestedTensor, end_to_end, packed

Rule = Callable[..., Any]
_RULES: dict[str, Rule] = {}


def run(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A function of arguments of which some are nested tensors."""
    func = original_of(func)
    name = func.__name__
    rule = _RULES.get(name)
    if rule is not None:
        return rule(func, *args, **kwargs)
    if name in ALIKE or is_elementwise(name):
        return _on_elements(func, args, kwargs)
    if is_no_op(func):
        return StridedNestedTensor._run_no_op(func, args, kwargs)
    raise NotImplementedError(
        f"Could not run 'aten::{name}' with arguments from the 'NestedTensorCPU' backend: {name}() of nested tensors "
        "is not built. Use unbind() or to_padded_tensor(), and ordinary tensors"
    )


def _rule(*names: str) -> Callable[[Rule], Rule]:
    def register(rule: Rule) -> Rule:
        _RULES.update(dict.fromkeys(names, rule))
        return rule

    return register


def _shapes(nested: StridedNestedTensor) -> list[Shape]:
    return [row.shape for row in nested._rows]


def _on_elements(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A function that gives each element its own."""
    name = func.__name__
    given = [each for each in (*args, *kwargs.values()) if isinstance(each, Tensor)]
    nested = [each for each in given if isinstance(each, StridedNestedTensor)]
    first = nested[0]
    for each in given:
        if not isinstance(each, StridedNestedTensor) and each.numel() != 1:
            sides = ("nested", "non-nested") if given[0] is first else ("non-nested", "nested")
            raise RuntimeError(
                f"Expected both self and other to be nested, but got a {sides[0]} self and {sides[1]} other"
            )
    if any(_shapes(each) != _shapes(first) for each in nested):
        raise RuntimeError(f"{name} does not support broadcasting when given a NestedTensor")
    if changes_its_first(name) and args[0] is first:
        if all(each._rows == first._rows and each.covers_its_memory() for each in nested):
            func(*map(_elements_of, args), **{key: _elements_of(each) for key, each in kwargs.items()})
        else:
            _by_rows(func, args, kwargs)
        return first
    if any(each._rows != first._rows or not each.covers_its_memory() for each in nested):
        args = tuple([each.packed() if isinstance(each, StridedNestedTensor) else each for each in args])
        kwargs = {key: each.packed() if isinstance(each, StridedNestedTensor) else each for key, each in kwargs.items()}
        first = first.packed()
    result = func(*map(_elements_of, args), **{key: _elements_of(each) for key, each in kwargs.items()})
    return _wrapped(result, first)


def _elements_of(value: Any) -> Any:
    if isinstance(value, StridedNestedTensor):
        return value._inner
    return value.reshape(()) if isinstance(value, Tensor) and value.dim() else value


def _wrapped(result: Any, like: StridedNestedTensor) -> Any:
    if isinstance(result, Tensor):
        return like.like(result) if result.shape == like._inner.shape else result
    if isinstance(result, tuple):
        return tuple([_wrapped(each, like) for each in result])
    return result


def _by_rows(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Tensor]:
    """What a function gives for each row of its nested arguments, beside the others as they are."""
    given = [*args, *kwargs.values()]
    parts = [each.rows() if isinstance(each, StridedNestedTensor) else None for each in given]
    count = len(next(each for each in parts if each is not None))
    found = []
    for number in range(count):
        row = [each if part is None else part[number] for each, part in zip(given, parts, strict=True)]
        found.append(func(*row[: len(args)], **dict(zip(kwargs, row[len(args) :], strict=True))))
    return found


def _place(nested: StridedNestedTensor, dim: int) -> int:
    """The dimension as a number from zero on; that of the rows is 0."""
    place = dim + nested.dim() if dim < 0 else dim
    if not 0 <= place < nested.dim():
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-nested.dim()}, {nested.dim() - 1}], but got {dim})"
        )
    return place


# The rows -------------------------------------------------------------------------------------------------------------


@_rule("unbind")
def _unbind(func: Any, input: StridedNestedTensor, dim: int = 0) -> tuple[Tensor, ...]:
    if _place(input, dim):
        raise RuntimeError(f"NestedTensor can only be unbound along dimension 0 got dimension {dim} instead.")
    return tuple(input.rows())


@_rule("select")
def _select(func: Any, input: StridedNestedTensor, dim: int, index: int) -> Any:
    if _place(input, dim):
        return packed([row.select(dim if dim < 0 else dim - 1, index) for row in input.rows()])
    count = len(input._rows)
    if not -count <= index < count:
        raise IndexError(f"index {index} is out of bounds for dimension 0 with size {count}")
    return input._inner.as_strided(*input._rows[index])


@_rule("__getitem__")
def _subscript(func: Any, input: StridedNestedTensor, index: Any) -> Any:
    first, *rest = index if isinstance(index, tuple) else (index,)
    if not isinstance(first, int):
        raise NotImplementedError(
            "Could not run 'aten::slice.Tensor' with arguments from the 'NestedTensorCPU' backend: a number says which "
            "row of a nested tensor"
        )
    row = _select(func, input, 0, first)
    return row[tuple(rest)] if rest else row


@_rule("narrow")
def _narrow(func: Any, input: StridedNestedTensor, dim: int, start: int, length: int) -> StridedNestedTensor:
    if _place(input, dim):
        raise RuntimeError(f"narrow(): only dim=0 supported for nested tensors, but got: {dim}")
    begin = start + len(input._rows) if start < 0 else start
    if begin < 0 or length < 0 or begin + length > len(input._rows):
        raise RuntimeError(f"start ({start}) + length ({length}) exceeds dimension size ({len(input._rows)}).")
    return StridedNestedTensor(input._inner, input._rows[begin : begin + length])


@_rule("cat", "concat", "concatenate")
def _join(func: Any, tensors: Any, dim: int = 0, **options: Any) -> StridedNestedTensor:
    if dim != 0:
        raise RuntimeError(f"cat(): nested tensors are joined along dimension 0 alone, not {dim}")
    rows: list[Tensor] = []
    for each in tensors:
        rows += each.rows() if isinstance(each, StridedNestedTensor) else each.unbind()
    return packed(rows)


def padded(nested: StridedNestedTensor, padding: float, output_size: Any = None) -> Tensor:
    """Rows as large as the largest, or as `output_size` says, with `padding` behind their elements."""
    if not nested._rows:
        return torch.empty(0, dtype=nested.dtype)
    largest = tuple(map(max, zip(*_shapes(nested), strict=True)))
    wanted = largest if output_size is None else tuple(output_size)[1:]
    if len(wanted) != len(largest) or any(size < least for size, least in zip(wanted, largest, strict=True)):
        raise RuntimeError(
            "Value in output_size is less than NestedTensor padded size. Truncation is not supported: "
            f"{list(wanted)} below {list(largest)}"
        )
    rows = [
        torch.nn.functional.pad(row, _widths(row.shape, wanted), value=padding) if tuple(row.shape) != wanted else row
        for row in nested.rows()
    ]
    count = len(rows) if output_size is None else int(output_size[0])
    if count < len(rows):
        raise RuntimeError("Value in output_size is less than NestedTensor padded size. Truncation is not supported.")
    filler = [rows[0].new_full(wanted, padding)] * (count - len(rows))
    return torch.stack([*rows, *filler])


def _widths(shape: Shape, wanted: Shape) -> list[int]:
    return [each for size, full in zip(reversed(shape), reversed(wanted), strict=True) for each in (0, full - size)]


@_rule("contiguous", "clone")
def _copied(func: Any, input: StridedNestedTensor, *rest: Any, **options: Any) -> StridedNestedTensor:
    if func.__name__ == "contiguous" and input.is_contiguous():
        return input
    found = input.packed()
    return found.like(found._inner.clone()) if found is input else found


# Views ----------------------------------------------------------------------------------------------------------------


def _viewed(input: StridedNestedTensor, change: Callable[[Tensor], Tensor]) -> StridedNestedTensor:
    """Each row as `change` shows it: a view, whose place is read from that of a row of the same geometry."""
    rows = []
    for row in input._rows:
        shown = change(torch.empty(input._inner.numel(), device="meta").as_strided(*row))
        rows.append(Row(tuple(shown.shape), tuple(shown.stride()), int(shown.storage_offset())))
    return StridedNestedTensor(input._inner, rows)


@_rule("transpose", "swapaxes", "swapdims")
def _transpose(func: Any, input: StridedNestedTensor, dim0: int, dim1: int) -> StridedNestedTensor:
    first, second = _place(input, dim0), _place(input, dim1)
    if 0 in (first, second) and first != second:
        raise RuntimeError("Nested tensor dimension 0 cannot be transposed")
    return _viewed(input, lambda row: row.transpose(first - 1, second - 1))


@_rule("unsqueeze")
def _unsqueeze(func: Any, input: StridedNestedTensor, dim: int) -> StridedNestedTensor:
    place = dim + input.dim() + 1 if dim < 0 else dim
    if place == 0:
        raise RuntimeError("unsqueeze(): For nested tensors, unsqueezing dimension 0 is not supported")
    return _viewed(input, lambda row: row.unsqueeze(place - 1))


@_rule("squeeze")
def _squeeze(func: Any, input: StridedNestedTensor, dim: int | None = None) -> StridedNestedTensor:
    if dim is None:
        raise RuntimeError("squeeze(): For nested tensors, squeeze without the dim argument is not supported")
    place = _place(input, dim)
    if place == 0:
        raise RuntimeError("squeeze(): For nested tensors, squeezing dimension 0 is not supported")
    return _viewed(input, lambda row: row.squeeze(place - 1))


@_rule("chunk")
def _chunk(func: Any, input: StridedNestedTensor, chunks: int, dim: int = 0) -> tuple[StridedNestedTensor, ...]:
    if _place(input, dim) != input.dim() - 1 or input.dim() < 2:
        raise RuntimeError("Chunk for nested tensors is currently only supported for the last dimension.")
    size = input.size(dim)
    if size % chunks:
        raise RuntimeError(f"Chunk for nested tensors is only supported for chunks of one size: {size} into {chunks}")
    width = size // chunks

    def chunk(begin: int) -> StridedNestedTensor:
        return _viewed(input, lambda row: row.narrow(-1, begin, width))

    return tuple([chunk(number * width) for number in range(chunks)])


@_rule("view", "reshape")
def _view(func: Any, input: StridedNestedTensor, *shape: Any) -> StridedNestedTensor:
    sizes = list(shape[0] if len(shape) == 1 and isinstance(shape[0], (list, tuple)) else shape)
    if not sizes or sizes[0] not in (-1, len(input._rows)):
        raise RuntimeError(f"{func.__name__}: the first size of nested tensors is the number of rows: {sizes}")

    def wanted(row: Row) -> list[int]:
        """A size of -1 is the row's own."""
        return [row.shape[at] if size == -1 and at < len(row.shape) else size for at, size in enumerate(sizes[1:])]

    if func.__name__ == "reshape" and not all(row.is_contiguous() for row in input._rows):
        return packed([part.reshape(wanted(row)) for part, row in zip(input.rows(), input._rows, strict=True)])
    shapes = iter([wanted(row) for row in input._rows])
    return _viewed(input, lambda row: row.view(next(shapes)))


# Reductions, products and layers --------------------------------------------------------------------------------------


@_rule("sum")
def _sum(func: Any, input: StridedNestedTensor, dim: Any = None, keepdim: bool = False, **options: Any) -> Any:
    if dim is None:
        return input.packed()._inner.sum(**options)
    listed = [_place(input, each) for each in (dim if isinstance(dim, (list, tuple)) else [dim])]
    if listed != [input.dim() - 1]:
        raise RuntimeError(
            f"NestedTensor can only be reduced across the last dimension for now got dimension {dim} instead."
        )
    if not keepdim:
        raise RuntimeError("NestedTensor always requires keepdim=True for now.")
    return packed([row.sum(-1, True, **options) for row in input.rows()])


@_rule("softmax", "log_softmax")
def _softmax(func: Any, input: StridedNestedTensor, dim: int, *rest: Any, **options: Any) -> StridedNestedTensor:
    place = _place(input, dim)
    if place == 0:
        raise RuntimeError("Cannot apply softmax across nested dimension 0")
    return packed([func(row, place - 1, *rest, **options) for row in input.rows()])


@_rule("matmul", "bmm", "__matmul__", "scaled_dot_product_attention")
def _by_row(func: Any, *args: Any, **options: Any) -> StridedNestedTensor:
    tensors = [each for each in args if isinstance(each, StridedNestedTensor)]
    if len(tensors) < sum(isinstance(each, Tensor) for each in args):
        sides = ["nested" if isinstance(each, StridedNestedTensor) else "non-nested" for each in args]
        raise RuntimeError(f"Expected both to be nested, but got a {sides[0]} self and {sides[1]} other")
    if len({len(each._rows) for each in tensors}) > 1:
        raise RuntimeError(f"{func.__name__}: nested tensors have one number of rows")
    if func.__name__ == "bmm":
        return packed([torch.mm(*pair) for pair in zip(*(each.rows() for each in tensors), strict=True)])
    return packed(_by_rows(func, args, options))


@_rule("linear", "layer_norm", "embedding")
def _layer(func: Any, input: StridedNestedTensor, weight: Any, *rest: Any, **options: Any) -> StridedNestedTensor:
    """Layers of the last dimensions, on all rows at once."""
    whole = input.packed()
    if func.__name__ == "embedding":
        found = func(whole._inner, weight, *rest, **options)
        return _of_lines(found, [(*shape, found.size(-1)) for shape in _shapes(input)])
    if func.__name__ == "layer_norm":
        lines = whole._inner.view(-1, *weight)
        return _of_lines(func(lines, weight, *rest, **options), _shapes(input))
    if input.dim() != 3 or weight.dim() != 2:
        raise RuntimeError("Linear requires nested_tensor.dim == 3 and dense_matrix.dim == 2")
    found = func(whole._inner.view(-1, input.size(-1)), weight, *rest, **options)
    return _of_lines(found, [(*shape[:-1], found.size(-1)) for shape in _shapes(input)])


def _of_lines(found: Tensor, shapes: list[Shape]) -> StridedNestedTensor:
    return StridedNestedTensor(found.reshape(-1), end_to_end(shapes))


@_rule("equal", "allclose")
def _equal(func: Any, input: Any, other: Any, *rest: Any, **options: Any) -> bool:
    pair = input, other
    same = all(isinstance(each, StridedNestedTensor) for each in pair) and _shapes(input) == _shapes(other)
    return same and bool(func(input.packed()._inner, other.packed()._inner, *rest, **options))


@_rule("tolist", "numpy", "__array__", "item")
def _refused(func: Any, input: StridedNestedTensor, *rest: Any, **options: Any) -> NoReturn:
    raise RuntimeError(f"{func.__name__}() is not supported for nested tensors: use unbind()")
