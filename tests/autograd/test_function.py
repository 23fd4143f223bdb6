"""Custom `autograd.Function`: both styles, marks, materialised gradients, attributes, arguments, double backward."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.differential import differential, outcome, warned


def _leaf(T: Any, *values: float) -> Any:
    return T.tensor(list(values), requires_grad=True)


def _function(T: Any, name: str, **methods: Any) -> Any:
    """A new Function class of `methods`, made static."""
    return type(name, (T.autograd.Function,), {key: staticmethod(method) for key, method in methods.items()})


def _exponential(T: Any) -> Any:
    def forward(ctx: Any, x: Any) -> Any:
        result = x.exp()
        ctx.save_for_backward(result)
        return result

    def backward(ctx: Any, grad: Any) -> Any:
        (result,) = ctx.saved_tensors
        return grad * result

    return _function(T, "Exponential", forward=forward, backward=backward)


def _cube_in_two_parts(T: Any) -> Any:
    def forward(x: Any) -> Any:
        return x**3, 3 * x**2

    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(inputs[0], output[1])

    def backward(ctx: Any, grad: Any, grad_slope: Any) -> Any:
        x, slope = ctx.saved_tensors
        return grad * slope + grad_slope * 6 * x

    return _function(T, "Cube", forward=forward, setup_context=setup_context, backward=backward)


@differential
def test_combined_style(T: Any) -> Any:
    x = _leaf(T, 0.5, 1.5)
    y = _exponential(T).apply(x)
    name, edges = y.grad_fn.name(), [node.name() for node, _ in y.grad_fn.next_functions]
    y.sum().backward()
    return name, type(y.grad_fn).__name__, edges, y, x.grad


@differential
def test_separate_context_style(T: Any) -> Any:
    x = _leaf(T, 0.5, 1.5)
    cube, slope = _cube_in_two_parts(T).apply(x)
    (cube + 2 * slope).sum().backward()
    return cube, slope, x.grad


@differential
def test_double_backward(T: Any) -> Any:
    x = T.tensor([0.5, 1.5], dtype=T.float64, requires_grad=True)
    y = _exponential(T).apply(x * 2)
    (first,) = T.autograd.grad(y.sum(), x, create_graph=True)
    (second,) = T.autograd.grad(first.sum(), x, create_graph=True)
    (third,) = T.autograd.grad(second.sum(), x)
    return first.detach(), second.detach(), third


@differential
def test_function_without_tracked_inputs(T: Any) -> Any:
    y = _exponential(T).apply(T.ones(2))
    with T.no_grad():
        z = _exponential(T).apply(_leaf(T, 1.0))
    return y, z


@differential
def test_forward_runs_without_recording(T: Any) -> Any:
    seen: list[Any] = []

    def forward(ctx: Any, x: Any) -> Any:
        seen.append((T.is_grad_enabled(), (x * 2).requires_grad, x.requires_grad))
        return x * 2

    def backward(ctx: Any, grad: Any) -> Any:
        seen.append((T.is_grad_enabled(), grad.requires_grad))
        return grad * 2

    double = _function(T, "Double", forward=forward, backward=backward)
    x = _leaf(T, 1.0)
    double.apply(x).backward()
    double.apply(x).backward(create_graph=True)
    return seen


@differential
def test_non_tensor_arguments_need_none(T: Any) -> Any:
    def forward(ctx: Any, x: Any, factor: float, options: Any, flag: bool = True) -> Any:
        ctx.factor = factor
        return x * factor if flag else x

    def backward(ctx: Any, grad: Any) -> Any:
        return grad * ctx.factor, None, None, None

    scale = _function(T, "Scale", forward=forward, backward=backward)
    x = _leaf(T, 1.0, 2.0)
    y = scale.apply(x, 3.0, {"k": [1]}, True)
    y.sum().backward()
    return [(None if node is None else node.name()) for node, _ in y.grad_fn.next_functions], x.grad


@differential
def test_keyword_arguments(T: Any) -> Any:
    seen = []

    def forward(ctx: Any, x: Any, factor: float = 2.0, bias: Any = None) -> Any:
        ctx.factor = factor
        seen.append(ctx.needs_input_grad)
        return x * factor + bias

    def backward(ctx: Any, grad: Any) -> Any:
        return grad * ctx.factor, None, grad

    scale = _function(T, "Scale", forward=forward, backward=backward)
    x, bias = _leaf(T, 1.0, 2.0), _leaf(T, 0.5, 0.5)
    scale.apply(x, factor=3.0, bias=bias).sum().backward()
    return seen, x.grad, bias.grad, outcome(lambda: scale.apply(x, colour=3), "colour")[:2]


@differential
def test_number_of_gradients(T: Any) -> Any:
    x, y = _leaf(T, 1.0), _leaf(T, 2.0)

    def run(result: Any) -> Any:
        function = _function(T, "Add", forward=lambda ctx, a, b: a + b, backward=lambda ctx, grad: result)
        return outcome(
            lambda: function.apply(x, y).backward(), "returned an incorrect number of gradients (expected 2, got "
        )

    ones = T.ones(1)
    few = run(ones)
    many_value = _function(T, "Add", forward=lambda ctx, a, b: a + b, backward=lambda ctx, grad: (grad, grad, grad))
    many = outcome(lambda: many_value.apply(x, y).backward(), "expected 2, got 3")
    padded_value = _function(T, "Add", forward=lambda ctx, a, b: a + b, backward=lambda ctx, grad: (grad, grad, None))
    padded = outcome(lambda: padded_value.apply(x, y).backward())
    return few, many, padded


@differential
def test_gradient_for_a_non_tensor_argument(T: Any) -> Any:
    function = _function(T, "Scale", forward=lambda ctx, x, k: x * k, backward=lambda ctx, grad: (grad, grad))
    return outcome(
        lambda: function.apply(_leaf(T, 1.0), 2.0).backward(), "returned a gradient different than None at position 2"
    )


@differential
def test_gradient_of_wrong_kind(T: Any) -> Any:
    def run(result: Any, *phrases: str) -> Any:
        function = _function(T, "Wrong", forward=lambda ctx, x: x * 2, backward=lambda ctx, grad: result)
        return outcome(lambda: function.apply(_leaf(T, 1.0, 2.0)).sum().backward(), *phrases)

    return (
        run(3.0, "expected Variable or None (got float)"),
        run("text", "expected Variable or None (got str)"),
        run(T.ones(3), "returned an invalid gradient at index 0 - got [3] but expected shape compatible with [2]"),
        run(T.ones(2, dtype=T.float64)),
    )


@differential
def test_gradient_broadcast_over_the_input_is_reduced(T: Any) -> Any:
    function = _function(T, "Wide", forward=lambda ctx, x: x * 2, backward=lambda ctx, grad: T.ones(4, 2))
    x = _leaf(T, 1.0, 2.0)
    function.apply(x).sum().backward()
    return x.grad


@differential
def test_none_gradient(T: Any) -> Any:
    function = _function(T, "Stop", forward=lambda ctx, x, y: x * y, backward=lambda ctx, grad: (grad, None))
    x, y = _leaf(T, 1.0), _leaf(T, 2.0)
    function.apply(x, y).backward()
    direct = outcome(lambda: T.autograd.grad(function.apply(x, y), y, allow_unused=True))
    return x.grad, y.grad, direct


@differential
def test_needs_input_grad(T: Any) -> Any:
    seen = []

    def backward(ctx: Any, grad: Any) -> Any:
        seen.append(ctx.needs_input_grad)
        return grad, grad, None

    function = _function(T, "Sum", forward=lambda ctx, x, y, k: x + y, backward=backward)
    x, y = _leaf(T, 1.0), T.ones(1)
    function.apply(x, y, 3).backward()
    function.apply(y, x, 3).backward()
    return seen, type(seen[0]).__name__


@differential
def test_needs_input_grad_in_forward_and_with_inputs_argument(T: Any) -> Any:
    seen = []

    def forward(ctx: Any, x: Any, y: Any) -> Any:
        seen.append(ctx.needs_input_grad)
        return x * y

    def backward(ctx: Any, grad: Any) -> Any:
        seen.append(ctx.needs_input_grad)
        return grad, grad

    function = _function(T, "Product", forward=forward, backward=backward)
    x, y = _leaf(T, 1.0), _leaf(T, 2.0)
    function.apply(x, y).backward(inputs=[y])
    return seen, x.grad, y.grad


@differential
def test_mark_dirty(T: Any) -> Any:
    def forward(ctx: Any, x: Any) -> Any:
        x.mul_(3)
        ctx.mark_dirty(x)
        return x

    triple_ = _function(T, "Triple", forward=forward, backward=lambda ctx, grad: grad * 3)
    x = _leaf(T, 1.0, 2.0)
    y = x * 1
    version = y._version
    z = triple_.apply(y)
    z.sum().backward()
    leaf = outcome(lambda: triple_.apply(x), "a leaf Variable that requires grad")
    return z is y, y._version - version, y.grad_fn.name(), x.grad, leaf


@differential
def test_mark_dirty_on_a_view(T: Any) -> Any:
    def forward(ctx: Any, x: Any) -> Any:
        x.mul_(3)
        ctx.mark_dirty(x)
        return x

    triple_ = _function(T, "Triple", forward=forward, backward=lambda ctx, grad: grad * 3)
    x = _leaf(T, 1.0, 2.0)
    base = x * 1
    triple_.apply(base[:1])
    base.sum().backward()
    return base, x.grad


@differential
def test_a_changed_view_without_a_gradient_gives_none_to_its_base(T: Any) -> Any:
    def forward(ctx: Any, x: Any) -> Any:
        x.mul_(3)
        ctx.mark_dirty(x)
        return x

    triple_ = _function(T, "Triple", forward=forward, backward=lambda ctx, grad: None)
    x = _leaf(T, 1.0, 2.0)
    triple_.apply((x * 1).view(2, 1)).sum().backward()
    return x.grad


@pytest.mark.parametrize("shape", [(1,), (2, 1), (4,)])
@differential
def test_gradients_that_nobody_waits_for_must_fit_too(T: Any, shape: Any) -> Any:
    def forward(ctx: Any, x: Any, y: Any) -> Any:
        ctx.mark_dirty(x)
        return x.mul_(2), y * 2

    function = _function(T, "Odd", forward=forward, backward=lambda ctx, *grads: (T.ones(shape), T.ones(2, 2)))
    x, y = T.ones(2, 2, requires_grad=True) * 1, T.ones(2, 2, requires_grad=True)
    total = sum(each.sum() for each in function.apply(x, y))
    return outcome(lambda: T.autograd.grad(total, [x, y]), "returned an invalid gradient at index 0")


@pytest.mark.parametrize("hooked", [False, True])
@differential
def test_a_changed_view_that_has_lost_its_history_is_saved(T: Any, hooked: bool) -> Any:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.mark_non_differentiable(x.mul_(2))
        ctx.save_for_backward(x)
        return x

    function = _function(T, "Odd", forward=forward, backward=lambda ctx, grad: grad)
    x = T.stack([_leaf(T, 1.0, 2.0)] * 2).unbind(0)[1]
    lost = "is a view and its base or another view of its base has been modified inplace"
    if not hooked:
        return function.apply(x), outcome(lambda: x.grad_fn, lost)
    with T.autograd.graph.saved_tensors_hooks(lambda each: each.clone(), lambda each: each):
        return outcome(lambda: function.apply(x), lost)


@differential
def test_mark_dirty_on_what_is_not_returned(T: Any) -> Any:
    def forward(ctx: Any, x: Any) -> Any:
        x.mul_(3)
        ctx.mark_dirty(x)
        return x * 1

    function = _function(T, "Odd", forward=forward, backward=lambda ctx, grad: grad * 3)
    return outcome(
        lambda: function.apply(_leaf(T, 1.0) * 1),
        "Some elements marked as dirty during the forward method were not returned",
    )


@differential
def test_mark_non_differentiable(T: Any) -> Any:
    def forward(ctx: Any, x: Any) -> Any:
        order = x.argsort()
        doubled = x * 2
        ctx.mark_non_differentiable(order, doubled)
        return x.sort().values, order, doubled

    seen = []

    def backward(ctx: Any, grad: Any, *others: Any) -> Any:
        seen.extend(None if other is None else other.tolist() for other in others)
        return grad

    function = _function(T, "Sort", forward=forward, backward=backward)
    x = _leaf(T, 2.0, 1.0)
    values, order, doubled = function.apply(x)
    values.sum().backward()
    return values.requires_grad, order, doubled, seen, x.grad


@differential
def test_integer_outputs_are_never_differentiable(T: Any) -> Any:
    function = _function(
        T, "Order", forward=lambda ctx, x: (x * 1, x.argsort()), backward=lambda ctx, grad, other: grad
    )
    values, order = function.apply(_leaf(T, 2.0, 1.0))
    return values.requires_grad, order.requires_grad, order


@differential
def test_materialized_gradients(T: Any) -> Any:
    def run(materialize: bool) -> Any:
        seen = []

        def forward(ctx: Any, x: Any) -> Any:
            ctx.set_materialize_grads(materialize)
            return x * 1, x * 2

        def backward(ctx: Any, first: Any, second: Any) -> Any:
            seen.append(second)
            return first

        x = _leaf(T, 1.0, 2.0)
        _function(T, "Pair", forward=forward, backward=backward).apply(x)[0].sum().backward()
        return seen, x.grad

    return run(True), run(False)


@differential
def test_once_differentiable(T: Any) -> Any:
    def backward(ctx: Any, grad: Any) -> Any:
        (x,) = ctx.saved_tensors
        return grad * 2 * x

    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * x

    once = T.autograd.function.once_differentiable
    function = _function(T, "Square", forward=forward, backward=once(backward))
    x = _leaf(T, 3.0)
    function.apply(x).backward()
    plain = x.grad.clone()
    (alone,) = T.autograd.grad(function.apply(x), x, create_graph=True)
    (first,) = T.autograd.grad(function.apply(x) ** 2, x, create_graph=True)
    failed = outcome(
        first.backward, "trying to differentiate twice a function that was marked with @once_differentiable"
    )
    return plain, alone, first.requires_grad, failed


@differential
def test_context_attributes(T: Any) -> Any:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.note = {"shape": tuple(x.shape)}
        ctx.scale = 4
        return x * ctx.scale

    def backward(ctx: Any, grad: Any) -> Any:
        ctx.note["seen"] = True
        return grad * ctx.scale

    function = _function(T, "Noted", forward=forward, backward=backward)
    x = _leaf(T, 1.0)
    y = function.apply(x)
    before = dict(y.grad_fn.note)
    y.backward()
    return before, y.grad_fn.note, y.grad_fn.scale, x.grad


@differential
def test_saved_tensors_on_the_node(T: Any) -> Any:
    y = _exponential(T).apply(_leaf(T, 1.0))
    saved = y.grad_fn.saved_tensors
    return (
        type(saved).__name__,
        len(saved),
        saved[0].tolist(),
        saved[0].data_ptr() == y.data_ptr(),
        [type(raw).__name__ for raw in y.grad_fn._raw_saved_tensors],
        y.grad_fn.to_save is None,
    )


@differential
def test_saving_non_tensors_is_refused(T: Any) -> Any:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x, 3)
        return x * 1

    function = _function(T, "Bad", forward=forward, backward=lambda ctx, grad: grad)
    return outcome(
        lambda: function.apply(_leaf(T, 1.0)),
        "save_for_backward can only save variables, but argument 1 is of type int",
    )


@differential
def test_saving_none_is_allowed(T: Any) -> Any:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x, None)
        return x * 1

    seen = []

    def backward(ctx: Any, grad: Any) -> Any:
        seen.append([saved is None for saved in ctx.saved_tensors])
        return grad

    _function(T, "Holes", forward=forward, backward=backward).apply(_leaf(T, 1.0)).backward()
    return seen


@differential
def test_saved_input_keeps_its_history(T: Any) -> Any:
    seen = []

    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * x

    def backward(ctx: Any, grad: Any) -> Any:
        (x,) = ctx.saved_tensors
        seen.append((x.requires_grad, x.is_leaf, x.grad_fn is not None))
        return grad * 2 * x

    function = _function(T, "Square", forward=forward, backward=backward)
    x = _leaf(T, 3.0)
    function.apply(x).backward()
    function.apply(x * 2).backward()
    return seen, x.grad


@differential
def test_saved_tensor_modified(T: Any) -> Any:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * x

    def backward(ctx: Any, grad: Any) -> Any:
        (x,) = ctx.saved_tensors
        return grad * 2 * x

    y = _leaf(T, 3.0) * 1
    z = _function(T, "Square", forward=forward, backward=backward).apply(y)
    y.add_(1)
    return outcome(z.backward, "modified by an inplace operation")


@differential
def test_freed_saved_tensors(T: Any) -> Any:
    y = _exponential(T).apply(_leaf(T, 1.0))
    y.backward()
    phrase = "Trying to backward through the graph a second time"
    return outcome(y.backward, phrase), outcome(lambda: y.grad_fn.saved_tensors, phrase)


@differential
def test_errors_in_forward_and_backward_propagate(T: Any) -> Any:
    def fail(*arguments: Any) -> None:
        raise KeyError("custom failure")

    forward = _function(T, "A", forward=fail, backward=lambda ctx, grad: grad)
    backward = _function(T, "B", forward=lambda ctx, x: x * 1, backward=fail)
    missing = _function(T, "C", forward=lambda ctx, x: x * 1)
    empty = _function(T, "D")
    x = _leaf(T, 1.0)
    return (
        outcome(lambda: forward.apply(x), "custom failure"),
        outcome(lambda: backward.apply(x).backward(), "custom failure"),
        outcome(lambda: missing.apply(x).backward(), "must implement either the backward"),
        outcome(lambda: empty.apply(x), "forward"),
        outcome(lambda: T.autograd.Function()(x), "Legacy autograd function with non-static forward method"),
    )


@differential
def test_backward_and_vjp_are_the_same(T: Any) -> Any:
    function = _function(T, "Double", forward=lambda ctx, x: x * 2, vjp=lambda ctx, grad: grad * 2)
    both = _function(
        T, "Both", forward=lambda ctx, x: x * 2, vjp=lambda ctx, grad: grad, backward=lambda ctx, grad: grad
    )
    x = _leaf(T, 1.0)
    function.apply(x).backward()
    return x.grad, outcome(lambda: both.apply(x).backward(), "Implementing both")


@differential
def test_input_returned_unchanged(T: Any) -> Any:
    seen = []

    def backward(ctx: Any, grad: Any) -> Any:
        seen.append(grad.item())
        return grad * 10

    identity = _function(T, "Identity", forward=lambda ctx, x: x, backward=backward)
    x = _leaf(T, 1.0)
    y = identity.apply(x)
    (y * 2).backward()
    return y is x, y.grad_fn.name(), seen, x.grad


@differential
def test_view_returned(T: Any) -> Any:
    first = _function(T, "First", forward=lambda ctx, x: x[:1], backward=lambda ctx, grad: T.cat([grad, grad * 0]))
    x = _leaf(T, 1.0, 2.0)
    base = x * 1
    view = first.apply(base)
    flags = (view._is_view(), view.tolist())
    changed = outcome(lambda: view.mul_(2), "is a view and is being modified inplace")
    first.apply(x).sum().backward()
    return flags, changed, x.grad


@differential
def test_outputs_of_many_kinds(T: Any) -> Any:
    def forward(ctx: Any, x: Any) -> Any:
        return x * 2, 7, "text", None

    function = _function(T, "Mixed", forward=forward, backward=lambda ctx, grad, *others: grad * 2)
    x = _leaf(T, 1.0)
    outputs = function.apply(x)
    outputs[0].backward()
    return type(outputs).__name__, outputs[1:], x.grad


@differential
def test_several_outputs(T: Any) -> Any:
    function = _function(
        T, "Halves", forward=lambda ctx, x: (x * 2, x * 3), backward=lambda ctx, a, b: (a * 2 + b * 3) * 1
    )
    x = _leaf(T, 1.0, 2.0)
    a, b = function.apply(x)
    same = a.grad_fn is b.grad_fn
    (a * b).sum().backward()
    return same, a.output_nr, b.output_nr, x.grad


@differential
def test_tensors_in_lists_are_not_tracked(T: Any) -> Any:
    function = _function(T, "Total", forward=lambda ctx, items: items[0] + items[1], backward=lambda ctx, grad: None)
    return function.apply([_leaf(T, 1.0), _leaf(T, 2.0)])


@differential
def test_straight_through_estimator(T: Any) -> Any:
    function = _function(T, "RoundThrough", forward=lambda ctx, x: x.round(), backward=lambda ctx, grad: grad)
    x = _leaf(T, 0.4, 1.6)
    (function.apply(x) * T.tensor([1.0, 2.0])).sum().backward()
    return x.grad


@differential
def test_saved_output_and_input_with_second_derivative(T: Any) -> Any:
    def forward(ctx: Any, x: Any) -> Any:
        result = T.sqrt(x)
        ctx.save_for_backward(x, result)
        return result

    def backward(ctx: Any, grad: Any) -> Any:
        _, result = ctx.saved_tensors
        return grad / (2 * result)

    root = _function(T, "Root", forward=forward, backward=backward)
    x = T.tensor([0.25, 4.0], dtype=T.float64, requires_grad=True)
    return T.autograd.gradcheck(root.apply, (x,)), T.autograd.gradgradcheck(root.apply, (x,))


@differential
def test_forward_mode(T: Any) -> Any:
    def forward(ctx: Any, x: Any, y: Any) -> Any:
        ctx.save_for_forward(x, y)
        return x * y

    def jvp(ctx: Any, x_tangent: Any, y_tangent: Any) -> Any:
        x, y = ctx.saved_tensors
        return x_tangent * y + (0 if y_tangent is None else x * y_tangent)

    function = _function(T, "Product", forward=forward, jvp=jvp, backward=lambda ctx, grad: (grad, grad))
    forward_ad = T.autograd.forward_ad
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(T.tensor([2.0, 3.0]), T.tensor([1.0, 10.0]))
        result = forward_ad.unpack_dual(function.apply(dual, T.tensor([5.0, 7.0])))
        return result.primal, result.tangent


@differential
def test_nested_functions(T: Any) -> Any:
    exponential = _exponential(T)

    def backward(ctx: Any, grad: Any) -> Any:
        (x,) = ctx.saved_tensors
        return grad * exponential.apply(x)

    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return exponential.apply(x)

    function = _function(T, "Outer", forward=forward, backward=backward)
    x = T.tensor([0.5], dtype=T.float64, requires_grad=True)
    (first,) = T.autograd.grad(function.apply(x), x, create_graph=True)
    return first.detach(), T.autograd.grad(first, x)


@differential
def test_what_a_node_says_of_itself(T: Any) -> Any:
    node = _exponential(T).apply(_leaf(T, 1.0)).grad_fn
    said = (repr(node).partition(" object at ")[0], type(node).__module__, repr(type(node)))
    return node.name(), [each.replace("flambeau", "torch") for each in said]


@differential
def test_arguments_that_are_left_out(T: Any) -> Any:
    """In the style with `setup_context` they are inputs like the others, and have gradients like the others."""
    seen: list[Any] = []

    def forward(x: Any, factor: float = 2.0, power: int = 2) -> Any:
        return factor * x**power

    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        seen.append(inputs[1:])
        ctx.save_for_backward(inputs[0])

    def backward(ctx: Any, grad: Any) -> Any:
        seen.append(ctx.needs_input_grad)
        return grad * ctx.saved_tensors[0], None, None

    def short(ctx: Any, grad: Any) -> Any:
        return grad

    x = _leaf(T, 1.0, 2.0)
    methods = {"forward": forward, "setup_context": setup_context}
    function = _function(T, "Powers", backward=backward, **methods)
    for arguments in ((), (3.0,), (3.0, 1)):
        function.apply(x, *arguments).sum().backward()
    function.apply(x, power=3).sum().backward()
    refused = _function(T, "Short", backward=short, **methods).apply(x).sum()
    return seen, x.grad, outcome(refused.backward, "returned an incorrect number of gradients (expected 3, got 1)")


@differential
def test_changing_a_leaf(T: Any) -> Any:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.mark_dirty(x)
        return x.mul_(2)

    function = _function(T, "Doubled", forward=forward, backward=lambda ctx, grad: grad * 2)
    return outcome(lambda: function.apply(_leaf(T, 1.0)), "a leaf Variable that requires grad has been used in an in-")


@differential
def test_changes_of_leaves_and_what_leaves_the_graph(T: Any) -> Any:
    """Views of leaves refuse a change; an input that is changed and marked as not differentiable has no history."""

    class Added(T.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, marked: bool) -> Any:
            ctx.mark_dirty(x.add_(1))
            if marked:
                ctx.mark_non_differentiable(x)
            return x

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad, None

    x = T.ones(4, requires_grad=True)
    refused = [outcome(lambda: Added.apply(x, False), "a leaf Variable that requires grad")]
    refused.append(outcome(lambda: Added.apply(x[:2], False), "a view of a leaf Variable that requires grad"))
    y = T.ones(4, requires_grad=True)
    base = y.clone()
    Added.apply(base[:2], False)
    (base * base).sum().backward()
    return refused, Added.apply(y.clone(), True), base, y.grad


@differential
def test_gradients_in_one_list(T: Any) -> Any:
    class Both(T.autograd.Function):
        boxed_grads_call = True

        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 1, x * 2

        @staticmethod
        def backward(ctx: Any, grads: Any) -> Any:
            total = grads[0] + 2 * grads[1]
            grads.clear()
            return total

    x = T.ones(2, requires_grad=True)
    first, second = Both.apply(x)
    (first.sum() + second.sum()).backward()
    return x.grad


@differential
def test_names_that_users_choose_for_the_context(T: Any) -> Any:
    """The engine has attributes of the same names on its nodes: none of the user's values is lost."""
    names = ("edges", "outputs", "place", "code", "instruction", "sequence", "hooks", "inputs", "saved", "index")
    seen = []

    def forward(ctx: Any, x: Any) -> Any:
        for number, name in enumerate(names):
            setattr(ctx, name, number)
        return x * 1

    def backward(ctx: Any, grad: Any) -> Any:
        seen.append([getattr(ctx, name) for name in names])
        ctx.edges += 10
        return grad * 2

    x = _leaf(T, 1.0, 2.0)
    y = _function(T, "Named", forward=forward, backward=backward).apply(x)
    y.sum().backward(retain_graph=True)
    y.sum().backward()
    return seen, x.grad


@differential
def test_changed_views_are_the_only_output(T: Any) -> Any:
    def forward(ctx: Any, x: Any) -> Any:
        x.add_(1)
        ctx.mark_dirty(x)
        return x, x.clone()

    changed = _function(T, "Changed", forward=forward, backward=lambda ctx, first, second: first + second)
    x = _leaf(T, 1.0, 2.0, 3.0).clone()
    return outcome(lambda: changed.apply(x[:2]), "cannot return more than one Tensor"), changed.apply(x.clone())[0]


@differential
def test_once_differentiable_leaves_an_error_in_the_graph(T: Any) -> Any:
    once = T.autograd.function.once_differentiable(lambda ctx, grad: grad * 2)
    function = _function(T, "Once", forward=lambda ctx, x: x * 1, backward=once)
    x = _leaf(T, 1.0)
    start = _leaf(T, 1.0)
    (grad,) = T.autograd.grad(function.apply(x), x, start, create_graph=True)
    return type(grad.grad_fn).__name__, outcome(grad.backward, "marked with @once_differentiable")


@differential
def test_inputs_returned_as_not_differentiable(T: Any) -> Any:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.mark_non_differentiable(x)
        return x

    function = _function(T, "Same", forward=forward, backward=lambda ctx, grad: grad)
    x = _leaf(T, 1.0, 2.0).clone()
    y = function.apply(x)
    with T.no_grad():
        z = function.apply(x)
    return [(each.requires_grad, each._is_view(), each.data_ptr() == x.data_ptr(), each is x) for each in (y, z)]


@differential
def test_marks_on_what_is_no_tensor(T: Any) -> Any:
    def calling(name: str, value: Any) -> Any:
        def forward(ctx: Any, x: Any) -> Any:
            getattr(ctx, name)(value)
            return x * 2

        function = _function(T, "Marks", forward=forward, backward=lambda ctx, grad: grad)
        return outcome(lambda: function.apply(_leaf(T, 1.0)), "variable")

    return [calling(name, value) for name in ("mark_dirty", "mark_non_differentiable") for value in (3, "x", None)]


@differential
def test_marking_what_is_no_input_as_changed(T: Any) -> Any:
    def forward(ctx: Any, x: Any, made: Any) -> Any:
        result = made(x)
        ctx.mark_dirty(result)
        return result

    function = _function(T, "Made", forward=forward, backward=lambda ctx, grad: (grad, None))
    x = _leaf(T, 1.0, 2.0)
    return (
        warned(lambda: function.apply(x, lambda x: x * 2), "that was not an input"),
        outcome(lambda: function.apply(x * 1, lambda x: x.view(2)), "in-place operation"),
    )


@differential
def test_unrecorded_calls_return_tensors_outside_the_graph(T: Any) -> Any:
    function = _function(T, "Same", forward=lambda ctx, x: (x, x * 2), backward=lambda ctx, first, second: first)
    x = _leaf(T, 1.0, 2.0)
    with T.no_grad():
        plain = function.apply(x)
    with T.inference_mode():
        inference = function.apply(x)
    same, doubled = function.apply(x)
    return plain, inference[0].requires_grad, same._is_view(), outcome(lambda: same.mul_(2), "multiple views"), doubled


@differential
def test_an_input_that_setup_context_saves_is_not_returned(T: Any) -> Any:
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs)

    function = _function(T, "Same", forward=lambda x: x, setup_context=setup_context, backward=lambda ctx, grad: grad)
    return outcome(lambda: function.apply(_leaf(T, 1.0)), "returned as-is as output is being saved for backward")


@differential
def test_gradients_are_fitted_before_hooks_see_them(T: Any) -> Any:
    seen = []

    def result_of(gradient: Any) -> Any:
        function = _function(T, "Own", forward=lambda ctx, x: x * 1, backward=lambda ctx, grad: gradient)
        x = _leaf(T, 1.0, 2.0)
        x.register_hook(lambda grad: seen.append(("leaf", grad)))
        y = function.apply(x)
        y.grad_fn.register_hook(lambda given, grads: seen.append(("node", given[0])))
        y.sum().backward()
        return x.grad

    return (
        outcome(lambda: result_of("no"), "expected Variable or None"),
        outcome(lambda: result_of(T.ones(3)), "invalid gradient at index 0"),
        result_of(T.ones(3, 2)),
        result_of(None),
        seen,
    )


@differential
def test_one_view_is_not_several(T: Any) -> Any:
    one = _function(T, "View", forward=lambda ctx, x: x.view(-1), backward=lambda ctx, grad: grad)
    also = _function(T, "Views", forward=lambda ctx, x: (x.view(-1), x * 2), backward=lambda ctx, *grads: grads[0])
    x = _leaf(T, 1.0, 2.0).clone()
    return (
        outcome(lambda: one.apply(x).mul_(2), "inside a custom Function"),
        outcome(lambda: also.apply(x)[0].mul_(2), "multiple views"),
    )


@differential
def test_outputs_with_a_graph_of_their_own(T: Any) -> Any:
    def forward(ctx: Any, x: Any) -> Any:
        with T.enable_grad():
            made = x.detach().requires_grad_() * 2
        ctx.mark_non_differentiable(made)
        return made, x * 3

    function = _function(T, "Graph", forward=forward, backward=lambda ctx, first, second: second * 3)
    x = _leaf(T, 1.0, 2.0)
    made, tripled = function.apply(x)
    with T.no_grad():
        unrecorded = function.apply(x)[0]
    return made, tripled, unrecorded


_MADE_UNTRACKED = {
    "no_grad": lambda T, x: _without_gradients(T, x).view(2),
    "unbind": lambda T, x: (x * 1).view(1, 2).unbind(0)[0],
}


def _without_gradients(T: Any, x: Any) -> Any:
    with T.no_grad():
        return x.view(2)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("fixed", [False, True], ids=["differentiable", "not"])
@pytest.mark.parametrize("dirty", [False, True])
@pytest.mark.parametrize("made", list(_MADE_UNTRACKED))
@differential
def test_saved_views_that_cannot_follow_their_base(T: Any, made: str, dirty: bool, fixed: bool, packed: bool) -> Any:
    """Changed in `forward`, such a view has no history: whoever asks for it is told so, when it is asked for."""

    def forward(ctx: Any, x: Any, y: Any) -> Any:
        result = y.copy_(x)
        ctx.save_for_backward(result)
        if fixed:
            ctx.mark_non_differentiable(result)
        if dirty:
            ctx.mark_dirty(y)
        return result

    def backward(ctx: Any, grad: Any) -> Any:
        assert len(ctx.saved_tensors) == 1
        return grad, grad

    function = _function(T, "Own", forward=forward, backward=backward)
    leaf = _leaf(T, 1.0, 2.0)
    y = _MADE_UNTRACKED[made](T, leaf)
    hooks = T.autograd.graph.saved_tensors_hooks(lambda each: each.clone(), lambda each: each)

    def applied() -> Any:
        if not packed:
            return function.apply(T.ones(2), y)
        with hooks:
            return function.apply(T.ones(2), y)

    result = outcome(applied)
    if result[0] == "error":
        return result
    ended = outcome(lambda: result[1].sum().backward())
    return result[1].requires_grad, result[1]._is_view(), ended, outcome(lambda: y.grad_fn), leaf.grad


@pytest.mark.parametrize("kind", ["leaf", "view", "unbind", "split"])
@differential
def test_a_changed_view_without_history_is_saved_itself(T: Any, kind: str) -> Any:
    seen = []

    def forward(x: Any, y: Any) -> Any:
        return x.mul_(2), x.sum() + y.sum()

    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.mark_dirty(inputs[0])
        ctx.mark_non_differentiable(inputs[0])
        ctx.save_for_backward(inputs[0])

    def backward(ctx: Any, *grads: Any) -> Any:
        seen.extend((each is x, each.requires_grad) for each in ctx.saved_tensors)
        return None, None

    function = _function(T, "Own", forward=forward, setup_context=setup_context, backward=backward)
    base = T.tensor([[1.0, 2.0], [3.0, 4.0]])
    x = {"leaf": base, "view": base[0], "unbind": base.unbind(0)[0], "split": base.split(1)[0]}[kind]
    _, result = function.apply(x, _leaf(T, 1.0) * 1)
    x.requires_grad_()
    result.backward()
    return seen
