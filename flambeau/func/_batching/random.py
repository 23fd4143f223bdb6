"""Random numbers: none unless `vmap` is told whether they are the same or different for each example."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..._core.tensor import Tensor
from ..._dispatch.op import Op
from .by_axes import all_with_ranks
from .level import Vmap
from .rules import rule

_ADVICE = (
    "vmap: called random operation while in randomness error mode. Please either use the 'same' or 'different' "
    "randomness flags on vmap or perform the randomness operation out of vmap ({name})"
)
_SAME = (
    "vmap does not currently support same randomness with a batched tensor input: {name} would draw another number for "
    "each example. Draw outside of vmap, or use randomness='different'"
)
_UNBATCHED = (
    "vmap: Cannot ask for different inplace randomness on an unbatched tensor. This will appear like same randomness. "
    "If this is necessary for your usage, please file an issue with functorch. ({name})"
)


def _check(level: Vmap, op: Op) -> None:
    if level.randomness == "error":
        raise RuntimeError(_ADVICE.format(name=op.name))


def draw_unbatched(level: Vmap, op: Op, args: Sequence[Any]) -> Any:
    """An op that draws, and has nothing of this level among its arguments."""
    _check(level, op)
    if level.randomness == "same":
        return op(*args)
    if op.writes:
        raise RuntimeError(_UNBATCHED.format(name=op.name))
    return level.finished(op(*[level.front(each) if isinstance(each, Tensor) else each for each in args]))


def unwritten(level: Vmap, op: Op, args: Sequence[Any]) -> Tensor:
    """Memory that is still to be written: for each example some of its own, as different numbers may go there."""
    shape, *strides, value, kind = args
    if strides:
        step = max([size * each for size, each in zip(shape, strides[0], strict=True)], default=1)
        return level.wrapped(op((level.size, *shape), (step, *strides[0]), value, kind))
    return level.wrapped(op((level.size, *shape), value, kind))


def filled(level: Vmap, op: Op, args: Sequence[Any]) -> None:
    """An op that fills a tensor with random numbers."""
    target, generator, *numbers = args
    _check(level, op)
    if not level.has(target):
        raise RuntimeError(_UNBATCHED.format(name=op.name))
    if any(level.has(each) for each in numbers):
        if level.randomness == "same":
            raise RuntimeError(_SAME.format(name=op.name))
        numbers = [level.front(each) if isinstance(each, Tensor) else each for each in numbers]
        op(target.value, generator, *numbers)
    elif level.randomness == "same":
        op(target.value[0], generator, *numbers)
        target.value[1:] = target.value[:1]
    elif op.name == "randperm_":
        for example in target.value.unbind(0):
            op(example, generator, *numbers)
    else:
        op(target.value, generator, *numbers)


def drawn(level: Vmap, op: Op, args: Sequence[Any]) -> Any:
    """An op that draws a number for each element; tensors that say from what distribution are broadcast."""
    _check(level, op)
    if level.randomness == "same":
        raise RuntimeError(_SAME.format(name=op.name))
    return op(*all_with_ranks(level, args))


@rule("multinomial")
def _multinomial(level: Vmap, op: Op, args: Sequence[Any]) -> Any:
    _check(level, op)
    if level.randomness == "same":
        raise RuntimeError(_SAME.format(name=op.name))
    tensor, *options = args
    drawn = op(tensor.value.reshape(-1, tensor._array.shape[-1]), *options)
    return drawn.reshape(level.size, *tensor._array.shape[:-1], options[0])
