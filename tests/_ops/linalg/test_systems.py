"""Linear algebra, distances, incomplete gamma functions: values, layouts, two derivatives and errors, as in PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch as pytorch

import flambeau
from tests.support.differential import differential, outcome

# Inputs: x (3x3), s (3x3, symmetric positive-definite), r (3x2), w (4x3), f (2x3x3), h (2x3x3, positive-definite).
EXPRESSIONS = """
x.det()|T.linalg.det(f)|s.logdet()|T.logdet(h)|T.slogdet(x)[1]|T.linalg.slogdet(f).logabsdet|x.inverse()|T.linalg.inv(f)
T.linalg.inv_ex(f).inverse|T.linalg.solve(x, r)|T.linalg.solve(f, r)|T.linalg.solve(x, r[:, 0])
T.linalg.solve(f, f[..., 0])|T.linalg.solve(x, w, left=False)|T.linalg.solve_ex(f, r).result
T.linalg.solve_triangular(x, r, upper=True)|T.linalg.solve_triangular(f, r, upper=False)
T.linalg.solve_triangular(x, w, upper=False, left=False)|T.linalg.solve_triangular(x, r, upper=True, unitriangular=True)
T.triangular_solve(r, x)[0]|T.triangular_solve(r, x, upper=False, transpose=True).solution
T.linalg.cholesky(s)|T.linalg.cholesky(h, upper=True)|T.cholesky(s)|T.linalg.cholesky_ex(h).L
T.cholesky_solve(r, T.linalg.cholesky(s))|T.cholesky_solve(r, T.linalg.cholesky(s, upper=True), upper=True)
T.cholesky_inverse(T.linalg.cholesky(s))|T.linalg.qr(w)[0].abs()|T.linalg.qr(w).R.abs()|T.qr(w.t())[1].abs()
T.linalg.svdvals(w)|T.linalg.svd(w)[1]|T.linalg.svd(w, full_matrices=False).U.abs()|T.svd(w.t())[2].abs()
T.linalg.eigvalsh(s)|T.linalg.eigh(s).eigenvectors.abs()|T.linalg.eigh(h, UPLO="U")[1].abs()
T.linalg.eigvals(x).abs()|T.linalg.eig(x)[1].abs()|T.linalg.pinv(w)|T.linalg.pinv(s, hermitian=True)|w.pinverse()
T.linalg.lstsq(w, w[:, :2].exp()).solution|T.linalg.lstsq(w, w.exp(), driver="gels")[1]|T.linalg.cond(x)
T.linalg.cond(x, -2)|T.linalg.matrix_power(x, -2)|x.matrix_exp()|T.linalg.matrix_exp(f * 3)
T.linalg.lu(w)[1]|T.linalg.lu(w.t()).U
T.linalg.lu_factor(f)[0]|T.linalg.lu_solve(*T.linalg.lu_factor(x), r)|T.lu_unpack(*T.linalg.lu_factor(w))[1]
T.linalg.lu_solve(*T.linalg.lu_factor(x), w, left=False, adjoint=True)|T.linalg.vander(r[0], N=4)
T.linalg.vecdot(x, x.exp())
T.linalg.tensorinv(x.reshape(3, 3, 1), ind=1)|T.linalg.tensorsolve(x, r[:, 0])|T.linalg.diagonal(f)
T.nn.functional.cosine_similarity(x, s)|T.nn.functional.pairwise_distance(x, s, p=3)|T.nn.functional.normalize(x, dim=0)
T.nn.functional.cosine_similarity(x, r[:, 0], dim=-1)|T.linalg.pinv(r @ r.mT)|T.linalg.pinv(x[:, :1] @ w[:, 0:1].mT)
"""
CASES = [case for line in EXPRESSIONS.strip().splitlines() for case in line.split("|")]
COMPLEX = [case for case in CASES if not any(word in case for word in ("eig(", "cosine", "lu(", "tensor"))]
# The distances have first derivatives only in PyTorch.
DISTANCES = [f"T.cdist({a}, w, p={p})" for a in ("x", "f") for p in ("0.0", "0.5", "1.0", "1.5", "2.0", "3.0", "INF")]
DISTANCES += [f"T.pdist(w, p={p})" for p in ("0.0", "1.0", "1.5", "2.0", "3.0", "INF")]


def _inputs(T: Any, is_complex: bool) -> dict[str, Any]:
    random = np.random.default_rng(7)

    def leaf(*shape: int) -> Any:
        values = random.normal(size=shape)
        return values + 1j * random.normal(size=shape) if is_complex else values

    arrays = {
        "x": leaf(3, 3),
        "r": leaf(3, 2),
        "w": leaf(4, 3),
        "f": leaf(2, 3, 3),
        "s": leaf(3, 3),
        "h": leaf(2, 3, 3),
    }
    for name in ("s", "h"):
        arrays[name] = arrays[name] @ arrays[name].conj().swapaxes(-1, -2) + np.eye(3)
    return {name: T.from_numpy(array).requires_grad_() for name, array in arrays.items()}


def _weigh(T: Any, tensor: Any) -> Any:
    """A real number that depends on each element in its own way."""
    if tensor.is_complex():
        tensor = T.view_as_real(tensor.resolve_conj())
    weights = np.linspace(0.3, 1.7, tensor.numel()).reshape(tuple(tensor.shape))
    return (tensor * T.from_numpy(weights)).sum()


def _evaluate(T: Any, expression: str, is_complex: bool = False, orders: int = 2) -> Any:
    inputs = _inputs(T, is_complex)
    result = eval(expression, {"T": T, "INF": float("inf"), **inputs})
    observed = [result]
    leaves = list(inputs.values())
    derived = _weigh(T, result)
    for order in range(1, orders + 1):
        if not derived.requires_grad:
            break
        grads = T.autograd.grad(derived, leaves, create_graph=order < orders, allow_unused=True)
        observed.append(
            [None if grad is None else grad.detach().clone(memory_format=T.contiguous_format) for grad in grads]
        )
        derived = sum(_weigh(T, grad) for grad in grads if grad is not None)
    return observed


@pytest.mark.parametrize("expression", CASES)
@differential(tolerance=1e-3)  # 1e-9 for float64
def test_two_derivatives(T: Any, expression: str) -> Any:
    return _evaluate(T, expression)


@pytest.mark.parametrize("expression", COMPLEX)
@differential(tolerance=1e-3)
def test_two_derivatives_of_complex_matrices(T: Any, expression: str) -> Any:
    return _evaluate(T, expression, is_complex=True)


@pytest.mark.parametrize("expression", DISTANCES)
@differential(tolerance=1e-3)
def test_distances(T: Any, expression: str) -> Any:
    return _evaluate(T, expression, orders=1)


def test_second_derivatives_of_distances() -> None:
    x, w = (_inputs(flambeau, False)[name] for name in "xw")
    for p in (1.5, 2.0, 3.0):
        assert flambeau.autograd.gradgradcheck(lambda a, b, p=p: flambeau.cdist(a, b, p), (x, w))
        assert flambeau.autograd.gradgradcheck(lambda a, p=p: flambeau.pdist(a, p), (w,))


@differential
def test_many_euclidean_distances(T: Any) -> Any:
    values = np.random.default_rng(3).normal(size=(2, 30, 3)).astype(np.float32)
    x = T.from_numpy(values).requires_grad_()
    result = T.cdist(x, x.detach()[0] + 5)
    return (
        result.grad_fn.name(),
        result.shape,
        result.stride(),
        T.cdist(x[0], x[0] + 5).grad_fn.next_functions[0][0].name(),
    )


@pytest.mark.parametrize("shape", [(0, 0), (0, 3, 3), (2, 0, 0), (1, 1)])
@differential
def test_empty_and_tiny_matrices(T: Any, shape: tuple[int, ...]) -> Any:
    matrix = T.ones(shape, dtype=T.float64) * 4
    return (
        T.det(matrix),
        T.linalg.slogdet(matrix),
        T.linalg.inv(matrix),
        T.linalg.solve(matrix, matrix),
        T.linalg.cholesky(matrix),
        T.linalg.qr(matrix)[1].abs(),
        T.linalg.svdvals(matrix),
        T.linalg.eigvalsh(matrix),
        T.linalg.pinv(matrix),
        T.matrix_exp(matrix),
        T.linalg.lu(matrix),
    )


@pytest.mark.parametrize("shape", [(0, 5), (2, 0, 5), (3, 0), (0, 3, 3), (0, 0)])
@differential
def test_matrices_without_elements_need_not_be_square(T: Any, shape: tuple[int, ...]) -> Any:
    matrix = T.zeros(shape, dtype=T.complex64, requires_grad=True)
    return (
        T.linalg.pinv(matrix, hermitian=True),
        T.linalg.matrix_rank(matrix, hermitian=True),
        T.linalg.matrix_rank(matrix),
        T.cholesky(matrix),
        [outcome(lambda: T.linalg.cond(matrix, p)) for p in (None, 2, -2, 1, -1, "fro", "nuc", 3)],  # noqa: B023
    )


@pytest.mark.parametrize("name", ["inv_ex", "cholesky_ex", "lu_factor_ex"])
@differential
def test_codes_say_which_matrices_failed(T: Any, name: str) -> Any:
    matrices = T.stack([T.eye(3), T.ones(3, 3) * -1, T.diag(T.tensor([1.0, 2.0, 0.0]))])
    result = getattr(T.linalg, name)(matrices)
    return result.info, result[0][0], type(result).__name__


ERRORS = [
    ("T.linalg.det(T.ones(2, 3))", "A must be batches of square matrices, but they are 2 by 3 matrices"),
    ("T.linalg.det(T.ones(2))", "must have at least 2 dimensions"),
    ("T.linalg.det(T.ones(2, 2, dtype=T.int64))", "Expected a floating point or complex tensor as input. Got Long"),
    ("T.linalg.det(T.ones(2, 2, dtype=T.float16))", "\"lu_cpu\" not implemented for 'Half'"),
    ("T.inverse(T.ones(2, 2))", "The diagonal element 2 is zero, the inversion could not be completed"),
    ("T.linalg.inv(T.ones(2, 2, 2))", "(Batch element 0): The diagonal element 2 is zero"),
    ("T.linalg.inv_ex(T.ones(2, 2), check_errors=True)", "linalg.inv_ex: The diagonal element 2 is zero"),
    ("T.linalg.solve(T.ones(2, 2), T.ones(2))", "The solver failed because the input matrix is singular"),
    ("T.linalg.solve(T.eye(2), T.ones(3, 1))", "Incompatible shapes of A and B for the equation AX = B (2x2 and 3x1)"),
    ("T.linalg.solve(T.eye(2), T.ones(2).double())", "Expected A and B to have the same dtype"),
    ("T.linalg.cholesky(-T.eye(2))", "input is not positive-definite (the leading minor of order 1"),
    (
        "T.linalg.cholesky(T.stack([T.eye(2), -T.eye(2)]))",
        "(Batch element 1): The factorization could not be completed",
    ),
    ("T.cholesky(-T.eye(2))", "The factorization could not be completed because the input is not positive-definite"),
    ("T.linalg.svd(T.full((2, 2), float('nan')))", "the input matrix contained non-finite values"),
    ("T.linalg.eig(T.full((2, 2), float('nan')))", "should not contain infs or NaNs"),
    ("T.linalg.qr(T.ones(2, 2), 'x')", "qr received unrecognized mode 'x'"),
    ("T.linalg.eigh(T.ones(2, 2), UPLO='X')", "Expected UPLO argument to be 'L' or 'U'"),
    ("T.linalg.lu_factor(T.ones(2, 2))", "U[2,2] is zero"),
    ("T.linalg.cond(T.ones(2, 3), 1)", "A must be batches of square matrices"),
    ("T.matrix_exp(T.ones(2, 3))", "A must be batches of square matrices"),
    ("T.cdist(T.ones(2, 3), T.ones(2, 2))", "X1 and X2 must have the same number of columns. X1: 3 X2: 2"),
    ("T.cdist(T.ones(2), T.ones(2, 2))", "cdist only supports at least 2D tensors, X1 got: 1D"),
    ("T.cdist(T.ones(2, 2), T.ones(2, 2), p=-1)", "cdist only supports non-negative p values"),
    ("T.pdist(T.ones(2))", "pdist only supports 2D tensors, got: 1D"),
    ("T.igamma(T.ones(2, dtype=T.int64), T.ones(2, dtype=T.int64))", "\"igamma_cpu\" not implemented for 'Long'"),
]


@pytest.mark.parametrize(("expression", "phrase"), ERRORS)
@differential
def test_errors(T: Any, expression: str, phrase: str) -> Any:
    return outcome(lambda: eval(expression, {"T": T}), phrase)


def test_a_failed_factorisation_is_a_runtime_error_of_its_own() -> None:
    assert issubclass(flambeau.linalg.LinAlgError, RuntimeError)
    with pytest.raises(flambeau.linalg.LinAlgError):
        flambeau.linalg.inv(flambeau.zeros(2, 2))


@differential(tolerance=1e-3)
def test_derivative_of_a_determinant_that_is_zero(T: Any) -> Any:
    x = T.tensor([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0], [0.0, 1.0, 1.0]], dtype=T.float64, requires_grad=True)
    x.det().backward()
    return x.grad.contiguous()


@differential
def test_meta_tensors_have_shapes_only(T: Any) -> Any:
    matrix = T.empty(2, 3, 3, device="meta")
    return [each.shape for each in (T.linalg.inv(matrix), T.linalg.det(matrix), T.linalg.solve(matrix, matrix))]


@differential
def test_ranks_and_out(T: Any) -> Any:
    matrices = T.stack([T.eye(3), T.ones(3, 3), T.zeros(3, 3)])
    out = T.empty(0)
    same = T.linalg.inv(T.eye(2) * 2, out=out) is out
    return T.linalg.matrix_rank(matrices), T.linalg.matrix_rank(matrices, atol=1.5), same, out.contiguous()


MEMORY = """
T.linalg.solve(A, B)|T.linalg.solve(A, B[:, 0])|T.linalg.solve(A, B.mT, left=False)|T.linalg.solve_ex(A, B)
T.linalg.inv(A)|T.inverse(A)|T.linalg.inv_ex(A)|T.linalg.solve_triangular(A, B, upper=True)|T.triangular_solve(B, A)
T.linalg.lu(A)|T.linalg.lu_factor(A)|T.linalg.lu_factor_ex(A)|T.linalg.lu_solve(*T.linalg.lu_factor(A), B)
T.linalg.qr(B)|T.linalg.svd(A)|T.svd(B)|T.linalg.eigh(A + A.mT)|T.linalg.eig(A)|T.linalg.lstsq(B, B)
T.cholesky(A @ A.mT)|T.linalg.cholesky_ex(A @ A.mT)|T.cholesky_inverse(A)|T.cholesky_solve(B, A)
T.linalg.matrix_power(A, 2)|T.linalg.pinv(B)
"""


@pytest.mark.parametrize("expression", [case for line in MEMORY.strip().splitlines() for case in line.split("|")])
@differential
def test_an_empty_out_takes_on_the_memory_order(T: Any, expression: str) -> Any:
    random = np.random.default_rng(8)
    values = {"A": random.normal(size=(4, 4)) + 4 * np.eye(4), "B": random.normal(size=(4, 3))}
    names: dict[str, Any] = {"T": T, **{name: T.from_numpy(array) for name, array in values.items()}}
    results = eval(expression, names)
    single = isinstance(results, T.Tensor)
    out = [T.empty(0, dtype=each.dtype) for each in ([results] if single else results)]
    names["out"] = out[0] if single else tuple(out)
    eval(f"{expression[:-1]}, out=out)", names)
    return [(each.shape, each.stride(), each.abs().sum()) for each in out]


@pytest.mark.parametrize("order", [1, -1, 2, -2, "nuc", "fro", float("inf"), float("-inf")])
@pytest.mark.parametrize("shape", [(0, 0), (0, 3), (3, 0), (0, 2, 2), (2, 0, 3)])
@differential
def test_norms_of_empty_matrices(T: Any, shape: tuple[int, ...], order: Any) -> Any:
    def derived(keepdim: bool) -> Any:
        x = T.ones(shape, dtype=T.float64, requires_grad=True)
        result = T.linalg.matrix_norm(x, order, keepdim=keepdim)
        return result.detach(), T.autograd.grad(result.sum(), x)

    return outcome(lambda: derived(False)), outcome(lambda: derived(True))


@pytest.mark.parametrize("name", ["svdvals", "eigvals", "eigvalsh", "cond", "det", "inv"])
@differential(tolerance=1e-3)
def test_tangents(T: Any, name: str) -> Any:
    random = np.random.default_rng(9)
    matrix, direction = (each + each.T for each in random.normal(size=(2, 3, 3)))
    with T.autograd.forward_ad.dual_level():
        dual = T.autograd.forward_ad.make_dual(T.from_numpy(matrix), T.from_numpy(direction))
        tangent = T.autograd.forward_ad.unpack_dual(getattr(T.linalg, name)(dual)).tangent
    return tangent.detach().contiguous().tolist()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@differential(tolerance=0.0)
def test_half_precision_is_rounded_where_pytorch_rounds(T: Any, dtype: str) -> Any:
    random = np.random.default_rng(10)
    a, b, c = (T.from_numpy(random.normal(size=size)).to(getattr(T, dtype)) for size in ((4, 3, 3), (4, 3, 3), (3, 3)))
    return T.addbmm(c, a, b), T.addr(c, a[0, 0], b[0, 0], beta=0.6, alpha=0.2), T.linalg.cross(a, b)


@differential
def test_integers(T: Any) -> Any:
    a, b = (T.arange(12, dtype=T.int8).reshape(shape) * 10 for shape in ((3, 4), (4, 3)))
    packed, pivots = (T.zeros(0, dtype=T.int64) for _ in range(2))
    T.lu(T.eye(2) * 3, out=(packed, pivots))
    return (
        T._int_mm(a, b),
        outcome(lambda: T._int_mm(a, a), "self.size(1) needs to match mat2.size(0) but got 4 and 3"),
        outcome(lambda: T._int_mm(a.float(), b), "Expected self dtype to be int8 or uint8 but got float"),
        T.nn.functional.pairwise_distance(a.long(), b.long().mT),
        (packed, pivots),
    )


@differential
def test_conditions(T: Any) -> Any:
    singular = T.ones(2, 2)
    regular = T.tensor([[2.0, 1.0], [0.0, 4.0]])
    orders = ("fro", "nuc", 1, -1, float("inf"), float("-inf"))
    return [(T.linalg.cond(regular, p), T.linalg.cond(singular, p)) for p in orders if p != "nuc"] + [
        T.linalg.cond(regular, "nuc")
    ]


ORDERS = [0.0, 1e-3, 0.3, 1.0, 2.5, 15.0, 400.0, float("inf"), float("nan"), -1.0]


@differential(tolerance=1e-4)  # 1e-10 for float64
def test_incomplete_gamma_functions(T: Any) -> Any:
    a = T.tensor(ORDERS, dtype=T.float64).unsqueeze(1)
    x = T.tensor([0.0, 1e-4, 0.5, 1.0, 3.0, 14.0, 390.0, 410.0, float("inf"), float("nan"), -1.0], dtype=T.float64)
    single = T.igamma(a.float(), x.float())
    return T.igamma(a, x), T.igammac(a, x), T.special.gammainc(a, x), T.special.gammaincc(a, x), single


def test_incomplete_gamma_functions_of_large_orders() -> None:
    orders = np.array([2e3, 1e4, 1e6])[:, None]
    points = orders + np.linspace(-4, 4, 9) * np.sqrt(orders)
    for name in ("igamma", "igammac"):
        ours = getattr(flambeau, name)(flambeau.from_numpy(orders), flambeau.from_numpy(points)).numpy()
        theirs = getattr(pytorch, name)(pytorch.from_numpy(orders), pytorch.from_numpy(points)).numpy()
        np.testing.assert_allclose(ours, theirs, rtol=1e-9)


@differential(tolerance=1e-3)
def test_derivatives_of_incomplete_gamma_functions(T: Any) -> Any:
    a = T.tensor([0.5, 1.0, 4.0], dtype=T.float64)
    x = T.tensor([0.2, 2.0, 5.0], dtype=T.float64, requires_grad=True)
    results = []
    for function in (T.igamma, T.igammac):
        first = T.autograd.grad(function(a, x).sum(), x, create_graph=True)[0]
        results.append((first.detach(), T.autograd.grad(first.sum(), x)[0]))
    a.requires_grad_()
    return results, outcome(
        lambda: T.igamma(a, x).sum().backward(), "the derivative for 'igamma: input' is not implemented"
    )


@pytest.mark.parametrize("name", ["eigh", "eigvalsh"])
@differential
def test_eigenvalues_that_do_not_converge(T: Any, name: str) -> Any:
    x = T.full((3, 3), float("nan"))
    return outcome(lambda: getattr(T.linalg, name)(x), "linalg.eigh: The algorithm failed to converge")
