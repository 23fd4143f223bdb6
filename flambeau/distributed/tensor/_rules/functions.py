"""Public functions that have a rule as a whole, because their parts would move more than is needed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...._core.tensor import Tensor
from ...._dispatch.op import Op
from ...._ops.linalg.matmul import matmul
from .._dtensor import DTensor, made
from ..placement_types import Placement, Shard
from .carrying import carry_out
from .choice import REPLICATE, SUM, Call, plan_by
from .gradients import backward_of, grad_of
from .products import by_letters

_BATCH = "abcdefgh"


class _Product(Op):
    """`matmul` where an operand is a batch, as the op that a rule is about."""

    name = "matmul"
    parameters = ("input", "other")

    def __call__(self, *operands: Tensor) -> Tensor:
        return matmul(*operands)


class _TransposedProduct(_Product):
    """`linear` without an addend."""

    name = "linear"

    def __call__(self, *operands: Tensor) -> Tensor:
        return matmul(operands[0], operands[1].t())


def _matmul(input: Any, other: Any, *, out: Any = None) -> Any:
    operands = [input, other]
    ranks = [each.ndim if isinstance(each, Tensor) else 0 for each in operands]
    if out is not None or min(ranks) < 2 or max(ranks) < 3 or not all(isinstance(each, DTensor) for each in operands):
        return NotImplemented
    first, second = (_BATCH[: rank - 2] for rank in ranks)
    shapes = [each._layout.shape for each in operands]
    if first and second and shapes[0][:-2] != shapes[1][:-2]:
        return NotImplemented
    equation = f"{first}mk,{second}kn->{first or second}mn"
    call = Call(_Product(), operands, operands)
    return carry_out(call, plan_by(call, by_letters(equation)))


def _linear(input: Any, weight: Any, bias: Any = None, *, out: Any = None) -> Any:
    """A product and an addend: where the products are still to be added up, the first process adds it."""
    both = isinstance(input, DTensor) and isinstance(weight, DTensor)
    if out is not None or not both or input.ndim < 2 or weight.ndim != 2:
        return NotImplemented
    product = matmul_of(input, weight)
    if bias is None:
        return product
    if not isinstance(bias, DTensor):
        return product + bias
    summands = [number for number, each in enumerate(product.placements) if each.is_partial()]
    if not summands:
        return product + bias
    places: list[Placement] = []
    for number, each in enumerate(product.placements):
        cut = isinstance(each, Shard) and each.dim == product.ndim - 1
        places.append(SUM if number in summands else Shard(0) if cut else REPLICATE)
    return product + bias._redistributed(tuple(places)).expand(product.shape)


def matmul_of(input: DTensor, weight: DTensor) -> DTensor:
    """`input @ weight.t()` for an input of any number of dimensions."""
    letters = _BATCH[: input.ndim - 1]
    call = Call(_TransposedProduct(), [input, weight], [input, weight])
    found: DTensor = carry_out(call, plan_by(call, by_letters(f"{letters}k,nk->{letters}n")))
    return found


def _on_parts(name: str) -> Callable[..., Any]:
    """A method that moves or converts tensors: each process does it with its part."""

    def run(input: Any, *args: Any, **kwargs: Any) -> Any:
        if not isinstance(input, DTensor):
            return NotImplemented
        local = input._local_tensor
        found = getattr(local, name)(
            *[each._local_tensor if isinstance(each, DTensor) else each for each in args], **kwargs
        )
        return input if found is local else made(found, input._layout, input.stride())

    return run


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "linear": _linear, "matmul": _matmul, "grad": grad_of, "backward": backward_of,
    **{name: _on_parts(name) for name in ("to", "cpu", "cuda", "pin_memory")},
}  # fmt: skip
