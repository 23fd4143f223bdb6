"""Elementwise ops: of one tensor, of two, of three, of lists."""

from __future__ import annotations

from typing import Any

from .cases import Call, Inputs, enter, found

_OF_ALL = (
    "abs neg exp exp2 expm1 sigmoid tanh sin cos tan sinh cosh erf erfc atan asinh square sinc nn.functional.relu "
    "nn.functional.relu6 nn.functional.gelu nn.functional.silu nn.functional.mish nn.functional.softplus "
    "nn.functional.elu nn.functional.selu nn.functional.hardswish nn.functional.leaky_relu nn.functional.logsigmoid "
    "nn.functional.softsign nn.functional.hardsigmoid special.erfcx special.i0 special.i0e special.i1 special.i1e "
    "special.ndtr special.log_ndtr nan_to_num"
)
_OF_POSITIVE = "log log2 log10 log1p sqrt rsqrt reciprocal lgamma digamma special.entr"
_OF_UNIT = "asin acos atanh erfinv"
_WITHOUT_DERIVATIVE = (
    "floor ceil round trunc sign isnan isfinite signbit logical_not special.bessel_j0 special.bessel_y1 "
    "special.modified_bessel_k0"
)
_OF_TWO = "add sub mul div atan2 maximum minimum hypot copysign logaddexp"
_OF_TWO_WITHOUT = "fmod remainder floor_divide eq lt logical_and nextafter"
_OF_INTEGERS = "add mul floor_divide bitwise_and bitwise_left_shift gcd"


def _unary(name: str, low: float, high: float, differentiable: bool = True) -> None:
    def make(inputs: Inputs) -> Call:
        function, x = found(inputs.torch, name), inputs.between(low, high)
        return lambda: function(x)

    enter(name.rsplit(".", maxsplit=1)[-1], make, differentiable)


def _binary(name: str, differentiable: bool = True) -> None:
    def make(inputs: Inputs) -> Call:
        function, x, y = getattr(inputs.torch, name), inputs.real(), inputs.real()
        return lambda: function(x, y)

    enter(name, make, differentiable)


def _of_integers(name: str) -> None:
    def make(inputs: Inputs) -> Call:
        function, x, y = getattr(inputs.torch, name), inputs.whole(0, 1000), inputs.whole(1, 9)
        return lambda: function(x, y)

    enter(f"{name}, int64", make, False)


for _name in _OF_ALL.split():
    _unary(_name, -3, 3)
for _name in _OF_POSITIVE.split():
    _unary(_name, 0.05, 5)
for _name in _OF_UNIT.split():
    _unary(_name, -0.99, 0.99)
_unary("logit", 0.01, 0.99)
_unary("special.ndtri", 0.01, 0.99)
for _name in _WITHOUT_DERIVATIVE.split():
    _unary(_name, 0.1, 9, False)
for _name in _OF_TWO.split():
    _binary(_name)
for _name in _OF_TWO_WITHOUT.split():
    _binary(_name, False)
for _name in _OF_INTEGERS.split():
    _of_integers(_name)


def _pow(inputs: Inputs) -> Call:
    x, y = inputs.between(0.1, 3), inputs.real()
    return lambda: x**y


def _xlogy(inputs: Inputs) -> Call:
    x, y = inputs.real(), inputs.between(0.1, 3)
    return lambda: inputs.torch.xlogy(x, y)


def _add_row(inputs: Inputs) -> Call:
    x, row = inputs.real(*inputs.square), inputs.real(inputs.square[1])
    return lambda: x + row


def _where(inputs: Inputs) -> Call:
    mask, x, y = inputs.truth(), inputs.real(), inputs.real()
    return lambda: inputs.torch.where(mask, x, y)


def _lerp(inputs: Inputs) -> Call:
    x, y, weight = inputs.real(), inputs.real(), inputs.between(0, 1)
    return lambda: inputs.torch.lerp(x, y, weight)


def _three(name: str) -> None:
    def make(inputs: Inputs) -> Call:
        x, y, z = inputs.real(), inputs.real(), inputs.between(0.5, 2)
        function = getattr(inputs.torch, name)
        return lambda: function(x, y, z, value=0.5)

    enter(name, make)


def _of_number(name: str, call: Any, differentiable: bool = True) -> None:
    def make(inputs: Inputs) -> Call:
        x = inputs.real()
        return lambda: call(inputs.torch, x)

    enter(name, make, differentiable)


enter("pow", _pow)
enter("xlogy", _xlogy)
enter("add, of a row", _add_row)
enter("where", _where)
enter("lerp", _lerp)
_three("addcmul")
_three("addcdiv")
_of_number("clamp", lambda torch, x: x.clamp(-1.0, 1.0))
_of_number("x * 2.5", lambda torch, x: x * 2.5)
_of_number("x ** 3", lambda torch, x: x**3)
_of_number("x.to(float64)", lambda torch, x: x.to(torch.float64))
_of_number("x.to(bfloat16)", lambda torch, x: x.to(torch.bfloat16))
_of_number("x.to(int64)", lambda torch, x: x.to(torch.int64), False)
_of_number("clone", lambda torch, x: x.clone())
_of_number("polygamma 1", lambda torch, x: torch.polygamma(1, x))


_LIST = 100


def _foreach(name: str, lists: int, *others: float) -> None:
    """Over a list of 100 tensors that have `size` elements together, at least one each."""

    def make(inputs: Inputs) -> Call:
        each = max(1, inputs.size // _LIST)
        function = getattr(inputs.torch, name)
        tensors = [[inputs.fixed(0.5, 2, each) for _ in range(_LIST)] for _ in range(lists)]
        return lambda: function(*tensors, *others)

    enter(name, make, False)


_foreach("_foreach_add", 2)
_foreach("_foreach_mul", 1, 0.5)
_foreach("_foreach_sqrt", 1)
_foreach("_foreach_addcmul", 3, 0.5)
_foreach("_foreach_lerp", 2, 0.5)
_foreach("_foreach_norm", 1)
_foreach("_foreach_mul_", 1, 1.0)
