"""The graphs of exported programs: the calls that PyTorch writes down, in the same words."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest

import flambeau

from ..support.oracle import pytorch


def _layers(T: Any) -> list[Any]:
    """What a program makes, each with its state, in a form that the next one takes: images of (2, 4, 8, 8)."""
    nn = T.nn
    return [
        nn.Conv2d(4, 4, 3, padding=1), nn.BatchNorm2d(4), nn.BatchNorm2d(4).eval(), nn.GroupNorm(2, 4), nn.Dropout(0.2),
        nn.Dropout(0.2).eval(), nn.Dropout2d(0.1), nn.ReLU(inplace=True), nn.GELU(), nn.SiLU(), nn.LayerNorm(8),
        nn.Linear(8, 8), nn.ConvTranspose2d(4, 4, 1), nn.Conv2d(4, 4, 3, padding="same"), nn.MaxPool2d(2),
        nn.Upsample(scale_factor=2), nn.MaxPool2d(3, 1, 1), nn.Upsample((8, 8), mode="bilinear"),
    ]  # fmt: skip


_LINES: list[Callable[[Any, Any], Any]] = [
    lambda T, x: (x + 1) * 2 - x / 3,
    lambda T, x: x.reshape(-1).view(2, 4, 8, 8),
    lambda T, x: T.cat([x, x], 1).split(4, 1)[0],
    lambda T, x: T.cat(x.chunk(2), 0),
    lambda T, x: T.einsum("bcij,bcjk->bcik", x, x),
    lambda T, x: T.where(x > 0, x, 0.5),
    lambda T, x: x.clone().add_(1).relu_(),
    lambda T, x: T.nn.functional.pad(x, (1, 1))[..., 1:-1],
    lambda T, x: x + x.std(0),
    lambda T, x: x + x.std(1, keepdim=True) * x.std((2, 3), unbiased=False, keepdim=True),
    lambda T, x: x * x.norm(),
    lambda T, x: x.softmax(1) + T.log_softmax(x, 2),
    lambda T, x: x.flatten(2).unflatten(2, (8, 8)),
    lambda T, x: x @ x,
    lambda T, x: T.nn.functional.scaled_dot_product_attention(x, x, x, is_causal=True),
    lambda T, x: x.contiguous().mean((2, 3), keepdim=True) + x,
    lambda T, x: x + T.nn.functional.adaptive_avg_pool2d(x, 1),
    lambda T, x: x + T.nn.functional.cross_entropy(x.flatten(1), T.tensor([3, 1])),
    lambda T, x: x + T.nn.functional.nll_loss(x.flatten(1), T.tensor([0, 2]), reduction="sum"),
]


def _program(T: Any) -> tuple[Any, Any]:
    class Program(T.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.layers = T.nn.ModuleList(_layers(T))
            self.lstm, self.gru = T.nn.LSTM(8, 8, 2, batch_first=True), T.nn.GRU(8, 4, bidirectional=True)

        def forward(self, x: Any) -> Any:
            for layer in self.layers:
                x = layer(x)
            for line in _LINES:
                x = line(T, x)
            return self.gru(self.lstm(x.flatten(0, 1))[0])[0]

    T.manual_seed(0)
    model = Program()
    return model, T.linspace(-1, 1, 512).reshape(2, 4, 8, 8)


def _targets(program: Any) -> list[str]:
    return [str(node.target) for node in program.graph.nodes if node.op == "call_function"]


@pytest.mark.skipif(pytorch is None, reason="there is no PyTorch to compare with")
def test_the_graph_holds_the_calls_of_the_program(exported: Any) -> None:
    ours = exported[-1]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch warns of its own layers
        model, x = _program(pytorch)
        theirs = pytorch.export.export(model, (x,))
    assert _targets(ours) == _targets(theirs)
    assert [str(each) for each in ours.graph_signature.input_specs] == [
        str(each) for each in theirs.graph_signature.input_specs
    ]


@pytest.fixture(scope="module")
def exported() -> tuple[Any, Any, dict[str, Any], Any]:
    """A module, an input, the state that it had before, and the program."""
    model, x = _program(flambeau)
    state = {name: value.clone() for name, value in model.state_dict().items()}
    return model, x, state, flambeau.export.export(model, (x,))


def _run(model: Any, x: Any, of: Any, state: Any) -> list[Any]:
    """The result, and what the buffers are afterwards."""
    model.load_state_dict(state)
    flambeau.manual_seed(1)
    return [of(x).detach(), *[each.clone() for each in model.buffers()]]


def test_programs_in_training_mode_draw_and_change_buffers_as_the_module_does(exported: Any) -> None:
    model, x, state, program = exported
    assert all(flambeau.equal(value, state[name]) for name, value in model.state_dict().items()), "export changed it"
    expected = _run(model, x, model, state)
    for made in (program, program.run_decompositions()):
        actual = _run(model, x, made.module(), state)
        assert all(flambeau.equal(a, b) for a, b in zip(actual, expected, strict=True))


def test_decomposed_programs_have_neither_composed_calls_nor_attributes(exported: Any) -> None:
    program = exported[-1].run_decompositions()
    targets = _targets(program)
    assert not {"aten.linear.default", "aten.conv2d.default", "aten.dropout.default"} & set(targets)
    assert {"aten.addmm.default", "aten.convolution.default"} <= set(targets)
    assert not [node for node in program.graph.nodes if node.op == "get_attr"]


_CALLS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "inv": (lambda T, x: T.linalg.inv(x), (3, 3)),
    "inverse": (lambda T, x: x.inverse(), (3, 3)),
    "inv_ex": (lambda T, x: T.linalg.inv_ex(x, check_errors=True), (3, 3)),
    "det": (lambda T, x: T.linalg.det(x), (3, 3)),
    "cond": (lambda T, x: T.linalg.cond(x), (3, 3)),
    "solve": (lambda T, x: T.linalg.solve(x, x, left=False), (3, 3)),
    "solve_ex": (lambda T, x: T.linalg.solve_ex(x, x), (3, 3)),
    "cholesky": (lambda T, x: T.linalg.cholesky(x.mm(x.transpose(0, 1)), upper=True), (3, 3)),
    "cholesky_ex": (lambda T, x: T.linalg.cholesky_ex(x), (3, 3)),
    "lu_factor": (lambda T, x: T.linalg.lu_factor(x), (3, 3)),
    "lu_factor_ex": (lambda T, x: T.linalg.lu_factor_ex(x, pivot=True), (3, 3)),
    "ldl_factor": (lambda T, x: T.linalg.ldl_factor(x), (3, 3)),
    "ldl_factor_ex": (lambda T, x: T.linalg.ldl_factor_ex(x), (3, 3)),
    "tensorinv": (lambda T, x: T.linalg.tensorinv(x, ind=1), (6, 2, 3)),
    "tensorsolve": (lambda T, x: T.linalg.tensorsolve(x, x[0]), (3, 3)),
    "histogram": (lambda T, x: T.histogram(x, 3), (5,)),
    "histogram of edges": (lambda T, x: T.histogram(x, T.linspace(0, 1, 4), density=True), (5,)),
    "normal": (lambda T, x: T.normal(x, x.exp()), (3,)),
    "normal of widths": (lambda T, x: T.normal(1.0, x.exp()), (3,)),
    "normal around": (lambda T, x: T.normal(x), (3,)),
    "linspace": (lambda T, x: T.linspace(x, 3, 5), ()),
    "logspace": (lambda T, x: T.logspace(1, x, 5), ()),
    "positions": (lambda T, x: x[[0, 2]], (3, 3)),
    "softmax": (lambda T, x: T.softmax(x, 0, dtype=T.float64), (3,)),
    "histogramdd": (lambda T, x: T.histogramdd(x, [2, 2])[0], (5, 2)),
    "rrelu": (lambda T, x: T.nn.functional.rrelu(x, training=True), (3,)),
    "bernoulli": (lambda T, x: T.bernoulli(x.sigmoid()), (3,)),
    "multinomial": (lambda T, x: T.multinomial(x.sigmoid(), 2), (3,)),
    "zeros_like": (lambda T, x: T.zeros_like(x), ()),
    "native_group_norm": (lambda T, x: T.native_group_norm(x, None, None, 2, 4, 3, 2, 1e-5), (2, 4, 3)),
}


def _module(T: Any, call: Callable[..., Any]) -> Any:
    class Module(T.nn.Module):  # type: ignore[misc, name-defined]
        def forward(self, x: Any) -> Any:
            return call(T, x)

    return Module()


def _input(T: Any, shape: tuple[int, ...]) -> Any:
    T.manual_seed(0)
    return T.rand(shape) + (T.eye(3) if shape == (3, 3) else 0)


def _tensors(value: Any) -> list[Any]:
    return list(value) if isinstance(value, tuple) else [value]


@pytest.mark.parametrize("name", _CALLS)
@pytest.mark.skipif(pytorch is None, reason="there is no PyTorch to compare with")
def test_calls_that_are_one_operator(name: str) -> None:
    call, shape = _CALLS[name]
    x = _input(flambeau, shape)
    program = flambeau.export.export(_module(flambeau, call), (x,))
    theirs = pytorch.export.export(_module(pytorch, call), (_input(pytorch, shape),))
    if name not in ("zeros_like", "native_group_norm"):  # these have other names in PyTorch's graph
        assert _targets(program) == _targets(theirs)
    flambeau.manual_seed(3)
    expected = _tensors(call(flambeau, x))
    flambeau.manual_seed(3)
    assert [each.tolist() for each in _tensors(program.module()(x))] == [each.tolist() for each in expected]


def test_an_exported_program_finds_singular_matrices() -> None:
    program = flambeau.export.export(_module(flambeau, _CALLS["inv"][0]), (flambeau.eye(3),))
    with pytest.raises(RuntimeError, match="singular"):
        program.module()(flambeau.zeros(3, 3))


def test_tensors_that_change_their_shape_in_place() -> None:
    def call(T: Any, x: Any) -> Any:
        y = x + 1
        y.transpose_(0, 1)
        return y.unsqueeze_(0) * 2

    x = flambeau.arange(6.0).reshape(2, 3)
    program = flambeau.export.export(_module(flambeau, call), (x,))
    assert flambeau.equal(program.module()(x), call(flambeau, x))
