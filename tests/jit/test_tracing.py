"""`jit.trace`: what a run did, as a program, which PyTorch reads too."""

from __future__ import annotations

import copy
import io
import operator
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch as pytorch

import flambeau
from tests.conformance.compare import differences

from .archives import compare_calls, quietly
from .networks import names, network

NOT_WRITTEN = {"test_bidirectional_lstm_with_packed_sequences", "test_character_rnn"}
"""Packed sequences, and an output that is None, which PyTorch does not trace either."""

TRACED = [each for each in names() if each[1] not in NOT_WRITTEN][1::3]
"""A third of the networks: tracing them all takes long, and they have much in common."""


def in_pytorch(traced: Any) -> Any:
    """A trace, through its archive, in PyTorch."""
    buffer = io.BytesIO()
    flambeau.jit.save(traced, buffer)
    buffer.seek(0)
    return quietly(pytorch.jit.load, buffer)


def to_pytorch(value: Any) -> Any:
    if isinstance(value, flambeau.Tensor):
        return pytorch.tensor(value.detach().numpy())
    if isinstance(value, (list, tuple)):
        return type(value)(map(to_pytorch, value))
    if isinstance(value, dict):
        return {key: to_pytorch(each) for key, each in value.items()}
    return value


@pytest.mark.parametrize(("file", "name"), TRACED)
def test_networks(file: str, name: str) -> None:
    """Traced here, equal; and PyTorch loads what was saved, and computes the same."""
    call = network(flambeau, file, name)
    call.model.eval()
    traced = quietly(flambeau.jit.trace, call.model, call.args, check_trace=False)
    flambeau.manual_seed(1)
    expected = call.model(*call.args)
    again = in_pytorch(traced)
    compare_calls(again, traced, *to_pytorch(call.args))
    flambeau.manual_seed(1)
    assert_same(traced(*call.args), expected)


def assert_same(actual: Any, expected: Any) -> None:
    if isinstance(expected, flambeau.Tensor):
        np.testing.assert_allclose(actual.detach().numpy(), expected.detach().numpy(), rtol=1e-5, atol=1e-5)
    else:
        for left, right in zip(actual, expected, strict=True):
            assert_same(left, right)


class Net(flambeau.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = flambeau.nn.Conv2d(1, 3, 3)
        self.norm = flambeau.nn.BatchNorm2d(3)
        self.drop = flambeau.nn.Dropout(0.5)
        self.head = flambeau.nn.Linear(12, 2)
        self.register_buffer("scale", flambeau.tensor(2.0))

    def forward(self, x: Any) -> Any:
        x = self.drop(flambeau.relu(self.norm(self.conv(x))))
        return self.head(x.view(x.size(0), -1)) * self.scale

    def encode(self, x: Any) -> Any:
        return self.conv(x).flatten(1)


def test_a_trace_serves_other_batch_sizes() -> None:
    model = Net().eval()
    traced = flambeau.jit.trace(model, flambeau.randn(1, 1, 4, 4))
    x = flambeau.randn(5, 1, 4, 4)
    assert_same(traced(x), model(x))
    compare_calls(in_pytorch(traced), traced, to_pytorch(x))


def test_what_a_trace_is() -> None:
    model = Net().eval()
    traced = flambeau.jit.trace(model, flambeau.randn(2, 1, 4, 4))
    assert isinstance(traced, flambeau.jit.TopLevelTracedModule)
    assert isinstance(traced, flambeau.jit.ScriptModule)
    assert list(traced.state_dict()) == list(model.state_dict())
    assert traced.head.weight is model.head.weight
    assert "torch.conv2d" in traced.code
    assert [each.kind() for each in traced.graph.nodes()].count("aten::linear") == 1
    assert not flambeau.jit.is_tracing()
    assert "original_name=Net" in repr(traced)
    traced(flambeau.randn(2, 1, 4, 4)).sum().backward()
    assert model.conv.weight.grad is not None
    copied = copy.deepcopy(traced)
    with flambeau.no_grad():
        copied.head.weight.zero_()
    assert model.head.weight.abs().sum() > 0
    assert flambeau.jit.trace(traced, ()) is traced


def test_training_is_recorded_as_it_was() -> None:
    """A module in training mode: its running statistics move, and its random numbers are drawn."""
    flambeau.manual_seed(0)
    model = Net()
    before = model.norm.running_mean.clone()
    traced = quietly(flambeau.jit.trace, model, flambeau.randn(2, 1, 4, 4), check_trace=False)
    model.load_state_dict({**model.state_dict(), "norm.running_mean": before})
    x = flambeau.randn(3, 1, 4, 4)
    twin = copy.deepcopy(model)
    flambeau.manual_seed(5)
    expected = twin(x)
    flambeau.manual_seed(5)
    assert_same(traced(x), expected)
    assert_same(traced.norm.running_mean, twin.norm.running_mean)


def test_several_methods() -> None:
    model = Net().eval()
    x = flambeau.randn(2, 1, 4, 4)
    traced = flambeau.jit.trace_module(model, {"forward": x, "encode": (x,)})
    assert_same(traced.encode(x), model.encode(x))
    again = in_pytorch(traced)
    assert not list(differences(again.encode(to_pytorch(x)), traced.encode(x)))


FUNCTIONS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "arithmetic": (lambda x, y: (x + y * 2 - 1) / (x.abs() + 1) ** 2, (flambeau.randn(3, 4), flambeau.randn(4))),
    "subscripts": (lambda x: x[1:, ..., 0] + x[:-1, None, 2].squeeze(1)[:, -1:], (flambeau.randn(3, 4, 2),)),
    "indices": (lambda x, i: x[i] + x[:, i], (flambeau.randn(3, 3), flambeau.tensor([2, 0, 1]))),
    "masks": (lambda x: x[x > 0].sum() + x.masked_fill(x > 0, 3.0), (flambeau.randn(3, 4),)),
    "sizes": (lambda x: x.reshape(x.shape[0] * x.shape[1], -1).sum(0, keepdim=True), (flambeau.randn(3, 4, 2),)),
    "made": (lambda x: flambeau.zeros(x.size(0), 3) + flambeau.arange(3) + x[:, :1], (flambeau.randn(3, 4),)),
    "several": (lambda x: (x.max(1), x.sort(), x.split(2, 1), x.chunk(2)), (flambeau.randn(4, 4),)),
    "containers": (lambda pair: {"a": pair[0] + pair[1], "b": pair[0].T}, ((flambeau.ones(2, 3), flambeau.ones(3)),)),
    "casts": (lambda x: x.double().long() + x.to(flambeau.int64) + (x > 0).float(), (flambeau.randn(5),)),
    "in place": (lambda x: x.clone().add_(1).mul_(x).clamp_(min=0.5), (flambeau.randn(5),)),
    "joined": (lambda x: flambeau.cat([x, flambeau.stack([x[0], x[1]])], 0), (flambeau.randn(2, 3),)),
    "products": (lambda x, y: x @ y + flambeau.einsum("ij,jk->ik", x, y), (flambeau.randn(2, 3), flambeau.randn(3, 2))),
    "where": (lambda x: flambeau.where(x > 0, x, -x) + flambeau.softmax(x, -1), (flambeau.randn(2, 3),)),
    "numbers": (lambda x: flambeau.where(x > 0, x, 0.0) + x.softmax(0).double(), (flambeau.randn(2, 3),)),
    "resizing": (lambda x: flambeau.nn.functional.interpolate(x, scale_factor=2.0), (flambeau.randn(2, 3, 4),)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name: str) -> None:
    function, args = FUNCTIONS[name]
    traced = flambeau.jit.trace(function, args)
    assert isinstance(traced, flambeau.jit.ScriptFunction)
    compare_calls(in_pytorch(traced), traced, *to_pytorch(args))
    found, expected = traced(*args), function(*args)
    for left, right in zip(*([each] if isinstance(each, flambeau.Tensor) else list(each) for each in (found, expected)),
                           strict=True):  # fmt: skip
        if isinstance(right, flambeau.Tensor):
            assert_same(left, right)


def test_warnings() -> None:
    """Values that Python looks at, and results that change from call to call."""
    with pytest.warns(flambeau.jit.TracerWarning, match="might cause the trace to be incorrect"):
        flambeau.jit.trace(lambda x: x * 2 if x.sum() > 0 else x, flambeau.ones(2))
    calls = iter(range(10))
    with pytest.warns(flambeau.jit.TracerWarning, match="does not match"):
        flambeau.jit.trace(lambda x: x + next(calls), flambeau.ones(2))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        flambeau.jit.trace(lambda x: flambeau.nn.functional.dropout(x), flambeau.ones(20))


def test_what_cannot_be_traced() -> None:
    weight = flambeau.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="requires grad as a constant"):
        flambeau.jit.trace(lambda x: x * weight, flambeau.ones(2))
    with pytest.raises(RuntimeError, match="cannot be traced"):
        flambeau.jit.trace(lambda x, y: x, (flambeau.ones(2), "text"))
    with pytest.raises(RuntimeError, match="can be output from traced functions"):
        flambeau.jit.trace(lambda x: 3, flambeau.ones(2))
    with pytest.raises(AttributeError, match=r"expected torch\.nn\.Module"):
        flambeau.jit.trace_module(lambda x: x, {"forward": flambeau.ones(2)})
    assert not flambeau.jit.is_tracing()


def test_is_tracing() -> None:
    seen = []
    flambeau.jit.trace(lambda x: seen.append(flambeau.jit.is_tracing()) or x + 1, flambeau.ones(1), check_trace=False)
    assert seen == [True]


def test_softmax_is_one_operator() -> None:
    """A trace names it as PyTorch's does, called as a method or as a function."""
    x = flambeau.randn(2, 3)
    functions = {
        "aten::softmax": lambda x: x.softmax(0),
        "aten::log_softmax": lambda x: flambeau.log_softmax(x, 0, dtype=flambeau.float64),
    }
    for name, function in functions.items():
        traced = flambeau.jit.trace(function, x)
        assert [node.kind() for node in traced.inlined_graph.nodes() if node.kind().startswith("aten")] == [name]


def test_hooks_of_what_is_traced_are_in_the_trace() -> None:
    def trace(torch: Any) -> Any:
        torch.manual_seed(0)
        linear = torch.nn.Linear(2, 2)
        linear.register_forward_hook(lambda module, args, output: output * 2)
        linear.register_forward_pre_hook(lambda module, args: (args[0] + 1,))
        return (
            linear,
            torch.jit.trace(linear, torch.ones(1, 2)),
            torch.jit.trace_module(linear, {"forward": torch.ones(1, 2)}),
        )

    for torch in (flambeau, pytorch):
        linear, *traced = quietly(trace, torch)
        x = torch.tensor([[2.0, -3.0]])
        assert all(each(x).tolist() == linear(x).tolist() for each in traced)
        assert "mul" in traced[0].code


@pytest.mark.parametrize("old", [False, True])
@pytest.mark.parametrize("dim", [0, 1, 2])
def test_weights_that_are_computed_of_others(dim: int, old: bool) -> None:
    """As in wav2vec 2.0, and vocoders."""
    utils = flambeau.nn.utils
    layer = flambeau.nn.Conv1d(3, 4, 3)
    layer = quietly(utils.weight_norm if old else utils.parametrizations.weight_norm, layer, "weight", dim)
    traced, x = flambeau.jit.trace(layer, flambeau.ones(1, 3, 5)), flambeau.randn(1, 3, 5)
    assert traced(x).tolist() == layer(x).tolist()
    pytorch.testing.assert_close(to_pytorch(traced(x)), in_pytorch(traced)(to_pytorch(x)).detach())


def test_products_of_groups() -> None:
    rows, matrices, ends = flambeau.randn(6, 4), flambeau.randn(2, 4, 8), flambeau.tensor([2, 6], dtype=flambeau.int32)

    def product(rows: Any, matrices: Any, ends: Any) -> Any:
        return flambeau.nn.functional.grouped_mm(rows, matrices, offs=ends)

    traced = flambeau.jit.trace(product, (rows, matrices, ends))
    assert traced(rows * 2, matrices, ends - 1).tolist() == product(rows * 2, matrices, ends - 1).tolist()


_BOTH_WAYS = ("and_", "or_", "xor", "lshift", "rshift", "add", "sub", "mul", "mod", "pow", "floordiv", "lt", "eq")


@pytest.mark.parametrize("name", _BOTH_WAYS)
def test_operators_follow_their_operands(name: str) -> None:
    apply = getattr(operator, name)
    numbers, others = flambeau.tensor([1, 5, 12]), flambeau.tensor([3, 2, 1])
    calls: list[Callable[..., Any]] = [lambda a, b: apply(a, b), lambda a, b: apply(a, 2), lambda a, b: apply(2, b)]
    for call in calls:
        traced = flambeau.jit.trace(call, (numbers, others))
        given = others * 3, numbers + 1
        assert traced(*given).tolist() == call(*given).tolist()
    if name in ("and_", "or_", "xor", "eq"):
        traced = flambeau.jit.trace(apply, (numbers > 2, others > 2))
        assert traced(others > 2, numbers < 2).tolist() == apply(others > 2, numbers < 2).tolist()


_WRITES: dict[str, Callable[[Any, Any, Any], Any]] = {
    "a number by a mask": lambda y, x, i: y.__setitem__(x > 0, 0.0),
    "an element by a mask": lambda y, x, i: y.__setitem__((x > 0) & (x < 2), x[0, 0]),
    "a row by a mask of rows": lambda y, x, i: y.__setitem__(x[:, 0] > 0, x[0]),
    "by a mask and a slice": lambda y, x, i: y.__setitem__((x[:, 0] > 0, slice(1, None)), 1),
    "by positions": lambda y, x, i: y.__setitem__(i, 2.5),
    "columns by positions": lambda y, x, i: y.__setitem__((slice(None), i), x[:, :2]),
    "pairs of positions": lambda y, x, i: y.__setitem__((i, i), x[0, :2]),
    "a row": lambda y, x, i: y.__setitem__(0, x[1]),
    "another dtype": lambda y, x, i: y.__setitem__((..., 0), x[:, 1].double()),
    "by one position": lambda y, x, i: y.__setitem__(i[0], 7),
    "with a new dimension": lambda y, x, i: y.__setitem__((None, i), x[:2] * 3),
    "the last": lambda y, x, i: y.__setitem__(x.shape[0] - 1, 1.0),
    "a list": lambda y, x, i: y.__setitem__([0, 1], 9.0),
}


@pytest.mark.parametrize("name", _WRITES)
def test_what_is_written_follows_the_inputs(name: str) -> None:
    def written(x: Any, i: Any) -> Any:
        y = x.clone()
        _WRITES[name](y, x, i)
        return y * 2

    x = flambeau.tensor([[1.0, -2.0, 0.5], [0.25, 3.0, -1.0], [0.0, 0.75, 2.0], [-0.5, 1.5, -3.0]])
    traced = flambeau.jit.trace(written, (x, flambeau.tensor([0, 2])))
    given = -x, flambeau.tensor([1, 0])
    assert traced(*given).tolist() == written(*given).tolist()
    assert in_pytorch(traced)(*map(to_pytorch, given)).tolist() == written(*given).tolist()


def test_named_results_keep_their_names() -> None:
    def function(x: Any) -> Any:
        return x.max(-1).values * 2 + x.sort(0).indices.sum()

    x = flambeau.tensor([[1.0, -2.0], [0.5, 3.0]])
    assert flambeau.jit.trace(function, (x,))(-x).tolist() == function(-x).tolist()
