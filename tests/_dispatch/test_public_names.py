"""What calls under other names, in older orders and with numbers for tensors give."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest

from ..support.differential import differential, outcome, warned

CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "numbers alone": lambda T, x: [
        T.add(1, 2), T.add(True, 2.5), T.sub(3, 1, alpha=2), T.mul(True, True), T.mul(2, 1.5), T.div(7, 2),
        T.div(7, 2, rounding_mode="trunc"), T.div(-7, 2, rounding_mode="floor"), T.floor_divide(7, 2),
        T.true_divide(1, 4), T.add(1, 2, alpha=3), T.multiply(2, 3j),
    ],
    "sizes by name": lambda T, x: [
        T.zeros(size=(2, 3)), T.rand(size=(2, 3)).shape, T.randn(size=(2,)).shape, x.new_ones(size=(2,)),
        x.new(size=(2, 3)).shape, x.new(data=[1, 2]), x.clone().resize_(size=(1, 2)), x.sum_to_size(size=(1, 2)),
        T.ones(1, 2).broadcast_to(size=(2, 2)),
    ],
    "in place, by name": lambda T, x: [
        getattr(x.clone(), name)(other=T.tensor([[1.0, 5.0], [3.0, 0.0]]))
        for name in ("ge_", "eq_", "less_equal_", "mul_", "atan2_", "hypot_", "add_", "floor_divide_")
    ],
    "parts": lambda T, x: [
        T.tensor_split(x, sections=2), T.tensor_split(x, indices=(1,), dim=1), x.tensor_split(indices=(1,)),
        T.tensor_split(x, tensor_indices_or_sections=T.tensor([1])), T.hsplit(x, sections=2), x.hsplit(1, 2),
        x.vsplit(indices=(1,)), x.unsqueeze(2).expand(2, 2, 2).dsplit(2), T.unsafe_split(input=x, split_size=1),
    ],
    "several dimensions": lambda T, x: [
        T.ones(1, 2, 1).squeeze(0, 2).shape, T.ones(1, 2, 1).squeeze_(0, 2).shape, x.count_nonzero(0, 1),
        x.count_nonzero(dim=0), T.ones(1, 2).squeeze(axis=0).shape,
    ],
    "swapped dimensions": lambda T, x: [
        x.swapaxes(axis0=0, axis1=1), x.swapdims(dim0=0, dim1=1), T.swapdims(x, dim0=1, dim1=0),
        x.clone().swapdims_(0, 1),
    ],
    "numbers in front, by name": lambda T, x: [
        T.pow(self=2, exponent=x), T.remainder(self=7, other=x), T.xlogy(self=2, other=x),
        T.float_power(self=2, exponent=x), T.bucketize(self=2, boundaries=T.tensor([1, 3])),
        T.searchsorted(T.tensor([1, 3]), self=2),
        T.where(x > 2, self=1, other=x), T.isin(element=1, test_elements=x), T.isin(x, test_element=1),
        T.result_type(scalar=1.5, tensor=T.tensor(1)), T.result_type(scalar1=1, scalar2=2),
    ],
    "names in linalg": lambda T, x: [
        T.linalg.norm(input=x), T.linalg.matrix_rank(input=x), T.linalg.vector_norm(input=x), T.lu(A=x)[0],
        T.linalg.pinv(input=x), T.cholesky_solve(input=x, input2=T.eye(2)), T.linalg.lstsq(input=x, b=x)[0].shape,
        T.linalg.tensorsolve(input=x, other=x[0]),
    ],
    "losses": lambda T, x: [
        T.kl_div(x, x), T.binary_cross_entropy_with_logits(x, x), T.margin_ranking_loss(x, x, T.sign(x)),
        T.hinge_embedding_loss(x, T.sign(x)),
    ],
    "in other ways": lambda T, x: [
        T.special.zeta(x, 2), T.threshold(x, 2, 0, out=T.empty(0)), x.norm(2, 0, False, None),
        T.nn.functional.elu_(x - 3, 1.0, 2.0, 0.5), T.repeat_interleave(repeats=T.tensor([1, 2])),
        T.randint_like(x, 3, pin_memory=False).shape, T.tensordot(x, x, 1, T.empty(0)),
        T.special.round(x / 3, decimals=1), x.copy_(other=T.zeros(2, 2)),
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
@differential
def test_calls(T: Any, name: str) -> Any:
    return CALLS[name](T, T.tensor([[1.0, 2.0], [3.0, 5.0]]))


OLDER: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda T, x: [T.add(x, 2, x), x.add(2, x), x.clone().add_(2, x), x.add(2, 3)],
    "sub": lambda T, x: [T.sub(x, 2, x), x.sub(2, x), x.clone().sub_(2, x)],
    "addmm": lambda T, x: [T.addmm(2, x, 3, x, x), T.addmm(2, x, x, x), x.addmm(2, 3, x, x), x.clone().addmm_(2, x, x)],
    "addmv": lambda T, x: [T.addmv(2, x[0], 3, x, x[1]), x[0].addmv(2, x, x[1])],
    "addr": lambda T, x: [T.addr(2, x, 3, x[0], x[1]), x.addr(2, x[0], x[1])],
    "baddbmm": lambda T, x: [T.baddbmm(2, x[None], 3, x[None], x[None]), x[None].baddbmm(2, x[None], x[None])],
    "addcmul": lambda T, x: [T.addcmul(x, 2, x, x), x.addcmul(2, x, x), x.clone().addcdiv_(2, x, x)],
}


@pytest.mark.parametrize("name", OLDER)
@differential
def test_older_orders_of_arguments(T: Any, name: str) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return OLDER[name](T, T.tensor([[1.0, 2.0], [3.0, 5.0]]))


def test_an_older_order_warns() -> None:
    import flambeau

    x = flambeau.ones(2)
    with pytest.warns(UserWarning, match="This overload of addcmul is deprecated"):
        x.addcmul(2, x, x)


@differential
def test_a_name_that_is_unknown_or_given_twice(T: Any) -> Any:
    x = T.ones(2, 2)
    return [
        outcome(lambda: x.sum(dims=0)),
        outcome(lambda: x.softmax(0, axis=0)),
        outcome(lambda: x.swapdims(axis0=0, axis1=1)),
        outcome(lambda: T.tensor_split(x)),
        outcome(lambda: T.hsplit(x, 2, indices=1)),
        outcome(lambda: x.resize_(2, 2, size=(2, 2))),
        outcome(lambda: x.addmm(1, 2, 3, 4, 5, 6)),
        outcome(lambda: T.clamp(x, 0, x)),
        warned(lambda: T.add(x, alpha=2, other=x)),
    ]


@pytest.mark.parametrize("name", ["nn.functional", "linalg", "special", "fft", "signal.windows", "sparse"])
@differential
def test_namespaces_list_their_functions(T: Any, name: str) -> Any:
    """Libraries ask `dir` whether there is a function."""
    wanted = {"nn.functional": ["silu", "hardswish", "hardsigmoid", "mish", "scaled_dot_product_attention"],
              "linalg": ["svd", "vector_norm"], "special": ["erf", "logit"], "fft": ["rfft", "fftshift"],
              "signal.windows": ["hann"], "sparse": ["mm", "softmax"]}[name]  # fmt: skip
    space = T
    for part in name.split("."):
        space = getattr(space, part)
    return [each in dir(space) for each in wanted]
