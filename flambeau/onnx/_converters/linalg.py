"""Products of matrices and vectors, distances, determinants."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .._graph import INT64, Graph, Value
from ._table import Result, converter


@converter("matmul", "mm", "bmm", "mv", "wide_product")
def matmul(g: Graph, call: Result, left: Value, right: Value) -> Value:
    return _product(g, call, left, right)


def _product(g: Graph, call: Result, left: Value, right: Value) -> Value:
    if call.dtype.kind in "iu" and call.dtype not in (np.dtype(np.int32), INT64):
        wide = g.op("MatMul", g.cast(left, np.int32), g.cast(right, np.int32))
        return g.cast(wide, call.dtype)
    return g.op("MatMul", g.cast(left, call.dtype), g.cast(right, call.dtype))


@converter("dot", "vdot")
def dot(g: Graph, call: Result, self: Value, tensor: Value) -> Value:
    return g.op("MatMul", self, tensor)


def _plus(g: Graph, base: Value, product: Value, beta: Any, alpha: Any) -> Value:
    if alpha != 1:
        product = g.op("Mul", product, alpha)
    if beta == 0:
        return product
    return g.op("Add", base if beta == 1 else g.op("Mul", base, beta), product)


@converter("addmm")
def addmm(g: Graph, call: Result, self: Value, mat1: Value, mat2: Value, beta: Any, alpha: Any) -> Value:
    if call.dtype.kind != "f":
        return _plus(g, self, _product(g, call, mat1, mat2), beta, alpha)
    turned = call.transposed(mat2)
    bias = self if beta != 0 else None
    options: dict[str, Any] = {"transB": 1} if turned is not None else {}
    if alpha != 1:
        options["alpha"] = float(alpha)
    if beta not in (0, 1):
        options["beta"] = float(beta)
    return g.op("Gemm", mat1, mat2 if turned is None else turned, bias, **options)


@converter("addmv", "baddbmm")
def addmv(g: Graph, call: Result, self: Value, left: Value, right: Value, beta: Any, alpha: Any) -> Value:
    return _plus(g, self, _product(g, call, left, right), beta, alpha)


@converter("addbmm")
def addbmm(g: Graph, call: Result, self: Value, batch1: Value, batch2: Value, beta: Any, alpha: Any) -> Value:
    return _plus(g, self, g.reduce("ReduceSum", _product(g, call, batch1, batch2), [0], False), beta, alpha)


@converter("addr")
def addr(g: Graph, call: Result, self: Value, vec1: Value, vec2: Value, beta: Any, alpha: Any) -> Value:
    outer = g.op("Mul", g.unsqueeze(vec1, 1), vec2)
    return _plus(g, g.cast(self, call.dtype), g.cast(outer, call.dtype), beta, alpha)


@converter("cross")
def cross(g: Graph, call: Result, self: Value, other: Value, dim: int) -> Value:
    orders = [g.const(np.array(each, np.int64)) for each in ([1, 2, 0], [2, 0, 1])]
    a1, a2 = (g.op("Gather", self, each, axis=dim) for each in orders)
    b1, b2 = (g.op("Gather", other, each, axis=dim) for each in orders)
    return g.op("Sub", g.op("Mul", a1, b2), g.op("Mul", a2, b1))


@converter("det")
def det(g: Graph, call: Result, matrix: Value) -> list[Value]:
    return [g.op("Det", matrix)]


@converter("euclidean_dist")
def euclidean_dist(g: Graph, call: Result, x1: Value, x2: Value) -> Value:
    return cdist(g, call, x1, x2, 2.0)


@converter("cdist")
def cdist(g: Graph, call: Result, x1: Value, x2: Value, p: float) -> Value:
    gap = g.op("Abs", g.op("Sub", g.unsqueeze(x1, -2), g.unsqueeze(x2, -3)))
    if p == 2:
        return g.reduce("ReduceL2", gap, [-1], False)
    if p == 1:
        return g.reduce("ReduceSum", gap, [-1], False)
    if p == math.inf:
        return g.reduce("ReduceMax", gap, [-1], False)
    if p == 0:
        return g.reduce("ReduceSum", g.cast(g.cast(gap, bool), gap.dtype), [-1], False)
    return g.op("Pow", g.reduce("ReduceSum", g.op("Pow", gap, float(p)), [-1], False), 1 / float(p))


@converter("trilinear")
def trilinear(g: Graph, call: Result, left: Value, weight: Value, right: Value) -> Value:
    return g.op("Einsum", left, weight, right, equation="na,oab,nb->no")


@converter("pdist")
def pdist(g: Graph, call: Result, self: Value, p: float) -> Value:
    """The distances above the diagonal of the table of all pairs."""
    count = int((self.shape or ())[0])
    rows, columns = np.triu_indices(count, 1)
    table = g.flat(cdist(g, call, self, self, p))
    return g.op("Gather", table, g.const((rows * count + columns).astype(np.int64)), axis=0)
