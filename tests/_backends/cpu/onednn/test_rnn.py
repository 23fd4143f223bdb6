"""Recurrent layers: the order of gates and biases, and the results beside PyTorch's."""

from __future__ import annotations

import importlib
import itertools
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch

from flambeau._backends.cpu.onednn import rnn
from flambeau._backends.cpu.onednn.constants import F32, LEFT_TO_RIGHT
from flambeau._backends.cpu.onednn.library import Unsupported
from flambeau._backends.cpu.onednn.rnn import Parameters
from tests._backends.cpu.onednn.stand_in import StandIn

module: Any = importlib.import_module("flambeau._backends.cpu.onednn.rnn")


def problem_of(cell: Any) -> Any:
    return module._Problem(cell, 4, 3, 2, 5, LEFT_TO_RIGHT, F32)


def gate_rows(gates: int, columns: int, start: float = 0) -> Any:
    """A matrix (gates x 5, columns) whose rows say which gate they belong to."""
    return np.repeat(np.arange(gates, dtype=np.float32) + start, 5)[:, None] * np.ones(columns, np.float32)


# ----- order --------------------------------------------------------------------------------------------------------


def test_lstm_weights_are_passed_as_they_are() -> None:
    weight = gate_rows(4, 2)
    found = module._stacked(problem_of(module._LSTM), [weight])
    assert found.shape == (1, 4, 5, 2)
    assert np.shares_memory(found, weight)


def test_gru_gates_are_update_reset_candidate() -> None:
    found = module._stacked(problem_of(module._GRU), [gate_rows(3, 2)])
    assert found[0, :, 0, 0].tolist() == [1, 0, 2]


def test_biases_of_an_lstm_are_added() -> None:
    parameters = Parameters(gate_rows(4, 2), gate_rows(4, 5), gate_rows(4, 1)[:, 0], gate_rows(4, 1, 10)[:, 0])
    found = module._biases(problem_of(module._LSTM), [parameters])
    assert found[0, :, 0].tolist() == [10, 12, 14, 16]


def test_candidate_of_a_gru_keeps_two_biases() -> None:
    parameters = Parameters(gate_rows(3, 2), gate_rows(3, 5), gate_rows(3, 1)[:, 0], gate_rows(3, 1, 10)[:, 0])
    found = module._biases(problem_of(module._GRU), [parameters])
    assert found[0, :, 0].tolist() == [1 + 11, 0 + 10, 2, 12]


def test_missing_biases_are_zero() -> None:
    parameters = Parameters(gate_rows(3, 2), gate_rows(3, 5), None, None)
    assert not module._biases(problem_of(module._GRU), [parameters]).any()


def test_gradients_come_back_in_pytorchs_order() -> None:
    problem = problem_of(module._GRU)
    of_ih, of_hh = (gate_rows(3, columns).reshape(3, 5, columns) for columns in (2, 5))
    of_bias = gate_rows(4, 1).reshape(4, 5)
    found = module._as_parameters(problem, of_ih, of_hh, of_bias, np.float32)
    assert found.w_ih[::5, 0].tolist() == found.w_hh[::5, 0].tolist() == [1, 0, 2]
    assert found.b_ih[::5].tolist() == [1, 0, 2]
    assert found.b_hh[::5].tolist() == [1, 0, 3]


def test_shapes_that_do_not_fit(stand_in: StandIn) -> None:
    input, state = np.zeros((4, 3, 2), np.float32), np.zeros((1, 3, 5), np.float32)
    good = Parameters(gate_rows(4, 2), gate_rows(4, 5), None, None)
    bias = np.zeros(20, np.float32)
    calls: list[Callable[[], object]] = [
        lambda: rnn.lstm(input[0], state, state, [good]),
        lambda: rnn.lstm(input[:, :2], state, state, [good]),
        lambda: rnn.lstm(input, state, state[:, :1], [good]),
        lambda: rnn.lstm(input, state, state, [good, good]),
        lambda: rnn.lstm(input, state, state, [good._replace(w_ih=gate_rows(4, 3))]),
        lambda: rnn.lstm(input, state, state, [good._replace(b_ih=bias)]),
        lambda: rnn.lstm(input, state, state, [good._replace(b_ih=bias, b_hh=bias[1:])]),
        lambda: rnn.gru(input, state, [good]),
        lambda: rnn.lstm(input, np.repeat(state, 2, 0), np.repeat(state, 2, 0), [good, good], reverse=True),
    ]
    for call in calls:
        with pytest.raises(ValueError, match=r"do not fit|3 dimensions"):
            call()
    inference = module.Result(input, state, state, None)
    with pytest.raises(ValueError, match="in training"):
        rnn.lstm_backward((None, None, None), input, state, state, [good], inference)
    assert stand_in.executed == []


def test_empty_sequences_are_left_to_other_kernels(stand_in: StandIn) -> None:
    parameters = Parameters(gate_rows(3, 2), gate_rows(3, 5), None, None)
    with pytest.raises(Unsupported, match="empty"):
        rnn.gru(np.zeros((0, 3, 2), np.float32), np.zeros((1, 3, 5), np.float32), [parameters])


# ----- results ------------------------------------------------------------------------------------------------------


def numpy(tensor: Any) -> Any:
    tensor = tensor.detach()
    if tensor.dtype is torch.bfloat16:
        return tensor.view(torch.int16).numpy().view(ml_dtypes.bfloat16)
    return tensor.numpy()


def parameters_of(layer: Any, with_bias: bool) -> list[Parameters]:
    flat = [numpy(each) for each in layer.parameters()]
    each = 4 if with_bias else 2
    return [Parameters(*[*flat[at : at + each], None, None][:4]) for at in range(0, len(flat), each)]


def assert_close(found: Any, expected: Any, tolerance: float = 2e-5) -> None:
    expected = expected.detach().float().numpy()
    assert found.shape == expected.shape
    largest = float(np.abs(expected).max())
    np.testing.assert_allclose(found.astype(np.float32), expected, rtol=0, atol=tolerance * largest)


def compare(dnn: Any, layer: Any, with_bias: bool, dtype: Any, sizes: tuple[int, ...], tolerance: float) -> None:
    """A layer forward and backward under both libraries; PyTorch's computes in float32, with operands of `dtype`."""
    steps, batch, inputs, width = sizes
    kind, directions = layer.mode.lower(), 2 if layer.bidirectional else 1
    count = 2 if kind == "lstm" else 1
    layer = layer.to(dtype)
    parameters = parameters_of(layer, with_bias)
    layer = layer.float()
    leaves = [torch.randn(steps, batch, inputs), *[torch.randn(directions, batch, width) for _ in range(count)]]
    leaves = [each.to(dtype).float().requires_grad_() for each in leaves]
    output, state = layer(leaves[0], tuple(leaves[1:]) if count == 2 else leaves[1])
    outputs = [output, *(state if count == 2 else [state])]
    grads = [torch.randn_like(each).to(dtype).float() for each in outputs]
    expected = torch.autograd.grad(outputs, [*leaves, *layer.parameters()], grads)
    arrays = [numpy(each.to(dtype)) for each in leaves]
    result = getattr(dnn.rnn, kind)(*arrays, parameters, training=True)
    assert_close(result.output, output, tolerance)
    assert_close(result.hidden, outputs[1], tolerance)
    inference = getattr(dnn.rnn, kind)(*arrays, parameters)
    assert_close(inference.output, output, tolerance)
    assert inference.reserve is None
    backward = getattr(dnn.rnn, f"{kind}_backward")
    for _ in range(2):  # gradients replace what an earlier call left in the buffers
        found = backward(tuple(numpy(each.to(dtype)) for each in grads), *arrays, parameters, result)
        states = [found.hidden]
        if count == 2:
            assert_close(result.cell, outputs[2], tolerance)
            states.append(found.cell)
        flat = [found.input, *states, *[each for one in found.parameters for each in one if each is not None]]
        for array, each in zip(flat, expected, strict=True):
            assert array.dtype == arrays[0].dtype
            assert_close(array, each, tolerance)


@pytest.mark.parametrize(
    ("kind", "both", "with_bias", "sizes"),
    list(
        itertools.product(("LSTM", "GRU"), (False, True), (False, True), ((5, 3, 7, 6), (3, 4, 16, 16), (1, 1, 1, 1)))
    ),
)
def test_layer_forward_and_backward(dnn: Any, kind: str, both: bool, with_bias: bool, sizes: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    layer = getattr(torch.nn, kind)(sizes[2], sizes[3], bias=with_bias, bidirectional=both)
    compare(dnn, layer, with_bias, torch.float32, sizes, 2e-5)


@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
def test_bfloat16(dnn: Any, kind: str) -> None:
    torch.manual_seed(0)
    layer = getattr(torch.nn, kind)(32, 32)
    try:
        compare(dnn, layer, True, torch.bfloat16, (4, 8, 32, 32), 5e-2)
    except Unsupported as reason:
        pytest.skip(str(reason))


def test_reverse_direction_and_strided_input(dnn: Any) -> None:
    torch.manual_seed(0)
    layer = torch.nn.GRU(4, 5)
    input, state = torch.randn(3, 6, 4).transpose(0, 1), torch.randn(1, 3, 5)
    expected, last = layer(input.flip(0), state)
    found = dnn.rnn.gru(input.numpy(), state.numpy(), parameters_of(layer, True), reverse=True)
    assert_close(found.output, expected.flip(0))
    assert_close(found.hidden, last)


def test_missing_gradients_are_zero(dnn: Any) -> None:
    torch.manual_seed(0)
    layer = torch.nn.LSTM(4, 5)
    input, state = torch.randn(6, 3, 4, requires_grad=True), torch.randn(1, 3, 5)
    output, _ = layer(input, (state, state))
    grad = torch.randn_like(output)
    (expected,) = torch.autograd.grad(output, input, grad)
    arrays = [numpy(each) for each in (input, state, state)]
    result = dnn.rnn.lstm(*arrays, parameters_of(layer, True), training=True)
    found = dnn.rnn.lstm_backward((grad.numpy(), None, None), *arrays, parameters_of(layer, True), result)
    assert_close(found.input, expected)
