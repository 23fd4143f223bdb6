"""Functions that are written for one op: its own call, and what its nodes do backward, beside the general ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import flambeau as T
from flambeau._core.node import OpNode
from flambeau._dispatch import dispatch
from flambeau._dispatch.call.primitive import CALLS
from flambeau._dispatch.dispatch import Primitive, primitive, several
from flambeau._dispatch.op import OPS, Array

# Tensors (a, b and c of one shape), a list, results that are several, views, results of another dtype.
CALLS_OF: dict[str, Callable[[Any, Any, Any], Any]] = {
    "addmm": lambda a, b, c: T.addmm(a, b, c),
    "sum_dim": lambda a, b, c: a.sum(0),
    "sort": lambda a, b, c: a.sort(0)[0],
    "transpose": lambda a, b, c: a.transpose(0, 1),
    "expand": lambda a, b, c: a[:1].expand(4, 4),
    "view of a view": lambda a, b, c: a.transpose(0, 1).unsqueeze(0)[0, 1:],
    "stack": lambda a, b, c: T.stack([a, b, c], 1),
    "argmax": lambda a, b, c: a.argmax(0),
    "gather": lambda a, b, c: a.gather(0, T.tensor([[0, 1, 2, 3]])),
    "convolution": lambda a, b, c: T.nn.functional.conv1d(a[None], b[:, :, None], c[0]),
    "convolution, no bias": lambda a, b, c: T.nn.functional.conv1d(a[None], b[:, :, None]),
    "layer_norm": lambda a, b, c: T.nn.functional.layer_norm(a, (4,), b[0], c[0]),
    "embedding": lambda a, b, c: T.nn.functional.embedding(T.tensor([1, 3]), a),
    "masked index": lambda a, b, c: T._unsafe_masked_index(a, b > 0, [T.arange(4), T.arange(4)[:, None]], 0.5),
    "pool": lambda a, b, c: T.nn.functional.max_pool2d(a[None], 2, return_indices=True)[0],
}


def _outcome(call: Callable[[Any, Any, Any], Any], needs: tuple[bool, bool, bool]) -> Any:
    """Result, gradients, and how it was recorded."""
    given = [
        T.arange(16.0).reshape(4, 4).sin().mul(number + 1).requires_grad_(need) for number, need in enumerate(needs)
    ]
    result = call(*given)
    node = result.grad_fn
    facts = [result.tolist(), result.dtype, result.stride(), result.requires_grad, result._is_view()]
    if node is not None:
        facts += [node.name(), [None if each is None else each.name() for each, _ in node.next_functions]]
        facts.append(sorted(name for name in dir(node) if name.startswith("_saved_")))
        (result * result).sum().backward(retain_graph=True)
        leaves = [each for each in given if each.requires_grad]
        found = T.autograd.grad((result * result).sum(), leaves, create_graph=True, allow_unused=True)
        facts.append([None if each is None else (each.tolist(), each.requires_grad) for each in found])
        result.sum().backward()
        try:
            result.sum().backward()
            facts.append("nothing was saved")
        except RuntimeError as error:
            facts.append(str(error).split("\n")[0])
    facts += [None if each.grad is None else each.grad.tolist() for each in given]
    with T.inference_mode():
        facts.append(call(*given).is_inference())
    with T.no_grad():
        facts.append(call(*given).requires_grad)
    return facts


@contextmanager
def _general(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Everything the long way: no op has a call of its own, no class of nodes has its formulas written out."""
    ops = [op for op in OPS.values() if isinstance(op, Primitive)]
    calls = {op: type(op) for op in ops if type(op).__call__.__code__.co_filename.startswith("<")}
    nodes = [made for op in OPS.values() if (made := vars(op).get("node_class")) is not None]
    with monkeypatch.context() as patch:
        patch.setattr(Primitive, "count_call", lambda self: None)
        for op, own in calls.items():
            op.__class__ = own.__mro__[1]
        for each in nodes:
            patch.setattr(each, "apply", OpNode.apply)
            patch.setattr(each, "release", OpNode.release)
        yield
        for op, own in calls.items():
            op.__class__ = own


@pytest.mark.parametrize(
    "needs", [(False, False, False), (True, False, False), (False, True, True), (True, True, True)]
)
@pytest.mark.parametrize("name", CALLS_OF)
def test_calls_of_its_own_are_the_same(
    name: str, needs: tuple[bool, bool, bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    call = CALLS_OF[name]
    _outcome(call, needs)
    with _general(monkeypatch):
        expected = _outcome(call, needs)
    for _ in range(CALLS // 4):  # each has four calls or more
        _outcome(call, needs)
    assert _outcome(call, needs) == expected


def test_an_op_gets_its_own_call() -> None:
    @primitive("SquareBackward0", op_name="test_square", self=lambda grad, self, times: grad * self * 2 * times)
    def square(self: Array, times: int = 1) -> Array:
        return np.square(self) * times

    x = T.tensor([3.0], requires_grad=True)
    before = type(square)
    for count in range(CALLS + 2):
        assert square(x, 2).tolist() == [18.0]
        assert (type(square) is before) is (count < CALLS - 1)
    square(x, 2).backward()
    assert x.grad is not None
    assert x.grad.tolist() == [12.0]
    assert square(x.detach()).grad_fn is None  # an argument left out
    with pytest.raises(TypeError, match="must be Tensor, not float"):
        square(2.0)
    del OPS["test_square"]


def test_where_writing_is_interrupted_the_next_call_gets_it(monkeypatch: pytest.MonkeyPatch) -> None:
    @primitive("DoubleBackward0", op_name="test_double", self=lambda grad: grad * 2)
    def double(self: Array) -> Array:
        return self * 2

    def interrupted(*_: Any) -> Any:
        raise KeyboardInterrupt

    x, before = T.ones(2), type(double)
    for _ in range(CALLS - 1):
        double(x)
    with monkeypatch.context() as while_writing:
        while_writing.setattr(dispatch, "short_call", interrupted)
        with pytest.raises(KeyboardInterrupt):
            double(x)
    assert type(double) is before
    double(x)
    assert type(double) is not before
    del OPS["test_double"]


def test_results_of_several_and_none() -> None:
    @several("PairBackward0", op_name="test_pair", joint=lambda grads, needed, self, other: [grads[0], grads[1]])
    def pair(self: Array, other: Array | None) -> tuple[Array, Array]:
        return self + 0, self + 1 if other is None else other + 0

    x, y = T.ones(2, requires_grad=True), T.ones(2, requires_grad=True)
    for _ in range(CALLS + 2):
        first, second = pair(x, None)
        assert (first.output_nr, second.output_nr) == (0, 1)
        assert [each.grad_fn.name() for each in pair(x, y)] == ["PairBackward0"] * 2
        assert [each.grad_fn for each in pair(x.detach(), None)] == [None, None]
    del OPS["test_pair"]
