"""`functionalize` beside PyTorch: the same results and changes, and nothing in place for whoever watches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

import flambeau
from flambeau._dispatch.interpreter import Interpreter
from flambeau._dispatch.op import Op
from tests.support.differential import differential, outcome

# Functions of a matrix of two rows and three columns.
FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {}


def _entered(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    FUNCTIONS[function.__name__] = function
    return function


@_entered
def views(T: Any, x: Any) -> Any:
    y = x * 1
    flat = y.view(-1)
    flat.mul_(2)
    y[1:, 0] = 7
    turned = y.t()
    turned.add_(x.t())
    return y, turned, flat


@_entered
def argument(T: Any, x: Any) -> Any:
    x.add_(1)
    x[0].mul_(3)
    return x * 2


@_entered
def made_inside(T: Any, x: Any) -> Any:
    z = T.zeros(2, 3, dtype=x.dtype)
    z[0, :2].copy_(x[0, :2])
    z.diagonal().fill_(3.0)
    z.permute(1, 0)[2].sub_(1)
    return z.sum(), z


@_entered
def several_views(T: Any, x: Any) -> Any:
    y = x.clone()
    left, right = y.split([1, 2], 1)
    right.mul_(left)
    top, bottom = y.unbind(0)
    bottom.sub_(top)
    y.chunk(3, 1)[1].add_(5)
    return y, left, right, top, bottom


@_entered
def shapes(T: Any, x: Any) -> Any:
    y = x.clone()
    y.unsqueeze_(0)
    y.transpose_(0, 1)
    y.zero_()
    y += x.unsqueeze(1)
    y.squeeze_()
    return y, x.clone().as_strided((2,), (3,), 1).add_(10)


@_entered
def random(T: Any, x: Any) -> Any:
    T.manual_seed(0)
    y = x.clone()
    y[1].uniform_()
    y[0].normal_(2, 3)
    return y, T.nn.functional.dropout(x, 0.5), T.rand(3)


@_entered
def positions(T: Any, x: Any) -> Any:
    y = x.clone()
    y[T.tensor([0, 1]), T.tensor([1, 2])] = 5.0
    y[x > 0] += 1
    y.index_add_(0, T.tensor([0]), x[:1])
    y.scatter_(1, T.tensor([[0], [2]]), 9.0)
    return y, y.masked_fill_(x > 0.5, 0)


@_entered
def outputs(T: Any, x: Any) -> Any:
    y = T.empty_like(x)
    T.exp(x, out=y)
    y.clamp_(0.5, 1.0)
    return y.contiguous().view(6)[::2].mul_(2), y


@_entered
def statistics(T: Any, x: Any) -> Any:
    layer = T.nn.BatchNorm1d(3).double()
    return layer(x).detach(), layer.running_mean, layer.running_var


@_entered
def complex_parts(T: Any, x: Any) -> Any:
    y = T.complex(x, x)
    y.real.mul_(2)
    T.view_as_real(y)[..., 1].add_(1)
    return y, y.conj()


def _seen(result: Any) -> Any:
    if isinstance(result, (tuple, list)):
        return [_seen(each) for each in result]
    return result.resolve_conj().numpy(force=True)


@pytest.mark.parametrize("remove", ["mutations", "mutations_and_views"])
@pytest.mark.parametrize("name", FUNCTIONS)
@differential(tolerance=1e-9)
def test_results_and_changes(T: Any, name: str, remove: str) -> Any:
    x = T.sin(T.arange(6, dtype=T.float64) * 1.7).reshape(2, 3)
    result = T.func.functionalize(lambda x: FUNCTIONS[name](T, x), remove=remove)(x)
    return _seen(result), _seen(x)


class _Watcher(Interpreter):
    def __init__(self) -> None:
        self.ops: list[Op] = []

    def run(self, op: Op, args: Sequence[Any]) -> Any:
        self.ops.append(op)
        return op(*args)


@pytest.mark.parametrize("remove", ["mutations", "mutations_and_views"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_nothing_in_place_is_seen(name: str, remove: str) -> None:
    x = flambeau.sin(flambeau.arange(6, dtype=flambeau.float64)).reshape(2, 3)

    def run(x: Any) -> Any:
        return FUNCTIONS[name](flambeau, x)

    with _Watcher() as plain:
        run(x.clone())
    with _Watcher() as watcher:
        flambeau.func.functionalize(run, remove=remove)(x)
    written = [op.name for op in watcher.ops if op.writes]
    assert written == (["copy_"] if name == "argument" else []), written  # what the caller gave does change
    assert any(op.writes for op in plain.ops), "the function changes something"
    if remove == "mutations_and_views":
        assert not [op.name for op in watcher.ops if op.is_view and op.name not in ("conj", "detach")]


@differential(tolerance=1e-9)
def test_derivatives(T: Any) -> Any:
    def f(x: Any) -> Any:
        y = x.clone()
        y[:, 1:].add_(x[:, :2])
        y[0].mul_(x[1]).exp_()
        return (y * x).sum()

    x = T.sin(T.arange(6, dtype=T.float64)).reshape(2, 3)
    through = x.clone().requires_grad_()
    T.func.functionalize(f)(through).backward()
    return _seen([through.grad, T.func.grad(T.func.functionalize(f))(x), T.func.functionalize(T.func.grad(f))(x)])


@differential
def test_other_words_are_refused(T: Any) -> Any:
    return outcome(lambda: T.func.functionalize(lambda x: x, remove="all"), "received invalid argument for remove")


@differential(tolerance=1e-6)
def test_sparse_arguments(T: Any) -> Any:
    matrix = T.eye(3).to_sparse_csr()

    def f(places: Any, factor: Any) -> Any:
        return T.sparse.sampled_addmm(places, factor, factor, alpha=0.5, beta=2.0).to_dense()

    return _seen([T.func.functionalize(f)(matrix, T.arange(9.0).reshape(3, 3))])


@differential
def test_positions_along_some_dimensions(T: Any) -> Any:
    def f(x: Any, rows: Any, values: Any) -> Any:
        y = x.index_put((rows,), values)
        y[rows] += 1
        return y, T.ops.aten.index_put(x, [None, rows], values[:, :2])

    return _seen(T.func.functionalize(f)(T.zeros(2, 3), T.tensor([1, 0]), T.ones(2, 3)))
