"""`autograd.grad`: every option, intermediates, several outputs, unused inputs, batched seeds."""

from __future__ import annotations

import types
from typing import Any

import pytest

import flambeau
from tests.support.differential import differential, outcome
from tests.support.interpreters import heard

UNUSED = "appears to not have been used in the graph"
FREED = "Trying to backward through the graph a second time"


def _leaf(T: Any, *values: float) -> Any:
    return T.tensor(list(values), requires_grad=True)


@differential
def test_returns_a_tuple_and_leaves_grad_alone(T: Any) -> Any:
    x, y = _leaf(T, 1.0, 2.0), _leaf(T, 3.0, 4.0)
    result = T.autograd.grad((x * y).sum(), (x, y))
    return type(result).__name__, result, x.grad, y.grad


@differential
def test_single_input_still_gives_a_tuple(T: Any) -> Any:
    x = _leaf(T, 1.0, 2.0)
    return T.autograd.grad((x**2).sum(), x)


@differential
def test_order_of_results_is_the_order_of_inputs(T: Any) -> Any:
    x, y, z = _leaf(T, 1.0), _leaf(T, 2.0), _leaf(T, 3.0)
    return T.autograd.grad((x * y * z).sum(), [z, x, y])


@differential
def test_same_input_twice(T: Any) -> Any:
    x = _leaf(T, 2.0)
    first, second = T.autograd.grad((x**2).sum(), [x, x])
    return first, second


@differential
def test_gradient_of_an_intermediate(T: Any) -> Any:
    x = _leaf(T, 0.5, 1.5)
    middle = x.exp()
    return T.autograd.grad(middle.sin().sum(), [middle, x])


@differential
def test_gradient_of_the_output_itself(T: Any) -> Any:
    x = _leaf(T, 0.5)
    y = x * 3
    return T.autograd.grad(y, y), T.autograd.grad(x, x), T.autograd.grad(y, [x, y])


@differential
def test_intermediate_alone_does_not_run_what_lies_before_it(T: Any) -> Any:
    calls = []
    x = _leaf(T, 0.5)
    early = x * 2
    early.register_hook(lambda grad: calls.append("early"))
    late = early * 3
    grads = T.autograd.grad(late * 5, late)
    return grads, calls


@differential
def test_one_output_of_a_multi_output_op(T: Any) -> Any:
    x = T.tensor([[3.0, 1.0], [2.0, 4.0]], requires_grad=True)
    values, indices = x.sort(dim=1)
    return T.autograd.grad((values * T.tensor([[1.0, 2.0], [3.0, 4.0]])).sum(), [values, x]), indices


@differential
def test_several_outputs_with_seeds(T: Any) -> Any:
    x = _leaf(T, 1.0, 2.0)
    outputs = [x * 2, x**2, x.sum()]
    return T.autograd.grad(outputs, x, grad_outputs=[T.tensor([1.0, 0.0]), T.tensor([0.0, 1.0]), None])


@differential
def test_several_scalar_outputs_are_summed(T: Any) -> Any:
    x, y = _leaf(T, 1.0, 2.0), _leaf(T, 3.0)
    return T.autograd.grad([x.sum(), (x * y).sum(), y.exp().sum()], [x, y])


@differential
def test_a_bare_seed_for_a_bare_output(T: Any) -> Any:
    x = _leaf(T, 1.0, 2.0)
    return T.autograd.grad(x**2, x, T.tensor([10.0, 1.0]))


@differential
def test_seed_with_history(T: Any) -> Any:
    x, seed = _leaf(T, 1.0, 2.0), _leaf(T, 3.0, 4.0)
    (first,) = T.autograd.grad(x**3, x, grad_outputs=seed, create_graph=True)
    return first.detach(), T.autograd.grad(first.sum(), [x, seed])


@differential
def test_create_graph_gives_derivatives_of_any_order(T: Any) -> Any:
    x = T.tensor(0.7, dtype=T.float64, requires_grad=True)
    y = x.sin() * x**3
    values = []
    for _ in range(5):
        (y,) = T.autograd.grad(y, x, create_graph=True)
        values.append(y.item())
    return values, y.requires_grad


@differential
def test_gradient_has_no_history_without_create_graph(T: Any) -> Any:
    x = _leaf(T, 1.0)
    (gradient,) = T.autograd.grad(x**3, x)
    return gradient, outcome(gradient.backward, "does not require grad")


@differential
def test_constant_gradient_with_create_graph(T: Any) -> Any:
    x = _leaf(T, 1.0)
    (gradient,) = T.autograd.grad(x * 3, x, create_graph=True)
    return gradient.requires_grad, gradient.grad_fn is None


@differential
def test_gradient_penalty(T: Any) -> Any:
    weight = T.tensor([[0.5, -1.0], [0.25, 2.0]], requires_grad=True)
    x = _leaf(T, 1.0, -1.0)
    score = T.tanh(x @ weight).sum()
    (slope,) = T.autograd.grad(score, x, create_graph=True)
    ((slope.norm() - 1) ** 2).backward()
    return slope.detach(), weight.grad


@differential
def test_graph_is_freed_unless_retained(T: Any) -> Any:
    x = _leaf(T, 1.0)
    y = x.exp()
    kept = T.autograd.grad(y, x, retain_graph=True)
    last = T.autograd.grad(y, x)
    return kept, last, outcome(lambda: T.autograd.grad(y, x), FREED)


@differential
def test_create_graph_implies_retain_graph(T: Any) -> Any:
    x = _leaf(T, 1.0)
    y = x.exp()
    T.autograd.grad(y, x, create_graph=True)
    again = T.autograd.grad(y, x)
    z = x.exp()
    T.autograd.grad(z, x, create_graph=True, retain_graph=False)
    return again, outcome(lambda: T.autograd.grad(z, x), FREED)


@differential
def test_unused_input(T: Any) -> Any:
    x, stranger = _leaf(T, 1.0), _leaf(T, 2.0, 3.0)
    y = x * 2
    return (
        outcome(lambda: T.autograd.grad(y, [x, stranger], retain_graph=True), UNUSED, "allow_unused=True"),
        T.autograd.grad(y, [x, stranger], retain_graph=True, allow_unused=True),
        T.autograd.grad(y, stranger, allow_unused=True),
    )


@differential
def test_sibling_intermediate_is_unused(T: Any) -> Any:
    x = _leaf(T, 1.0)
    used, sibling = x * 2, x * 3
    return (
        outcome(lambda: T.autograd.grad(used, sibling, retain_graph=True), UNUSED),
        T.autograd.grad(used, [sibling, x], allow_unused=True),
    )


@differential
def test_slice_after_use_is_unused(T: Any) -> Any:
    x = _leaf(T, 1.0, 2.0)
    y = (x * 2).sum()
    return outcome(lambda: T.autograd.grad(y, x[0], retain_graph=True), UNUSED)


@differential
def test_materialize_grads(T: Any) -> Any:
    x, stranger = _leaf(T, 1.0), T.ones(2, 3, dtype=T.float64, requires_grad=True)
    y = x * 2
    return (
        T.autograd.grad(y, [x, stranger], materialize_grads=True, retain_graph=True),
        T.autograd.grad(y, [x, stranger], materialize_grads=True, allow_unused=True, retain_graph=True),
        outcome(
            lambda: T.autograd.grad(y, [x, stranger], materialize_grads=True, allow_unused=False), "materialize_grads"
        ),
    )


@differential
def test_materialized_zeros_under_create_graph(T: Any) -> Any:
    x, stranger = _leaf(T, 1.0), _leaf(T, 2.0)
    used, unused = T.autograd.grad(x**2, [x, stranger], materialize_grads=True, create_graph=True)
    return used.requires_grad, unused.tolist(), unused.requires_grad


@differential
def test_errors_about_arguments(T: Any) -> Any:
    x, constant = _leaf(T, 1.0, 2.0), T.ones(2)
    y = x * 2
    return (
        outcome(lambda: T.autograd.grad(y, x), "grad can be implicitly created only for scalar outputs"),
        outcome(lambda: T.autograd.grad(y.sum(), constant), "One of the differentiated Tensors does not require grad"),
        outcome(lambda: T.autograd.grad(constant.sum(), x), "does not require grad and does not have a grad_fn"),
        outcome(lambda: T.autograd.grad(y, x, T.ones(3)), "Mismatch in shape"),
        outcome(lambda: T.autograd.grad(y.sum(), []), "empty"),
        outcome(lambda: T.autograd.grad([y, y], x, [T.ones(2)]), "got 2 tensors and 1 gradients"),
        outcome(lambda: T.autograd.grad(y.sum(), 3.0))[:2],
    )


@differential
def test_positional_only_where_pytorch_says(T: Any) -> Any:
    x = _leaf(T, 1.0)
    y = x**2
    return T.autograd.grad(y, x, None, True, True, False), T.autograd.grad(outputs=y, inputs=x)


@differential
def test_grad_works_under_no_grad(T: Any) -> Any:
    x = _leaf(T, 2.0)
    y = x**2
    with T.no_grad():
        return T.autograd.grad(y, x, create_graph=True)


@differential
def test_hooks_on_intermediates_change_the_result(T: Any) -> Any:
    x = _leaf(T, 1.0)
    y = x * 2
    y.register_hook(lambda grad: grad * 10)
    return T.autograd.grad(y * 3, y), T.autograd.grad(y * 3, x)


@differential
def test_leaf_hooks_run_too(T: Any) -> Any:
    x = _leaf(T, 1.0)
    x.register_hook(lambda grad: grad * 10)
    return T.autograd.grad(x * 3, x), x.grad


@differential
def test_batched_seeds_give_a_jacobian(T: Any) -> Any:
    x = _leaf(T, 1.0, 2.0, 3.0)
    y = x**2 * x.sum()
    return T.autograd.grad(y, x, grad_outputs=T.eye(3), is_grads_batched=True)


@differential
def test_batched_seeds_for_several_outputs_and_inputs(T: Any) -> Any:
    x = T.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    w = T.tensor([[0.5, -1.0], [2.0, 1.0]], requires_grad=True)
    product, total = x @ w, (x * w).sum()
    seeds = [T.arange(12.0).reshape(3, 2, 2), T.tensor([1.0, 0.0, -1.0])]
    return T.autograd.grad([product, total], [x, w], grad_outputs=seeds, is_grads_batched=True)


@pytest.mark.parametrize(
    "name",
    [
        "exp",
        "mul",
        "sum_dim",
        "mean",
        "max_dim",
        "getitem",
        "cat",
        "matmul",
        "transpose",
        "softmax",
        "cumsum",
        "expand",
    ],
)
@differential
def test_batched_seeds_through_an_op(T: Any, name: str) -> Any:
    x = T.arange(6.0).reshape(2, 3).div(7).requires_grad_()
    functions: dict[str, Any] = {
        "exp": lambda: x.exp(),
        "mul": lambda: x * x.sin(),
        "sum_dim": lambda: x.sum(1),
        "mean": lambda: x.mean(0, keepdim=True),
        "max_dim": lambda: x.max(1).values,
        "getitem": lambda: x[:, 1:],
        "cat": lambda: T.cat([x, x * 2], 1),
        "matmul": lambda: x @ x.t(),
        "transpose": lambda: x.transpose(0, 1).reshape(-1),
        "softmax": lambda: x.softmax(1),
        "cumsum": lambda: x.cumsum(1),
        "expand": lambda: x.expand(2, 2, 3),
    }
    y = functions[name]()
    count = y.numel()
    seeds = T.eye(count).reshape(count, *y.shape)
    (jacobian,) = T.autograd.grad(y, x, grad_outputs=seeds, is_grads_batched=True)
    return jacobian.contiguous()  # the batch dimension may lie anywhere in memory


@differential
def test_batched_seed_of_wrong_shape(T: Any) -> Any:
    x = _leaf(T, 1.0, 2.0)
    return outcome(
        lambda: T.autograd.grad(x * 2, x, grad_outputs=T.ones(3, 5), is_grads_batched=True),
        "is_grads_batched=True",
        "mismatch",
    )


@differential
def test_batched_seeds_with_unused_input(T: Any) -> Any:
    x, stranger = _leaf(T, 1.0, 2.0), _leaf(T, 5.0)
    return T.autograd.grad(x**2, [x, stranger], T.eye(2), is_grads_batched=True, allow_unused=True)


@differential
def test_hessian_by_two_calls(T: Any) -> Any:
    x = T.tensor([1.0, 2.0, 3.0], dtype=T.float64, requires_grad=True)
    (slope,) = T.autograd.grad((x.prod() * x).sum(), x, create_graph=True)
    rows = [T.autograd.grad(entry, x, retain_graph=True)[0].tolist() for entry in slope.unbind()]
    return slope.tolist(), rows


@differential
def test_input_modified_in_place_afterwards(T: Any) -> Any:
    x = _leaf(T, 1.0, 2.0)
    y = x * 3
    before = y.clone()
    y.mul_(2)
    # y now names the in-place result, so the earlier value's consumers do not reach it.
    return T.autograd.grad(y.sum(), y, retain_graph=True), outcome(lambda: T.autograd.grad(before.sum(), y), UNUSED)


@differential
def test_mixed_dtypes(T: Any) -> Any:
    x = T.tensor([1.0, 2.0], dtype=T.float64, requires_grad=True)
    y = _leaf(T, 3.0, 4.0)
    return T.autograd.grad((x * y).sum(), [x, y])


def test_only_what_is_asked_for_is_computed() -> None:
    """`grad(y, [x])` leaves the product for the other factor's gradient out."""
    x, w = (flambeau.randn(3, 3, requires_grad=True) for _ in range(2))
    products = []
    for inputs in ([x], [x, w]):
        result = (x @ w).sum()
        names = heard(lambda result=result, inputs=inputs: flambeau.autograd.grad(result, inputs))
        products.append(sum("mm" in name for name in names))
    assert products == [1, 2]


@differential
def test_inputs_by_name(T: Any) -> Any:
    x, y = T.ones(2, requires_grad=True), T.ones(3, requires_grad=True)
    found = T.autograd.grad((x * 2).sum() + (y * 3).sum(), {"x": x, "y": y})
    T.autograd.backward((x * 2).sum() + (y * 3).sum(), inputs={"y": y})
    other = types.MappingProxyType({"x": x})
    return (
        found,
        list(found),
        x.grad,
        y.grad,
        T.autograd.grad((x * 2).sum(), {"x": x, "y": y}, allow_unused=True),
        outcome(lambda: T.autograd.grad((x * 2).sum(), other), "Other Mapping types are not supported"),
        outcome(lambda: T.autograd.backward((x * 2).sum(), inputs=other), "Other Mapping types are not supported"),
        outcome(lambda: T.autograd.grad((x * 2).sum(), {}), "cannot be empty"),
    )


@differential
def test_grad_and_backward_ask_classes_of_users(T: Any) -> Any:
    seen: list[str] = []

    class Own(T.Tensor):
        @classmethod
        def __torch_function__(cls, func: Any, kinds: Any, args: Any = (), kwargs: Any = None) -> Any:
            if func in (T.autograd.grad, T.autograd.backward):
                seen.append(func.__name__)
            return super().__torch_function__(func, kinds, args, kwargs or {})

    x = T.ones(2).as_subclass(Own).requires_grad_()
    (found,) = T.autograd.grad((x * 2).sum(), x)
    T.autograd.backward((x * 2).sum())
    return seen, type(found) is Own, type(x.grad) is T.Tensor, found.tolist()
