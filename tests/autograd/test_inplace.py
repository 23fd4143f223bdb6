"""In-place operations: version counters, leaves, views, views of views, detached aliases, errors."""

from __future__ import annotations

import functools
from typing import Any

import pytest

import flambeau
from tests.support.differential import differential, outcome

LEAF = "a leaf Variable that requires grad is being used in an in-place operation"
LEAF_VIEW = "a view of a leaf Variable that requires grad is being used in an in-place operation"
MODIFIED = "one of the variables needed for gradient computation has been modified by an inplace operation"
MULTI_VIEW = "This view is the output of a function that returns multiple views"
NO_GRAD_VIEW = "A view was created in no_grad mode and is being modified inplace with grad mode enabled"

# Statements on t (2x3); the version of t is read after each.
IN_PLACE = """
t.add_(1)|t.sub_(1)|t.mul_(2)|t.div_(2)|t.pow_(2)|t.neg_()|t.abs_()|t.exp_()|t.log_()|t.sqrt_()|t.sin_()|t.cos_()
t.tanh_()|t.sigmoid_()|t.relu_()|t.clamp_(0, 1)|t.clamp_min_(0)|t.zero_()|t.fill_(3)|t.copy_(T.ones(2, 3))|t.floor_()
t.ceil_()|t.round_()|t.trunc_()|t.reciprocal_()|t.rsqrt_()|t.square_()|t.masked_fill_(t > 1, 0)
t.index_fill_(0, T.tensor([0]), 1)|t.index_add_(0, T.tensor([0]), T.ones(1, 3))
t.scatter_(1, T.tensor([[0], [1]]), 9.0)|t.lerp_(T.ones(2, 3), 0.5)|t.fmod_(2)|t.addcmul_(T.ones(2, 3), T.ones(2, 3))
t.cumsum_(0)|t.tril_()|t.triu_()|t.normal_()|t.uniform_()|t.bernoulli_(0.5)|t.random_()|t.__iadd__(1)
t.__imul__(T.ones(3))|t.__setitem__(0, 1.0)|t.__setitem__((0, 1), 2.0)|t.__setitem__(t > 1, 0.0)
t.__setitem__(Ellipsis, T.ones(3))|t.__setitem__(T.tensor([0]), 5.0)|t[0].add_(1)|t.view(6)[2].mul_(3)|t.t().zero_()
t.unsqueeze_(0)|t.transpose_(0, 1)|t.t_()|t.squeeze_()|t.resize_(6)|t.detach_()|t.requires_grad_()|t.data.add_(1)
t.detach().add_(1)|t.sum()|t.exponential_()|t.erf_()|t.sign_()|t.add_(T.ones(3), alpha=2)|t.eq_(1)
t.diagonal().zero_()
"""


def _statements(text: str) -> list[str]:
    return text.strip().replace("\n", "|").split("|")


@pytest.mark.parametrize("statement", _statements(IN_PLACE))
@differential
def test_version_after(T: Any, statement: str) -> Any:
    t = T.tensor([[0.5, 1.5, 2.5], [1.0, 2.0, 3.0]])
    before = t._version
    result = eval(statement, {"T": T, "t": t})
    return t._version - before, result is t


@differential
def test_out_argument_raises_the_version(T: Any) -> Any:
    t = T.zeros(3)
    T.add(T.ones(3), 1, out=t)
    first = t._version
    T.exp(T.ones(3), out=t)
    return first, t._version


@differential
def test_views_share_the_version(T: Any) -> Any:
    base = T.zeros(4)
    view, twice = base[1:], base.view(2, 2)[0]
    base.add_(1)
    first = (base._version, view._version, twice._version)
    twice.mul_(2)
    return first, (base._version, view._version, twice._version)


@differential
def test_detach_shares_the_version_and_data_does_not(T: Any) -> Any:
    x = T.ones(2, requires_grad=True)
    y = x * 1
    detached, data = y.detach(), y.data
    detached.add_(1)
    after_detached = (y._version, detached._version, data._version)
    data.add_(1)
    return after_detached, (y._version, detached._version, data._version), y


@differential
def test_change_through_detach_is_noticed(T: Any) -> Any:
    x = T.tensor([0.5, 1.0], requires_grad=True)
    y = x.sigmoid()
    y.detach().zero_()
    return outcome(y.sum().backward, MODIFIED, "output 0 of Sigmoid")


@differential
def test_change_through_data_is_not_noticed(T: Any) -> Any:
    x = T.tensor([0.5, 1.0], requires_grad=True)
    y = x.sigmoid()
    y.data.zero_()
    y.sum().backward()
    return x.grad


@differential
def test_data_is_a_tensor_without_history(T: Any) -> Any:
    x = T.ones(2, requires_grad=True)
    y = x * 2
    return y.data, x.data, y.data._version, x.data is x.data, x.data.data_ptr() == x.data_ptr()


@differential
def test_assigning_data(T: Any) -> Any:
    x = T.ones(2, requires_grad=True)
    version = x._version
    x.data = T.tensor([3.0, 4.0, 5.0])
    (x * x).sum().backward()
    return x, x.grad, x._version - version


@differential
def test_detach_in_place(T: Any) -> Any:
    x = T.ones(2, requires_grad=True)
    y = x * 2
    result = y.detach_()
    view = (x * 2)[0]
    return result is y, y, outcome(view.detach_, "Can't detach views in-place")


@differential
def test_detach_is_a_view_of_memory_not_of_history(T: Any) -> Any:
    x = T.ones(2, requires_grad=True)
    y = (x * 2).detach()
    z = x * 3
    w = z.detach()
    w.requires_grad_()
    (w * 5).sum().backward()
    return y._is_view(), y._base is None, w.grad, x.grad


@differential
def test_leaf_in_place_is_refused(T: Any) -> Any:
    x = T.ones(3, requires_grad=True)

    def set_item() -> None:
        x[0] = 5

    def augmented() -> None:
        nonlocal x
        x += 1

    return (
        outcome(lambda: x.add_(1), LEAF),
        outcome(set_item, LEAF),
        outcome(augmented, LEAF),
        outcome(lambda: x.zero_(), LEAF),
        outcome(lambda: x[0].add_(1), LEAF_VIEW),
        outcome(lambda: x.view(3).mul_(2), LEAF_VIEW),
        outcome(lambda: x.detach().add_(1)),
        x,
    )


@differential
def test_leaf_in_place_under_no_grad(T: Any) -> Any:
    x = T.ones(3, requires_grad=True)
    with T.no_grad():
        x.mul_(2)
        x[0] = 7
        x -= 1
    (x**2).sum().backward()
    return x, x.grad, x._version


@differential
def test_leaf_update_after_use_breaks_backward(T: Any) -> Any:
    x = T.ones(3, requires_grad=True)
    y = (x * x).sum()
    with T.no_grad():
        x.add_(1)
    return outcome(y.backward, MODIFIED, "is at version 1; expected version 0 instead")


@differential
def test_non_leaf_in_place_chain(T: Any) -> Any:
    x = T.tensor([1.0, 2.0], requires_grad=True)
    y = x * 2
    names = [y.grad_fn.name()]
    y.add_(1)
    names.append(y.grad_fn.name())
    y *= 3
    names.append(y.grad_fn.name())
    y.pow_(2)
    names.append(y.grad_fn.name())
    y.sum().backward()
    return names, x.grad


@differential
def test_in_place_makes_a_plain_tensor_differentiable(T: Any) -> Any:
    x = T.tensor([1.0, 2.0], requires_grad=True)
    buffer = T.zeros(2)
    buffer += x * 3
    held = T.zeros(2, 2)
    held[0] = x
    held[1] = x * 2
    (held.sum() + (buffer**2).sum()).backward()
    return buffer.requires_grad, buffer.is_leaf, buffer.grad_fn.name(), held.grad_fn.name(), x.grad


@pytest.mark.parametrize(
    ("saving", "changed"),
    [
        ("y.exp()", "result"),
        ("y.sin()", "y"),
        ("y * y", "y"),
        ("y * k", "k"),
        ("y.sigmoid()", "result"),
        ("y.tanh()", "result"),
        ("y ** 2", "y"),
        ("y / k", "k"),
        ("y.log()", "y"),
        ("y.sqrt()", "result"),
        ("y @ k", "k"),
        ("y.prod()", "y"),
        ("y.softmax(0)", "result"),
        ("y.relu()", "result"),
        ("y.norm()", "y"),
        ("T.where(m, y, k)", "m"),
        ("y[i]", "i"),
        ("y.masked_fill(m, 0.0)", "m"),
        ("y.cumprod(0)", "y"),
        ("y.reciprocal()", "result"),
        ("y.gather(0, i)", "i"),
        ("y.max()", "result"),
        ("y.logsumexp(0)", "y"),
        ("y.var()", "y"),
    ],
)
@differential
def test_saved_tensor_changed(T: Any, saving: str, changed: str) -> Any:
    x = T.tensor([0.5, 1.5], requires_grad=True)
    space = {"T": T, "y": x * 1, "k": T.tensor([2.0, 3.0]), "m": T.tensor([True, False]), "i": T.tensor([1, 0])}
    space["result"] = eval(saving, space)
    kept = space["result"].sum()
    target = space[changed]
    target.zero_()
    return outcome(kept.backward, MODIFIED, "is at version 1; expected version 0 instead")


@pytest.mark.parametrize(
    ("statement", "phrase"),
    [
        ("y.exp()", "output 0 of Exp"),
        ("y.sort().values.sqrt()", "output 0 of Sqrt"),
        ("(y + 0).sigmoid()", "output 0 of Sigmoid"),
        ("y.tanh()", "output 0 of Tanh"),
    ],
)
@differential
def test_message_names_the_op_shape_and_type(T: Any, statement: str, phrase: str) -> Any:
    y = T.tensor([0.5, 1.5], requires_grad=True) * 1
    result = eval(statement, {"y": y})
    kept = result.sum()
    result.add_(1)
    failed = outcome(kept.backward, phrase)
    hints = outcome(lambda: _failing(T), "[torch.FloatTensor [2]]", "which is")
    return failed, hints


def test_message_names_the_line_that_saved_and_the_line_that_changed() -> None:
    y = flambeau.ones(2, requires_grad=True) * 1
    total = (y * y).sum()  # saves y
    y.add_(1)  # changes y
    with pytest.raises(RuntimeError, match=MODIFIED) as failure:
        total.backward()
    message = str(failure.value)
    assert "total = (y * y).sum()  # saves y" in message
    assert "y.add_(1)  # changes y" in message
    assert message.count(__file__) == 2


def _failing(T: Any) -> None:
    result = (T.ones(2, requires_grad=True) * 1).exp()
    total = result.sum()
    result.mul_(2)
    total.backward()


@pytest.mark.parametrize(
    ("statement", "changed"),
    [
        ("y + k", "y"),
        ("y - k", "result"),
        ("y * k", "y"),
        ("y * 2", "y"),
        ("y.exp()", "y"),
        ("y.sum()", "y"),
        ("y.sin()", "result"),
        ("y.view(2)", "k"),
        ("y.sigmoid()", "y"),
        ("y.mean()", "y"),
        ("T.cat([y, k])", "y"),
        ("y.clone()", "y"),
        ("y.neg()", "result"),
        ("y / k", "y"),
        ("y.relu()", "y"),
        ("y[0]", "k"),
    ],
)
@differential
def test_change_of_what_was_not_saved_is_fine(T: Any, statement: str, changed: str) -> Any:
    x = T.tensor([0.5, 1.5], requires_grad=True)
    space = {"T": T, "y": x * 1, "k": T.tensor([2.0, 3.0])}
    space["result"] = eval(statement, space)
    total = space["result"].sum()
    space[changed].mul_(7)
    total.backward()
    return x.grad


@differential
def test_in_place_that_saves_its_own_result(T: Any) -> Any:
    x = T.tensor([0.5, 1.5], requires_grad=True)
    y = x * 1
    y.exp_()
    z = y * 2
    z.sigmoid_()
    z.sum().backward()
    return x.grad, y, z


@differential
def test_in_place_that_needs_the_overwritten_input(T: Any) -> Any:
    x = T.tensor([0.5, 1.5], requires_grad=True)
    y = x * 1
    y.sin_()  # saves a copy of what it overwrites
    y.mul_(y)
    return outcome(y.sum().backward, MODIFIED, "is at version 2; expected version 1 instead"), x.grad


@differential
def test_in_place_on_a_view_changes_the_base(T: Any) -> Any:
    x = T.tensor([1.0, 2.0, 3.0], requires_grad=True)
    base = x * 2
    view = base[1:]
    view.mul_(10)
    names = (base.grad_fn.name(), view.grad_fn.name(), [n.name() for n, _ in base.grad_fn.next_functions if n])
    base.sum().backward()
    return names, base, x.grad


@differential
def test_in_place_on_the_base_changes_the_view(T: Any) -> Any:
    x = T.tensor([1.0, 2.0, 3.0], requires_grad=True)
    base = x * 2
    view = base[1:]
    before = view.grad_fn.name()
    base.mul_(10)
    after = view.grad_fn.name()
    view.sum().backward()
    return before, after, view, x.grad


@differential
def test_in_place_on_a_view_of_a_view(T: Any) -> Any:
    x = T.arange(6.0).requires_grad_()
    base = x * 2
    outer = base.view(2, 3)
    inner = outer[1]
    sibling = outer[0]
    inner.mul_(T.tensor([1.0, 10.0, 100.0]))
    names = [t.grad_fn.name() for t in (base, outer, inner, sibling)]
    (outer.sum() + sibling.sum() + inner.prod() * 0).backward()
    return names, base, outer._base is base, inner._base is base, x.grad


@differential
def test_in_place_on_a_view_of_a_plain_base(T: Any) -> Any:
    x = T.tensor([1.0, 2.0], requires_grad=True)
    base = T.zeros(2, 2)
    view = base[0]
    before = (view.requires_grad, base.requires_grad)
    view.copy_(x * 3)
    base[1] += x
    base.sum().backward()
    return before, base.requires_grad, base.grad_fn.name(), view.grad_fn.name(), view.requires_grad, x.grad


@differential
def test_in_place_on_transposed_and_strided_views(T: Any) -> Any:
    x = T.arange(6.0).reshape(2, 3).requires_grad_()
    base = x * 1
    base.t()[1] = 7
    base[:, ::2].mul_(3)
    base.as_strided((2,), (4,)).add_(1)
    base.diagonal().mul_(2)
    (base**2).sum().backward()
    return base, x.grad


@differential
def test_setitem_with_various_indices(T: Any) -> Any:
    x = T.arange(6.0).reshape(2, 3).requires_grad_()
    source = T.tensor([10.0, 20.0], requires_grad=True)
    base = x * 1
    base[0, 1:] = source
    base[base > 15] = -1.0
    base[T.tensor([1]), T.tensor([2])] = source[0] * 3
    (base * T.arange(1.0, 7.0).reshape(2, 3)).sum().backward()
    return base, base.grad_fn.name(), x.grad, source.grad


@differential
def test_view_created_after_the_change(T: Any) -> Any:
    x = T.tensor([1.0, 2.0], requires_grad=True)
    base = x * 1
    base.mul_(2)
    view = base[0]
    base.mul_(3)
    view.add_(1)
    (view * 2 + base.sum()).backward()
    return view, base, x.grad


@differential
def test_view_relation_of_results(T: Any) -> Any:
    x = T.ones(2, 3)
    y = x.view(6)
    return (
        y._is_view(),
        y._base is x,
        y[0]._base is x,
        x._is_view(),
        (x + 1)._is_view(),
        x.reshape(6)._is_view(),
        x.t().reshape(6)._is_view(),
        x.clone()._base,
        x.expand(2, 2, 3)._base is x,
    )


@pytest.mark.parametrize("statement", ["unbind", "split", "chunk", "iterate", "tensor_split", "hsplit"])
@differential
def test_multi_output_views_refuse_in_place(T: Any, statement: str) -> Any:
    x = T.ones(4, requires_grad=True)
    base = x * 2
    makers: dict[str, Any] = {
        "unbind": lambda: base.unbind(),
        "split": lambda: base.split(2),
        "chunk": lambda: base.chunk(2),
        "iterate": lambda: list(base),
        "tensor_split": lambda: base.tensor_split(2),
        "hsplit": lambda: base.hsplit(2),
    }
    part = makers[statement]()[0]
    try:
        part.mul_(2)
    except RuntimeError as error:
        return MULTI_VIEW in str(error), part.grad_fn.name()
    return part.grad_fn.name(), base.grad_fn.name()


@differential
def test_multi_output_views_of_plain_tensors_may_change(T: Any) -> Any:
    base = T.arange(4.0)
    first, second = base.split(2)
    first.mul_(2)
    second.add_(1)
    x = T.ones(2, requires_grad=True)
    refused = outcome(lambda: first.mul_(x), MULTI_VIEW)
    return base, refused


@differential
def test_base_changed_after_multi_output_view(T: Any) -> Any:
    x = T.ones(4, requires_grad=True)
    base = x * 2
    first, second = base.chunk(2)
    base.mul_(3)
    phrases = ("has been modified inplace", MULTI_VIEW)
    return first.tolist(), outcome(lambda: first.sum().backward(), *phrases), outcome(lambda: second.grad_fn, *phrases)


@differential
def test_view_made_under_no_grad(T: Any) -> Any:
    x = T.ones(4, requires_grad=True)
    base = x * 2
    with T.no_grad():
        view = base[:2]
    return view.requires_grad, outcome(lambda: view.mul_(2), NO_GRAD_VIEW)


@differential
def test_view_made_under_no_grad_changed_under_no_grad(T: Any) -> Any:
    x = T.ones(4, requires_grad=True)
    base = x * 2
    with T.no_grad():
        base[:2].mul_(5)
    base.sum().backward()
    return base, x.grad


@differential
def test_expanded_memory_refuses_in_place(T: Any) -> Any:
    phrase = "refers to a single memory location"
    x = T.ones(1, requires_grad=True)
    expanded = T.ones(1).expand(3)
    tracked = (x * 2).expand(3)
    overlapping = T.arange(5.0).unfold(0, 3, 1)
    return (
        outcome(lambda: expanded.add_(1), phrase),
        outcome(lambda: tracked.mul_(2), phrase),
        outcome(lambda: expanded.copy_(T.ones(3)), phrase),
        outcome(lambda: expanded.zero_())[0],
        outcome(lambda: overlapping.add_(1), phrase)[0],
    )


@differential
def test_partially_overlapping_operands(T: Any) -> Any:
    t = T.arange(5.0)
    phrase = "some elements of the input tensor and the written-to tensor refer to a single memory location"
    return outcome(lambda: t[1:].add_(t[:-1]), phrase), outcome(lambda: t.add_(t).tolist())


@differential
def test_result_must_keep_shape_and_dtype(T: Any) -> Any:
    return (
        outcome(lambda: T.ones(3).add_(T.ones(2, 3)), "output with shape [3] doesn't match the broadcast shape [2, 3]"),
        outcome(
            lambda: T.ones(3, dtype=T.int64).add_(1.5),
            "result type Float can't be cast to the desired output type Long",
        ),
        outcome(lambda: T.ones(3, dtype=T.int64).div_(2), "can't be cast"),
        T.ones(3).add_(T.ones(3, dtype=T.float64)).dtype,
    )


@differential
def test_failed_in_place_leaves_tensor_as_it_was(T: Any) -> Any:
    x = T.ones(3, requires_grad=True)
    t = x * 1
    failed = outcome(lambda: t.add_(T.ones(2, 3)), "doesn't match the broadcast shape")
    t.sum().backward()
    return failed, t, x.grad


@differential
def test_fill_and_zero_cut_the_gradient(T: Any) -> Any:
    x = T.tensor([1.0, 2.0], requires_grad=True)
    y, z, w = x * 1, x * 1, x * 1
    y.zero_()
    z.fill_(4)
    w.copy_(T.ones(2))
    (y + z + w).sum().backward()
    return x.grad, y.grad_fn.name(), z.grad_fn.name(), w.grad_fn.name()


@differential
def test_copy_between_dtypes_and_shapes(T: Any) -> Any:
    source = T.tensor([1.0, 2.0], dtype=T.float64, requires_grad=True)
    target = T.zeros(3, 2)
    target.copy_(source)
    (target * T.arange(6.0).reshape(3, 2)).sum().backward()
    return target, source.grad


@differential
def test_in_place_shape_changes(T: Any) -> Any:
    x = T.arange(6.0).reshape(2, 3).requires_grad_()
    y = x * 1
    y.t_()
    y.unsqueeze_(0)
    name = y.grad_fn.name()
    (y * T.arange(6.0).reshape(1, 3, 2)).sum().backward()
    return name, y.shape, x.grad


@differential
def test_increment_version(T: Any) -> Any:
    t = T.zeros(2)
    T.autograd.graph.increment_version(t)
    T.autograd.graph.increment_version([t, T.ones(1)])
    return t._version


@differential
def test_requires_grad_on_view_of_base(T: Any) -> Any:
    base = T.zeros(4)
    view = base[:2].requires_grad_()
    (view * 3).sum().backward()
    base.add_(1)
    return view, view.grad, base, outcome(lambda: view.add_(1), LEAF_VIEW)


@differential
def test_assigning_to_a_slice_of_parameters_in_a_loop(T: Any) -> Any:
    x = T.tensor([1.0, 2.0, 3.0], requires_grad=True)
    table = T.zeros(3, 3)
    for row in range(3):
        table[row] = x * (row + 1)
        table[row, row] *= 10
    table.sum().backward()
    return table, x.grad


@pytest.mark.parametrize(
    "change",
    [
        lambda T, view, base: view.__setitem__((slice(None), T.tensor([0])), view[:, T.tensor([0])] * 0.97),
        lambda T, view, base: view.__setitem__((slice(None), 0), view[:, 0] * 0.97),
        lambda T, view, base: view.copy_(view * 2),
        lambda T, view, base: view.mul_(0.97),
        lambda T, view, base: base.mul_(0.97),
    ],
    ids=["positions", "column", "copy", "mul", "base"],
)
@differential
def test_a_changed_view_retains_the_gradient_of_what_it_is_now(T: Any, change: Any) -> Any:
    x = T.tensor([[1.5], [-0.37]], requires_grad=True)
    base = x + 0.88
    view = base[:1, ...]
    view.retain_grad()
    change(T, view, base)
    (base**2).sum().backward(retain_graph=True)
    first = None if view.grad is None else view.grad.clone()
    (view**2).sum().backward()
    return first, view.grad, x.grad


@differential
def test_a_view_keeps_its_change_when_its_base_leaves_the_graph(T: Any) -> Any:
    x = T.tensor([[0.5, -1.5, 2.0]], requires_grad=True)
    base, other = x * 2, x * 2
    saves, plain = base.unsqueeze(1), other.unsqueeze(1)
    saves.hypot_(saves)
    plain.mul_(3)
    base.detach_()
    other.detach_()
    plain.sum().backward()
    refused = outcome(lambda: saves.pow(2).sum().backward(), "modified by an inplace operation")
    return refused, x.grad, saves.grad_fn.name(), base.is_leaf, base.requires_grad


@pytest.mark.parametrize(
    "change",
    [lambda T, v: v.unsqueeze_(0), lambda T, v: v.squeeze_(), lambda T, v: setattr(v, "data", T.ones(1, 3, 1))],
    ids=["unsqueeze", "squeeze", "data"],
)
@differential
def test_a_leaf_whose_shape_changes_after_its_use(T: Any, change: Any) -> Any:
    leaf = T.tensor([[1.0, 2, 3]]).requires_grad_()
    first = leaf * 1.5
    with T.no_grad():
        change(T, leaf)
    shapes = [g.shape for g in T.autograd.grad((first * 2).sum(), leaf, retain_graph=True)]
    first.sum().backward()
    return shapes, leaf.shape, leaf.grad.sum()


@pytest.mark.parametrize("change", [lambda T, v: v.t_(), lambda T, v: setattr(v, "data", T.ones(2))], ids=["t", "data"])
@differential
def test_a_gradient_of_a_former_shape_that_does_not_fit(T: Any, change: Any) -> Any:
    leaf = T.ones(2, 3).requires_grad_()
    first = leaf * 1.5
    with T.no_grad():
        change(T, leaf)
    return outcome(lambda: first.sum().backward(), "The size of tensor a (2) must match the size of tensor b (3)")


def test_gradients_before_and_after_a_change_of_shape() -> None:
    leaf = flambeau.ones(4).requires_grad_()
    first = leaf * 1.5
    first.sum().backward(retain_graph=True)
    with flambeau.no_grad():
        leaf.unsqueeze_(0)
    ((leaf * 2).sum() + first.sum()).backward()
    assert leaf.grad is not None
    assert leaf.grad.tolist() == [5.0] * 4


@differential
def test_retained_gradients_of_views_that_a_change_has_put_into_the_graph(T: Any) -> Any:
    """Neither the view nor its base had a history before."""
    seen = []
    for view in (lambda base: base.view_as(base), lambda base: base[0], lambda base: base):
        weight = T.tensor(-1.0, requires_grad=True)
        changed = view(T.tensor([[1.5], [-2.0]]))
        changed.add_(weight * 2)
        changed.retain_grad()
        retains = changed.retains_grad
        (changed * 3).sum().backward()
        seen.append((retains, changed.is_leaf, changed.grad, weight.grad))
    return seen


@differential
def test_second_derivatives_through_layers_of_changed_views(T: Any) -> Any:
    """The history of the view is made while the layer's node is: both may get a number that a part of the layer has."""
    seen = []
    for layer in (
        lambda x, weight: T.nn.functional.linear(x, weight),
        lambda x, weight: T.nn.functional.linear(x.flatten(0, 1), weight),
        lambda x, weight: T.nn.functional.linear(x[0], weight, weight[0]),
        lambda x, weight: x @ weight.t(),
        lambda x, weight: T.matmul(weight, x.mT),
        lambda x, weight: T.einsum("abc,dc->abd", x, weight),
    ):
        start = T.linspace(-1, 1, 12, requires_grad=True)
        weight = T.linspace(0.5, 2, 9).reshape(3, 3).requires_grad_()
        view = (start * 2).view(2, 2, 3)
        T.nn.functional.elu_(view)
        loss = layer(view, weight).pow(2).mean()
        (penalty,) = T.autograd.grad(loss, [start], create_graph=True)
        (loss + penalty.pow(2).sum()).backward()
        seen.append((start.grad, weight.grad))
    for bias in (None, T.ones(3)):
        start = T.linspace(-1, 1, 12, requires_grad=True)
        weight = T.linspace(0.5, 2, 9).reshape(3, 3).requires_grad_()
        view = T.nn.functional.elu_((start * 2).view(4, 3))
        loss = T.nn.functional.linear(view, weight * 1, bias).pow(2).mean()
        (penalty,) = T.autograd.grad(loss, [start], create_graph=True)
        (loss + penalty.pow(2).sum()).backward()
        seen.append((start.grad, weight.grad))
    return seen


_REFUSALS = ("refer to a single memory location", "doesn't match the broadcast", "must be Tensor")


def _refused(call: Any) -> tuple[str, ...]:
    """The type of the error and the words that people search for; nothing if there is none."""
    try:
        call()
    except (RuntimeError, TypeError) as error:
        return type(error).__name__, *[each for each in _REFUSALS if each in str(error)]
    return ()


@differential
def test_what_changes_in_place_refuse(T: Any) -> Any:
    """Shapes that would grow, memory that another operand sees shifted or in part, and things that are no tensors."""
    seen: list[Any] = []
    operands = (
        *((lambda x: x[1:], lambda x: x[:-1]), (lambda x: x[:3], lambda x: x[:1]), (lambda x: x, lambda x: x)),
        *((lambda x: x[:2], lambda x: x[2:]), (lambda x: x[::2], lambda x: x[1::2])),
    )
    for name, further in (
        ("lerp_", (0.5,)),
        ("addcmul_", (T.tensor(2.0),)),
        ("atan2_", ()),
        ("add_", ()),
        ("fmod_", ()),
    ):
        for written, read in operands:
            x = T.linspace(0.5, 2, 4)
            change = functools.partial(getattr(written(x), name), read(x), *further)
            seen.append((name, _refused(change), x))
        seen.append(_refused(functools.partial(getattr(T.ones(2), name), T.ones(3, 2), *further)))
    return seen + [(name, _refused(functools.partial(getattr(T, name), 3))) for name in ("relu_", "selu_", "celu_")]
