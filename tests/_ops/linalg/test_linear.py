"""Linear layers: one node until somebody looks at the graph, and PyTorch's nodes from then on."""

from __future__ import annotations

import math
from typing import Any

import pytest

import flambeau
from flambeau._backends.cpu.onednn import library
from tests.support.differential import differential, outcome
from tests.support.graphs import node_names

SHAPES = [(4,), (1, 4), (3, 4), (2, 3, 4)]
NEEDED = [(True, False, False), (False, True, False), (False, False, True), (True, False, True)]
DTYPES = ["float32", "float64", "bfloat16", "complex64"]


def _layer(T: Any, shape: tuple[int, ...], dtype: str, *needed: bool) -> tuple[Any, list[Any]]:
    T.manual_seed(0)
    tensors = [T.randn(*sizes).to(getattr(T, dtype)) for sizes in (shape, (5, 4), (5,))]
    for tensor, needs in zip(tensors, needed or (True, True, True), strict=True):
        tensor.requires_grad_(needs)
    return T.nn.functional.linear(*tensors), tensors


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", DTYPES)
@differential(tolerance=1e-5)
def test_graph_and_gradients(T: Any, shape: tuple[int, ...], dtype: str) -> object:
    y, tensors = _layer(T, shape, dtype)
    first = T.autograd.grad((y * y).abs().sum(), tensors, create_graph=True)
    before = [node_names(each.grad_fn) for each in first]
    looked_at, tensors = _layer(T, shape, dtype)
    graph = node_names(looked_at.grad_fn)
    (looked_at * looked_at).abs().sum().backward()
    return (
        first,
        before,
        graph,
        [each.grad for each in tensors],
        node_names(looked_at.grad_fn),
        node_names(y.grad_fn),
    )


@pytest.mark.parametrize("needed", NEEDED)
@differential
def test_only_what_is_needed(T: Any, needed: tuple[bool, ...]) -> object:
    y, tensors = _layer(T, (3, 4), "float32", *needed)
    y.sum().backward()
    again, _ = _layer(T, (3, 4), "float32", *needed)
    node = again.grad_fn
    sizes = (node._saved_mat2_sym_sizes, node._saved_mat2_sym_strides) if needed[1] else ()
    return [each.grad for each in tensors], node._saved_mat1, node._saved_mat2, sizes, node_names(node)


@pytest.mark.parametrize("shape", [(4,), (2, 3, 4)])
@pytest.mark.parametrize("needed", NEEDED)
@differential
def test_inputs_that_are_no_matrices(T: Any, shape: tuple[int, ...], needed: tuple[bool, ...]) -> object:
    y, tensors = _layer(T, shape, "float32", *needed)
    y.sum().backward()
    again, _ = _layer(T, shape, "float32", *needed)
    node = again.grad_fn.next_functions[0][0]
    sizes = (node._saved_mat1_sym_sizes, node._saved_mat1_sym_strides) if needed[0] else ()
    saved = node._saved_mat1, node._saved_mat2, sizes
    seen: list[Any] = []
    if needed[0]:
        node.next_functions[1][0].register_hook(lambda inputs, outputs: seen.append((inputs, outputs)))
        again.sum().backward()
    return [each.grad for each in tensors], saved, seen, node_names(again.grad_fn)


@differential
def test_inputs_that_change(T: Any) -> object:
    x = T.ones(2, 3, 4, requires_grad=True) * 2
    weight = T.ones(5, 4, requires_grad=True)
    y = T.nn.functional.linear(x, weight, T.ones(5))
    x.mul_(2)
    return outcome(lambda: y.sum().backward(), "modified by an inplace operation: [torch.FloatTensor [6, 4]]")


@differential
def test_hooks_on_both_nodes(T: Any) -> object:
    y, tensors = _layer(T, (3, 4), "float32")
    seen: list[Any] = []
    y.grad_fn.register_hook(lambda inputs, outputs: seen.append(inputs[2]))
    y.grad_fn.next_functions[2][0].register_hook(lambda inputs, outputs: seen.append((inputs, outputs)))
    y.grad_fn.next_functions[2][0].register_prehook(lambda outputs: (outputs[0] * 2,))
    y.sum().backward()
    called = _layer(T, (3, 4), "float32")[0].grad_fn(T.ones(3, 5))
    return seen, [each.grad for each in tensors], called


@differential
def test_weights_that_change(T: Any) -> object:
    y, (_, weight, _) = _layer(T, (3, 4), "float32")
    with T.no_grad():
        weight.add_(1)
    changed = outcome(lambda: y.sum().backward(), "modified by an inplace operation: [torch.FloatTensor [4, 5]]")
    twice, _ = _layer(T, (3, 4), "float32")
    twice.sum().backward()
    return changed, outcome(lambda: twice.sum().backward(), "second time"), node_names(twice.grad_fn)


@differential
def test_weights_that_are_computed(T: Any) -> object:
    x, weight, bias = T.ones(2, 4), T.ones(5, 4, requires_grad=True), T.ones(5)
    y = T.nn.functional.linear(x, weight * 2, bias)
    z = T.nn.functional.linear(x, T.ones(4, 5, requires_grad=True).t(), bias)
    y.relu_()
    (y.sum() + z.sum()).backward()
    return weight.grad, node_names(y.grad_fn), node_names(z.grad_fn)


def test_the_order_of_nodes_is_that_of_the_calls() -> None:
    y, _ = _layer(flambeau, (3, 4), "float32")
    node = y.grad_fn
    assert node.next_functions[2][0]._sequence_nr() == node._sequence_nr() - 1
    node = _layer(flambeau, (2, 3, 4), "float32")[0].grad_fn.next_functions[0][0]
    assert [node._sequence_nr() - each._sequence_nr() for each, _ in node.next_functions[1:]] == [2, 1]


@pytest.mark.parametrize("shape", [(9, 37), (3, 3, 37)])
@pytest.mark.parametrize("looking", [False, True])
def test_bits_do_not_depend_on_who_looks(looking: bool, shape: tuple[int, ...]) -> None:
    flambeau.manual_seed(3)
    layer, x = flambeau.nn.Linear(37, 11), flambeau.randn(*shape, requires_grad=True)
    plain, spelled = layer(x), layer(x)
    node: Any = spelled.grad_fn
    node = node if len(shape) == 2 else node.next_functions[0][0]
    assert node.next_functions[2][0].name() == "TBackward0"
    expected = flambeau.autograd.grad(spelled.square().sum(), [x, layer.weight, layer.bias], create_graph=looking)
    found = flambeau.autograd.grad(plain.square().sum(), [x, layer.weight, layer.bias], create_graph=looking)
    for one, other in zip(found, expected, strict=True):
        assert one.equal(other)
        assert one.stride() == other.stride()


@pytest.mark.parametrize("sizes", [(17, 64, 256), (40, 1200, 96), (30, 70, 130)])
@differential(tolerance=1e-4)
def test_what_is_added_to_products_of_middle_size(T: Any, sizes: tuple[int, int, int]) -> Any:
    """Whatever the addend is broadcast from; a bias that is a view, and one that a graph follows."""
    rows, length, columns = sizes
    T.manual_seed(0)
    x, weight = T.randn(rows, length), T.randn(columns, length) / length**0.5
    bias, wide = T.randn(columns).requires_grad_(), T.randn(columns, 2)
    addends = bias, wide[:, 0], T.ones(1), T.ones(1).expand(columns), T.ones(rows, 1), T.ones(rows, columns)
    found = [T.addmm(addend, x, weight.t()) for addend in addends]
    for each in (bias, wide[:, 1]):
        y = T.nn.functional.linear(x, weight, each)
        found += [y, T.nn.functional.linear(x.reshape(2, -1, length), weight, each) if rows % 2 == 0 else y]
    T.nn.functional.linear(x, weight, bias).sin().sum().backward()
    return found, bias.grad


@pytest.mark.parametrize("has_instructions", [False, True])
@pytest.mark.parametrize("shape", [(5, 40), (130, 96), (2, 33, 64)])
def test_bias_in_bfloat16(has_instructions: bool, shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """With and without the processor's instructions the sum is rounded once, as PyTorch rounds it; compiled too."""
    if not library.available():
        pytest.skip("without oneDNN there is one way")
    monkeypatch.setattr(library.Library, "multiplies_bfloat16", has_instructions)
    linear = flambeau.nn.functional.linear
    x = flambeau.linspace(-2, 2, math.prod(shape)).reshape(shape).bfloat16()
    weight, bias = (flambeau.linspace(-1, 3, count).bfloat16() for count in (70 * shape[-1], 70))
    weight = weight.reshape(70, shape[-1])
    found = linear(x, weight, bias)
    exact = x.double() @ weight.double().T + bias.double()
    assert found.dtype is flambeau.bfloat16
    assert ((found.double() - exact).abs() <= exact.abs() * 2**-8 + 1e-4).all()
    compiled = flambeau.compile(lambda x: linear(x, weight, bias))
    for _ in range(4):
        assert flambeau.equal(compiled(x), found)
