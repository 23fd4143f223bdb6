"""The rule of every op under `vmap`, by the op's name; the ways that many ops share.

A rule is called with the level, the op and its arguments, and works on values, outside of the level. A decomposition is
called with the arguments alone, inside the level: it says the op in other ops.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from ..._core.tensor import Tensor
from ..._dispatch.arguments.promotion import result_type_of
from ..._dispatch.composite import Composite
from ..._dispatch.elementwise import Elementwise
from ..._dispatch.op import Op
from .level import BatchedTensor, Rule, Vmap

RULES: dict[str, tuple[bool, Callable[..., Any]]] = {}
"""By the name of an op: whether it is a decomposition, and the function."""

_FAMILIES = ("pointwise", "shape", "reduce", "index", "linalg", "image", "network", "loss", "random")
_loaded = False


def rule_of(op: Op) -> tuple[bool, Callable[..., Any]]:
    """How `op` runs under `vmap`."""
    found = RULES.get(op.name)
    if found is None:
        _load()
        found = RULES.get(op.name)
    if found is None:
        found = RULES[op.name] = _general(op)
    return found


def _load() -> None:
    global _loaded
    if not _loaded:
        for family in _FAMILIES:
            import_module(f"{__package__}.{family}")
        _loaded = True


def _general(op: Op) -> tuple[bool, Callable[..., Any]]:
    if isinstance(op, Elementwise):
        return False, aligned
    if isinstance(op, Composite):
        assert op.decomposition is not None
        return True, op.decomposition
    from .loop import loop

    return False, loop


def uses_loop(op: Op) -> bool:
    """Whether `op` runs example by example."""
    from .loop import loop

    return rule_of(op)[1] is loop


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Make the decorated function the rule of the ops `names`."""

    def enter(function: Rule) -> Rule:
        give(function, *names)
        return function

    return enter


def give(function: Rule, *names: str) -> None:
    """Make `function` the rule of the ops `names`, of which a text may have several."""
    for name in " ".join(names).split():
        assert name not in RULES, name
        RULES[name] = False, function


def decomposition(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Make the decorated function, which says the ops `names` in others, what runs in their place."""

    def enter(function: Callable[..., Any]) -> Callable[..., Any]:
        for name in " ".join(names).split():
            assert name not in RULES, name
            RULES[name] = True, function
        return function

    return enter


# ----- ways that many ops share -------------------------------------------------------------------------------------


def rank(tensor: Tensor) -> int:
    """The number of dimensions of one example."""
    count: int = tensor._array.ndim
    return count


def shift(dim: Any, ndim: int) -> Any:
    """A dimension of an example, or several, as those of the value."""
    if isinstance(dim, int):
        return dim % ndim + 1 if ndim else 1
    return tuple(shift(each, ndim) for each in dim)


def as_it_is(level: Vmap, op: Op, args: Sequence[Any]) -> Any:
    """An op of one tensor that takes any leading dimensions."""
    return op(*[level.value(each) for each in args])


def with_ranks(level: Vmap, tensor: Any, ndim: int) -> Any:
    """The value of a tensor with dimensions of size 1 after the first, until an example has `ndim` of them."""
    if not level.has(tensor):
        return tensor
    value = tensor.value
    missing = ndim - (value._array.ndim - 1)
    return value if missing <= 0 else value.reshape(level.size, *[1] * missing, *value._array.shape[1:])


def aligned(level: Vmap, op: Op, args: Sequence[Any]) -> Any:
    """An op whose tensors are broadcast: examples get as many dimensions as the largest has."""
    tensors = [each for each in args if isinstance(each, Tensor)]
    ndim = max([each._array.ndim for each in tensors])
    given = list(args)
    common = None
    if len(tensors) > 1 and any(each._kind is not tensors[0]._kind for each in tensors[1:]):
        common = result_type_of(*tensors)
    for position, each in enumerate(args):
        if type(each) is BatchedTensor and each.level is level:
            value = with_ranks(level, each, ndim)
            if common is not None and not each._array.ndim and each.dtype.is_complex <= common.is_complex:
                value = value.to(common)  # a 0-d tensor has no say in the dtype; its value has dimensions
            given[position] = value
    return op(*given)


def broadcast(level: Vmap, op: Op, args: Sequence[Any]) -> Any:
    """`aligned`, for ops whose first tensor decides the shape: that has all examples."""
    ndim = max([each._array.ndim for each in args if isinstance(each, Tensor)])
    given = list(args)
    first = True
    for position, each in enumerate(args):
        if isinstance(each, Tensor):
            if first and not level.has(each):
                each = level.wrapped(level.front(each))
            first = False
            given[position] = with_ranks(level, each, ndim)
    return op(*given)


def along(*names: str, extra: int = 0, sizes: str | None = None) -> Rule:
    """An op of one tensor or of several alike, whose parameters `names` are dimensions.

    `extra`: how many more dimensions than the tensor those are counted in; `sizes`: or as many as that parameter has.
    """

    def run(level: Vmap, op: Op, args: Sequence[Any]) -> Any:
        given = list(args)
        ndim = rank(args[op.tensor_positions[0]])
        flat = ndim == 0 and not extra and sizes is None
        for position in op.tensor_positions:
            if args[position] is not None:
                value = level.front(args[position])
                given[position] = value.unsqueeze(1) if flat else value
        if sizes is not None:
            at = op.parameters.index(sizes)
            ndim = len(args[at])
            given[at] = (level.size, *args[at])
        for name in names:
            at = op.parameters.index(name)
            dim = args[at]
            if dim is None:
                dim = tuple(range(ndim))
            if flat and not isinstance(dim, int):
                dim = (0,)
            given[at] = shift(dim, ndim + extra)
        result = op(*given)
        return flattened(result) if flat else result

    if not extra and sizes is None:
        vars(run)["dims"] = names  # all others are independent, which interests those who spread tensors too
    return run


def flattened(result: Any) -> Any:
    """Results of which one example is a number."""
    if isinstance(result, Tensor):
        return result.reshape(result._array.shape[0])
    return type(result)(flattened(each) for each in result)
