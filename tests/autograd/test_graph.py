"""The recorded graph: node names, edges, metadata, saved tensors, leaves' nodes, gradient edges, execution order."""

from __future__ import annotations

import importlib
from functools import partial
from typing import Any

import pytest

import flambeau
from tests.support.differential import differential, outcome

# Expressions over x (2x3), y (2x3), s (3x3, square), v (3), p (2x3, positive), c (2x3, complex).
NODE_EXPRESSIONS = """
-x|+x + y|x - y|x * y|x / y|x ** y|x ** 2|2 ** x|1 - x|1 / x|x + 1|x * 2|x // y|x % 2|x @ s|T.mv(x, v)|T.dot(v, v)
x.abs()|x.exp()|x.expm1()|x.log()|p.log2()|p.log10()|p.log1p()|x.sin()|x.cos()|x.tan()|x.sinh()|x.cosh()|x.tanh()
(x * 0.1).asin()|(x * 0.1).acos()|x.atan()|x.asinh()|(p + 1).acosh()|(x * 0.1).atanh()|T.atan2(x, y)|x.sigmoid()
x.relu()|p.sqrt()|p.rsqrt()|x.reciprocal()|x.square()|x.neg()|x.sign()|x.floor()|x.ceil()|x.round()|x.trunc()
x.frac()|x.erf()|x.erfc()|(x * 0.1).erfinv()|x.clamp(0, 1)|x.clamp(min=0)|x.clamp(x * 0.5, x * 2)|x.sum()|x.sum(1)
x.mean()|x.mean(0)|x.prod()|x.prod(1)|x.max()|x.max(1).values|x.min()|x.min(1)[0]|x.amax(1)|x.amin(1)|x.norm()
x.norm(dim=1)|x.var()|x.std()|x.var(1)|x.std(1)|x.logsumexp(1)|x.cumsum(1)|x.cumprod(1)|x.softmax(1)
x.log_softmax(1)|x.median()|x.median(1).values|x.kthvalue(2, 1).values|x.sort(1).values|x.topk(2).values|x.view(6)
x.view(-1)|x.reshape(3, 2)|x.t().reshape(-1)|x.transpose(0, 1)|x.t()|x.T|s.mT|x.permute(1, 0)|x.unsqueeze(0)
x.unsqueeze(0).squeeze()|x.unsqueeze(0).squeeze(0)|x.expand(4, 2, 3)|x.repeat(2, 2)|x.flip(0)|x.roll(1, 0)|x[0]
x[:, 1]|x[0, 1]|x[:, ::2]|x[None]|x[..., 0]|x[x > 1]|x[T.tensor([0, 1, 0])]|x.narrow(1, 0, 2)|x.select(0, 1)
x.unbind(0)[0]|x.split(2, 1)[1]|x.split([1, 2], 1)[0]|x.chunk(3, 1)[2]|T.cat([x, y])|T.stack([x, y])|x.flatten()
x.gather(1, x.argsort(1))|x.diagonal()|T.diag(v)|x.tril()|x.triu()|s.trace()|x.index_select(1, T.tensor([0, 2]))
x.masked_fill(x > 1, 0.0)|T.masked_select(x, x > 1)|T.where(x > 1, x, y)|T.where(x > 1, x, T.zeros(()))|x.mm(s)
T.matmul(x, v)|x.unsqueeze(0).bmm(s.unsqueeze(0))|T.addmm(x, y, s)|T.outer(v, v)|T.einsum("ij,jk->ik", x, s)
x.clone()|x.t().contiguous()|x.to(T.float64)|x.double()|x.half()|x.lerp(y, 0.3)|T.lerp(x, y, x)|T.addcmul(x, y, y)
T.addcdiv(x, y, y)|T.maximum(x, y)|T.minimum(x, y)|T.fmax(x, y)|T.hypot(x, y)|T.logaddexp(x, y)
x.as_strided((2,), (1,))|x.unfold(1, 2, 1)|x.unflatten(1, (3, 1))|x.movedim(0, 1)
x.scatter(1, T.zeros(2, 1, dtype=T.int64), 5.0)|x.index_add(0, T.tensor([1]), v[None])
x.index_fill(0, T.tensor([1]), 2.0)|x.index_copy(0, T.tensor([1]), v[None])|c.conj() * c|c.abs()|c.angle()|c.real
c.imag|T.view_as_real(c)|T.complex(x, y)|T.view_as_complex(s[:, :2].clone())|T.polar(x, y)|T.nan_to_num(x)
x.cummax(1).values|x.logcumsumexp(1)|T.dist(x, y)|T.cross(s, s, dim=1)|T.meshgrid(v, v, indexing="ij")[0]|x.fmod(2)
x.remainder(y)|x.sinc()|x.logit(1e-6)|x.digamma()|p.lgamma()|T.special.expit(x)|T.true_divide(x, y)
x.div(y, rounding_mode="floor")|x.broadcast_to(2, 2, 3)|x.expand_as(T.zeros(4, 2, 3))|x.view_as(T.zeros(3, 2))
x.swapaxes(0, 1)|x.ravel()|x.tile(2)|T.hstack([x, y])|T.vstack([x, y])|T.block_diag(x, y)|T.kron(x, y)
T.tensordot(x, s, 1)|x.renorm(2, 0, 1.0)|T.cdist(x, y)|x.take(T.tensor([0, 5]))|x.masked_scatter(x > 1, y)
T.nansum(x)|x.aminmax().min|T.cov(x)|x.logit()|x.deg2rad()|T.celu(x)|T.selu(x)|T.threshold(x, 0.5, 0.0)
T.prelu(x, v[:1])|T.bmm(x[None], s[None])|T.baddbmm(x[None], x[None], s[None])
"""


def _split(expressions: str) -> list[str]:
    return expressions.strip().replace("\n", "|").split("|")


def _inputs(T: Any) -> dict[str, Any]:
    square = T.tensor([[2.0, 0.5, 0.1], [0.3, 3.0, 0.2], [0.4, 0.6, 4.0]])
    x = T.tensor([[0.5, 1.5, 2.5], [1.25, 0.75, 3.0]])
    return {
        "T": T,
        "x": x.requires_grad_(),
        "y": T.tensor([[1.5, 0.5, 2.0], [0.25, 1.0, 2.25]], requires_grad=True),
        "s": square.requires_grad_(),
        "v": T.tensor([1.0, 2.0, 3.0], requires_grad=True),
        "p": T.tensor([[0.5, 1.0, 2.0], [0.25, 4.0, 3.0]], requires_grad=True),
        "c": T.tensor([[1 + 2j, 0.5 - 1j, 2j], [3 + 0j, -1 + 1j, 1 - 1j]], requires_grad=True),
    }


def _edges(node: Any) -> list[Any]:
    return [(None if child is None else child.name(), number) for child, number in node.next_functions]


def _saved_tensors(T: Any, node: Any) -> dict[str, Any]:
    """The tensors that `node` shows as saved, by attribute name."""
    found = {}
    for attribute in sorted(name for name in dir(node) if name.startswith("_saved_")):
        value = getattr(node, attribute)
        if isinstance(value, T.Tensor):
            found[attribute] = value.detach()
    return found


@pytest.mark.parametrize("expression", _split(NODE_EXPRESSIONS))
@differential
def test_node_name_and_edges(T: Any, expression: str) -> Any:
    result = eval(expression, _inputs(T))  # the expressions stand above
    node = result.grad_fn
    return node.name(), type(node).__name__, _edges(node)


SAVING_EXPRESSIONS = """
x * y|x * 2|x * y.detach()|x.detach() * y|x + y|x / y|x / 2|x ** 2|x ** y|2 ** x|x.exp()|x.log()|x.sin()|x.cos()
x.tanh()|x.sigmoid()|x.relu()|p.sqrt()|p.rsqrt()|x.reciprocal()|x.abs()|x.sum()|x.mean()|x @ s
x @ s.detach()|x.max()|x.amax(1)|x.norm()|x.softmax(1)|x.log_softmax(1)|x.logsumexp(1)|x.cumsum(1)|x.clamp(0, 1)
x.view(6)|x[0]|x.t()|T.cat([x, y])|T.stack([x, y])|x.index_select(0, T.tensor([1]))
x.masked_fill(x > 1, 0.0)|T.where(x > 1, x, y)|x.erf()|x.tan()|x.sinh()|x.atan()
x.square()|x.neg()|x - y|T.addmm(x, y, s)|T.addcmul(x, y, y)|x.var(1)|x.std(1)|T.maximum(x, y)|T.atan2(x, y)
x.expm1()|p.log1p()|x.lerp(y, 0.5)|T.mv(x, v)|T.dot(v, v * 2)|x.clone()|x.double()|x.expand(2, 2, 3)|x.unsqueeze(0)
x.prod()|x.flip(0)|x.tril()|x.sign()|x.floor()|x.sort(1).values|x.max(1).values
"""


@pytest.mark.parametrize("expression", _split(SAVING_EXPRESSIONS))
@differential
def test_saved_tensors_of_an_op(T: Any, expression: str) -> Any:
    result = eval(expression, _inputs(T))
    return _saved_tensors(T, result.grad_fn)


def test_saves_less_than_pytorch_where_less_is_enough() -> None:
    x = flambeau.tensor([[0.5, 1.5], [2.5, 3.0]], requires_grad=True)
    picked = x.gather(1, flambeau.tensor([[0], [1]])).grad_fn
    assert "_saved_self" not in dir(picked)  # its shape is enough; PyTorch keeps all of it
    assert picked._saved_self_sym_sizes == (2, 2)


@differential
def test_saved_input_is_the_input_itself(T: Any) -> Any:
    x, y = T.ones(2, requires_grad=True), T.ones(2, requires_grad=True)
    node = (x * y).grad_fn
    result = (x * 2).exp()
    return (
        node._saved_self is x,
        node._saved_other is y,
        result.grad_fn._saved_result is result,
        result.grad_fn._saved_result.data_ptr() == result.data_ptr(),
        result.grad_fn._saved_result.grad_fn is result.grad_fn,
    )


@differential
def test_saved_scalars(T: Any) -> Any:
    x = T.tensor([[0.5, 1.5], [2.5, 3.0]], requires_grad=True)
    return (
        (x**3).grad_fn._saved_exponent,
        x.sum(1, keepdim=True).grad_fn._saved_keepdim,
        x.clamp(0, 2).grad_fn._saved_min,
        x.clamp(0, 2).grad_fn._saved_max,
        x.softmax(1).grad_fn._saved_dim,
        x.transpose(0, 1).grad_fn._saved_dim0,
        x.view(4).grad_fn._saved_self_sym_sizes,
    )


@differential
def test_saved_attribute_after_free(T: Any) -> Any:
    x = T.ones(2, requires_grad=True)
    y = (x * x).sum()
    node = y.grad_fn.next_functions[0][0]
    y.backward()
    phrase = "Trying to backward through the graph a second time"
    return (
        outcome(lambda: node._saved_self, phrase),
        type(node._raw_saved_self).__name__,
        outcome(lambda: node._saved_nothing, "_saved_nothing"),
    )


@differential
def test_raw_saved_tensor_object(T: Any) -> Any:
    x = T.ones(2, requires_grad=True)
    node = (x * 2).exp().grad_fn
    raw = node._raw_saved_result
    return type(raw).__name__, outcome(lambda: type(raw)())[0]


@differential
def test_leaves_have_no_grad_fn(T: Any) -> Any:
    x, plain = T.ones(2, requires_grad=True), T.ones(2)
    return x.grad_fn, plain.grad_fn, (plain * 2).grad_fn, (x * 2).is_leaf, x.is_leaf, plain.is_leaf, (plain * 2).is_leaf


@differential
def test_grad_fn_is_the_same_object_each_time(T: Any) -> Any:
    x = T.ones(2, requires_grad=True)
    y = x * 2
    return y.grad_fn is y.grad_fn, y.grad_fn == y.grad_fn, hash(y.grad_fn) == hash(y.grad_fn)


@differential
def test_walk_to_the_leaf(T: Any) -> Any:
    x, y = T.ones(2, requires_grad=True), T.ones(2)
    z = ((x + y) ** 2).mean()
    power = z.grad_fn.next_functions[0][0]
    addition = power.next_functions[0][0]
    accumulate = addition.next_functions[0][0]
    return (
        z.grad_fn.name(),
        power.name(),
        addition.name(),
        _edges(addition),
        accumulate.name(),
        accumulate.variable is x,
        accumulate.next_functions,
        type(accumulate).__name__,
        outcome(lambda: addition.variable, "variable"),
    )


@differential
def test_a_leaf_has_one_accumulator(T: Any) -> Any:
    x = T.ones(2, requires_grad=True)
    first, second = (x * 2), (x + 1)
    return (
        first.grad_fn.next_functions[0][0] is second.grad_fn.next_functions[0][0],
        x.view_as(x).grad_fn.next_functions[0][0] is first.grad_fn.next_functions[0][0],
    )


@differential
def test_output_numbers(T: Any) -> Any:
    x = T.tensor([3.0, 1.0, 2.0], requires_grad=True)
    values, indices = x.sort()
    parts = x.unbind()
    return (
        [part.output_nr for part in parts],
        values.output_nr,
        x.output_nr,
        _edges((parts[2] * 2).grad_fn),
        len({id(part.grad_fn) for part in parts}),
        indices.grad_fn,
        indices.requires_grad,
    )


@differential
def test_nothing_taken_apart_records_nothing(T: Any) -> Any:
    x = T.ones(2, 0, requires_grad=True)
    return x.unbind(1), (x * 1).unbind(1)


@differential
def test_metadata(T: Any) -> Any:
    x = T.ones(2, requires_grad=True)
    y = x * 2
    y.grad_fn.metadata["note"] = 7
    return y.grad_fn.metadata, (x * 2).grad_fn.metadata, type(y.grad_fn.metadata).__name__


@differential
def test_repr_of_nodes(T: Any) -> Any:
    x = T.ones(2, requires_grad=True)
    y = x * 2
    return repr(y.grad_fn).split(" at ")[0], repr(y.grad_fn.next_functions[0][0]).split(" at ")[0], repr(y)


@differential
def test_nodes_are_nodes(T: Any) -> Any:
    x = T.ones(2, requires_grad=True)
    y = x * 2
    node_class = T.autograd.graph.Node
    return (
        isinstance(y.grad_fn, node_class),
        isinstance(y.grad_fn.next_functions[0][0], node_class),
        isinstance(3, node_class),
        issubclass(type(y.grad_fn), node_class),
    )


@differential
def test_callable_node(T: Any) -> Any:
    x = T.tensor([1.0, 2.0], requires_grad=True)
    node = (x * 3).grad_fn
    return node(T.tensor([1.0, 10.0]))


@differential
def test_sequence_numbers_grow(T: Any) -> Any:
    x = T.ones(2, requires_grad=True)
    a = x * 2
    b = a + 1
    c = x.exp()
    numbers = [tensor.grad_fn._sequence_nr() for tensor in (a, b, c)]
    accumulator = a.grad_fn.next_functions[0][0]
    return numbers[1] - numbers[0], numbers[2] - numbers[1], accumulator._sequence_nr() > numbers[2]


@differential
def test_execution_is_latest_node_first(T: Any) -> Any:
    order: list[str] = []
    x = T.ones(2, requires_grad=True)
    a = x * 2
    b = x.exp()
    c = a.sin()
    d = b.cos()
    e = a + b
    for name, tensor in {"a": a, "b": b, "c": c, "d": d, "e": e}.items():
        tensor.register_hook(lambda grad, name=name: order.append(name))
    (c + d + e).sum().backward()
    return order


@differential
def test_a_node_waits_for_all_its_consumers(T: Any) -> Any:
    order: list[str] = []
    x = T.ones(1, requires_grad=True)
    hub = x * 1
    long = hub
    for step in range(3):
        long = long * 1
        long.register_hook(lambda grad, step=step: order.append(f"long{step}"))
    hub.register_hook(lambda grad: order.append(f"hub{grad.item()}"))
    x.register_hook(lambda grad: order.append("x"))
    (long + hub).backward()
    return order


@differential
def test_accumulation_happens_as_soon_as_a_leaf_is_reached(T: Any) -> Any:
    order: list[str] = []
    first, second = T.ones(1, requires_grad=True), T.ones(1, requires_grad=True)
    for name, leaf in (("first", first), ("second", second)):
        leaf.register_post_accumulate_grad_hook(lambda leaf, name=name: order.append(name))
    early = first * 2
    early.register_hook(lambda grad: order.append("early"))
    late = early * second
    late.register_hook(lambda grad: order.append("late"))
    late.backward()
    return order


@differential
def test_gradient_edge(T: Any) -> Any:
    x = T.tensor([1.0, 2.0], requires_grad=True)
    y = x * 3
    graph = T.autograd.graph
    edge, leaf_edge = graph.get_gradient_edge(y), graph.get_gradient_edge(x)
    return (
        type(edge).__name__,
        edge.node is y.grad_fn,
        edge.output_nr,
        leaf_edge.node.name(),
        edge == graph.GradientEdge(y.grad_fn, 0),
        T.autograd.grad((y**2).sum(), [edge, leaf_edge]),
    )


@differential
def test_gradient_edge_as_output(T: Any) -> Any:
    x = T.tensor([1.0, 2.0], requires_grad=True)
    edge = T.autograd.graph.get_gradient_edge(x**2)
    gradients = T.autograd.grad([edge], [x], grad_outputs=[T.ones(2)], retain_graph=True)
    T.autograd.backward(edge, T.tensor([1.0, -1.0]))
    return gradients, x.grad


@differential
def test_gradient_edge_needs_history(T: Any) -> Any:
    return outcome(
        lambda: T.autograd.graph.get_gradient_edge(T.ones(2)),
        "It is not possible to get the gradient edge for a Tensor that does not require gradients",
    )


@differential
def test_gradient_edge_survives_in_place(T: Any) -> Any:
    x = T.tensor([1.0, 2.0], requires_grad=True)
    y = x * 3
    edge = T.autograd.graph.get_gradient_edge(y)
    y.mul_(5)
    return T.autograd.grad(y.sum(), [edge], retain_graph=True), edge.node.name(), y.grad_fn.name()


@differential
def test_broadcasting_is_part_of_the_op(T: Any) -> Any:
    x, y = T.ones(2, 1, requires_grad=True), T.ones(3, requires_grad=True)
    z = x * y
    (gx, gy) = T.autograd.grad(z.sum(), [x, y])
    return _edges(z.grad_fn), gx, gy


@differential
def test_constants_are_missing_edges(T: Any) -> Any:
    x, k = T.ones(2, requires_grad=True), T.ones(2)
    return _edges((x * k).grad_fn), _edges((k * x).grad_fn), _edges(T.cat([k, x, k]).grad_fn), _edges((x * 2).grad_fn)


@differential
def test_views_of_views_record_each_step(T: Any) -> Any:
    x = T.ones(2, 3, requires_grad=True)
    y = x[0][1:].unsqueeze(0)
    names, node = [], y.grad_fn
    while node is not None:
        names.append(node.name())
        node = node.next_functions[0][0] if node.next_functions else None
    return names


@differential
def test_ops_with_nothing_to_do_record_nothing(T: Any) -> Any:
    x = T.ones(2, 2, requires_grad=True)
    return x.contiguous() is x, x.float() is x, x.to("cpu") is x, x.reshape(2, 2) is x, x.expand(2, 2).grad_fn.name()


@differential
def test_number_of_recorded_nodes(T: Any) -> Any:
    x = T.ones(2, requires_grad=True)
    y = T.cat([x, (x * 2).exp()]).reshape(2, 2).t().sum()
    seen: set[Any] = set()
    stack = [y.grad_fn]
    while stack:
        node = stack.pop()
        if node is not None and node not in seen:
            seen.add(node)
            stack.extend(child for child, _ in node.next_functions)
    return sorted(node.name() for node in seen)


@differential
def test_graph_helpers_exist(T: Any) -> Any:
    graph = importlib.import_module(f"{T.__name__}.autograd.graph")
    names = [
        "GradientEdge",
        "Node",
        "get_gradient_edge",
        "increment_version",
        "register_multi_grad_hook",
        "save_on_cpu",
        "saved_tensors_hooks",
        "disable_saved_tensors_hooks",
        "allow_mutation_on_saved_tensors",
    ]
    return [hasattr(graph, name) for name in names]


@differential
def test_versions_of_what_is_no_tensor(T: Any) -> Any:
    increment = T.autograd.graph.increment_version
    return [outcome(partial(increment, each), "increment_version expect") for each in (3, [3], "x", None)]


def _programs(torch: Any) -> dict[str, Any]:
    a, b = (torch.ones((), requires_grad=True) for _ in range(2))
    product = a * b
    return {
        "a chain": (a.clone().sin().exp(), {}),
        "a use of a result twice": ((a + product.exp()).sin(), {}),
        "two branches": (a.exp() * b.sin().cos(), {}),
        "one input": (a.sin() * b.cos(), {"inputs": [a]}),
        "an input in the middle": ((product * a).sin(), {"inputs": [product]}),
        "a number": (a * 2 + 3, {}),
    }


@pytest.mark.parametrize("name", _programs(flambeau))
@differential
def test_order_of_execution_is_told_at_the_start(torch: Any, name: str) -> Any:
    root, options = _programs(torch)[name]
    told: list[str] = []
    root.register_hook(lambda grad: told.extend(each.name() for each in torch._C._current_graph_task_execution_order()))
    with torch.autograd.set_multithreading_enabled(False):
        torch.autograd.backward(root, **options)
    return (
        [each.removeprefix("torch::autograd::") for each in told],
        outcome(torch._C._current_graph_task_execution_order, "only be called during the backward pass"),
    )
