"""Products, solvers and decompositions of matrices, which take leading dimensions as they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..._core.arrays.lazy_signs import content
from ..._core.tensor import Tensor
from ..._dispatch.op import Op
from ..._ops.create.constants import tensor
from .by_axes import matrices, rank, with_ranks
from .level import Shared, Vmap
from .rules import decomposition, rule


@rule("pinv", "rank")
def _by_tolerance(level: Vmap, op: Op, args: Sequence[Any]) -> Any:
    """Tolerances are numbers and arrays, or else examples, which have one for each matrix."""
    tensor, *tolerances, option = args
    lead = rank(tensor) - (2 if op.name == "pinv" else 1)
    for position, each in enumerate(tolerances):
        if level.has(each):
            shaped = with_ranks(level, each, lead)
            tolerances[position] = shaped if shaped._is_wrapper else content(shaped.detach())
    return op(level.front(tensor), *tolerances, option)


@rule("lstsq")
def _lstsq(level: Vmap, op: Op, args: Sequence[Any]) -> Any:
    results = matrices(level, op, args)
    return tuple(each if each._array.size else Shared(each) for each in results)


@rule("solve_ex")
def _solve(level: Vmap, op: Op, args: Sequence[Any]) -> Any:
    left, right, side = args
    vector = rank(right) == 1 or (rank(left) - 1 == rank(right) and right._array.shape == left._array.shape[:-1])
    if not vector:
        return matrices(level, op, args)
    value = level.front(right)
    if rank(right) == 1 and rank(left) > 2:
        value = value.reshape(level.size, *[1] * (rank(left) - 2), -1).expand(level.size, *left._array.shape[:-1])
    return op(level.front(left), value, side)


@rule("mm", "bmm", "mv", "dot", "vdot", "wide_product")
def _product(level: Vmap, op: Op, args: Sequence[Any]) -> Any:
    left, right = args
    if op.name == "mv":
        return (level.value(left) @ level.value(right).unsqueeze(-1)).squeeze(-1)
    if op.name in ("dot", "vdot"):
        first = level.value(left)
        first = first.conj() if op.name == "vdot" else first
        return (first.unsqueeze(-2) @ level.value(right).unsqueeze(-1)).reshape(level.size)
    if op.name in ("mm", "wide_product") and not level.has(right):
        rows, inner = left._array.shape  # one product of many rows
        result = op(left.value.reshape(level.size * rows, inner), right)
        return result.reshape(level.size, rows, right._array.shape[1])
    return level.value(left) @ level.value(right)


def _plus(self: Any, product: Any, beta: Any, alpha: Any) -> Any:
    scaled = product if alpha == 1 else product * alpha
    return scaled if beta == 0 else (self if beta == 1 else self * beta) + scaled


@decomposition("addmm")
def _addmm(self: Any, mat1: Any, mat2: Any, beta: Any, alpha: Any) -> Any:
    return _plus(self, mat1.mm(mat2), beta, alpha)


@decomposition("addmv")
def _addmv(self: Any, mat: Any, vec: Any, beta: Any, alpha: Any) -> Any:
    return _plus(self, mat.mv(vec), beta, alpha)


@decomposition("addr")
def _addr(self: Any, vec1: Any, vec2: Any, beta: Any, alpha: Any) -> Any:
    return _plus(self, vec1.unsqueeze(1) * vec2, beta, alpha)


@decomposition("baddbmm")
def _baddbmm(self: Any, batch1: Any, batch2: Any, beta: Any, alpha: Any) -> Any:
    return _plus(self, batch1.bmm(batch2), beta, alpha)


@decomposition("addbmm")
def _addbmm(self: Any, batch1: Any, batch2: Any, beta: Any, alpha: Any) -> Any:
    return _plus(self, batch1.bmm(batch2).sum(0), beta, alpha)


@decomposition("trilinear")
def _trilinear(i1: Any, i2: Tensor, i3: Any) -> Any:
    partial = (i1 @ i2.transpose(0, 1).flatten(1)).unflatten(1, (i2._array.shape[0], i2._array.shape[2]))
    return (partial @ i3.unsqueeze(-1)).squeeze(-1)


@decomposition("pdist")
def _pdist(self: Tensor, p: float) -> Tensor:
    from ..._ops.linalg.distance import _pairs

    first, second = (tensor(each, device=self.device) for each in _pairs(self._array.shape[0]))
    return (self.index_select(0, first) - self.index_select(0, second)).norm(p, dim=1)
