"""Which functions convert their result to the dtype of `out=`, and which want it as it is; what `out=` may not be."""

from __future__ import annotations

import warnings
from typing import Any

import numpy
import pytest

from tests.support.differential import differential, outcome, supported, warned

CALLS = """
add(x, y)            addbmm(x, z, z)      addcdiv(x, x, y)     addcmul(x, x, y)     addmm(x, x, y)
addmv(v, x, v)       addr(x, v, v)        angle(x)             baddbmm(z, z, z)     bmm(z, z)
cholesky_inverse(s)  clamp(x, 0, 1)       clamp_max(x, 1)      clamp_min(x, 1)      conj_physical(x)
clamp(x, y)          copysign(x, y)       cross(w, w)          cummax(x, 0)         diag(v)              diff(x)
div(x, y)            dot(v, v)            fmod(x, y)           frexp(x)             geqrf(x)
heaviside(x, y)      inner(x, y)          kron(x, y)           ldexp(x, y)          lerp(x, y, 0.5)
logit(x)             logsumexp(x, 0)      masked_select(x, k)  matmul(x, y)         max(x, 0)
mean(x, 0)           mm(x, y)             mode(x)              mv(x, v)             nan_to_num(x)
outer(v, v)          pow(x, y)            qr(x)                remainder(x, y)      renorm(x, 1, 0, 1)
softmax(x, 0)        sort(x)              square(x)            std(x, 0)            sub(x, y)
svd(x)               take(x, i)           tensordot(x, y)      topk(x, 1)           tril(x)
triu(x)              true_divide(x, y)    var(x, 0)            vdot(v, v)           t_copy(x)
xlogy(x, y)          index_add(x, 0, i, x)     index_copy(x, 0, i, x)    scatter_add(x, 0, j, x)
linalg.inv(s)        linalg.solve(s, x)   linalg.det(s)        linalg.pinv(s)       linalg.lstsq(s, x)
linalg.svdvals(x)    linalg.eigh(s)       linalg.lu(s)         linalg.cond(s)       linalg.matrix_rank(s)
special.ndtr(x)      special.zeta(s, s)   special.bessel_j0(x)
special.legendre_polynomial_p(x, y)
"""
EXPRESSIONS = [f"{part})" for line in CALLS.splitlines() for each in line.split(")  ") if (part := each.strip(") "))]


def _operands(T: Any) -> dict[str, Any]:
    x, s = T.tensor([[0.5, 0.25], [0.75, 0.125]]), T.tensor([[2.0, 0.5], [0.5, 3.0]])
    i = T.tensor([0, 1])
    return {
        "x": x, "y": x + 0.5, "s": s, "z": x[None].expand(2, 2, 2).clone(), "v": T.tensor([0.5, 2.0]),
        "w": T.tensor([[1.0, 2.0, 3.0]]), "k": x > 0.3, "i": i, "j": i.expand(2, 2).clone(),
    }  # fmt: skip


def _call(T: Any, expression: str, **out: Any) -> Any:
    name, _, arguments = expression.partition("(")
    function = T
    for part in name.split("."):
        function = getattr(function, part)
    return eval(f"function({arguments[:-1]}, **out)", {"function": function, "out": out, **_operands(T)})


@differential(tolerance=1e-5)
@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_dtype_of_out(T: Any, expression: str) -> Any:
    result = _call(T, expression)
    several = isinstance(result, tuple)
    results = result if several else (result,)

    def stored(dtype: Any) -> Any:
        made = tuple(T.empty(each.shape, dtype=dtype or each.dtype) for each in results)
        outs = made if several else made[0]
        return supported(lambda: [each.to(T.complex64).abs() for each in (_call(T, expression, out=outs), made)[1]])

    other_kind = results[0].clone() if several else (results[0].clone(),)
    return {
        "right": stored(None),
        "wide": stored(T.float64),
        "complex": stored(T.complex64),
        "wrong kind": outcome(lambda: _call(T, expression, out=other_kind)),
        "array": outcome(lambda: _call(T, expression, out=numpy.ones(2))),
    }


@differential
def test_factories_that_resize_out_without_a_word(T: Any) -> Any:
    made = {
        "zeros": lambda out: T.zeros(3, out=out),
        "ones": lambda out: T.ones(3, out=out),
        "full": lambda out: T.full((3,), 7.0, out=out),
        "empty": lambda out: T.empty(3, out=out).shape,
        "eye": lambda out: T.eye(3, out=out),
        "linspace": lambda out: T.linspace(0, 1, 3, out=out),
        "logspace": lambda out: T.logspace(0, 1, 3, out=out),
        "arange": lambda out: T.arange(3, out=out),
        "range": lambda out: T.range(0, 2, out=out),
        "rand": lambda out: T.rand(3, out=out),
        "randperm": lambda out: T.randperm(3, out=out.long()),
    }
    return {name: warned(lambda make=make: make(T.ones(2))) for name, make in made.items()}


@differential
@pytest.mark.parametrize("wrong", ["array", "tuple", "number"])
def test_out_of_factories_is_a_tensor(T: Any, wrong: str) -> Any:
    out: Any = {"array": numpy.ones(3), "tuple": (T.ones(3),), "number": 3}[wrong]
    makers = (
        lambda: T.zeros(3, out=out), lambda: T.ones(3, out=out), lambda: T.empty(3, out=out),
        lambda: T.full((3,), 1.0, out=out), lambda: T.eye(3, out=out), lambda: T.arange(3, out=out),
        lambda: T.linspace(0, 1, 3, out=out), lambda: T.rand(3, out=out),
    )  # fmt: skip
    return [outcome(make) for make in makers]


@differential
def test_joined_tensors_lie_apart_from_out(T: Any) -> Any:
    x, y, z = (T.arange(4.0) for _ in range(3))  # each only once: PyTorch gives it another size before it refuses
    phrase = "refer to a single memory location"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {
            "itself": outcome(lambda: T.cat([x, x], out=x), phrase),
            "one of them": outcome(lambda: T.cat([T.ones(2), y], out=y), phrase),
            "stacked": outcome(lambda: T.stack([z, z], out=z), phrase),
            "beside": T.cat([T.ones(1), T.ones(1)], out=T.zeros(4)[2:]),
        }
