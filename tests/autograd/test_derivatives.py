"""First and second derivatives of ops and their arguments, in float64 and complex128."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.differential import differential

# Real inputs: x, y (2x3), row (3), col (2x1), one (0-d), sq (3x3), p (2x3, positive), u (2x3, in the unit interval),
# b (2x2x3 batch); complex: z, w (2x3), zs (3x3). Constants: mask (2x3), i (2, indices), ij (2x2, indices).
REAL = """
x + y|x + row|x + col|col + row|x + one|x - y|1 - x|x * y|x * row|col * row|x * one|x / p|row / p|1 / p|x / 2|p ** 2
p ** -1.5|p ** y|2 ** x|p ** one|one.exp() ** x|-x|x % 2|x.remainder(p)|x.fmod(p)|x.div(p, rounding_mode="trunc")
T.add(x, y, alpha=3)|T.sub(x, y, alpha=2)|T.rsub(x, y, alpha=2)|T.addcmul(x, y, row, value=2)
T.addcdiv(x, y, p, value=2)|T.lerp(x, y, 0.3)|T.lerp(x, y, u)|x.abs()|x.exp()|x.exp2()|x.expm1()|p.log()|p.log2()
p.log10()|p.log1p()|x.sin()|x.cos()|x.tan()|u.asin()|u.acos()|x.atan()|x.sinh()|x.cosh()|x.tanh()|x.asinh()
(p + 1).acosh()|u.atanh()|T.atan2(x, p)|T.hypot(x, y)|p.sqrt()|p.rsqrt()|p.reciprocal()|x.square()|x.sigmoid()
x.relu()|u.logit()|x.erf()|x.erfc()|u.erfinv()|x.sinc()|x.clamp(-0.5, 0.5)|x.clamp(min=0.1)|T.clamp(x, row - 1, row)
T.maximum(x, y)|T.minimum(x, row)|T.fmax(x, y)|T.logaddexp(x, y)|T.logaddexp2(x, y)|T.xlogy(x, p)|T.copysign(x, y)
x.frac()|x.floor() * x|x.sign() * x|x.deg2rad()|T.where(mask, x, y)|T.where(mask, x, row)|T.where(mask, x, 0.0)
x.masked_fill(mask, 2.0)|x.masked_fill(mask, one)|x.masked_select(mask)|x.masked_scatter(mask, y)|x.sum()|x.sum(0)
x.sum((0, 1))|x.sum(1, keepdim=True)|x.mean()|x.mean(1)|x.nansum()|x.prod()|x.prod(1)|x.prod(0, keepdim=True)|x.var()
x.var(1)|x.var(1, unbiased=False)|x.std()|x.std(0)|T.var(x, dim=1, correction=0)
T.var_mean(x, 1)[1] * T.var_mean(x, 1)[0]|x.norm()|x.norm(1)|x.norm(3, 1)|x.norm(float("inf"))|x.norm(2, (0, 1))
T.linalg.vector_norm(x, 2, 1)|T.linalg.norm(x)|x.logsumexp(1)|x.logsumexp((0, 1))|x.softmax(1)|x.softmax(0)
x.log_softmax(1)|x.cumsum(1)|x.cumprod(1)|x.logcumsumexp(1)|x.cummax(1).values|x.max()|x.max(1).values|x.min(0).values
x.amax(1)|x.amin((0, 1))|x.aminmax().max|x.median(1).values|x.kthvalue(2, 1).values|x.sort(1).values
x.sort(0, descending=True).values|x.topk(2, 1).values|x.msort()|x.trace()|x.diff()|x.view(3, 2)|x.reshape(-1)|x.t()
x.transpose(0, 1)|x.permute(1, 0)|b.permute(2, 0, 1)|b.movedim(0, 2)|x.unsqueeze(1)|x[None].squeeze(0)
x.expand(4, 2, 3)|col.expand(2, 5)|row.broadcast_to(2, 3)|x.repeat(2, 1)|x.repeat_interleave(2, 1)|x.tile(2, 2)
x.flip(1)|x.roll(1, 1)|x.rot90()|x.narrow(1, 1, 2)|x.select(1, 0)|x[0]|x[:, 1:]|x[..., -1]|x[::2]|x[mask]|x[i]|x[:, i]
x[i, i]|x[i, None]|b[:, i, 0]|b[i, :, i]|sq[ij]|T.take(x, i)|x.index_select(1, i)|x.gather(1, ij)
T.take_along_dim(x, ij, 1)|x.scatter(1, ij, y[:, :2])|x.scatter(1, ij, 2.0)|x.scatter_add(1, ij, y[:, :2])
x.index_add(1, i, y[:, :2])|x.index_copy(1, i, y[:, :2])|x.index_fill(1, i, 3.0)|x.index_put((i, i), row[:2])
x.index_put((i, i), row[:2], accumulate=True)|x.unbind(1)[2]|x.split(2, 1)[0]|x.chunk(2, 1)[1]|x.unfold(1, 2, 1)
x.as_strided((2, 2), (1, 2))|x.diagonal()|b.diagonal(0, 1, 2)|T.diag(row)|T.diag(x)|T.diag_embed(x)|x.tril()|x.triu(1)
T.cat([x, y], 1)|T.cat([x, x.detach(), row[None]])|T.stack([x, y], 1)|T.hstack([x, y])
T.meshgrid(row, row, indexing="ij")[1]|x.unflatten(1, (3, 1))|b.flatten(1)|x @ sq|x @ row|row @ sq|row @ row|b @ sq
sq @ b.transpose(1, 2)|b.bmm(b.transpose(1, 2))|T.mm(x, sq)|T.mv(x, row)|T.dot(row, row.exp())|T.outer(row, row)
T.addmm(y, x, sq, beta=2, alpha=3)|T.addmv(row[:2], x, row)|T.baddbmm(b, b, sq.expand(2, 3, 3))
T.einsum("ij,kj->ik", x, y)|T.einsum("bij,j->bi", b, row)|T.tensordot(x, sq, 1)|T.kron(x, row)
T.cross(sq, sq.exp(), dim=1)|T.dist(x, y)|sq.det()|sq.inverse()|T.linalg.solve(sq, row)|sq.matrix_power(3)|sq.logdet()
T.linalg.cholesky(sq @ sq.t())|x.clone()|x.contiguous() * 2|x.to(T.float32)|x.double()|x.nan_to_num()
x.renorm(2, 0, 0.5)|T.trapezoid(x, dim=1)|T.cov(x)|T.block_diag(x, y)|x.addbmm(b, sq.expand(2, 3, 3))|T.special.i0(x)
T.special.entr(p)|T.special.ndtr(x)|T.celu(x)|T.selu(x)|T.prelu(x, one)|T.rrelu(x, 0.2, 0.2)|T.threshold(x, 0.1, 0.0)
"""

COMPLEX = """
z + w|z - w|z * w|z / w|1 / z|z * x|z + x|x / z|z ** 2|z ** w|z ** 0.5|z.exp()|z.log()|z.sin()|z.cos()|z.tan()
z.tanh()|z.sinh()|z.cosh()|z.sqrt()|z.rsqrt()|z.reciprocal()|z.square()|z.sigmoid()|z.abs()|z.angle()|z.sgn()|z.conj()
z.real|z.imag|-z|z.sum()|z.mean(0)|z.prod()|z.prod(1)|z.cumsum(1)|z.cumprod(1)|z @ zs|z.mm(zs)|zs @ zs.mH
T.dot(z[0], w[0])|T.vdot(z[0], w[0])|z.norm()|z.norm(1)|z.norm(dim=1)|T.view_as_real(z)|T.complex(x, y)|T.polar(p, x)
z.t()|z[0]|T.cat([z, w])|z.var()|z.std(1)|T.where(mask, z, w)|z.masked_fill(mask, 0.0)|z.index_select(1, i)
z.expand(2, 2, 3)|z.conj().resolve_conj()|z.to(T.complex64)|T.addcmul(z, w, w)|T.lerp(z, w, 0.5)|T.outer(z[0], w[1])
zs.inverse()|zs.det()|z.log1p()|z.expm1()|z.atan()|z.asinh()|z.clone()|x.to(T.complex128)|z.mH|z.adjoint()
(z * z.conj()).real|z.trace()
"""


def _split(expressions: str) -> list[str]:
    return expressions.strip().replace("\n", "|").split("|")


def _ramp(start: float, step: float, count: int) -> list[float]:
    """Irregular numbers of both signs without ties."""
    return [((start + step * k * (1 + 0.1 * (k % 3))) * (-1) ** (k // 2)) for k in range(count)]


def _rows(values: list[Any], length: int) -> list[list[Any]]:
    return [values[start : start + length] for start in range(0, len(values), length)]


def _values() -> dict[str, Any]:
    """The inputs as plain lists, so that an expression depends on no other op than its own."""
    x, y = _ramp(0.3, 0.17, 6), _ramp(-0.4, 0.23, 6)
    square = [value + (2.0 if k % 4 == 0 else 0.0) for k, value in enumerate(_ramp(0.2, 0.11, 9))]
    return {
        "x": _rows(x, 3),
        "y": _rows(y, 3),
        "row": _ramp(0.7, 0.31, 3),
        "col": _rows(_ramp(0.6, 0.5, 2), 1),
        "one": 0.8,
        "sq": _rows(square, 3),
        "p": _rows([abs(value) + 0.2 for value in _ramp(0.9, 0.37, 6)], 3),
        "u": _rows([abs(value) + 0.05 for value in _ramp(0.2, 0.09, 6)], 3),
        "b": _rows(_rows(_ramp(0.1, 0.07, 12), 3), 2),
        "z": _rows([complex(left, right + 0.9) for left, right in zip(x, y, strict=True)], 3),
        "w": _rows([complex(right - 0.3, left * 0.5 + 0.2) for left, right in zip(x, y, strict=True)], 3),
        "zs": _rows([complex(left, right) for left, right in zip(square, _ramp(0.3, 0.05, 9), strict=True)], 3),
    }


def _space(T: Any) -> dict[str, Any]:
    space = {"T": T}
    for name, value in _values().items():
        dtype = T.complex128 if name in ("z", "w", "zs") else T.float64
        space[name] = T.tensor(value, dtype=dtype, requires_grad=True)
    space["mask"] = T.tensor([[True, False, True], [False, False, True]])
    space["i"] = T.tensor([1, 0])
    space["ij"] = T.tensor([[0, 2], [1, 0]])
    return space


def _weigh(T: Any, tensor: Any) -> Any:
    """A real scalar that depends on every element in its own way."""
    if tensor.is_complex():
        tensor = T.view_as_real(tensor.resolve_conj())
    weights = T.tensor([0.5 + 0.37 * k for k in range(tensor.numel())], dtype=tensor.dtype)
    return (tensor * weights.reshape(tensor.shape)).sum()


def _derivatives(T: Any, expression: str) -> Any:
    """The result, its gradients, and the gradients of a weighted sum of those."""
    space = _space(T)
    leaves = [value for value in space.values() if isinstance(value, T.Tensor) and value.requires_grad]
    result = eval(expression, space)
    first = T.autograd.grad(_weigh(T, result), leaves, create_graph=True, allow_unused=True)
    used = [leaf for leaf, grad in zip(leaves, first, strict=True) if grad is not None]
    recorded = [grad for grad in first if grad is not None and grad.requires_grad]
    if recorded:
        second = T.autograd.grad(sum(_weigh(T, grad) for grad in recorded), used, materialize_grads=True)
    else:  # a linear op
        second = [T.zeros_like(leaf) for leaf in used]
    return (
        result.detach().clone(),
        [None if grad is None else grad.detach().clone() for grad in first],
        [grad.detach().clone(memory_format=T.contiguous_format) for grad in second],  # no layout is promised here
    )


@pytest.mark.parametrize("expression", _split(REAL))
@differential
def test_real(T: Any, expression: str) -> Any:
    return _derivatives(T, expression)


@pytest.mark.parametrize("expression", ["p.lgamma()", "p.digamma()", "T.polygamma(1, p)"])
@differential(tolerance=2e-3)  # 2e-9 for float64: PyTorch's own trigamma has nine right digits
def test_gamma_family(T: Any, expression: str) -> Any:
    return _derivatives(T, expression)


@pytest.mark.parametrize("expression", _split(COMPLEX))
@differential
def test_complex(T: Any, expression: str) -> Any:
    return _derivatives(T, expression)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize(
    "expression", ["x * y", "x + row", "x.exp()", "x @ sq", "x.sum(0)", "x.softmax(1)", "x / y", "x ** 2"]
)
@differential
def test_gradients_keep_the_dtype(T: Any, expression: str, dtype: str) -> Any:
    space = _space(T)
    for name in ("x", "y", "row", "sq"):
        space[name] = space[name].detach().to(getattr(T, dtype)).requires_grad_()
    result = eval(expression, space)
    result.sum().backward()
    return result.dtype, [space[name].grad for name in ("x", "y", "row", "sq")]


@pytest.mark.parametrize(
    ("left", "right"),
    [((3, 1), (1, 4)), ((1,), (2, 3)), ((), (2, 2)), ((2, 1, 3), (4, 1)), ((0, 3), (1, 3)), ((1, 1), (5,))],
)
@pytest.mark.parametrize("operator", ["add", "mul", "sub", "div", "pow", "maximum", "atan2"])
@differential
def test_broadcast_gradients_are_summed_to_shape(T: Any, operator: str, left: Any, right: Any) -> Any:
    def make(shape: Any, start: float) -> Any:
        count = 1
        for length in shape:
            count *= length
        return T.arange(count, dtype=T.float64).mul(0.3).add(start).reshape(shape).requires_grad_()

    a, b = make(left, 1.0), make(right, 1.1)
    result = getattr(T, operator)(a, b)
    (result * T.arange(result.numel(), dtype=T.float64).reshape(result.shape)).sum().backward()
    return result.shape, a.grad, b.grad


@pytest.mark.parametrize("expression", ["x * 2", "2 * x", "x + 1j", "x * 1j", "x / 3", "x - 2.5", "3 - x", "x ** 3"])
@differential
def test_scalar_operands(T: Any, expression: str) -> Any:
    x = T.tensor([1.5, 2.5], requires_grad=True)
    result = eval(expression, {"x": x})
    value = result.abs().sum() if result.is_complex() else result.sum()
    value.backward()
    return result, x.grad


@differential
def test_mixed_dtype_gradients_return_to_each_dtype(T: Any) -> Any:
    tensors = [
        T.ones(2, dtype=getattr(T, name), requires_grad=True) for name in ("float16", "float32", "float64", "complex64")
    ]
    product = tensors[0] * tensors[1] * tensors[2] * tensors[3]
    T.view_as_real(product).sum().backward()
    return product, [tensor.grad for tensor in tensors]


@differential
def test_integer_operands_get_no_gradient(T: Any) -> Any:
    x = T.tensor([1.5, 2.5], requires_grad=True)
    k = T.tensor([2, 3])
    result = x * k + k
    result.sum().backward()
    return result, x.grad, k.grad


@pytest.mark.parametrize("order", [3, 4])
@pytest.mark.parametrize(
    "expression", ["x.sin() * x", "x.exp()", "x ** 5", "x.tanh()", "1 / x", "x.log()", "x.sigmoid()", "x.sqrt()"]
)
@differential
def test_higher_orders(T: Any, expression: str, order: int) -> Any:
    x = T.tensor([0.7, 1.3], dtype=T.float64, requires_grad=True)
    result = eval(expression, {"x": x})
    for _ in range(order):
        (result,) = T.autograd.grad(result.sum(), x, create_graph=True)
    return result.detach()
