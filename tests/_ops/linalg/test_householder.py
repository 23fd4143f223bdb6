"""Householder reflectors: values, two derivatives, layouts and errors of geqrf, householder_product and ormqr."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flambeau
from tests.support.differential import differential, outcome

EXPRESSIONS = [
    "T.linalg.householder_product(w, t)",
    "T.linalg.householder_product(w, t[:2])",
    "T.linalg.householder_product(w, t[:0])",
    "T.orgqr(f, u)",
    "w.orgqr(t)",
    "T.ormqr(w, t, r)",
    "T.ormqr(w, t, r, transpose=True)",
    "T.ormqr(w, t, r.mT, left=False)",
    "w.ormqr(t, r.mT, left=False, transpose=True)",
    "T.ormqr(f, u, f)",
    "T.ormqr(f.mT[:, :, :3], u, f.mT, True, True)",
]


def _inputs(T: Any, is_complex: bool) -> dict[str, Any]:
    random = np.random.default_rng(5)

    def leaf(*shape: int) -> Any:
        values = random.normal(size=shape)
        return T.from_numpy(values + 1j * random.normal(size=shape) if is_complex else values).requires_grad_()

    return {"w": leaf(4, 3), "t": leaf(3), "r": leaf(4, 2), "f": leaf(2, 3, 3), "u": leaf(2, 3)}


@pytest.mark.parametrize("is_complex", [False, True])
@pytest.mark.parametrize("expression", EXPRESSIONS)
@differential(tolerance=1e-3)  # 1e-9 for float64
def test_values_and_two_derivatives(T: Any, expression: str, is_complex: bool) -> Any:
    inputs = _inputs(T, is_complex)
    result = eval(expression, {"T": T, **inputs})
    used = [each for name, each in inputs.items() if f"{name}" in expression.replace("T.", "")]
    first = T.autograd.grad(_weighed(T, result), used, create_graph=True, allow_unused=True)
    observed = [result, [_plain(T, each) for each in first]]
    again = [each for each in first if each is not None and each.requires_grad]
    if again and result.grad_fn is not None:
        second = T.autograd.grad(sum(_weighed(T, each) for each in again), used, allow_unused=True)
        observed.append([_plain(T, each) for each in second])
    return observed


def _weighed(T: Any, tensor: Any) -> Any:
    if tensor.is_complex():
        tensor = T.view_as_real(tensor.resolve_conj())
    return (tensor * T.from_numpy(np.linspace(0.3, 1.7, tensor.numel()).reshape(tuple(tensor.shape)))).sum()


def _plain(T: Any, tensor: Any) -> Any:
    return None if tensor is None else tensor.detach().clone(memory_format=T.contiguous_format).resolve_conj()


@pytest.mark.parametrize("shape", [(4, 3), (3, 4), (2, 4, 3), (0, 3), (2, 0, 0), (1, 1)])
@differential(tolerance=1e-5)
def test_the_raw_form(T: Any, shape: tuple[int, ...]) -> Any:
    values = np.random.default_rng(2).normal(size=shape)
    raw, tau = result = T.geqrf(T.from_numpy(values))
    return type(result).__name__, raw, tau, T.from_numpy(values + 1j * values[..., ::-1].copy()).geqrf()


def test_the_reflectors_make_q() -> None:
    A = flambeau.randn(2, 5, 3, dtype=flambeau.complex128)
    raw, tau = flambeau.geqrf(A)
    Q = flambeau.linalg.householder_product(raw, tau)
    flambeau.testing.assert_close(Q @ raw[:, :3].triu(), A)
    flambeau.testing.assert_close(flambeau.ormqr(raw, tau, A, transpose=True)[:, :3], raw[:, :3].triu())
    assert flambeau.autograd.gradcheck(
        flambeau.linalg.householder_product, (raw.requires_grad_(), tau.requires_grad_())
    )


@differential
def test_out_and_meta(T: Any) -> Any:
    raw, tau = T.geqrf(T.eye(4, 3) * 2)
    out = T.empty(0)
    same = T.linalg.householder_product(raw, tau, out=out) is out
    shape = T.linalg.householder_product(T.empty(2, 4, 3, device="meta"), T.empty(2, 3, device="meta")).shape
    return same, out, T.ormqr(raw, tau, T.eye(4), out=T.empty(0)), shape


ERRORS = [
    ("T.geqrf(T.ones(3))", "torch.geqrf: input must have at least 2 dimensions"),
    ("T.geqrf(T.ones(3, 3, dtype=T.float16))", "\"geqrf_cpu\" not implemented for 'Half'"),
    ("T.geqrf(T.ones(2, 2).requires_grad_())[0].sum().backward()", "the derivative for 'geqrf' is not implemented"),
    ("H(T.ones(3), T.ones(3))", "input must have at least 2 dimensions"),
    ("H(T.ones(3, 5), T.ones(3))", "input.shape[-2] must be greater than or equal to input.shape[-1]"),
    ("H(T.ones(5, 3), T.ones(4))", "input.shape[-1] must be greater than or equal to tau.shape[-1]"),
    ("H(T.ones(2, 5, 3), T.ones(3))", "Expected tau to have one dimension less than input"),
    (
        "H(T.ones(2, 5, 3), T.ones(3, 2))",
        "Expected batch dimensions of tau to be equal to input.shape[:-2], but got [3]",
    ),
    ("H(T.ones(5, 3), T.ones(3).double())", "tau dtype Double does not match input dtype Float"),
    ("H(T.ones(5, 3).long(), T.ones(3).long())", "\"orgqr_cpu\" not implemented for 'Long'"),
    ("H(T.ones(5, 3), T.tensor(1.0))", "Dimension specified as -1 but tensor has no dimensions"),
    ("T.ormqr(T.ones(5, 3), T.ones(3), T.ones(5))", "torch.ormqr: other must have at least 2 dimensions"),
    ("T.ormqr(T.ones(5, 3), T.ones(3), T.ones(4, 2))", "other.shape[-2] must be equal to input.shape[-2]"),
    ("T.ormqr(T.ones(5, 3), T.ones(3), T.ones(4, 2), False)", "other.shape[-1] must be equal to input.shape[-2]"),
    (
        "T.ormqr(T.ones(5, 3), T.ones(2), T.ones(5, 2))",
        "tau.shape[-1] must be equal to min(other.shape[-2], input.shape[",
    ),
    ("T.ormqr(T.ones(2, 5, 3), T.ones(2, 3), T.ones(5, 2))", "Expected other to have the same number of dimensions as"),
    ("T.ormqr(T.ones(5, 3), T.ones(3), T.ones(5, 2).double())", "Expected input and other to have the same dtype"),
]


@pytest.mark.parametrize(("expression", "phrase"), ERRORS)
@differential
def test_errors(T: Any, expression: str, phrase: str) -> Any:
    return outcome(lambda: eval(expression, {"T": T, "H": T.linalg.householder_product}), phrase)
