"""`Tensor.backward` and `autograd.backward`: seeds, accumulation, retained graphs, chosen inputs, and their errors."""

from __future__ import annotations

from typing import Any

import pytest

import flambeau as torch
from flambeau._dispatch.call.primitive import CALLS
from tests.support.differential import differential, outcome

FREED = "Trying to backward through the graph a second time"
NON_SCALAR = "grad can be implicitly created only for scalar outputs"
NO_GRAD = "does not require grad and does not have a grad_fn"


def _leaf(T: Any, *values: float) -> Any:
    return T.tensor(list(values), requires_grad=True)


@differential
def test_scalar_needs_no_seed(T: Any) -> Any:
    x = _leaf(T, 1.0, 2.0, 3.0)
    loss = (x * x).sum()
    returned = loss.backward()
    return returned, loss, x.grad


@differential
def test_zero_dim_leaf_is_its_own_output(T: Any) -> Any:
    x = T.tensor(3.0, requires_grad=True)
    x.backward()
    return x, x.grad


@differential
def test_one_element_of_any_rank_counts_as_scalar(T: Any) -> Any:
    x = T.ones(1, 1, 1, requires_grad=True)
    (x * 5).backward()
    return x.grad


@differential
def test_leaf_vector_with_seed(T: Any) -> Any:
    x = _leaf(T, 1.0, 2.0)
    x.backward(T.tensor([5.0, 6.0]))
    return x.grad


@differential
def test_gradient_argument_weights_the_outputs(T: Any) -> Any:
    x = T.ones(2, 2, requires_grad=True)
    y = x + 2
    z = y * y * 3
    z.mean().backward(retain_graph=True)
    first = x.grad.clone()
    y.backward(T.tensor([[0.5, -1.0], [2.0, 0.0]]), retain_graph=True)
    z.backward(gradient=T.ones(2, 2))
    return first, x.grad


@differential
def test_gradient_argument_may_be_given_by_position_or_name(T: Any) -> Any:
    x, y = _leaf(T, 1.0, 2.0), _leaf(T, 3.0, 4.0)
    seed = T.tensor([1.0, -1.0])
    (x * 2).backward(seed)
    (y * 2).backward(gradient=seed, retain_graph=None, create_graph=False, inputs=None)
    return x.grad, y.grad


@differential
def test_gradients_accumulate_over_calls(T: Any) -> Any:
    x = _leaf(T, 1.0, -2.0)
    seen = []
    for _ in range(3):
        (x**3).sum().backward()
        seen.append(x.grad.tolist())
    return seen


@differential
def test_accumulation_reuses_the_gradient_tensor(T: Any) -> Any:
    x = _leaf(T, 1.0, 2.0)
    (x * 3).sum().backward()
    first = x.grad
    version = first._version
    (x * 4).sum().backward()
    return x.grad is first, first, first._version - version


@differential
def test_accumulation_with_create_graph_makes_a_new_gradient_tensor(T: Any) -> Any:
    x = _leaf(T, 1.0, 2.0)
    (x**2).sum().backward(create_graph=True)
    first = x.grad
    (x**2).sum().backward(create_graph=True)
    return x.grad is first, first.tolist(), x.grad.tolist(), x.grad.requires_grad


@differential
def test_grad_set_to_none_starts_afresh(T: Any) -> Any:
    x = _leaf(T, 1.0)
    (x * 2).sum().backward()
    x.grad = None
    (x * 5).sum().backward()
    kept = x.grad
    x.grad.zero_()
    (x * 7).sum().backward()
    return x.grad, kept is x.grad


@differential
def test_gradient_has_the_leafs_dtype(T: Any) -> Any:
    half = T.ones(2, dtype=T.float16, requires_grad=True)
    double = T.ones(2, dtype=T.float64, requires_grad=True)
    single = T.ones(2, requires_grad=True)
    (half.to(T.float32) * single * double).sum().backward()
    return half.grad, single.grad, double.grad


@differential
def test_complex_leaf_with_real_loss(T: Any) -> Any:
    z = T.tensor([1 + 2j, -3 + 0.5j], requires_grad=True)
    (z * z.conj()).real.sum().backward()
    return z.grad


@differential
def test_real_leaf_with_complex_intermediate(T: Any) -> Any:
    x = _leaf(T, 1.0, 2.0)
    (x * T.tensor([1 + 1j, 2 - 3j])).abs().sum().backward()
    return x.grad


@differential
def test_implicit_seed_of_a_complex_scalar_is_refused(T: Any) -> Any:
    z = T.tensor(1 + 2j, requires_grad=True)
    given = T.tensor(1 + 2j, requires_grad=True)
    (given * 2).backward(T.tensor(1 + 0j))
    return outcome(lambda: (z * 2).backward(), "only for real scalar outputs but got"), given.grad


@differential
def test_used_twice_adds_up(T: Any) -> Any:
    x = _leaf(T, 2.0, 3.0)
    (x * x + x).sum().backward()
    return x.grad


@differential
def test_diamond_and_shared_subgraph(T: Any) -> Any:
    x = _leaf(T, 0.3, 0.7)
    hub = x.exp()
    left, right = hub.sin(), hub.cos()
    (left * right + hub).sum().backward()
    return x.grad


@differential
def test_only_tensors_that_require_grad_receive_one(T: Any) -> Any:
    x, frozen = _leaf(T, 1.0, 2.0), T.tensor([3.0, 4.0])
    y = x * frozen
    y.sum().backward()
    return x.grad, frozen.grad, frozen.requires_grad, outcome(lambda: y.grad)


@differential
def test_freezing_after_the_forward_pass(T: Any) -> Any:
    x, y = _leaf(T, 1.0), _leaf(T, 2.0)
    loss = (x * y).sum()
    y.requires_grad_(False)
    loss.backward()
    return x.grad, y.grad, y.requires_grad


@differential
def test_unfreezing_after_the_forward_pass_has_no_effect(T: Any) -> Any:
    x, y = _leaf(T, 1.0), T.tensor([2.0])
    loss = (x * y).sum()
    y.requires_grad = True
    loss.backward()
    return x.grad, y.grad


@differential
def test_requires_grad_only_changes_on_leaves(T: Any) -> Any:
    x = _leaf(T, 1.0)
    y = x * 2

    def unset() -> None:
        y.requires_grad = False

    def wrong_type() -> None:
        x.requires_grad = 3

    def set_again() -> None:
        y.requires_grad = True

    phrase = "you can only change requires_grad flags of leaf variables"
    return (
        outcome(unset, phrase, "detach"),
        outcome(set_again, phrase),
        outcome(lambda: y.requires_grad_(True) is y),
        outcome(lambda: y.requires_grad_(False), phrase),
        outcome(wrong_type, "requires_grad must be a bool"),
        y.requires_grad,
    )


@pytest.mark.parametrize("dtype", ["int64", "bool", "uint8", "int32"])
@differential
def test_only_floating_and_complex_tensors_require_grad(T: Any, dtype: str) -> Any:
    phrase = "can require gradients"

    def assign() -> None:
        T.zeros(2, dtype=getattr(T, dtype)).requires_grad = True

    return (
        outcome(lambda: T.zeros(2, dtype=getattr(T, dtype), requires_grad=True), phrase),
        outcome(assign, phrase),
        outcome(lambda: T.zeros(2, dtype=getattr(T, dtype)).requires_grad_(), phrase),
    )


@differential
def test_retain_graph_allows_a_second_pass(T: Any) -> Any:
    x = _leaf(T, 2.0)
    y = x.exp()
    y.backward(retain_graph=True)
    y.backward(retain_graph=True)
    y.backward()
    return x.grad, outcome(y.backward, FREED, "retain_graph=True")


@differential
def test_second_pass_without_saved_tensors_is_allowed(T: Any) -> Any:
    x = _leaf(T, 2.0, 3.0)
    y = (x + 1).sum()
    y.backward()
    y.backward()
    return x.grad


@differential
def test_a_freed_part_of_a_larger_graph_is_reported(T: Any) -> Any:
    x = _leaf(T, 2.0)
    hub = x.exp()
    hub.sin().backward()
    return outcome(lambda: hub.cos().backward(), FREED), x.grad


@differential
def test_create_graph_keeps_the_graph(T: Any) -> Any:
    x = _leaf(T, 2.0)
    y = (x**4).sum()
    y.backward(create_graph=True)
    first = x.grad.clone()
    x.grad.sum().backward()  # accumulates the second derivative into the first
    return first, x.grad.detach()


@differential
def test_create_graph_with_retain_graph_false(T: Any) -> Any:
    x = _leaf(T, 2.0)
    y = (x.exp() * x).sum()
    y.backward(create_graph=True, retain_graph=False)
    return x.grad.requires_grad, outcome(y.backward, FREED)


@differential
def test_inputs_limits_where_gradients_go(T: Any) -> Any:
    x, y = _leaf(T, 1.0, 2.0), _leaf(T, 3.0, 4.0)
    loss = (x * y).sum()
    loss.backward(inputs=[x], retain_graph=True)
    first = (x.grad.tolist(), y.grad)
    loss.backward(inputs=y, retain_graph=True)
    loss.backward(inputs=(x, y))
    return first, x.grad, y.grad


@differential
def test_inputs_may_be_intermediate(T: Any) -> Any:
    x = _leaf(T, 1.0, 2.0)
    middle = x * 3
    (middle**2).sum().backward(inputs=[middle])
    return x.grad, middle.grad.tolist()


@differential
def test_inputs_not_reached_stay_without_gradient(T: Any) -> Any:
    x, stranger = _leaf(T, 1.0), _leaf(T, 2.0)
    (x * 2).sum().backward(inputs=[x, stranger])
    return x.grad, stranger.grad


@differential
def test_inputs_errors(T: Any) -> Any:
    x, constant = _leaf(T, 1.0), T.tensor([1.0])
    loss = (x * constant).sum()
    return (
        outcome(lambda: loss.backward(inputs=[]), "cannot be empty"),
        outcome(lambda: loss.backward(inputs=[constant], retain_graph=True))[:2],
        x.grad,
    )


@differential
def test_inputs_frees_only_what_ran(T: Any) -> Any:
    x, y = _leaf(T, 1.0), _leaf(T, 2.0)
    hub = x.exp()
    loss = (hub * y).sum()
    loss.backward(inputs=[y])
    hub.sum().backward()  # exp was not part of the first pass
    return x.grad, y.grad


@differential
def test_non_scalar_without_seed(T: Any) -> Any:
    x = _leaf(T, 1.0, 2.0)
    empty = T.ones(0, requires_grad=True)
    return outcome((x * 2).backward, NON_SCALAR), outcome((empty * 2).backward, NON_SCALAR), x.grad


@differential
def test_output_without_history(T: Any) -> Any:
    plain = T.tensor(1.0)
    x = _leaf(T, 1.0)
    integers = (x > 0).sum()
    return (
        outcome(plain.backward, "element 0 of tensors", NO_GRAD),
        outcome(lambda: (plain * 2).backward(), NO_GRAD),
        outcome(x.detach().sum().backward, NO_GRAD),
        outcome(integers.backward, NO_GRAD),
        outcome(lambda: T.autograd.backward([x.sum(), plain]), "element 1 of tensors", NO_GRAD),
    )


@pytest.mark.parametrize("shape", [(3,), (2, 1), (1, 2), (), (2, 2)])
@differential
def test_seed_of_another_shape(T: Any, shape: tuple[int, ...]) -> Any:
    x = _leaf(T, 1.0, 2.0)
    y = x * 2
    return (
        outcome(
            lambda: y.backward(T.ones(shape)),
            "Mismatch in shape: grad_output[0] has a shape of",
            "and output[0] has a shape of",
        ),
        x.grad,
    )


@differential
def test_seed_kinds(T: Any) -> Any:
    x = _leaf(T, 1.0, 2.0)
    y = x * 2
    return (
        outcome(lambda: y.backward(T.ones(2, dtype=T.complex64)), "For complex Tensors"),
        outcome(lambda: y.backward(3.0))[:2],
        outcome(lambda: y.backward(T.ones(2, dtype=T.float64))),
        x.grad,
    )


@differential
def test_seed_count_must_match(T: Any) -> Any:
    x = _leaf(T, 1.0)
    return outcome(
        lambda: T.autograd.backward([x * 2, x * 3], grad_tensors=[T.ones(1)]), "got 2 tensors and 1 gradients"
    )


@differential
def test_several_outputs_at_once(T: Any) -> Any:
    x, y = _leaf(T, 1.0, 2.0), _leaf(T, 3.0)
    T.autograd.backward([(x * 2).sum(), y * 3, x * y], [None, T.tensor([2.0]), T.tensor([1.0, 10.0])])
    return x.grad, y.grad


@differential
def test_several_outputs_without_seeds(T: Any) -> Any:
    x = _leaf(T, 1.0, 2.0)
    T.autograd.backward((x.sum(), x.prod()))
    mixed = outcome(lambda: T.autograd.backward((x.sum(), x * 2), (None, None)), NON_SCALAR)
    return x.grad, mixed


@differential
def test_output_and_its_ancestor_together(T: Any) -> Any:
    x = _leaf(T, 2.0)
    y = x**2
    T.autograd.backward([y, y**2])
    return x.grad


@differential
def test_same_output_twice(T: Any) -> Any:
    x = _leaf(T, 2.0)
    y = x**2
    T.autograd.backward([y, y])
    return x.grad


@differential
def test_no_outputs(T: Any) -> Any:
    return outcome(lambda: T.autograd.backward([]))


@differential
def test_seed_with_history_under_create_graph(T: Any) -> Any:
    x = _leaf(T, 2.0, 3.0)
    seed = _leaf(T, 5.0, 7.0)
    T.autograd.backward(x**2, seed, create_graph=True, inputs=[x])
    x.grad.sum().backward(inputs=[seed])
    return x.grad.detach(), seed.grad


@differential
def test_seed_is_not_changed_nor_shared(T: Any) -> Any:
    x = _leaf(T, 2.0, 3.0)
    seed = T.tensor([1.0, 1.0])
    (x * 1).backward(seed)
    (x * 1).backward(seed)
    x.grad.add_(100)
    return seed, x.grad


@differential
def test_leaf_gradients_of_one_sum_do_not_share_memory(T: Any) -> Any:
    x, y = _leaf(T, 2.0, 3.0), _leaf(T, 4.0, 5.0)
    (x + y).backward(T.tensor([1.0, 2.0]))
    x.grad.mul_(10)
    return x.grad, y.grad


@differential
def test_expanded_gradient_becomes_a_full_tensor(T: Any) -> Any:
    x = T.ones(2, 3, requires_grad=True)
    x.sum().backward()
    x.grad[0, 0] = 9
    return x.grad, x.grad.stride(), x.grad.is_contiguous()


@differential
def test_gradient_layout_follows_the_leaf(T: Any) -> Any:
    x = T.arange(6.0).reshape(2, 3).t().detach().requires_grad_()
    (x * T.arange(6.0).reshape(3, 2)).sum().backward()
    return x.stride(), x.grad


@differential
def test_assigning_grad(T: Any) -> Any:
    x = _leaf(T, 1.0, 2.0)

    def assign(value: Any) -> Any:
        def action() -> None:
            x.grad = value

        return action

    fine = outcome(assign(T.tensor([1.0, 1.0])))
    (x * 2).sum().backward()
    return (
        fine,
        x.grad,
        outcome(assign(T.ones(3)), "attempting to assign a gradient of size '[3]' to a tensor of size '[2]'"),
        outcome(
            assign(T.ones(2, dtype=T.float64)),
            "attempting to assign a gradient with dtype 'double'",
            "grad_dtype 'Float'",
        ),
        outcome(assign(x), "can't assign Variable as its own grad"),
        outcome(assign("text"), "assigned grad"),
        x.grad,
    )


@differential
def test_zero_size_tensors(T: Any) -> Any:
    x = T.ones(0, 3, requires_grad=True)
    (x * 2).sum().backward()
    y = T.ones(2, 0, requires_grad=True)
    (y @ T.ones(0, 4)).sum().backward()
    return x.grad, y.grad


@differential
def test_dynamic_control_flow(T: Any) -> Any:
    grads = []
    for start in (0.3, 4.0):
        x = _leaf(T, start)
        y = x
        while y.norm() < 20:
            y = y * 2 if y.sum() > 1 else y * 3
        y.sum().backward()
        grads.append(x.grad.tolist())
    return grads


@differential
def test_shared_weights_unrolled_over_time(T: Any) -> Any:
    weight = T.tensor([[0.5, -0.3], [0.1, 0.8]], requires_grad=True)
    hidden = T.ones(1, 2)
    loss = T.zeros(())
    for step in range(4):
        hidden = T.tanh(hidden @ weight + step * 0.1)
        loss += (hidden**2).sum()
    loss.backward()
    return loss, weight.grad


@differential
def test_backward_inside_no_grad(T: Any) -> Any:
    x = _leaf(T, 3.0)
    y = x**2
    with T.no_grad():
        y.backward()
    return x.grad


@differential
def test_calls_other_than_tensors(T: Any) -> Any:
    x = _leaf(T, 3.0)
    T.autograd.backward(x * 2)  # a bare tensor
    T.autograd.backward((x * 2,), (T.ones(1),))
    return x.grad, outcome(lambda: T.autograd.backward(3.0))[:2]


@differential
def test_error_in_one_pass_leaves_the_engine_usable(T: Any) -> Any:
    x = _leaf(T, 3.0)
    y = x.exp()
    y.backward()
    failed = outcome(y.backward, FREED)
    (x * 2).backward()
    return failed, x.grad


@differential
def test_gradients_that_are_added_lie_as_sums_of_tensors_do(T: Any) -> Any:
    """What reads them, a sum over pictures say, may add in the order in which they lie."""
    found: list[Any] = []
    for first, second in ((0, 1), (1, 0)):
        formats = (T.contiguous_format, T.channels_last)
        factors = [T.ones(2, 3, 4, 5).contiguous(memory_format=formats[each]) for each in (first, second)]
        x = T.ones(2, 3, 4, 5, requires_grad=True)
        y = x * 1
        y.register_hook(lambda grad: found.append(grad.stride()))
        (y * factors[0] + y * factors[1]).sum().backward()
    return found


@pytest.mark.parametrize("depth", [20, 300])
@differential
def test_backward_inside_backward_many_times(T: Any, depth: int) -> Any:
    """Deeper than Python's limit of nested calls; an error comes up from the innermost pass."""

    class Again(T.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, left: int) -> Any:
            ctx.left = left
            return x.clone()

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            if ctx.left == 0 and depth == 20:
                raise ValueError("at the bottom")
            if ctx.left > 0:
                with T.enable_grad():
                    again.append(T.ones(1, requires_grad=True))
                    Again.apply(again[-1], ctx.left - 1).sum().backward()
            return grad * 2, None

    again: list[Any] = []
    x = T.ones(1, requires_grad=True)
    return outcome(lambda: Again.apply(x, depth).backward()), x.grad, len(again), again[0].grad, T.is_grad_enabled()


@differential
def test_gradients_of_narrow_types_are_added_in_place(T: Any) -> Any:
    """What a user holds as `.grad` is what the next pass adds to, whichever kernel adds."""
    seen = []
    for dtype in (T.float32, T.bfloat16, T.float16):
        x = T.ones(3, dtype=dtype, requires_grad=True)
        (x * 2).sum().backward()
        held = x.grad
        versions = [held._version]
        (x * 3).sum().backward()
        seen.append((x.grad is held, held, versions, held._version))
    return seen


@differential
def test_sparse_gradients_are_added(T: Any) -> Any:
    weight = T.ones(4, 2, requires_grad=True)
    rows = T.tensor([0, 2])
    T.nn.functional.embedding(rows, weight, sparse=True).sum().backward()
    T.nn.functional.embedding(rows, weight, sparse=True).sum().backward()
    twice = weight.grad
    weight.sum().backward()
    return twice.to_dense(), twice.layout, weight.grad, weight.grad.layout


@differential
def test_gradients_on_another_device(T: Any) -> Any:
    class Away(T.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 1

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad.to("meta")

    x = T.ones(2, requires_grad=True)
    return outcome(
        lambda: Away.apply(x).sum().backward(), "invalid gradient at index 0 - expected device cpu but got meta"
    )


@pytest.mark.parametrize("layout", ["rows", "columns", "gaps"])
@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float64"])
def test_gradients_are_cast_alike_early_and_late(dtype: str, layout: str) -> None:
    """A cast of a gradient takes a shorter way once its op has been called often; whoever looks on sees the op."""
    given = torch.arange(24.0).reshape(4, 6) / 7
    shown = {"rows": given, "columns": given.T, "gaps": given[:, ::2]}[layout]
    found: list[Any] = []

    def unchanged(tensor: Any) -> Any:
        return tensor

    for _ in range(CALLS + 10):
        leaf = shown.clone().requires_grad_()
        (leaf.to(getattr(torch, dtype)) * 3).sum().backward()
        found.append(leaf.grad)
    with torch.autograd.graph.saved_tensors_hooks(unchanged, unchanged):
        leaf = shown.clone().requires_grad_()
        (leaf.to(getattr(torch, dtype)) * 3).sum().backward()
        found.append(leaf.grad)
    assert {each.dtype for each in found} == {torch.float32}
    assert {each.stride() for each in found} == {found[0].stride()}
    assert {each._version for each in found} == {0}
    assert all(torch.equal(each, found[0]) for each in found)


@differential
def test_intermediate_inputs_use_up_their_nodes(T: Any) -> Any:
    def run(begin: Any, **options: Any) -> Any:
        x = _leaf(T, 1.0, 2.0)
        middle = begin(x)
        T.autograd.backward([middle.pow(2).sum()], inputs=[middle], **options)
        return outcome(lambda: T.autograd.backward([middle.pow(2).sum()])), x.grad

    def mapped(x: Any) -> Any:
        middle = x.sin()
        T.autograd.grad([middle.pow(2).sum()], inputs=[middle])
        return outcome(lambda: T.autograd.backward([middle.pow(2).sum()])), x.grad

    return (
        run(lambda x: x.sin()),
        run(lambda x: x * T.ones(2)),
        run(lambda x: x.sin(), retain_graph=True),
        mapped(_leaf(T, 1.0)),
    )


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32", "complex64"])
@differential
def test_a_gradient_that_is_added_to_stays_the_tensor_it_was(T: Any, dtype: str) -> Any:
    x = T.ones(3, dtype=getattr(T, dtype), requires_grad=True)
    (x * 2).sum().abs().backward()
    first = x.grad
    (x * 3).sum().abs().backward()
    return x.grad is first, first


@differential
def test_what_a_retained_gradient_of_another_shape_looks_like(T: Any) -> Any:
    x = T.ones(2, 3, requires_grad=True)
    y = (x * 2).t()
    y.retain_grad()
    z = y.mul_(2)
    (z * T.arange(6.0).reshape(3, 2)).sum().backward()
    return y.grad, y.grad.stride(), x.grad.stride()


@differential
def test_a_base_retains_its_gradient_when_a_view_is_changed(T: Any) -> Any:
    x = T.arange(6.0).reshape(2, 3).requires_grad_()
    base = x * 1
    base.retain_grad()
    base[0].mul_(5)
    (base * base).sum().backward()
    return base.grad, x.grad


@pytest.mark.parametrize("is_view", [False, True])
@differential
def test_a_changed_view_hands_on_contiguous_gradients(T: Any, is_view: bool) -> Any:
    seen = []

    class Turned(T.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any) -> Any:
            ctx.mark_dirty(x)
            return x.t_()

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            seen.append(grad.stride())
            return grad, grad

    x, y = (T.ones(2, 2, requires_grad=True) for _ in range(2))
    copy = (x * 1).view(2, 2) if is_view else x * 1
    result = Turned.apply(copy, y * 1)
    grads = T.autograd.grad((result * T.arange(4.0).view(2, 2)).sum(), (x, y))
    return grads, [each.stride() for each in grads], seen


@pytest.mark.parametrize("create_graph", [False, True])
@differential
def test_retained_gradients_are_contiguous(T: Any, create_graph: bool) -> Any:
    x = T.arange(24.0).reshape(1, 2, 3, 4).requires_grad_()
    y = (x * 2).to(memory_format=T.channels_last)
    z = (y * y).permute(3, 2, 1, 0)
    for each in (y, z):
        each.retain_grad()
    z.sum().backward(create_graph=create_graph)
    return [(each.grad, each.grad.stride(), each.grad.requires_grad) for each in (y, z)]


@pytest.mark.filterwarnings("ignore:Using backward")
@differential
def test_sparse_gradients_in_the_graph(T: Any) -> Any:
    weight = T.ones(4, 2, requires_grad=True)
    T.nn.functional.embedding(T.tensor([1, 1]), weight, sparse=True).sum().backward(create_graph=True)
    return str(weight.grad.layout), weight.grad.to_dense().detach()


@pytest.mark.parametrize("returned", ["no", 3.0], ids=str)
@differential
def test_a_node_s_hook_that_gives_no_tensor_is_refused(T: Any, returned: Any) -> Any:
    x = T.ones(2, requires_grad=True)
    y = x * 2
    y.grad_fn.register_hook(lambda inputs, outputs: (returned,))
    outcome(lambda: y.sum().backward(), "expected Variable or None")
    return x.grad
