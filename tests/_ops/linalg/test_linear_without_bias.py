"""Linear layers without bias: one node until somebody looks at the graph, and PyTorch's nodes from then on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import flambeau
from tests.support.differential import differential, outcome
from tests.support.graphs import node_names

SHAPES = [(4,), (1, 4), (3, 4), (2, 3, 4), (2, 1, 3, 4)]
NEEDED = [(True, False), (False, True), (True, True)]
DTYPES = ["float32", "float64", "bfloat16", "complex64"]


def _layer(T: Any, shape: tuple[int, ...], dtype: str = "float32", *needed: bool) -> tuple[Any, list[Any]]:
    T.manual_seed(0)
    tensors = [T.randn(*sizes).to(getattr(T, dtype)) for sizes in (shape, (5, 4))]
    for tensor, needs in zip(tensors, needed or (True, True), strict=True):
        tensor.requires_grad_(needs)
    return T.nn.functional.linear(*tensors), tensors


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", DTYPES)
@differential(tolerance=1e-5)
def test_graph_and_gradients(T: Any, shape: tuple[int, ...], dtype: str) -> object:
    y, tensors = _layer(T, shape, dtype)
    first = T.autograd.grad((y * y).abs().sum(), tensors, create_graph=True)
    second = T.autograd.grad(sum((each * each).abs().sum() for each in first), tensors)
    looked_at, tensors = _layer(T, shape, dtype)
    graph = node_names(looked_at.grad_fn)
    (looked_at * looked_at).abs().sum().backward()
    return (
        first,
        second,
        graph,
        [each.grad for each in tensors],
        node_names(looked_at.grad_fn),
        node_names(y.grad_fn),
    )


@pytest.mark.parametrize("shape", SHAPES[1:])
@pytest.mark.parametrize("needed", NEEDED)
@differential
def test_only_what_is_needed(T: Any, shape: tuple[int, ...], needed: tuple[bool, ...]) -> object:
    y, tensors = _layer(T, shape, "float32", *needed)
    y.sum().backward()
    again, _ = _layer(T, shape, "float32", *needed)
    node = again.grad_fn
    sizes: list[Any] = []
    if len(shape) > 2:
        sizes.append(node._saved_self_sym_sizes)
        node = node.next_functions[0][0]
    if needed[0]:
        sizes += node._saved_self_sym_sizes, node._saved_self_sym_strides
    if needed[1]:
        sizes += node._saved_mat2_sym_sizes, node._saved_mat2_sym_strides
    seen: list[Any] = []
    following = node.next_functions[1 if needed[1] else 0][0]
    following.register_hook(lambda inputs, outputs: seen.append((inputs, outputs)))
    again.sum().backward()
    return (
        [each.grad for each in tensors],
        node._saved_mat2_sym_sizes if needed[1] else (),
        sizes,
        seen,
        node_names(node),
    )


@pytest.mark.parametrize("shape", [(6, 4), (2, 3, 4)])
@differential
def test_saved_tensors(T: Any, shape: tuple[int, ...]) -> object:
    y, _ = _layer(T, shape)
    node = y.grad_fn if len(shape) == 2 else y.grad_fn.next_functions[0][0]
    return node._saved_self, node._saved_mat2, node._saved_mat2.is_contiguous()


@pytest.mark.parametrize("shape", [(6, 4), (2, 3, 4)])
@differential
def test_operands_that_change(T: Any, shape: tuple[int, ...]) -> object:
    x = T.ones(*shape, requires_grad=True) * 2
    weight = T.ones(5, 4, requires_grad=True)
    y = T.nn.functional.linear(x, weight)
    x.mul_(2)
    of_input = outcome(lambda: y.sum().backward(), "modified by an inplace operation: [torch.FloatTensor [6, 4]]")
    z, (_, weight) = _layer(T, shape)
    with T.no_grad():
        weight.add_(1)
    of_weight = outcome(lambda: z.sum().backward(), "modified by an inplace operation: [torch.FloatTensor [4, 5]]")
    twice, _ = _layer(T, shape)
    twice.sum().backward()
    return of_input, of_weight, outcome(lambda: twice.sum().backward(), "second time"), node_names(twice.grad_fn)


@pytest.mark.parametrize("shape", [(6, 4), (2, 3, 4)])
@differential
def test_results_that_change(T: Any, shape: tuple[int, ...]) -> object:
    y, tensors = _layer(T, shape)
    was_view = y._is_view()
    y.add_(1)
    y[0].mul_(3)
    y.sum().backward()
    return was_view, [each.grad for each in tensors], y.detach()


@differential
def test_operands_that_lie_otherwise(T: Any) -> object:
    T.manual_seed(1)
    makes: list[Callable[[Any, Any], tuple[Any, Any]]] = [
        lambda x, w: (x.t(), w),
        lambda x, w: (x, w.t()),
        lambda x, w: (x.reshape(2, 3, 6)[:, ::2], w.t()),
        lambda x, w: (x.reshape(2, 3, 6).transpose(0, 1), w.t()),
        lambda x, w: (x[:0], w.t()),
    ]
    results = []
    for make in makes:
        x, w = T.randn(6, 6).requires_grad_(), T.randn(6, 6).requires_grad_()
        y = T.nn.functional.linear(*make(x, w))
        y.square().sum().backward()
        results.append((y.detach(), y.stride(), x.grad, w.grad, x.grad.stride(), w.grad.stride()))
    return results


def test_the_order_of_nodes_is_that_of_the_calls() -> None:
    node: Any = _layer(flambeau, (3, 4))[0].grad_fn
    assert node.next_functions[1][0]._sequence_nr() == node._sequence_nr() - 1
    last: Any = _layer(flambeau, (2, 3, 4))[0].grad_fn
    product = last.next_functions[0][0]
    behind = [last._sequence_nr() - each._sequence_nr() for each, _ in product.next_functions]
    assert (last._sequence_nr() - product._sequence_nr(), behind) == (1, [2, 3])


@pytest.mark.parametrize("shape", [(9, 37), (3, 3, 37)])
@pytest.mark.parametrize("looking", [False, True])
def test_bits_do_not_depend_on_who_looks(looking: bool, shape: tuple[int, ...]) -> None:
    flambeau.manual_seed(3)
    layer, x = flambeau.nn.Linear(37, 11, bias=False), flambeau.randn(*shape, requires_grad=True)
    plain, spelled = layer(x), layer(x)
    node: Any = spelled.grad_fn
    node = node if len(shape) == 2 else node.next_functions[0][0]
    assert node.next_functions[1][0].name() == "TBackward0"
    expected = flambeau.autograd.grad(spelled.square().sum(), [x, layer.weight], create_graph=looking)
    found = flambeau.autograd.grad(plain.square().sum(), [x, layer.weight], create_graph=looking)
    for one, other in zip(found, expected, strict=True):
        assert one.equal(other)
        assert one.stride() == other.stride()
