"""`autograd.functional`, forward-mode duals, `gradcheck` and `gradgradcheck`."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.differential import differential, outcome


def _vector(T: Any, *values: float) -> Any:
    return T.tensor(list(values), dtype=T.float64)


def _double(T: Any) -> Any:
    return _vector(T, 0.5, 1.5, -1.0)


# autograd.functional


@differential
def test_jacobian_of_one_input(T: Any) -> Any:
    functional = T.autograd.functional
    return functional.jacobian(lambda x: x**2 * x.sum(), _double(T))


@differential
def test_jacobian_of_several_inputs_and_outputs(T: Any) -> Any:
    x, y = _vector(T, 1.0, 2.0), _vector(T, 3.0, 4.0, 5.0)
    return T.autograd.functional.jacobian(lambda a, b: (a.sum() * b, a.outer(b)), (x, y))


@differential
def test_jacobian_shapes(T: Any) -> Any:
    x = T.arange(6.0).reshape(2, 3)
    scalar = T.autograd.functional.jacobian(lambda t: t.prod(), x)
    matrix = T.autograd.functional.jacobian(lambda t: t.t().exp(), x)
    return scalar.shape, matrix.shape, matrix.sum()


@pytest.mark.parametrize("strategy", ["reverse-mode", "forward-mode"])
@differential
def test_jacobian_vectorized(T: Any, strategy: str) -> Any:
    jacobian = T.autograd.functional.jacobian
    return jacobian(lambda x: x.sin() * x.sum(), _double(T), vectorize=True, strategy=strategy).contiguous()


@differential
def test_jacobian_create_graph(T: Any) -> Any:
    x = _double(T).requires_grad_()
    matrix = T.autograd.functional.jacobian(lambda t: t**3, x, create_graph=True)
    matrix.sum().backward()
    return matrix.detach(), matrix.requires_grad, x.grad


@differential
def test_jacobian_leaves_the_inputs_alone(T: Any) -> Any:
    x = _double(T)
    seen = []

    def double(t: Any) -> Any:
        seen.append((t is x, t.requires_grad))
        return t * 2

    T.autograd.functional.jacobian(double, x)
    return seen, x.requires_grad, x.grad


@differential
def test_jacobian_of_independent_output(T: Any) -> Any:
    constant = T.ones(2, dtype=T.float64)
    functional = T.autograd.functional
    return (
        functional.jacobian(lambda x: constant, _double(T)),
        outcome(
            lambda: functional.jacobian(lambda x: constant, _double(T), strict=True),
            "does not require gradients",
            "strict mode",
        ),
    )


@differential
def test_jacobian_argument_errors(T: Any) -> Any:
    jacobian = T.autograd.functional.jacobian
    return (
        outcome(lambda: jacobian(lambda x: 3.0, _double(T)), "must be either a Tensor or a tuple of Tensors"),
        outcome(lambda: jacobian(lambda x: x, 3.0), "must be either a Tensor or a tuple of Tensors"),
        outcome(lambda: jacobian(lambda x: x, _double(T), strategy="sideways"), "Expected strategy to be either"),
        outcome(lambda: jacobian(lambda x: x, _double(T), strategy="forward-mode"), "vectorize=True"),
    )


@pytest.mark.parametrize("vectorize", [False, True])
@differential
def test_hessian(T: Any, vectorize: bool) -> Any:
    return T.autograd.functional.hessian(lambda x: (x**3).sum() * x.prod(), _double(T), vectorize=vectorize)


@differential
def test_hessian_of_two_inputs(T: Any) -> Any:
    x, y = _vector(T, 1.0, 2.0), _vector(T, 3.0)
    return T.autograd.functional.hessian(lambda a, b: (a**2 * b).sum() + b.exp().sum(), (x, y))


@differential
def test_hessian_needs_a_scalar(T: Any) -> Any:
    hessian = T.autograd.functional.hessian
    return outcome(lambda: hessian(lambda x: x, _double(T)), "should contain a single element"), hessian(
        lambda x: x.sum(), _double(T)
    )


@differential
def test_vjp(T: Any) -> Any:
    functional = T.autograd.functional
    x, y = _double(T), _vector(T, 2.0, 3.0, 4.0)
    return (
        functional.vjp(lambda a: a**2, x, v=_vector(T, 1.0, 10.0, 100.0)),
        functional.vjp(lambda a, b: (a * b).sum(), (x, y)),
        outcome(lambda: functional.vjp(lambda a: a**2, x), "The vector v can only be None if"),
        outcome(lambda: functional.vjp(lambda a: a**2, x, v=_vector(T, 1.0)), "v has invalid size"),
    )


@differential
def test_jvp(T: Any) -> Any:
    functional = T.autograd.functional
    x, y = _double(T), _vector(T, 2.0, 3.0, 4.0)
    v = _vector(T, 1.0, 10.0, 100.0)
    return (
        functional.jvp(lambda a: a**2 * a.sum(), x, v=v),
        functional.jvp(lambda a, b: (a * b, a + b), (x, y), v=(v, v)),
        functional.jvp(lambda a: a.exp(), _vector(T, 1.0)),
        outcome(lambda: functional.jvp(lambda a: a**2, x), "The vector v can only be None if"),
    )


@differential
def test_hvp_and_vhp(T: Any) -> Any:
    functional = T.autograd.functional
    x, v = _double(T), _vector(T, 1.0, 10.0, 100.0)

    def energy(t: Any) -> Any:
        return (t**3).sum() + t.prod()

    return (
        functional.hvp(energy, x, v),
        functional.vhp(energy, x, v),
        outcome(lambda: functional.hvp(energy, x), "The vector v can only be None if"),
        outcome(lambda: functional.vhp(lambda t: t, x, v), "should contain a single element"),
    )


@pytest.mark.parametrize("name", ["vjp", "jvp", "hvp", "vhp"])
@differential
def test_create_graph_of_products(T: Any, name: str) -> Any:
    x, v = _double(T).requires_grad_(), _vector(T, 1.0, 2.0, 3.0)
    output, product = getattr(T.autograd.functional, name)(
        (lambda t: t**3) if name in ("vjp", "jvp") else (lambda t: (t**4).sum()), x, v, create_graph=True
    )
    product.sum().backward()
    return output.detach(), product.detach(), product.requires_grad, x.grad


# Forward mode


@differential
def test_dual_numbers(T: Any) -> Any:
    forward_ad = T.autograd.forward_ad
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(_double(T), _vector(T, 1.0, 2.0, 3.0))
        result = forward_ad.unpack_dual(dual.sin() * dual)
        inner = forward_ad.unpack_dual(dual)
        flat = (result.primal.tolist(), result.tangent.tolist(), inner.primal.tolist(), inner.tangent.tolist())
        fields = result._fields
    return flat, fields


FORWARD = """
d + d|d * d|d / p|p / d|-d|d ** 2|d ** p|2 ** d|d.exp()|d.sin()|d.cos()|d.tanh()|d.sigmoid()|d.abs()|p.log() * d
d.relu()|(d * d).sqrt()|d.sum()|d.mean()|d.prod()|d.view(3, 1)|d[1:]|d.unsqueeze(0)|d.t()|T.cat([d, d * 2])
T.stack([d, p])|d.clamp(0, 1)|d.max()|d.cumsum(0)|d.softmax(0)|d.log_softmax(0)|d.norm()|T.where(d > 0, d, d * 2)
d.expand(2, 3)|T.dot(d, p)|d.outer(d)|d.reshape(3, 1) @ d.reshape(1, 3)|d.logsumexp(0)|d.sort().values|d.flip(0)
d.index_select(0, T.tensor([2, 0]))|d.clone()|d.detach()|d.reciprocal()|T.atan2(d, p)|d.var()
d.masked_fill(d > 1, 0.0)|T.maximum(d, p)|d.amax(0)|d.erf()|d.atan()|d.repeat(2)|d.to(T.float32)|d.floor()
d.split(1)[2]|d.roll(1)
"""


@pytest.mark.parametrize("expression", FORWARD.strip().replace("\n", "|").split("|"))
@differential
def test_tangent_of(T: Any, expression: str) -> Any:
    forward_ad = T.autograd.forward_ad
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(_double(T), _vector(T, 1.0, -2.0, 0.5))
        primal, tangent = forward_ad.unpack_dual(eval(expression, {"T": T, "d": dual, "p": _vector(T, 1.1, 2.2, 3.3)}))
        return primal.tolist(), None if tangent is None else tangent.tolist()


@differential
def test_tangents_end_with_their_level(T: Any) -> Any:
    forward_ad = T.autograd.forward_ad
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(_double(T), _double(T))
    with forward_ad.dual_level():
        return forward_ad.unpack_dual(dual).tangent


@differential
def test_dual_errors(T: Any) -> Any:
    forward_ad = T.autograd.forward_ad
    outside = outcome(lambda: forward_ad.make_dual(_double(T), _double(T)), "no level exists")

    def wrong_shape() -> None:
        with forward_ad.dual_level():
            forward_ad.make_dual(_double(T), _vector(T, 1.0))

    def wrong_dtype() -> None:
        with forward_ad.dual_level():
            forward_ad.make_dual(_double(T), T.ones(3))

    def integers() -> None:
        with forward_ad.dual_level():
            forward_ad.make_dual(T.tensor([1]), T.tensor([1]))

    def nested() -> None:
        with forward_ad.dual_level(), forward_ad.dual_level():
            pass

    return (
        outside,
        outcome(wrong_shape, "a forward gradient that has a different size"),
        outcome(wrong_dtype)[0],
        outcome(integers, "Expected primal to be floating point or complex"),
        outcome(nested, "Nested forward mode AD is not supported"),
        outcome(lambda: forward_ad.exit_dual_level(), "Dual level must be a positive number"),
    )


@differential
def test_forward_over_reverse(T: Any) -> Any:
    forward_ad = T.autograd.forward_ad
    x = _double(T)
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x.clone().requires_grad_(), _vector(T, 1.0, 0.0, 2.0))
        (slope,) = T.autograd.grad((dual**3).sum(), dual)
        result = forward_ad.unpack_dual(slope)
        return result.primal.tolist(), result.tangent.tolist()


@differential
def test_backward_through_a_tangent(T: Any) -> Any:
    forward_ad = T.autograd.forward_ad
    x = _double(T).requires_grad_()
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, _vector(T, 1.0, 2.0, 3.0))
        tangent = forward_ad.unpack_dual(dual**3).tangent
        tangent.sum().backward()
    return x.grad


@differential
def test_in_place_with_tangents(T: Any) -> Any:
    forward_ad = T.autograd.forward_ad
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(_double(T), _vector(T, 1.0, 2.0, 3.0))
        buffer = dual * 1
        buffer.mul_(dual)
        buffer[0] = dual[2] * 5
        plain = T.zeros(3, dtype=T.float64)
        plain.copy_(dual * 2)
        first, second = forward_ad.unpack_dual(buffer), forward_ad.unpack_dual(plain)
        return first.primal.tolist(), first.tangent.tolist(), second.tangent.tolist()


@differential
def test_enter_and_exit_by_hand(T: Any) -> Any:
    forward_ad = T.autograd.forward_ad
    level = forward_ad.enter_dual_level()
    dual = forward_ad.make_dual(_vector(T, 2.0), _vector(T, 1.0))
    tangent = forward_ad.unpack_dual(dual * dual).tangent.tolist()
    forward_ad.exit_dual_level()
    return level, tangent


# gradcheck


def _wrong_square(T: Any) -> Any:
    class WrongSquare(T.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x**2

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            (x,) = ctx.saved_tensors
            return grad * 3 * x

    return WrongSquare.apply


def _wrong_second(T: Any) -> Any:
    class WrongSecond(T.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            (x,) = ctx.saved_tensors
            return grad * 3 * x.detach() ** 2

    return WrongSecond.apply


@differential
def test_gradcheck_accepts_right_derivatives(T: Any) -> Any:
    x, y = _double(T).requires_grad_(), _vector(T, 1.0, 2.0, 3.0).requires_grad_()
    check = T.autograd.gradcheck
    return (
        check(lambda a, b: a * b.exp(), (x, y)),
        check(lambda a: (a.sin(), a.cos()), x),
        check(lambda a: a.norm(), (x,)),
        check(lambda a, k: a**k, (x, 2)),
        check(lambda a: a.sum(), (x,), fast_mode=True),
        check(lambda a: a * 2, (x,), check_forward_ad=True),
    )


@differential
def test_gradcheck_refuses_a_wrong_derivative(T: Any) -> Any:
    x = _double(T).requires_grad_()
    wrong = _wrong_square(T)
    check = T.autograd.gradcheck
    return (
        outcome(lambda: check(wrong, (x,)), "Jacobian mismatch for output 0 with respect to input 0"),
        check(wrong, (x,), raise_exception=False),
        outcome(lambda: check(wrong, (x,), fast_mode=True), "Jacobian"),
        check(wrong, (x,), atol=100.0),
    )


@differential
def test_gradgradcheck(T: Any) -> Any:
    x = _double(T).requires_grad_()
    check, checkcheck = T.autograd.gradcheck, T.autograd.gradgradcheck
    wrong = _wrong_second(T)
    return (
        checkcheck(lambda a: a**3, (x,)),
        checkcheck(lambda a, b: (a * b).sin(), (x, x.detach().clone().requires_grad_())),
        check(wrong, (x,)),
        checkcheck(wrong, (x,), raise_exception=False),
    )


@differential
def test_gradcheck_of_complex_functions(T: Any) -> Any:
    z = T.tensor([1 + 2j, 0.5 - 1j], dtype=T.complex128, requires_grad=True)
    check = T.autograd.gradcheck
    return check(lambda a: a * a, (z,)), check(lambda a: a.abs(), (z,)), check(lambda a: a.conj() * a, (z,))


@differential
def test_gradcheck_argument_errors(T: Any) -> Any:
    check = T.autograd.gradcheck
    return (
        outcome(
            lambda: check(lambda a: a * 2, (_double(T),)),
            "gradcheck expects at least one input tensor to require gradient",
        ),
        outcome(lambda: check(lambda a: a.round().long(), (_double(T).requires_grad_(),)))[:2],
    )


@differential
def test_gradcheck_warns_about_low_precision(T: Any) -> Any:
    x = T.ones(2, requires_grad=True)
    return outcome(lambda: T.autograd.gradcheck(lambda a: a * 2, (x,), eps=1e-2, atol=1e-2))


@differential
def test_gradcheck_finds_non_determinism(T: Any) -> Any:
    class Shaky(T.autograd.Function):  # type: ignore[misc]
        calls = 0

        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            Shaky.calls += 1
            return grad * (2 + Shaky.calls * 1e-7)

    x = _double(T).requires_grad_()
    return (
        outcome(lambda: T.autograd.gradcheck(Shaky.apply, (x,)), "Backward is not reentrant"),
        T.autograd.gradcheck(Shaky.apply, (x,), nondet_tol=1e-4),
    )
