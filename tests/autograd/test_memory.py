"""What a graph keeps and when it lets go: without the cycle collector, and with nothing saved needlessly."""

from __future__ import annotations

import contextlib
import gc
import sys
import tracemalloc
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import flambeau
from flambeau.autograd import engine

ELEMENTS = 1 << 15
UNIT = ELEMENTS * 8  # bytes of one float64 tensor of that many elements


@pytest.fixture(autouse=True)
def _no_cycle_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def _survivors(build: Callable[[], list[Any]]) -> int:
    """How many of the objects that `build` returns outlive it."""
    references = [weakref.ref(item) for item in build()]
    assert references
    return sum(reference() is not None for reference in references)


def _leaf() -> Any:
    return flambeau.ones(3, requires_grad=True)


def _chain() -> list[Any]:
    x = _leaf()
    y = x * 2
    z = y.exp()
    return [x, y, z, z.sum()]


def _after_backward() -> list[Any]:
    x = _leaf()
    y = (x * x).exp()
    loss = y.sum()
    loss.backward()
    return [x, y, loss, x.grad]


def _after_retained_backward() -> list[Any]:
    x = _leaf()
    y = (x * x).sigmoid()
    loss = y.sum()
    loss.backward(retain_graph=True)
    return [x, y, loss]


def _nodes() -> list[Any]:
    x = _leaf()
    loss = (x.exp() * 2).sum()
    node = loss.grad_fn
    return [node, node.next_functions[0][0], node.next_functions[0][0].next_functions[0][0], loss, x]


def _saved_results() -> list[Any]:
    x = _leaf()
    results = [x.exp(), x.sigmoid(), x.tanh(), x.sqrt(), x.softmax(0), x.relu(), x.reciprocal(), x.max(), x.norm()]
    return [x, *results]


def _views_and_in_place() -> list[Any]:
    x = _leaf()
    base = x * 1
    view = base[1:]
    view.mul_(3)
    other = base.view(3, 1)
    base.add_(1)
    (other.sum() + view.sum()).backward()
    return [x, base, view, other]


def _plain_views() -> list[Any]:
    base = flambeau.zeros(4)
    view = base[1:]
    twice = view.view(3, 1)
    return [base, view, twice]


def _hooks() -> list[Any]:
    x = _leaf()
    y = x * 2
    y.retain_grad()
    x.register_hook(lambda grad: grad * 2)
    y.register_hook(lambda grad: None)
    y.grad_fn.register_hook(lambda inputs, outputs: None)
    y.grad_fn.register_prehook(lambda outputs: None)
    x.register_post_accumulate_grad_hook(lambda leaf: None)
    y.sum().backward()
    return [x, y]


def _double_backward() -> list[Any]:
    x = _leaf()
    (first,) = flambeau.autograd.grad((x**3).sum(), x, create_graph=True)
    (second,) = flambeau.autograd.grad(first.sum(), x)
    return [x, first, second]


def _custom_function() -> list[Any]:
    class Square(flambeau.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            result = x * x
            ctx.save_for_backward(x, result)
            return result

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            x, _ = ctx.saved_tensors
            return 2 * x * grad

    x = _leaf()
    middle = x * 1
    y = Square.apply(middle)
    y.sum().backward(retain_graph=True)
    return [x, middle, y]


def _never_run() -> list[Any]:
    x = _leaf()
    y = (x * x).exp().sort().values.unbind()
    return [x, *y]


def _failed_backward() -> list[Any]:
    x = _leaf()
    y = x.exp()
    loss = y.sum()
    y.add_(1)
    with contextlib.suppress(RuntimeError):
        loss.backward()
    return [x, y, loss]


def _saved_tensor_hooks() -> list[Any]:
    x = _leaf()
    with flambeau.autograd.graph.saved_tensors_hooks(lambda tensor: tensor, lambda tensor: tensor):
        y = x.sin().exp()
    y.sum().backward()
    return [x, y]


def _inference() -> list[Any]:
    with flambeau.inference_mode():
        x = flambeau.ones(3)
        y = (x * 2)[1:]
    return [x, y]


def _accumulators() -> list[Any]:
    x = _leaf()
    accumulator = (x * 2).grad_fn.next_functions[0][0]
    return [x, accumulator]


SCENES = [
    _chain,
    _after_backward,
    _after_retained_backward,
    _nodes,
    _saved_results,
    _views_and_in_place,
    _plain_views,
    _hooks,
    _double_backward,
    _custom_function,
    _never_run,
    _failed_backward,
    _saved_tensor_hooks,
    _inference,
    _accumulators,
]


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.__name__.strip("_"))
def test_a_dropped_graph_frees_everything_at_once(scene: Callable[[], list[Any]]) -> None:
    assert _survivors(scene) == 0


def test_backward_frees_saved_tensors_while_the_output_lives() -> None:
    x = flambeau.ones(ELEMENTS, dtype=flambeau.float64, requires_grad=True)
    x.grad = flambeau.zeros(ELEMENTS, dtype=flambeau.float64)
    ((x * 2).exp() * 3).exp().sum().backward()  # what a first call sets up does not count
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        loss = ((x * 2).exp() * 3).exp().sum()
        saved = (tracemalloc.get_traced_memory()[0] - before) / UNIT
        loss.backward()
        left = (tracemalloc.get_traced_memory()[0] - before) / UNIT
    finally:
        tracemalloc.stop()
    assert abs(saved - 2) < 0.2
    assert left < 0.2


def test_an_intermediate_that_no_formula_needs_dies_at_once() -> None:
    x = _leaf()
    middle = x + 1
    watched = weakref.ref(middle)
    loss = (middle + 2).sum()
    del middle
    assert watched() is None
    loss.backward()
    assert x.grad.tolist() == [1.0, 1.0, 1.0]


def test_a_view_keeps_its_base_only_while_it_lives() -> None:
    base = flambeau.zeros(4)
    watched = weakref.ref(base)
    view = base[1:]
    del base
    assert watched() is not None
    del view
    assert watched() is None


def test_detached_tensor_lets_the_graph_go() -> None:
    x = _leaf()
    y = x.exp()
    node = weakref.ref(y.grad_fn)
    kept = y.detach()
    del y
    assert node() is None
    assert kept.grad_fn is None


def test_training_loop_does_not_grow() -> None:
    weight = flambeau.ones(ELEMENTS, dtype=flambeau.float64, requires_grad=True)

    def step() -> None:
        ((weight * 2).tanh().sum() * 0.5).backward()
        with flambeau.no_grad():
            weight.sub_(weight.grad * 0.01)
            weight.grad.zero_()

    step()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(5):
            step()
        grown = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert grown < UNIT / 4


# How many tensors of the input's size the graph of an expression over x and y keeps beside x and y themselves.
KEPT: list[tuple[str, float]] = [
    ("x + y", 0),
    ("x - y", 0),
    ("x * y", 0),
    ("x / y", 0),
    ("x * 2", 0),
    ("x / 2", 0),
    ("-x", 0),
    ("x.sum()", 0),
    ("x.mean()", 0),
    ("x.sin()", 0),
    ("x.log()", 0),
    ("x.abs()", 0),
    ("x ** 2", 0),
    ("x.clamp(0, 1)", 0),
    ("x.view(-1, 2)", 0),
    ("x[::2]", 0),
    ("x.expand(2, ELEMENTS)", 0),
    ("x.clone()", 0),
    ("x.cumsum(0)", 0),
    ("T.cat([x, y])", 0),
    ("T.stack([x, y])", 0),
    ("x.flip(0)", 0),
    ("x.norm()", 0),
    ("x.prod()", 0),
    ("x.var()", 0),
    ("x.logsumexp(0)", 0),
    ("x.masked_fill(mask, 0.0)", 0),
    ("T.where(mask, x, y)", 0),
    ("x.dot(y)", 0),
    ("x.floor()", 0),
    ("x.to(T.float32)", 0),
    ("x.exp()", 1),
    ("x.sigmoid()", 1),
    ("x.tanh()", 1),
    ("x.relu()", 1),
    ("x.sqrt()", 1),
    ("x.softmax(0)", 1),
    ("x.log_softmax(0)", 1),
    ("(x + y) ** 2", 1),
    ("(x + y).exp()", 1),
    ("(x + y).sin()", 1),
    ("(x + y) * 3 - y", 0),
    ("(x * 2 + y).sum()", 0),
    ("((x + y) * 2).exp().sum()", 1),
    ("x.sort().values", 1),
    ("x.exp().view(-1, 2).sum(1)", 1),
]


def _kept_bytes(expression: str) -> tuple[int, Any]:
    space = {
        "T": flambeau,
        "ELEMENTS": ELEMENTS,
        "x": flambeau.full((ELEMENTS,), 0.5, dtype=flambeau.float64, requires_grad=True),
        "y": flambeau.ones(ELEMENTS, dtype=flambeau.float64, requires_grad=True),
        "mask": flambeau.ones(ELEMENTS, dtype=flambeau.bool),
    }
    eval(expression, space)  # what a first call sets up does not count
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        node = eval(expression, space).grad_fn
        return tracemalloc.get_traced_memory()[0] - before, node
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(("expression", "tensors"), KEPT)
def test_graph_keeps_no_more_than_its_formulas_need(expression: str, tensors: float) -> None:
    kept, _node = _kept_bytes(expression)
    assert abs(kept / UNIT - tensors) < 0.2


def test_no_grad_keeps_nothing() -> None:
    x = flambeau.ones(ELEMENTS, dtype=flambeau.float64, requires_grad=True)
    with flambeau.no_grad():
        ((x + 1).exp() ** 2).sum()  # what a first call sets up does not count
        tracemalloc.start()
        try:
            before = tracemalloc.get_traced_memory()[0]
            total = ((x + 1).exp() ** 2).sum()
            kept = tracemalloc.get_traced_memory()[0] - before
        finally:
            tracemalloc.stop()
    assert not total.requires_grad
    assert kept < UNIT / 4


def test_backward_releases_as_it_goes() -> None:
    """A chain that saves one tensor a step needs no second set of them during backward."""
    steps = 20
    x = flambeau.full((ELEMENTS,), 0.1, dtype=flambeau.float64, requires_grad=True)
    x.tanh().tanh().sum().backward()  # what a first call sets up does not count
    x.grad = None
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        y = x
        for _ in range(steps):
            y = y.tanh()
        loss = y.sum()
        del y
        tracemalloc.reset_peak()
        loss.backward()
        peak = (tracemalloc.get_traced_memory()[1] - before) / UNIT
        left = (tracemalloc.get_traced_memory()[0] - before) / UNIT
    finally:
        tracemalloc.stop()
    assert peak < steps + 6
    assert left < 1.5  # the gradient


DEPTH = 100_000


def test_deep_graph_is_built_run_and_dropped() -> None:
    limit = sys.getrecursionlimit()
    x = flambeau.ones(1, requires_grad=True)
    y = x
    for _ in range(DEPTH):
        y = y + 1
    y.backward()
    assert x.grad.item() == 1.0
    node = weakref.ref(y.grad_fn)
    del y
    assert node() is None
    assert sys.getrecursionlimit() == limit


def test_deep_graph_with_saved_tensors_is_dropped_without_running() -> None:
    x = flambeau.ones(1, requires_grad=True)
    y = x
    for _ in range(DEPTH):
        y = y * x
    node = weakref.ref(y.grad_fn)
    watched = weakref.ref(y)
    del y
    assert node() is None
    assert watched() is None


def test_deep_chain_of_saved_results_is_dropped() -> None:
    y = flambeau.zeros(1, requires_grad=True)
    for _ in range(DEPTH // 4):
        y = y.tanh()
    loss = y.sum()
    del y
    loss.backward(retain_graph=True)
    node = weakref.ref(loss.grad_fn)
    del loss
    assert node() is None


def test_deep_chain_of_views_and_in_place_changes() -> None:
    x = flambeau.ones(2, requires_grad=True)
    y = x * 1
    for _ in range(DEPTH // 20):
        y[0] = y[1] + 1
        y.mul_(1)
    y.sum().backward()
    assert x.grad.tolist() == [0.0, 2.0]


def test_wide_graph() -> None:
    x = flambeau.ones(1, requires_grad=True)
    total = flambeau.stack([x * 2 for _ in range(DEPTH // 10)]).sum()
    total.backward()
    assert x.grad.item() == 2 * (DEPTH // 10)


def test_gradients_take_over_products_that_were_turned() -> None:
    """The gradient of a layer's weight is a product, turned: a window on all of an array that nobody else has."""
    turned = np.empty((2, 3)).T
    assert engine._has_own_memory(turned)
    assert engine._has_own_memory(np.empty(3))
    base = turned.base
    assert not engine._has_own_memory(turned)
    assert base is not None
    assert engine._has_own_memory(base)
    assert not engine._has_own_memory(np.empty((2, 3))[1:].T)
    viewed = (flambeau.ones(2, 3) * 2).t()
    assert engine._has_own_memory(viewed._array, viewed._view)
    held = viewed._base
    assert held is not None
    assert not engine._has_own_memory(viewed._array, viewed._view)


def test_a_gradient_gives_up_its_array_where_no_second_tensor_has_it() -> None:
    like, alone, shared = flambeau.ones(3), flambeau.ones(3) * 2, flambeau.ones(3) * 2
    address = alone.data_ptr()
    assert engine.owned(alone, like, True).data_ptr() == address
    second = shared.detach()
    assert engine.owned(shared, like, True).data_ptr() != second.data_ptr()


def _tracked_by(call: Callable[[], Any], calls: int = 50) -> float:
    """How many objects that the cycle collector visits each call leaves behind, as long as its result lives."""
    call()
    gc.collect()
    gc.disable()
    try:
        before = len(gc.get_objects())
        kept = [call() for _ in range(calls)]
        return round((len(gc.get_objects()) - before - 1) / len(kept), 1)
    finally:
        gc.enable()


def test_a_graph_leaves_little_to_the_cycle_collector() -> None:
    """Long graphs are collected again and again while they grow: shapes and lines are no objects of their own."""
    x = flambeau.rand(4, 4, requires_grad=True)
    y, plain = x * 2, flambeau.rand(4, 4)
    # A tensor, its version counter, the node, its edges; an edge and two saved tensors, of which one has parts.
    assert _tracked_by(lambda: y * x) <= 9
    assert _tracked_by(lambda: x[0]) <= 8
    assert _tracked_by(lambda: plain * plain) <= 2
