"""Hooks: on tensors, on nodes, after accumulation, over several tensors; their order, removal and errors."""

from __future__ import annotations

import gc
from typing import Any

import pytest

from tests.support.differential import differential, outcome


def _leaf(T: Any, *values: float) -> Any:
    return T.tensor(list(values), requires_grad=True)


@differential
def test_hook_sees_and_replaces_the_gradient(T: Any) -> Any:
    seen = []
    x = _leaf(T, 1.0, 2.0)
    y = x * 2

    def double(grad: Any) -> Any:
        seen.append(grad.clone())
        return grad * 2

    y.register_hook(double)
    y.sum().backward()
    return seen, x.grad


@differential
def test_hook_returning_none_changes_nothing(T: Any) -> Any:
    x = _leaf(T, 1.0)
    x.register_hook(lambda grad: None)
    (x * 3).backward()
    return x.grad


@differential
def test_hooks_chain_in_order_of_registration(T: Any) -> Any:
    seen = []
    x = _leaf(T, 1.0)

    def make(name: str, factor: float) -> Any:
        def hook(grad: Any) -> Any:
            seen.append((name, grad.item()))
            return grad * factor

        return hook

    for name, factor in (("a", 2.0), ("b", 3.0), ("c", 5.0)):
        x.register_hook(make(name, factor))
    (x * 1).backward()
    return seen, x.grad


@differential
def test_handle_removes_its_hook_only(T: Any) -> Any:
    seen = []
    x = _leaf(T, 1.0)
    first = x.register_hook(lambda grad: seen.append("first"))
    x.register_hook(lambda grad: seen.append("second"))
    (x * 1).backward()
    first.remove()
    first.remove()  # a second time does nothing
    (x * 1).backward()
    return seen


@differential
def test_handle_is_a_context_manager(T: Any) -> Any:
    seen = []
    x = _leaf(T, 1.0)
    with x.register_hook(lambda grad: seen.append("inside")):
        (x * 1).backward()
    (x * 1).backward()
    return seen, type(x.register_hook(lambda grad: None)).__name__


@differential
def test_hook_removed_during_the_call(T: Any) -> Any:
    seen = []
    x = _leaf(T, 1.0)

    def once(grad: Any) -> None:
        seen.append("once")
        handle.remove()

    handle = x.register_hook(once)
    x.register_hook(lambda grad: seen.append("always"))
    (x * 1).backward()
    (x * 1).backward()
    return seen


@differential
def test_leaf_hook_sees_the_sum_of_all_paths_once(T: Any) -> Any:
    seen = []
    x = _leaf(T, 1.0)
    x.register_hook(lambda grad: seen.append(grad.item()))
    (x * 2 + x * 3 + x.exp() * 0).backward()
    return seen, x.grad


@differential
def test_leaf_hook_acts_on_the_new_gradient_only(T: Any) -> Any:
    x = _leaf(T, 1.0)
    x.register_hook(lambda grad: grad * 10)
    (x * 1).backward()
    (x * 2).backward()
    return x.grad


@differential
def test_hook_needs_requires_grad(T: Any) -> Any:
    return (
        outcome(
            lambda: T.ones(1).register_hook(lambda grad: grad),
            "cannot register a hook on a tensor that doesn't require",
        ),
        outcome(
            lambda: T.ones(1).register_post_accumulate_grad_hook(print),
            "cannot register a hook on a tensor that doesn't require gradient",
        ),
    )


@differential
def test_hook_errors_propagate(T: Any) -> Any:
    x = _leaf(T, 1.0)

    def fail(grad: Any) -> None:
        raise ValueError("stop here")

    y = x * 2
    y.register_hook(fail)
    failed = outcome(lambda: y.backward(retain_graph=True), "stop here")
    handle_free = x * 3
    handle_free.backward()
    return failed, x.grad


@differential
def test_hook_result_of_wrong_kind(T: Any) -> Any:
    results = []
    for value, phrase in (
        (3.0, "hook returned 'float'"),
        ("text", "'str'"),
        (T.ones(5), "has changed the size of value"),
    ):
        x = _leaf(T, 1.0, 2.0)
        y = x * 2
        y.register_hook(lambda grad, value=value: value)
        results.append(outcome(y.sum().backward, phrase))
    return results


@differential
def test_hooks_of_intermediate_run_before_the_hooks_of_earlier_ones(T: Any) -> Any:
    seen: list[str] = []
    x = _leaf(T, 1.0)
    y = x * 2
    z = y * 3
    for name, tensor in (("x", x), ("y", y), ("z", z)):
        tensor.register_hook(lambda grad, name=name: seen.append(name))
    z.backward()
    return seen


@differential
def test_retain_grad_sees_what_hooks_returned(T: Any) -> Any:
    x = _leaf(T, 1.0)
    before, after = x * 1, x * 1
    before.retain_grad()
    before.register_hook(lambda grad: grad * 10)
    after.register_hook(lambda grad: grad * 10)
    after.retain_grad()
    (before * 2 + after * 3).backward()
    return before.grad.item(), after.grad.item(), x.grad, before.retains_grad, x.retains_grad


@differential
def test_retain_grad(T: Any) -> Any:
    x = _leaf(T, 1.0, 2.0)
    y = x * 2
    y.retain_grad()
    y.retain_grad()  # twice is once
    x.retain_grad()  # nothing to do for a leaf
    (y**2).sum().backward(retain_graph=True)
    first = y.grad.clone()
    (y * 1).sum().backward()
    return first, y.grad.detach(), x.grad, outcome(lambda: T.ones(1).retain_grad(), "can't retain_grad on Tensor")


@differential
def test_retain_grad_follows_an_in_place_change(T: Any) -> Any:
    x = _leaf(T, 1.0)
    y = x * 2
    y.retain_grad()
    y.mul_(5)
    (y * 3).backward()
    return y.grad.item(), x.grad


@differential
def test_tensor_hook_stays_with_the_value_before_an_in_place_change(T: Any) -> Any:
    seen = []
    x = _leaf(T, 1.0)
    y = x * 2
    y.register_hook(lambda grad: seen.append(("before", grad.item())))
    y.mul_(5)
    y.register_hook(lambda grad: seen.append(("after", grad.item())))
    (y * 3).backward()
    return seen


@differential
def test_hook_on_a_view_and_on_its_base(T: Any) -> Any:
    seen = []
    x = _leaf(T, 1.0, 2.0, 3.0)
    y = x * 1
    view = y[:2]
    y.register_hook(lambda grad: seen.append(("base", grad.tolist())))
    view.register_hook(lambda grad: seen.append(("view", grad.tolist())))
    (view.sum() * 2 + y.sum()).backward()
    return seen, x.grad


@differential
def test_hook_under_create_graph_records_its_own_work(T: Any) -> Any:
    x = _leaf(T, 3.0)
    y = x**2
    y.register_hook(lambda grad: grad * x)
    (first,) = T.autograd.grad(y.sum(), x, create_graph=True)  # 2 x * x
    (second,) = T.autograd.grad(first.sum(), x)
    return first.detach(), second


@differential
def test_grad_mode_inside_hooks(T: Any) -> Any:
    modes = []
    x = _leaf(T, 1.0)
    x.register_hook(lambda grad: modes.append((T.is_grad_enabled(), grad.requires_grad)))
    (x**2).backward()
    (x**2).backward(create_graph=True)
    return modes


@differential
def test_post_accumulate_hook(T: Any) -> Any:
    seen: list[Any] = []
    x = _leaf(T, 1.0, 2.0)
    x.register_hook(lambda grad: seen.append("tensor hook"))

    def hook(leaf: Any) -> None:
        seen.append((leaf is x, leaf.grad.tolist()))

    handle = x.register_post_accumulate_grad_hook(hook)
    (x * 2).sum().backward()
    (x * 3).sum().backward()
    handle.remove()
    (x * 4).sum().backward()
    return seen, x.grad


@differential
def test_post_accumulate_hook_may_step_and_clear(T: Any) -> Any:
    x = _leaf(T, 1.0)

    def step(leaf: Any) -> None:
        with T.no_grad():
            leaf -= 0.1 * leaf.grad
        leaf.grad = None

    x.register_post_accumulate_grad_hook(step)
    for _ in range(3):
        (x**2).sum().backward()
    return x, x.grad


@differential
def test_post_accumulate_hook_only_on_leaves(T: Any) -> Any:
    y = _leaf(T, 1.0) * 2
    return outcome(lambda: y.register_post_accumulate_grad_hook(print), "cannot be registered on non-leaf tensors")


@differential
def test_post_accumulate_hook_does_not_run_for_autograd_grad(T: Any) -> Any:
    seen = []
    x = _leaf(T, 1.0)
    x.register_post_accumulate_grad_hook(lambda leaf: seen.append("ran"))
    T.autograd.grad(x * 2, x)
    return seen


@differential
def test_node_post_hook(T: Any) -> Any:
    seen = []
    x = _leaf(T, 1.0, 2.0)
    y = x * 3

    def hook(grad_inputs: Any, grad_outputs: Any) -> None:
        seen.append((type(grad_inputs).__name__, grad_inputs, grad_outputs))

    handle = y.grad_fn.register_hook(hook)
    y.sum().backward(retain_graph=True)
    handle.remove()
    y.sum().backward()
    return seen, x.grad


@differential
def test_node_post_hook_replaces_grad_inputs(T: Any) -> Any:
    x, y = _leaf(T, 1.0), _leaf(T, 2.0)
    z = x * y
    z.grad_fn.register_hook(lambda grad_inputs, grad_outputs: (grad_inputs[0] * 10, grad_inputs[1]))
    z.backward()
    return x.grad, y.grad


@differential
def test_node_post_hook_must_keep_the_count(T: Any) -> Any:
    z = _leaf(T, 1.0) * _leaf(T, 2.0)
    z.grad_fn.register_hook(lambda grad_inputs, grad_outputs: (grad_inputs[0],))
    return outcome(z.backward, "incorrect number of values")


@differential
def test_node_pre_hook(T: Any) -> Any:
    seen = []
    x = _leaf(T, 1.0, 2.0)
    y = x * 3

    def hook(grad_outputs: Any) -> Any:
        seen.append(grad_outputs)
        return (grad_outputs[0] * 10,)

    handle = y.grad_fn.register_prehook(hook)
    y.sum().backward(retain_graph=True)
    handle.remove()
    y.sum().backward()
    return seen, x.grad


@differential
def test_order_of_all_kinds_on_one_node(T: Any) -> Any:
    seen: list[str] = []
    x = _leaf(T, 1.0)
    y = x * 3
    y.grad_fn.register_hook(lambda gi, go: seen.append("node post"))
    y.grad_fn.register_prehook(lambda go: seen.append("node pre"))
    y.register_hook(lambda grad: seen.append("tensor"))
    y.grad_fn.register_prehook(lambda go: seen.append("node pre 2"))
    x.register_hook(lambda grad: seen.append("leaf tensor"))
    x.register_post_accumulate_grad_hook(lambda leaf: seen.append("post accumulate"))
    accumulator = y.grad_fn.next_functions[0][0]
    accumulator.register_prehook(lambda go: seen.append("accumulator pre"))
    accumulator.register_hook(lambda gi, go: seen.append("accumulator post"))
    y.backward()
    return seen


@differential
def test_accumulator_hook_arguments(T: Any) -> Any:
    seen = []
    x = _leaf(T, 1.0)
    accumulator = (x * 1).grad_fn.next_functions[0][0]
    accumulator.register_hook(lambda grad_inputs, grad_outputs: seen.append((len(grad_inputs), grad_outputs)))
    (x * 3).backward()
    return seen, x.grad


@differential
def test_accumulator_hook_lasts_as_long_as_the_graph(T: Any) -> Any:
    seen: list[Any] = []
    x = _leaf(T, 1.0, 2.0)
    y = (x * 3).sum()
    y.grad_fn.next_functions[0][0].next_functions[0][0].register_hook(lambda *grads: seen.append(grads[1][0].clone()))
    gc.collect()
    y.backward()
    del y
    gc.collect()
    (x * 5).sum().backward()  # another graph has another accumulator
    return seen, x.grad


@differential
def test_node_hook_with_undefined_gradients(T: Any) -> Any:
    seen = []
    x = T.tensor([3.0, 1.0, 2.0], requires_grad=True)
    first, _second, third = x.unbind()
    first.grad_fn.register_hook(lambda gi, go: seen.append([None if g is None else g.tolist() for g in go]))
    (first * 2 + third).backward()
    return seen, x.grad


@differential
def test_hooks_on_each_output_of_one_node(T: Any) -> Any:
    seen: list[Any] = []
    x = T.tensor([3.0, 1.0, 2.0], requires_grad=True)
    parts = x.unbind()
    for number, part in enumerate(parts):
        part.register_hook(lambda grad, number=number: seen.append((number, None if grad is None else grad.item())))
    (parts[2] * 5 + parts[0]).backward()
    return seen


@differential
def test_pre_hook_on_leaf_that_is_the_output(T: Any) -> Any:
    seen = []
    x = _leaf(T, 1.0)
    x.register_hook(lambda grad: seen.append(grad.item()))
    x.backward()
    return seen, x.grad


@differential
def test_hooks_with_inputs_argument(T: Any) -> Any:
    seen: list[str] = []
    x = _leaf(T, 1.0)
    y = x * 2
    z = y * 3
    for name, tensor in (("x", x), ("y", y), ("z", z)):
        tensor.register_hook(lambda grad, name=name: seen.append(name))
    z.backward(inputs=[y])
    return seen, y.grad.tolist(), x.grad


@differential
def test_multi_grad_hook_waits_for_all(T: Any) -> Any:
    seen = []
    x, y, z = _leaf(T, 1.0), _leaf(T, 2.0), _leaf(T, 3.0)

    def hook(grads: Any) -> None:
        seen.append([None if grad is None else grad.item() for grad in grads])

    handle = T.autograd.graph.register_multi_grad_hook((x, y, z), hook)
    (x * y).backward()  # z takes no part
    (x * y * z).backward()
    handle.remove()
    (x * y * z).backward()
    return seen


@differential
def test_multi_grad_hook_any(T: Any) -> Any:
    seen = []
    x, y = _leaf(T, 1.0), _leaf(T, 2.0)
    T.autograd.graph.register_multi_grad_hook((x, y), lambda grad: seen.append(grad.item()), mode="any")
    (x * y).backward()
    (x * 5).backward()
    return seen


@differential
def test_multi_grad_hook_on_intermediates(T: Any) -> Any:
    seen = []
    x = _leaf(T, 1.0)
    a, b = x * 2, x * 3
    T.autograd.graph.register_multi_grad_hook([a, b], lambda grads: seen.append([g.item() for g in grads]))
    (a * b).backward(retain_graph=True)
    (a + b).backward()
    return seen


@differential
def test_multi_grad_hook_errors(T: Any) -> Any:
    register = T.autograd.graph.register_multi_grad_hook
    x = _leaf(T, 1.0)
    return (
        outcome(lambda: register([x], print, mode="some"), "Expects mode to be one of"),
        outcome(lambda: register([T.ones(1)], print))[0],
    )


@differential
def test_hook_may_keep_the_gradient(T: Any) -> Any:
    kept: list[Any] = []
    x = _leaf(T, 1.0, 2.0)
    y = x * 2
    y.register_hook(kept.append)
    (y * 5).sum().backward()
    (x * 2).sum().backward()
    return kept, x.grad


@differential
def test_in_place_on_the_gradient_inside_a_hook(T: Any) -> Any:
    x = _leaf(T, 1.0, 2.0)
    y = x * 2

    def clip(grad: Any) -> Any:
        return grad.clone().clamp_(max=0.5)

    y.register_hook(clip)
    (y * 5).sum().backward()
    return x.grad


@differential
def test_hook_registered_during_backward(T: Any) -> Any:
    seen: list[str] = []
    x = _leaf(T, 1.0)
    y = x * 2
    z = y * 3
    z.register_hook(lambda grad: y.register_hook(lambda grad: seen.append("late")) and None)
    z.backward()
    return seen


@differential
def test_hook_on_detached_or_cloned_is_separate(T: Any) -> Any:
    seen: list[str] = []
    x = _leaf(T, 1.0)
    clone = x.clone()
    clone.register_hook(lambda grad: seen.append("clone"))
    (x * 2).backward()
    (clone * 2).backward()
    return seen, x.grad


@differential
def test_hooks_on_several_roots(T: Any) -> Any:
    seen: list[Any] = []
    x = _leaf(T, 1.0)
    y = x * 2
    z = y * 3
    y.register_hook(lambda grad: seen.append(grad.item()))
    T.autograd.backward([y, z])
    return seen, x.grad


@differential
def test_backward_hooks_attribute(T: Any) -> Any:
    x = _leaf(T, 1.0)
    before = x._backward_hooks
    x.register_hook(lambda grad: None)
    return before, len(x._backward_hooks)


@differential
def test_hook_that_is_a_method_or_a_callable_object(T: Any) -> Any:
    class Recorder:
        def __init__(self) -> None:
            self.seen: list[float] = []

        def __call__(self, grad: Any) -> Any:
            self.seen.append(grad.item())
            return -grad

        def method(self, grad: Any) -> None:
            self.seen.append(grad.item())

    recorder = Recorder()
    x = _leaf(T, 1.0)
    x.register_hook(recorder)
    x.register_hook(recorder.method)
    (x * 4).backward()
    return recorder.seen, x.grad


@differential
def test_what_hooks_of_nodes_may_return(T: Any) -> Any:
    a = T.ones(2, requires_grad=True)

    def ending(register: Any, value: Any) -> Any:
        b = a * 2
        register(b)(lambda *given: value)
        return outcome(lambda: b.sum().backward())

    ways = (
        lambda b: b.register_hook,
        lambda b: b.grad_fn.register_prehook,
        lambda b: b.grad_fn.register_hook,
        lambda b: b.grad_fn.next_functions[0][0].register_prehook,
    )
    values = (
        3, "x", T.ones(3), T.ones(2, dtype=T.float64), T.ones(2, device="meta"), [T.ones(2)], (), (None,), (3,),
        (T.ones(2),), (T.ones(3),), (T.ones(2), None), (T.ones(2), T.ones(2)),
    )  # fmt: skip
    return [ending(way, value)[:2] for way in ways for value in values]


@differential
def test_leaves_that_receive_no_gradient(T: Any) -> Any:
    class Half(T.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, a: Any, b: Any) -> Any:
            return a + b

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad, None

    seen: list[Any] = []
    a, b = T.ones(2, requires_grad=True), T.ones(2, requires_grad=True)
    b.register_hook(lambda grad: seen.append(("tensor", grad is None)))
    b.register_post_accumulate_grad_hook(lambda leaf: seen.append(("after", leaf.grad is None)))
    y = Half.apply(a, b)
    accumulator = y.grad_fn.next_functions[1][0]
    accumulator.register_prehook(lambda grads: seen.append(("before", grads[0] is None)))
    accumulator.register_hook(lambda given, grads: seen.append(("node", len(given), grads[0] is None)))
    y.sum().backward()
    c = T.ones(2, requires_grad=True)
    c.register_hook(lambda grad: T.ones(2))
    replaced = outcome(lambda: Half.apply(a, c).sum().backward(), "can't replace a None gradient")
    return seen, b.grad, replaced


@differential
def test_what_a_node_says_of_its_gradients(T: Any) -> Any:
    node = (T.ones(2, 3, requires_grad=True).view(3, 2) * 2).grad_fn
    return [(each.shape, each.dtype, each.device, each.is_nested_tensor) for each in node._input_metadata]


@pytest.mark.parametrize("further", [False, True], ids=["end", "further"])
@differential
def test_what_an_input_on_the_way_gets(T: Any, further: bool) -> Any:
    """A tensor's hooks change what `grad` returns for it only where the pass ends at its node."""
    x = T.ones(2, requires_grad=True)
    middle = x * 3
    middle.register_hook(lambda grad: grad * 2)
    wanted = [middle, x] if further else [middle]
    return T.autograd.grad(middle.sum(), wanted)


@differential
def test_hooks_of_a_leaf_that_was_frozen_after_the_forward_pass(T: Any) -> Any:
    """It gets no gradient; its hooks, and those of its node, are called."""
    seen = []
    leaf = T.ones(2, requires_grad=True)
    leaf.register_hook(lambda grad: seen.append("tensor"))
    leaf.register_post_accumulate_grad_hook(lambda each: seen.append(("accumulated", each.grad)))
    result = leaf.clone()
    node = result.grad_fn.next_functions[0][0]
    node.register_prehook(lambda grads: seen.append("before"))
    node.register_hook(lambda given, grads: seen.append(("after", len(given), len(grads))))
    leaf.requires_grad_(False)
    result.sum().backward()
    return seen, leaf.grad
