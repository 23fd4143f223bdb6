"""Recurrent networks on a device as a whole, beside PyTorch's on the CPU: cells, layers, directions, packed sequences.

On the simulated device PyTorch plays the vendor's library, and is handed the addresses that it would be.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from unittest import mock

import numpy as np
import pytest
import torch as pytorch

import flambeau as torch
from flambeau._backends.cuda.arrays.array import over
from flambeau._backends.cuda.layers import recurrent_network
from flambeau._backends.cuda.runtime.driver import driver
from flambeau._core.geometry.recurrence import GATES
from tests.cuda.on_device.conftest import is_simulated


def _window(place: int, shape: tuple[int, ...]) -> Any:
    """PyTorch's view of float32 in the host's memory."""
    simulated: Any = driver()
    return pytorch.from_numpy(simulated._window(over(simulated, place, shape, np.dtype(np.float32))))


class _ByPyTorch:
    """A network in the library's stead: its parameters lie side by side, weights before biases, from the second on."""

    def __init__(self, what: Any) -> None:
        self.what = what
        self.shapes: list[tuple[int, ...]] = []
        gates = GATES[what.cell] * what.width
        for group in range(what.layers * what.directions):
            inputs = what.inputs if group < what.directions else what.directions * what.state
            self.shapes += [(gates, inputs), (gates, what.state), *[(gates,)] * (2 * what.has_biases)]
            self.shapes += [(what.state, what.width)] if what.state != what.width else []
        order = sorted(range(len(self.shapes)), key=lambda at: -len(self.shapes[at]))
        self.at, end = [0] * len(self.shapes), 64
        for number in order:
            self.at[number] = end
            end += 4 * int(np.prod(self.shapes[number]))
        self.weight_bytes = end

    def places(self, weights: int) -> list[int]:
        return self.at

    def sequences(self, recurrence: Any) -> Any:
        return _Sequences(self, recurrence)


class _Sequences:
    reserve_bytes = 16

    def __init__(self, network: _ByPyTorch, recurrence: Any) -> None:
        self.network, self.recurrence = network, recurrence
        what, rows, batch = network.what, sum(recurrence.sizes), recurrence.sizes[0]
        groups = what.layers * what.directions
        self.input, self.output = (rows, what.inputs), (rows, what.directions * what.state)
        self.state, self.cell = (groups, batch, what.state), (groups, batch, what.width)

    def _run(self, input: int, states: int, cells: int, weights: int) -> tuple[list[Any], list[Any]]:
        """What goes in, and what comes out."""
        what, network = self.network.what, self.network
        params = [_window(weights + at, shape) for at, shape in zip(network.at, network.shapes, strict=True)]
        given = [_window(input, self.input), _window(states, self.state)]
        given += [_window(cells, self.cell)] if what.cell == "lstm" else []
        leaves = [each.clone().requires_grad_() for each in (*given, *params)]
        hx: Any = leaves[1:3] if what.cell == "lstm" else leaves[1]
        sizes = pytorch.tensor(self.recurrence.sizes)
        options = (what.has_biases, what.layers, 0.0, True, what.directions == 2)
        run = getattr(pytorch, what.cell)
        return leaves, list(run(leaves[0], sizes, hx, leaves[len(given) :], *options))

    def forward(self, input: int, output: int, states: Any, cells: Any, weights: Any, reserve: int) -> None:
        _, results = self._run(input, states[0], cells[0], weights[0])
        targets = ((output, self.output), (states[1], self.state), (cells[1], self.cell))
        for (place, shape), result in zip(targets, results, strict=False):
            _window(place, shape).copy_(result.detach())
        if reserve:
            _window(reserve, (4,)).fill_(1)

    def backward(
        self, inputs: Any, outputs: Any, states: Any, cells: Any, weights: Any, of_weights: int, reserve: int
    ) -> None:
        kept = _window(reserve, (4,))
        assert kept.tolist() == [1] * 4, "a backward pass changes what was kept"
        kept.zero_()
        leaves, results = self._run(inputs[0], states[0], cells[0], weights[0])
        arriving = [(outputs[1], self.output), (states[1], self.state), (cells[1], self.cell)][: len(results)]
        grads = [_window(*each) if each[0] else None for each in arriving]
        pairs = [(result, grad) for result, grad in zip(results, grads, strict=True) if grad is not None]
        found = pytorch.autograd.grad([result for result, _ in pairs], leaves, [grad for _, grad in pairs])
        targets = [(inputs[1], self.input), (states[2], self.state), (cells[2], self.cell)][: len(results)]
        network = self.network
        if of_weights:
            targets += [(of_weights + at, shape) for at, shape in zip(network.at, network.shapes, strict=True)]
        for target, gradient in zip(targets, found, strict=False):
            _window(*target).add_(gradient) if target[0] >= of_weights > 0 else _window(*target).copy_(gradient)


@pytest.fixture(autouse=True)
def _library() -> Iterator[None]:
    with torch.backends.cudnn.flags(enabled=True, allow_tf32=False):
        if not is_simulated():
            yield
            return
        with (
            mock.patch.multiple(recurrent_network, library=lambda: True, Network=_ByPyTorch),
            mock.patch.dict(recurrent_network._networks, clear=True),
        ):
            yield


CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "LSTM": ("LSTM", {}),
    "LSTM, batch first": ("LSTM", {"num_layers": 2, "batch_first": True}),
    "LSTM, projected both ways": ("LSTM", {"num_layers": 2, "bidirectional": True, "proj_size": 3}),
    "GRU": ("GRU", {"num_layers": 2, "bidirectional": True}),
    "GRU without biases": ("GRU", {"bias": False}),
    "tanh": ("RNN", {"num_layers": 2}),
    "relu": ("RNN", {"nonlinearity": "relu", "bidirectional": True}),
}


def _results(frame: Any, kind: str, options: dict[str, Any], packed: bool, numbers: Any) -> list[Any]:
    place = "cpu" if frame is pytorch else "cuda"
    frame.manual_seed(0)
    network = getattr(frame.nn, kind)(4, 6, **options)
    with frame.no_grad():
        for each, values in zip(network.parameters(), numbers["params"], strict=True):
            each.copy_(frame.tensor(values))
    network = network.to(place)
    x, h, c = (frame.tensor(numbers[name]).to(place).requires_grad_() for name in "xhc")
    given = frame.nn.utils.rnn.pack_padded_sequence(x, [5, 4, 4, 2], options.get("batch_first", False)) if packed else x
    output, last = network(given, (h, c) if kind == "LSTM" else h)
    output = output.data if packed else output
    if frame is torch:
        assert "CudnnRnn" in str(_made_by(output)), "it ran layer by layer"
    last = last if isinstance(last, tuple) else (last,)
    loss = (output * output).sum() + sum((each * 0.5).sin().sum() for each in last)
    wanted = [x, h, *([c] if kind == "LSTM" else []), *network.parameters()]
    first = frame.autograd.grad(loss, wanted, retain_graph=True)
    second = frame.autograd.grad(loss, wanted)
    assert all(bool((one == other).all()) for one, other in zip(first, second, strict=True))
    return [each.detach().cpu().numpy() for each in (output, *last, *first)]


def _made_by(output: Any) -> Any:
    node = output.grad_fn
    return node.next_functions[0][0] if type(node).__name__ == "TransposeBackward0" else node


@pytest.mark.filterwarnings("ignore:LSTM with projections is not supported with oneDNN")
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_results_and_gradients(name: str, packed: bool) -> None:
    kind, options = CASES[name]
    drawn = np.random.default_rng(0)
    groups = options.get("num_layers", 1) * (2 if options.get("bidirectional") else 1)
    shapes = {"x": (4, 5, 4) if options.get("batch_first") else (5, 4, 4)}
    shapes |= {"h": (groups, 4, options.get("proj_size", 6)), "c": (groups, 4, 6)}
    numbers: dict[str, Any] = {each: drawn.normal(size=shape).astype(np.float32) for each, shape in shapes.items()}
    made = getattr(pytorch.nn, kind)(4, 6, **options).parameters()
    numbers["params"] = [(0.5 * drawn.normal(size=tuple(each.shape))).astype(np.float32) for each in made]
    found = [_results(frame, kind, options, packed, numbers) for frame in (torch, pytorch)]
    for mine, wanted in zip(*found, strict=True):
        assert mine.shape == tuple(wanted.shape)
        assert abs(mine - wanted).max() <= 1e-5 * max(abs(wanted).max(), 1)


def test_second_derivatives_go_through_the_layers() -> None:
    found = []
    for place in ("cuda", "cpu"):
        torch.manual_seed(0)
        network = torch.nn.LSTM(4, 6, 2).to(place)
        x = torch.randn(5, 3, 4).to(place).requires_grad_()
        h = torch.randn(2, 3, 6).to(place).requires_grad_()
        loss = network(x, (h, h))[0].sin().sum()
        gradients = torch.autograd.grad(loss, (x, h), create_graph=True)
        second = torch.autograd.grad(sum((each * each).sum() for each in gradients), (x, h, network.weight_hh_l1))
        found.append([each.detach().cpu() for each in (*gradients, *second)])
    for mine, wanted in zip(*found, strict=True):
        assert torch.allclose(mine, wanted, 1e-4, 1e-5)


def test_only_what_is_needed() -> None:
    network = torch.nn.GRU(4, 6).cuda().requires_grad_(False)
    x = torch.randn(5, 3, 4).cuda().requires_grad_()
    _, last = network(x)
    last.sum().backward()
    assert x.grad is not None
    assert x.grad.abs().sum() > 0
    assert network.weight_ih_l0.grad is None
    with torch.no_grad():
        assert network(x)[0].grad_fn is None


def test_a_parameter_that_was_changed_is_noticed() -> None:
    network = torch.nn.LSTM(4, 6).cuda()
    output, _ = network(torch.randn(5, 3, 4).cuda())
    with torch.no_grad():
        network.weight_hh_l0.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        output.sum().backward()


@pytest.mark.needs_gpu
def test_mixed_precision() -> None:
    torch.manual_seed(0)
    network, x = torch.nn.LSTM(8, 16, 2), torch.randn(7, 3, 8)
    expected = network(x)[0]
    wanted = torch.autograd.grad(expected.sin().sum(), list(network.parameters()))
    network.cuda()
    with torch.autocast("cuda", dtype=torch.float16):
        output = network(x.cuda())[0]
    assert output.dtype is torch.float16
    found = torch.autograd.grad(output.float().sin().sum(), list(network.parameters()))
    assert torch.allclose(output.float().cpu(), expected, 1e-2, 1e-2)
    for mine, theirs in zip(found, wanted, strict=True):
        assert mine.dtype is torch.float32
        assert (mine.cpu() - theirs).norm() <= 1e-2 * theirs.norm()


@pytest.mark.needs_gpu
def test_a_captured_step() -> None:
    torch.manual_seed(0)
    network = torch.nn.GRU(8, 16, 2).cuda()
    x = torch.randn(7, 3, 8).cuda()

    def step() -> Any:
        output = network(x)[0]
        return output, torch.autograd.grad(output.sin().sum(), list(network.parameters()))

    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        step()
    stream.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        output, gradients = step()
    x.copy_(torch.randn(7, 3, 8).cuda())
    graph.replay()
    expected, wanted = step()
    assert torch.allclose(output, expected, 1e-5, 1e-6)
    for mine, theirs in zip(gradients, wanted, strict=True):
        assert torch.allclose(mine, theirs, 1e-4, 1e-5)
