"""Products of matrices and vectors, with their derivatives, graphs and errors."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from tests.support.differential import differential, outcome

PRODUCTS = [
    "mm(a, b)", "mv(a, v)", "dot(v, v * 2)", "vdot(v, v * 2)", "outer(v, u)", "inner(a, a * 2)",
    "addmm(c, a, b, beta=2, alpha=3)", "addmv(u[:2], a, v, beta=2)", "addr(c, u[:2], u, alpha=2)", "bmm(A, B)",
    "baddbmm(c, A, B, beta=2, alpha=3)", "addbmm(c, A, B, alpha=2)", "chain_matmul(a, b, b.t())",
    "tensordot(A, B, dims=([2, 0], [1, 0]))", "kron(a, u)", "cross(a, a * a + 1)", "matrix_power(a.t() @ a, 3)",
    "matrix_power(a.t() @ a, 0)", "einsum('ij,jk->ki', a, b)", "einsum('bij,bjk->bik', A, B)",
    "einsum('...ij,jk', A, b)", "einsum('ii->i', a.t() @ a)", "einsum('ii', a.t() @ a)",
    "einsum('ij,jk,lk->il', a, b, c)", "einsum('i,j->ij', u, v)", "einsum('bij,ij->b', A, a)", "matmul(a, b)",
    "matmul(a, v)", "matmul(v, b)", "matmul(A, b)", "matmul(a, B)", "matmul(A, B)", "matmul(A, v)", "matmul(v, B)",
    "matmul(A.unsqueeze(1), B)",
]  # fmt: skip


def _operands(T: Any, dtype: Any) -> dict[str, Any]:
    def values(start: float, *shape: int) -> Any:
        count = 1
        for size in shape:
            count *= size
        found = ((T.arange(count, dtype=T.float64) * 0.37 + start) % 1.0 - 0.4).reshape(shape).to(dtype)
        return (found * (1 + 0.5j) if dtype.is_complex else found).requires_grad_()

    return {
        "a": values(0.1, 2, 3), "b": values(0.2, 3, 4), "c": values(0.3, 2, 4), "v": values(0.4, 3),
        "u": values(0.5, 4), "A": values(0.6, 5, 2, 3), "B": values(0.7, 5, 3, 4),
    }  # fmt: skip


@differential
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("product", PRODUCTS)
def test_values_and_derivatives(T: Any, product: str, dtype: str) -> Any:
    variables = _operands(T, getattr(T, dtype))
    leaves = list(variables.values())
    result = eval(f"T.{product}", {"T": T, **variables})
    size = (result * result.conj()).sum()
    first = T.autograd.grad(size.real if size.dtype.is_complex else size, leaves, create_graph=True, allow_unused=True)
    total = sum((each * each.conj()).sum() for each in first if each is not None)
    second = T.autograd.grad(total.real if total.dtype.is_complex else total, leaves, allow_unused=True)
    # The memory order of derivatives is no promise.
    return result, *(
        [each if each is None else each.detach().contiguous() for each in order] for order in (first, second)
    )


@differential
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "int64"])
@pytest.mark.parametrize("reach", [5, 2**31, 2**62])
def test_large_products_of_integers(T: Any, reach: int, dtype: str) -> Any:
    """Exact where floats of 64 bits would not be, and around the ends of the dtype."""
    numbers = (T.arange(3 * 70 * 70) * 7919 % 1013 * (reach // 1013 + 1)).reshape(3, 70, 70)
    left, right = numbers.to(getattr(T, dtype)), numbers.flip(-1).to(getattr(T, dtype)) - 3
    return left[0] @ right[0], left @ right, left @ right[1], T.addmm(left[0], left[1], right[2])


@differential(tolerance=1e-5)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "int64", "uint8"])
@pytest.mark.parametrize(
    "shapes", [((2, 3), (3, 4)), ((3,), (3, 4)), ((2, 3), (3,)), ((5, 2, 3), (3, 4)), ((2, 0), (0, 3))]
)
def test_element_types(T: Any, shapes: Any, dtype: str) -> Any:
    left, right = (T.arange(int(T.Size(shape).numel())).reshape(shape).to(getattr(T, dtype)) for shape in shapes)
    return left @ right, T.matmul(left, right)


@differential
def test_results_in_given_memory(T: Any) -> Any:
    a, b = T.arange(6.0).reshape(2, 3), T.arange(12.0).reshape(3, 4)
    out = T.zeros(2, 4)
    T.mm(a, b, out=out)
    changed = T.ones(2, 4).addmm_(a, b, beta=2)
    hidden = T.addmm(T.full((2, 4), float("nan")), a, b, beta=0)
    return out, changed, changed._version, hidden, (b.t() @ a.t()).stride(), (a.t() @ a).is_contiguous()


@differential
@pytest.mark.parametrize(
    "expression",
    ["x @ x", "x @ x[0]", "x[0] @ x[0]", "x[0] @ x", "W @ x", "W @ W", "W @ x[0]", "x @ W", "T.addmm(x, x, x)"],
)
def test_graphs(T: Any, expression: str) -> Any:
    x, W = T.ones(3, 3, requires_grad=True), T.ones(2, 3, 3, requires_grad=True)
    node = eval(expression, {"T": T, "x": x, "W": W}).grad_fn
    names = []
    while node is not None:
        names.append(node.name())
        node = node.next_functions[0][0] if node.next_functions else None
    return names


@differential
def test_gradients_keep_the_memory_order_of_their_matrices(T: Any) -> Any:
    weight = T.ones(4, 3, requires_grad=True)
    seen = []
    turned = weight.t()
    turned.register_hook(lambda grad: seen.append(grad.stride()))
    (T.ones(2, 3) @ turned).sum().backward()
    return seen, weight.grad


ERRORS: dict[str, tuple[str, str]] = {
    "mm": ("r(2, 3) @ r(4, 5)", "mat1 and mat2 shapes cannot be multiplied (2x3 and 4x5)"),
    "mm dtype": ("r(2, 3) @ r(3, 4).double()", "expected m1 and m2 to have the same dtype, but got: float != double"),
    "mm dims": ("T.mm(r(2, 3), r(3))", "mat2 must be a matrix"),
    "mv": ("r(2, 3) @ r(4)", "size mismatch, got input (2), mat (2x3), vec (4)"),
    "dot": ("r(3) @ r(4)", "inconsistent tensor size, expected tensor [3] and src [4]"),
    "zero dims": ("T.tensor(1.0) @ r(2)", "both arguments to matmul need to be at least 1D"),
    "bmm": ("T.bmm(r(2, 3, 4), r(3, 4, 5))", "Expected size for first two dimensions of batch2 tensor to be: [2, 4]"),
    "batches": ("r(2, 2, 3) @ r(3, 3, 5)", "The size of tensor a (2) must match the size of tensor b (3)"),
    "bool": ("(r(2, 2) > 0) @ (r(2, 2) > 0)", "not implemented for 'Bool'"),
    "addmm": (
        "T.addmm(r(3, 3), r(2, 3), r(3, 2))",
        "The expanded size of the tensor (2) must match the existing size (3)",
    ),
    "einsum sizes": ("T.einsum('ij,jk', r(2, 3), r(4, 5))", "subscript j has size 4 for operand 1"),
    "einsum output": ("T.einsum('ij->k', r(2, 3))", "output subscript k does not appear"),
    "einsum dims": ("T.einsum('ijk', r(2, 3))", "the number of subscripts in the equation (3) does not match"),
    "einsum letters": ("T.einsum('i1', r(2, 3))", "invalid subscript given at index 1"),
    "einsum count": ("T.einsum('ij,jk', r(2, 3))", "fewer operands were provided"),
    "einsum repeated": ("T.einsum('ii', r(2, 3))", "subscript i is repeated for operand 0 but the sizes don't match"),
    "tensordot": ("T.tensordot(r(2, 3), r(3, 4), dims=([1], [1]))", "contracted dimensions need to match"),
    "cross": ("T.cross(r(2, 2), r(2, 2))", "no dimension of size 3 in input"),
    "matrix_power": ("T.matrix_power(r(2, 3), 2)", "A must be batches of square matrices"),
}


@differential
@pytest.mark.parametrize("name", ERRORS)
def test_errors(T: Any, name: str) -> Any:
    expression, phrase = ERRORS[name]
    return outcome(lambda: eval(expression, {"T": T, "r": T.ones}), phrase)


@differential
def test_einsum_with_lists(T: Any) -> Any:
    a, b = T.arange(6.0).reshape(2, 3), T.arange(12.0).reshape(3, 4)
    return T.einsum(a, [0, 1], b, [1, 2]), T.einsum(a, [..., 1], b, [1, 2], [2, ...]), T.einsum("ij,jk", [a, b])


@differential
def test_a_zero_meets_nan_in_products_of_any_size(T: Any) -> Any:
    """Where an operand is one element too: a library may leave the other one out for a factor of zero."""
    seen = []
    for rows, inner, columns in itertools.product((1, 2, 64), (1, 2, 9), (None, 1, 3)):
        for dtype in (T.float32, T.float64, T.bfloat16, T.complex64):
            shape = (inner,) if columns is None else (inner, columns)
            for nan_first in (True, False):
                left = T.ones(rows, inner, dtype=dtype) * (float("nan") if nan_first else 0)
                right = T.ones(shape, dtype=dtype) * (0 if nan_first else float("nan"))
                found = [left @ right, T.stack([left, left], -1)[..., 0] @ right]
                found += [left[0] @ right] if columns is not None else [T.mv(left, right)]
                seen.append([bool(each.isnan().all()) for each in found])
    return seen
