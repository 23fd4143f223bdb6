"""Several threads and re-entrance: shared leaves, shared graphs, modes by thread, backward inside backward."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from tests.support.differential import differential, outcome


def _run_together(*actions: Callable[[], Any]) -> list[Any]:
    """Run each action in its own thread, all started at one barrier; their results, or the errors' types."""
    barrier = threading.Barrier(len(actions))
    results: list[Any] = [None] * len(actions)

    def work(position: int, action: Callable[[], Any]) -> None:
        barrier.wait(20)
        results[position] = outcome(action)

    threads = [threading.Thread(target=work, args=item) for item in enumerate(actions)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return results


@differential
def test_each_thread_its_own_graph_on_a_shared_leaf(T: Any) -> Any:
    x = T.ones(10, dtype=T.float64, requires_grad=True)

    def train() -> None:
        for _ in range(25):
            (x * 2).sum().backward()

    results = _run_together(*[train] * 4)
    return results, x.grad


@differential
def test_a_shared_graph_run_by_several_threads(T: Any) -> Any:
    x = T.ones(10, dtype=T.float64, requires_grad=True)
    loss = (x.exp() * x).sum()
    results = _run_together(*[lambda: loss.backward(retain_graph=True)] * 4)
    return results, x.grad


@differential
def test_shared_first_half(T: Any) -> Any:
    x = T.ones(4, dtype=T.float64, requires_grad=True)
    hub = x + 1

    def work() -> None:
        for _ in range(10):
            (hub * 3).sum().backward()

    return _run_together(work, work, work), x.grad


@differential
def test_grad_from_several_threads(T: Any) -> Any:
    x = T.arange(4.0, requires_grad=True)

    def second_derivative(power: int) -> Any:
        def action() -> Any:
            (first,) = T.autograd.grad((x**power).sum(), x, create_graph=True)
            return T.autograd.grad(first.sum(), x)[0].tolist()

        return action

    return _run_together(*(second_derivative(power) for power in (2, 3, 4))), x.grad


@differential
def test_error_in_one_thread_leaves_the_others_alone(T: Any) -> Any:
    x = T.ones(2, requires_grad=True)

    def fail() -> None:
        y = x * 2

        def hook(grad: Any) -> None:
            raise KeyError("in this thread only")

        y.register_hook(hook)
        y.sum().backward()

    def succeed() -> Any:
        return T.autograd.grad((x * 5).sum(), x)[0].tolist()

    return _run_together(fail, succeed, succeed)


@differential
def test_graph_built_in_one_thread_and_run_in_another(T: Any) -> Any:
    built: list[Any] = []
    x = T.tensor([2.0], requires_grad=True)
    builder = threading.Thread(target=lambda: built.append(x**3))
    builder.start()
    builder.join()
    runner = threading.Thread(target=built[0].backward)
    runner.start()
    runner.join()
    return built[0].grad_fn.name(), x.grad


@differential
def test_modes_inside_backward_follow_the_calling_thread(T: Any) -> Any:
    seen = []
    x = T.ones(1, requires_grad=True)
    x.register_hook(lambda grad: seen.append((threading.current_thread().name, T.is_grad_enabled())))
    thread = threading.Thread(target=lambda: (x * 2).backward(), name="worker")
    thread.start()
    thread.join()
    with T.no_grad():
        y = x.requires_grad
    (x * 2).backward(create_graph=True)
    return seen[0], seen[1][1], y


@differential
def test_reentrant_backward_in_a_custom_function(T: Any) -> Any:
    class Reenter(T.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            with T.enable_grad():
                ctx.inner = x.detach().requires_grad_()
                ctx.result = (ctx.inner**2).sum()
            return ctx.result.detach()

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            ctx.result.backward()
            return ctx.inner.grad * grad

    x = T.tensor([1.0, 2.0, 3.0], requires_grad=True)
    (Reenter.apply(x * 2) * 3).backward()
    return x.grad


@differential
def test_reentrant_grad_in_a_hook(T: Any) -> Any:
    x = T.tensor([2.0], requires_grad=True)
    y = x * 3
    other = T.tensor([5.0], requires_grad=True)

    def hook(grad: Any) -> Any:
        with T.enable_grad():
            (inner,) = T.autograd.grad(other**2, other)
        return grad * inner

    y.register_hook(hook)
    y.backward()
    return x.grad, other.grad


@differential
def test_reentrant_backward_on_the_same_leaf(T: Any) -> Any:
    x = T.tensor([2.0], requires_grad=True)
    y = x * 3

    def hook(grad: Any) -> None:
        with T.enable_grad():
            (x**2).backward()

    y.register_hook(hook)
    y.backward()
    return x.grad


@differential
def test_deep_reentrance(T: Any) -> Any:
    depth = []

    class Nest(T.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any, level: int) -> Any:
            ctx.level = level
            return x.clone()

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            depth.append(ctx.level)
            if ctx.level:
                with T.enable_grad():
                    inner = T.ones(1, requires_grad=True)
                    Nest.apply(inner, ctx.level - 1).sum().backward()
            return grad, None

    x = T.ones(1, requires_grad=True)
    Nest.apply(x, 60).sum().backward()
    return depth, x.grad


@differential
def test_error_inside_a_reentrant_call_propagates(T: Any) -> Any:
    x = T.tensor([2.0], requires_grad=True)
    y = x * 3

    def hook(grad: Any) -> None:
        with T.enable_grad():
            inner = T.ones(1, requires_grad=True).exp()
            inner.backward()
            inner.backward()

    y.register_hook(hook)
    failed = outcome(y.backward, "Trying to backward through the graph a second time")
    (x * 1).backward()
    return failed, x.grad


@differential
def test_reentrant_call_inside_thread(T: Any) -> Any:
    x = T.tensor([2.0], dtype=T.float64, requires_grad=True)

    def hook(grad: Any) -> Any:
        with T.enable_grad():
            inner = T.tensor([1.5], dtype=T.float64, requires_grad=True)
            (slope,) = T.autograd.grad(inner * inner, inner)
        return grad * slope

    def work() -> None:
        y = x * 3
        y.register_hook(hook)
        y.backward()

    return _run_together(work, work), x.grad


@differential
def test_grad_mode_set_by_a_hook_does_not_leak(T: Any) -> Any:
    x = T.tensor([2.0], requires_grad=True)

    def hook(grad: Any) -> None:
        T.set_grad_enabled(True)

    x.register_hook(hook)
    y = x * 2
    with T.no_grad():
        y.backward()
        after = T.is_grad_enabled()
    return after, T.is_grad_enabled(), x.grad


@differential
def test_many_threads_with_custom_functions(T: Any) -> Any:
    class Cube(T.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            (x,) = ctx.saved_tensors
            return 3 * x**2 * grad

    def work(value: float) -> Callable[[], Any]:
        def action() -> Any:
            x = T.tensor([value], requires_grad=True)
            for _ in range(5):
                Cube.apply(x).backward()
            return x.grad.tolist()

        return action

    return _run_together(*(work(float(value)) for value in range(6)))
