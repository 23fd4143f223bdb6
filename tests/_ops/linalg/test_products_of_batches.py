"""Products of batches: one node until somebody looks at the graph, and PyTorch's nodes from then on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import flambeau
from tests.support.differential import differential, outcome
from tests.support.graphs import node_names

Make = Callable[[Any], tuple[Any, Any]]
LAYOUTS: dict[str, Make] = {
    "three dimensions": lambda T: (T.randn(3, 4, 5), T.randn(3, 5, 6)),
    "four dimensions": lambda T: (T.randn(2, 3, 4, 5), T.randn(2, 3, 5, 6)),
    "five dimensions": lambda T: (T.randn(2, 1, 3, 4, 5), T.randn(2, 1, 3, 5, 6)),
    "heads, copied": lambda T: (T.randn(2, 4, 3, 5).transpose(1, 2), T.randn(2, 5, 3, 6).transpose(1, 2)),
    "heads, turned": lambda T: (T.randn(2, 4, 3, 5).transpose(1, 2), T.randn(2, 3, 6, 5).transpose(2, 3)),
    "a turned copy": lambda T: (T.randn(2, 3, 4, 5), T.randn(2, 6, 3, 5).permute(0, 2, 3, 1)),
    "parts of rows": lambda T: (T.randn(2, 3, 4, 10)[..., ::2], T.randn(2, 3, 5, 9)[..., 1:7]),
    "repeated": lambda T: (T.randn(1, 3, 4, 5).expand(2, 3, 4, 5), T.randn(2, 3, 5, 6)),
    "one row": lambda T: (T.randn(2, 3, 1, 5), T.randn(2, 3, 5, 1)),
    "broadcast": lambda T: (T.randn(2, 3, 4, 5), T.randn(1, 3, 5, 6)),
    "none": lambda T: (T.randn(2, 0, 4, 5), T.randn(2, 0, 5, 6)),
}
NEEDED = [(True, True), (True, False), (False, True)]


def _product(T: Any, layout: str, dtype: str = "float32", needed: tuple[bool, bool] = (True, True)) -> Any:
    T.manual_seed(0)
    leaves = [each.detach().to(getattr(T, dtype)).requires_grad_(needs) for each, needs in zip(
        LAYOUTS[layout](T), needed, strict=True
    )]  # fmt: skip
    return T.matmul(*leaves), leaves


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "complex64"])
@differential(tolerance=1e-4)
def test_graph_and_gradients(T: Any, layout: str, dtype: str) -> object:
    y, leaves = _product(T, layout, dtype)
    first = T.autograd.grad((y * y).abs().sum(), leaves, create_graph=True)
    second = T.autograd.grad(sum((each * each).abs().sum() for each in first), leaves)
    looked_at, leaves = _product(T, layout, dtype)
    graph = node_names(looked_at.grad_fn)
    (looked_at * looked_at).abs().sum().backward()
    tolerant = [] if dtype == "bfloat16" else [first, second, [each.grad for each in leaves]]
    return tolerant, graph, node_names(looked_at.grad_fn), node_names(y.grad_fn), y.stride()


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("needed", NEEDED)
@differential(tolerance=1e-5)
def test_only_what_is_needed(T: Any, layout: str, needed: tuple[bool, bool]) -> object:
    y, leaves = _product(T, layout, "float32", needed)
    y.sum().backward()
    again, _ = _product(T, layout, "float32", needed)
    product = again.grad_fn.next_functions[0][0]
    saved = [product._saved_mat2, product._saved_self]
    seen: list[Any] = []
    following = product.next_functions[0 if needed[0] else 1][0]
    following.register_hook(lambda inputs, outputs: seen.append((inputs, outputs)))
    again.sum().backward()
    strides = [None if each is None else each.stride() for each in saved]
    return [each.grad for each in leaves], saved, strides, seen, node_names(product)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("turned", [False, True])
@differential(tolerance=1e-5)
def test_gradients_that_lie_otherwise(T: Any, layout: str, turned: bool) -> object:
    y, leaves = _product(T, layout)
    weight = T.randn(y.mT.shape).mT if turned else T.randn(y.transpose(0, 1).shape).transpose(0, 1)
    y.backward(weight)
    return [each.grad for each in leaves], [each.grad.stride() for each in leaves]


@differential
def test_operands_that_change(T: Any) -> object:
    found = []
    for number in (0, 1):
        given = [T.ones(2, 3, 4, 4, requires_grad=True) * 2 for _ in range(2)]
        y = T.matmul(*given)
        given[number].mul_(2)
        message = "modified by an inplace operation: [torch.FloatTensor [6, 4, 4]], which is output 0 of"
        found.append(outcome(lambda y=y: y.sum().backward(), message))
    copied = [T.ones(2, 4, 3, 4, requires_grad=True) * 2 for _ in range(2)]
    y = T.matmul(*[each.transpose(1, 2) for each in copied])
    copied[0].mul_(2)  # what was saved is a copy
    y.sum().backward()
    twice, _ = _product(T, "four dimensions")
    twice.sum().backward()
    found.append(outcome(lambda: twice.sum().backward(), "second time"))
    changed, leaves = _product(T, "four dimensions")
    changed.mul_(3)
    changed[0].add_(1)
    changed.sum().backward()
    return found, node_names(twice.grad_fn), changed._is_view(), [each.grad for each in leaves]


@pytest.mark.parametrize("layout", ["four dimensions", "heads, copied"])
@differential
def test_a_result_without_a_gradient(T: Any, layout: str) -> object:
    class WithoutGradient(T.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x.clone()

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return None

    y, leaves = _product(T, layout)
    WithoutGradient.apply(y).sum().backward()
    return [each.grad for each in leaves]


@differential
def test_hooks_on_what_is_saved(T: Any) -> object:
    seen: list[Any] = []

    def pack(tensor: Any) -> Any:
        seen.append((tensor.shape, tensor.stride()))
        return tensor

    with T.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor * 2):
        y, leaves = _product(T, "heads, turned")
    y.sum().backward()
    return seen, [each.grad for each in leaves]


@pytest.mark.parametrize("layout", ["four dimensions", "heads, copied", "heads, turned", "a turned copy"])
def test_the_order_of_nodes_is_that_of_the_calls(layout: str) -> None:
    last: Any = _product(flambeau, layout)[0].grad_fn
    before = last._sequence_nr()
    waiting, numbers = [last], []
    while waiting:
        node = waiting.pop()
        if "Accumulate" not in node.name():
            numbers.append(before - node._sequence_nr())
            waiting += [each for each, _ in node.next_functions if each is not None]
    with flambeau.autograd.profiler.profile():  # every op for itself
        other: Any = _product(flambeau, layout)[0].grad_fn
    before, waiting, expected = other._sequence_nr(), [other], []
    while waiting:
        node = waiting.pop()
        if "Accumulate" not in node.name():
            expected.append(before - node._sequence_nr())
            waiting += [each for each, _ in node.next_functions if each is not None]
    assert numbers == expected


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("way", ["looked at", "watched", "with a graph"])
def test_bits_do_not_depend_on_who_looks(layout: str, way: str) -> None:
    plain, leaves = _product(flambeau, layout)
    if way == "watched":
        with flambeau.autograd.profiler.profile():
            other, others = _product(flambeau, layout)
            expected = flambeau.autograd.grad(other.square().sum(), others)
    else:
        other, others = _product(flambeau, layout)
        if way == "looked at":
            node_names(other.grad_fn)
        expected = flambeau.autograd.grad(other.square().sum(), others, create_graph=way == "with a graph")
    found = flambeau.autograd.grad(plain.square().sum(), leaves)
    for one, two in zip((plain, *found), (other, *expected), strict=True):
        assert one.equal(two)
        assert one.stride() == two.stride()


def test_gradients_meet_in_the_same_order_whoever_looks() -> None:
    """Three gradients of one tensor: their sum depends on which two are added first."""
    flambeau.manual_seed(5)
    given = flambeau.randn(2, 3, 4, 4) * flambeau.logspace(-3, 3, 4)
    found = []
    for looks in (False, True):
        x = given.clone().requires_grad_()
        y = x * 1.5
        z = y.tanh() + y @ (y * 1)
        w = y @ y + z
        if looks:
            node_names(w.grad_fn)
        found.append(flambeau.autograd.grad((w * w).sum(), x)[0])
    assert found[0].equal(found[1])
