"""RNN, LSTM, GRU, their cells and the functions behind them: the same numbers as PyTorch, with their derivatives."""

from __future__ import annotations

import copy
import math
import pickle
from typing import Any

import pytest

import flambeau
from flambeau._backends import arrays as array_functions
from flambeau.autograd import gradcheck, gradgradcheck

from ..support.differential import differential, outcome, warned

NETWORKS = ("RNN", "LSTM", "GRU")
CELLS = ("RNNCell", "LSTMCell", "GRUCell")


def _plain(value: Any) -> Any:
    """Values without their history: the two libraries divide a network into different ops."""
    if isinstance(value, (tuple, list)):
        return [_plain(each) for each in value]
    return value.detach() if hasattr(value, "detach") else value


def _observed(T: Any, model: Any, output: Any, last: Any, *leaves: Any) -> Any:
    """Output, last states, and the gradients of leaves and parameters."""
    ends = last if isinstance(last, tuple) else (last,)
    loss = (output * output.detach().cos()).sum() + sum((each * each).sum() for each in ends)
    loss.backward()
    grads = [each.grad for each in (*leaves, *model.parameters())]
    return _plain([output, ends, grads])


OPTIONS: list[dict[str, Any]] = [
    {},
    {"num_layers": 2, "bidirectional": True},
    {"bidirectional": True, "batch_first": True, "bias": False},
    {"num_layers": 2, "batch_first": True},
    {"num_layers": 2, "bias": False},
]


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@differential(tolerance=2e-5)
def test_networks(T: Any, name: str, dtype: str) -> Any:
    found = []
    for options in OPTIONS:
        model = getattr(T.nn, name)(3, 4, dtype=getattr(T, dtype), **options)
        initial = _plain(list(model.parameters()))
        x = T.randn(5, 2, 3, dtype=getattr(T, dtype)).requires_grad_()
        output, last = model(x)
        found.append((repr(model), list(model.state_dict()), initial, _observed(T, model, output, last, x)))
    return found


@pytest.mark.parametrize("bias", [False, True])
@differential
def test_lstm_with_projections(T: Any, bias: bool) -> Any:
    model = T.nn.LSTM(3, 5, 2, bias=bias, proj_size=2, bidirectional=True, dtype=T.float64)
    x = T.randn(4, 2, 3, dtype=T.float64).requires_grad_()
    h, c = T.randn(4, 2, 2, dtype=T.float64).requires_grad_(), T.randn(4, 2, 5, dtype=T.float64).requires_grad_()
    output, last = model(x, (h, c))
    return repr(model), list(model.state_dict()), _observed(T, model, output, last, x, h, c)


@pytest.mark.parametrize("name", NETWORKS)
@differential
def test_dropout_between_layers_draws_the_same_numbers(T: Any, name: str) -> Any:
    model = getattr(T.nn, name)(3, 4, 3, dropout=0.4, bidirectional=True, batch_first=True, dtype=T.float64)
    x = T.randn(2, 5, 3, dtype=T.float64)
    trained = _observed(T, model, *model(x))
    after = T.rand(2)
    return trained, after, _plain(model.eval()(x))


@pytest.mark.parametrize("name", NETWORKS)
@differential
def test_initial_states_and_one_sample(T: Any, name: str) -> Any:
    model = getattr(T.nn, name)(3, 4, 2, dtype=T.float64)
    h, c = T.randn(2, 2, 4, dtype=T.float64).requires_grad_(), T.randn(2, 2, 4, dtype=T.float64)
    x = T.randn(5, 2, 3, dtype=T.float64)
    batch = _observed(T, model, *model(x, (h, c) if name == "LSTM" else h), h)
    one = model(x[:, 0], (h[:, 0], c[:, 0]) if name == "LSTM" else h[:, 0])
    return batch, _plain(one), _plain(model(x[:, 1])), _plain(model(x[:, :0]))


@differential
def test_relu(T: Any) -> Any:
    model = T.nn.RNN(3, 4, 2, "relu", dtype=T.float64)
    x = T.randn(5, 2, 3, dtype=T.float64).requires_grad_()
    return repr(model), model.nonlinearity, model.mode, _observed(T, model, *model(x), x)


@pytest.mark.parametrize("name", CELLS)
@pytest.mark.parametrize("bias", [False, True])
@differential(tolerance=1e-5)
def test_cells(T: Any, name: str, bias: bool) -> Any:
    found = []
    for options in [{}, {"nonlinearity": "relu"}] if name == "RNNCell" else [{}]:
        cell = getattr(T.nn, name)(3, 4, bias=bias, **options)
        x = T.randn(2, 3).requires_grad_()
        state = T.randn(2, 4).requires_grad_()
        pair = (state, state.cos()) if name == "LSTMCell" else state
        given, fresh, one = cell(x, pair), cell(x), cell(x[0])
        alone = cell(x[0], tuple(each[0] for each in pair) if name == "LSTMCell" else state[0])
        ends = given if name == "LSTMCell" else (given,)
        sum((each * each).sum() for each in ends).backward()
        grads = [each.grad for each in (x, state, *cell.parameters())]
        found.append((repr(cell), list(cell.state_dict()), _plain([given, fresh, one, alone, grads])))
    return found


@differential
def test_functions(T: Any) -> Any:
    x, h = T.randn(5, 2, 3, dtype=T.float64), T.randn(1, 2, 4, dtype=T.float64)
    weights = {n: [T.randn(n * 4, 3), T.randn(n * 4, 4), T.randn(n * 4), T.randn(n * 4)] for n in (1, 3, 4)}
    weights = {n: [each.double() for each in group] for n, group in weights.items()}
    rest = (True, 1, 0.0, False, False)
    names = dict(zip(("has_biases", "num_layers", "dropout", "train", "bidirectional"), rest, strict=True))
    sizes, rows = T.tensor([2, 2, 1]), x.reshape(10, 3)[:5]
    return (
        T.lstm(x, (h, h.sin()), weights[4], *rest, False),
        T.lstm(x.transpose(0, 1), hx=(h, h), params=weights[4], batch_first=True, **names),
        T.lstm(rows, sizes, (h, h), weights[4], *rest),
        T.gru(x, h, weights[3], *rest, False),
        T.gru(rows, sizes, h, weights[3], *rest),
        T.gru(x, h, weights[3][:2], False, *rest[1:], False),
        T.rnn_tanh(x, h, weights[1], *rest, False),
        T.rnn_relu(x, h, weights[1], *rest, False),
        T.rnn_tanh(rows, batch_sizes=sizes, hx=h, params=weights[1], **names),
        T.lstm_cell(x[0], (h[0], h[0]), *weights[4]),
        T.lstm_cell(x[0], (h[0], h[0]), *weights[4][:2]),
        T.gru_cell(x[0], h[0], *weights[3]),
        T.rnn_tanh_cell(x[0], h[0], *weights[1]),
        T.rnn_relu_cell(x[0], h[0], *weights[1][:3]),
    )


@pytest.mark.parametrize("name", NETWORKS)
@differential
def test_other_dtypes_and_devices(T: Any, name: str) -> Any:
    x = T.randn(4, 2, 3)
    model = getattr(T.nn, name)(3, 4, 2)
    wide = copy.deepcopy(model).to(T.complex128)
    z = T.complex(x.double(), x.double().cos()).requires_grad_()
    output, _ = wide(z)
    (output.abs() ** 2).sum().backward()
    empty = getattr(T.nn, name)(3, 4, 2, device="meta")(x.to("meta"))[0]
    return _plain([output, z.grad, wide.weight_hh_l0.grad]), tuple(empty.shape), str(empty.device), str(empty.dtype)


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_is_close_to_single(name: str, dtype: str) -> None:
    half = getattr(flambeau, dtype)
    flambeau.manual_seed(0)
    model = getattr(flambeau.nn, name)(3, 4, 2)
    x = flambeau.randn(5, 2, 3)
    reduced = copy.deepcopy(model).to(half)
    output, _ = reduced(x.to(half))
    output.float().sum().backward()
    expected, _ = model(x)
    expected.sum().backward()
    assert output.dtype is half
    assert reduced.weight_ih_l0.grad.dtype is half
    assert (output.float() - expected).abs().max() < 0.02
    assert (reduced.weight_hh_l1.grad.float() - model.weight_hh_l1.grad).abs().max() < 0.1


@pytest.mark.parametrize("name", ["LSTM", "GRU", "RNN", "LSTMCell", "GRUCell", "RNNCell"])
@differential(tolerance=1e-5)
def test_autocast_casts_to_the_dtype_of_the_input(T: Any, name: str) -> Any:
    model = getattr(T.nn, name)(3, 4)
    x = T.ones(2, 3) if "Cell" in name else T.ones(2, 2, 3)
    with T.autocast("cpu", dtype=T.bfloat16):
        result = model(x.bfloat16())
    return _plain(result)


def _double(*shape: int) -> Any:
    return flambeau.randn(*shape, dtype=flambeau.float64).requires_grad_()


@pytest.mark.parametrize("gates", [4, 3, 1])
@pytest.mark.parametrize("both", [False, True])
def test_derivatives_of_derivatives(gates: int, both: bool) -> None:
    flambeau.manual_seed(0)
    width, directions = 2, 2 if both else 1
    function = {4: flambeau.lstm, 3: flambeau.gru, 1: flambeau.rnn_tanh}[gates]
    sizes = flambeau.tensor([2, 1])
    states = [_double(directions, 2, width) for _ in range(2 if gates == 4 else 1)]
    shapes = [(gates * width, 2), (gates * width, width), (gates * width,), (gates * width,)] * directions

    def run(x: Any, *rest: Any) -> Any:
        initial, params = rest[: len(states)], rest[len(states) :]
        hx = initial if gates == 4 else initial[0]
        return function(x, sizes, hx, params, True, 1, 0.0, False, both)

    inputs = [_double(3, 2), *states, *(_double(*shape) for shape in shapes)]
    assert gradcheck(run, inputs, check_forward_ad=not both, fast_mode=True)
    assert gradgradcheck(run, inputs, fast_mode=True)


def test_projection_has_second_derivatives() -> None:
    flambeau.manual_seed(0)
    params = [_double(12, 2), _double(12, 2), _double(12), _double(12), _double(2, 3)]
    inputs = [_double(2, 2, 2), _double(1, 2, 2), _double(1, 2, 3), *params]

    def run(x: Any, h: Any, c: Any, *weights: Any) -> Any:
        return flambeau.lstm(x, (h, c), weights, True, 1, 0.0, False, False, False)

    assert gradgradcheck(run, inputs, fast_mode=True)


@differential
def test_changing_the_output_in_place_leaves_the_derivative_alone(T: Any) -> Any:
    found = []
    for name in NETWORKS:
        model = getattr(T.nn, name)(3, 4, dtype=T.float64)
        output, _ = model(T.randn(5, 2, 3, dtype=T.float64))
        output += 1
        output.pow(2).sum().backward()
        found.append([each.grad for each in model.parameters()])
    return found


@pytest.mark.parametrize("name", [*NETWORKS, *CELLS])
def test_copies_and_pickles(name: str) -> None:
    model = getattr(flambeau.nn, name)(3, 4)
    x = flambeau.randn(2, 3) if "Cell" in name else flambeau.randn(5, 2, 3)
    expected = model(x)
    for twin in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert repr(twin) == repr(model)
        assert twin.__dict__.keys() == model.__dict__.keys()
        flambeau.testing.assert_close(twin(x), expected)


@differential
def test_parameters_that_are_replaced(T: Any) -> Any:
    model = T.nn.GRU(3, 4, 2, bidirectional=True)
    names = [[each.shape for each in group] for group in model.all_weights]
    model.weight_ih_l0 = T.nn.Parameter(T.zeros(12, 3))
    model.bias_hh_l1_reverse.data.fill_(0.5)
    same = [a is b for a, b in zip(model._flat_weights, model.parameters(), strict=True)]
    model.double().flatten_parameters()
    replaced = {name: T.ones_like(each) / 8 for name, each in model.named_parameters()}
    model.load_state_dict(replaced)
    return names, same, _plain(model(T.ones(2, 2, 3, dtype=T.float64))), model._flat_weights_names, model._all_weights


def test_state_of_an_older_version() -> None:
    model = flambeau.nn.LSTM(3, 4, bidirectional=True)
    state = {key: value for key, value in vars(model).items() if key not in ("proj_size", "_flat_weights_names")}
    state["_all_weights"] = model.all_weights
    state["_flat_weights"] = list(model.parameters())
    old = flambeau.nn.LSTM.__new__(flambeau.nn.LSTM)
    old.__setstate__(state)
    x = flambeau.ones(2, 2, 3)
    assert old.proj_size == 0
    assert old._flat_weights_names == model._flat_weights_names
    flambeau.testing.assert_close(old(x), model(x))


@differential
def test_refused_settings(T: Any) -> Any:
    LSTM, RNN, GRU = T.nn.LSTM, T.nn.RNN, T.nn.GRU
    return (
        outcome(lambda: LSTM(3, 4, dropout=2), "dropout should be a number in range [0, 1]"),
        outcome(lambda: LSTM(3, 4, dropout=True), "dropout should be a number"),
        warned(lambda: repr(LSTM(3, 4, dropout=0.5)), "dropout option adds dropout after all but last"),
        outcome(lambda: LSTM(3.0, 4), "input_size should be of type int, got: float"),
        outcome(lambda: LSTM(3, 4.0), "hidden_size should be of type int, got: float"),
        outcome(lambda: LSTM(0, 4), "input_size must be greater than zero"),
        outcome(lambda: LSTM(3, 0), "hidden_size must be greater than zero"),
        outcome(lambda: LSTM(3, 4, 0), "num_layers must be greater than zero"),
        outcome(lambda: LSTM(3, 4, bias=1), "bias should be of type bool, got: int"),
        outcome(lambda: LSTM(3, 4, batch_first=None), "batch_first should be of type bool"),
        outcome(lambda: LSTM(3, 4, proj_size=-1), "proj_size should be a positive integer or zero"),
        outcome(lambda: LSTM(3, 4, proj_size=4), "proj_size has to be smaller than hidden_size"),
        outcome(lambda: GRU(3, 4, proj_size=1), "proj_size argument is only supported for LSTM"),
        outcome(lambda: RNN(3, 4, proj_size=1), "proj_size argument is only supported for LSTM"),
        outcome(lambda: RNN(3, 4, nonlinearity="gelu"), "Unknown nonlinearity 'gelu'"),
        outcome(lambda: T.nn.RNNBase("MGU", 3, 4), "Unrecognized RNN mode: MGU"),
        outcome(lambda: T.nn.RNNCell(3, 4, nonlinearity="gelu")(T.ones(3)), "Unknown nonlinearity: gelu"),
    )


@differential
def test_refused_inputs(T: Any) -> Any:
    lstm, gru, rnn, z = T.nn.LSTM(3, 4), T.nn.GRU(3, 4), T.nn.RNN(3, 4), T.zeros
    return (
        outcome(lambda: lstm(z(3)), "LSTM: Expected input to be 2D or 3D, got 1D instead"),
        outcome(lambda: gru(z(3)), "GRU: Expected input to be 2D or 3D, got 1D instead"),
        outcome(lambda: rnn(z(3)), "RNN: Expected input to be 2D or 3D, got 1D tensor instead"),
        outcome(lambda: lstm(z(5, 2, 4)), "input.size(-1) must be equal to input_size. Expected 3, got 4"),
        outcome(lambda: gru(z(5, 2, 3).double()), "does not match weight dtype (torch.float32)"),
        outcome(lambda: gru(z(5, 2, 3), z(1, 3, 4)), "Expected hidden size (1, 2, 4), got [1, 3, 4]"),
        outcome(lambda: lstm(z(5, 2, 3), (z(1, 3, 4), z(1, 2, 4))), "Expected hidden[0] size (1, 2, 4), got [1, 3, 4]"),
        outcome(lambda: lstm(z(5, 2, 3), (z(1, 2, 4), z(1, 2, 3))), "Expected hidden[1] size (1, 2, 4), got [1, 2, 3]"),
        outcome(lambda: lstm(z(5, 3), (z(1, 1, 4), z(1, 4))), "should also be 2-D but got (3-D, 2-D) tensors"),
        outcome(lambda: lstm(z(5, 2, 3), (z(1, 4), z(1, 4))), "should also be 3-D but got (2-D, 2-D) tensors"),
        outcome(lambda: gru(z(5, 2, 3), z(1, 4)), "For batched 3-D input, hx should also be 3-D but got 2-D tensor"),
        outcome(lambda: rnn(z(5, 3), z(1, 1, 4)), "For unbatched 2-D input, hx should also be 2-D but got 3-D tensor"),
        outcome(lambda: gru(z(0, 2, 3)), "Expected sequence length to be larger than 0 in RNN"),
        outcome(lambda: T.nn.GRUCell(3, 4)(z(2, 2, 3)), "GRUCell: Expected input to be 1D or 2D, got 3D instead"),
        outcome(lambda: T.nn.RNNCell(3, 4)(z(3), z(1, 1, 4)), "RNNCell: Expected hidden to be 1D or 2D, got 3D"),
        outcome(lambda: T.nn.LSTMCell(3, 4)(z(3), (z(4), z(1, 1, 4))), "LSTMCell: Expected hx[1] to be 1D or 2D"),
        outcome(lambda: T.nn.GRUCell(3, 4)(z(2, 5)), "input has inconsistent input_size: got 5 expected 3"),
        outcome(lambda: T.nn.GRUCell(3, 4)(z(2, 3), z(3, 4)), "Input batch size 2 doesn't match hidden0 batch size 3"),
        outcome(lambda: T.nn.RNNCell(3, 4)(z(2, 3), z(2, 5)), "hidden0 has inconsistent hidden_size: got 5, expected"),
    )


@differential
def test_refused_arguments_of_functions(T: Any) -> Any:
    z = T.zeros
    x, h, rest = z(5, 2, 3), z(1, 2, 4), (True, 1, 0.0, False, False, False)
    four, three = [z(16, 3), z(16, 4), z(16), z(16)], [z(12, 3), z(12, 4), z(12), z(12)]
    deep = [*three, z(12, 4), *three[1:]]
    return (
        outcome(lambda: T.lstm(x, (h,), four, *rest), "lstm expects two hidden states"),
        outcome(lambda: T.lstm(x, (h, h), four)),
        outcome(lambda: T.gru(x, h, three[:3], *rest), "got an incorrect number of RNN parameters"),
        outcome(lambda: T.gru(x, z(2, 2, 4), three, True, 1, 0.0, False, True, False), "Odd number of params"),
        outcome(lambda: T.gru(x, z(1, 3, 4), three, *rest), "The size of tensor a (3) must match"),
        outcome(lambda: T.gru(x, z(1, 2, 5), three, *rest), "mat1 and mat2 shapes cannot be multiplied (2x5 and 4x12)"),
        outcome(lambda: T.gru(x.double(), h, three, *rest), "mat1 and mat2 must have the same dtype"),
        outcome(lambda: T.gru(x, z(2, 2, 4), deep, True, 2, 1.5, True, False, False), "dropout probability has to be"),
        outcome(lambda: T.lstm_cell(z(2, 3), (h[0],), *four), "lstm_cell expects two hidden states"),
        outcome(lambda: T.lstm_cell(z(2, 3), (h[0], z(2, 5)), *four), "hidden1 has inconsistent hidden_size"),
    )


def test_shapes_that_pytorch_does_not_check() -> None:
    z = flambeau.zeros
    params, state = [z(16, 3), z(16, 4), z(16), z(16)], (z(1, 2, 4), z(1, 2, 4))
    with pytest.raises(RuntimeError, match="not the input size of the layer"):
        flambeau.lstm(z(5, 2, 7), state, params, True, 1, 0.0, False, False, False)
    with pytest.raises(RuntimeError, match="must add up to the 5 rows"):
        flambeau.lstm(z(5, 3), flambeau.tensor([2, 1]), state, params, True, 1, 0.0, False, False)


@pytest.mark.parametrize("kind", ["RNN", "GRU", "LSTM"])
@pytest.mark.parametrize("layers", [1, 2])
@differential
def test_outputs_with_the_batch_first_are_hooked_and_changed(T: Any, kind: str, layers: int) -> Any:
    """Whether an output is a view decides what becomes of a hook when it is changed in place."""
    T.manual_seed(0)
    network = getattr(T.nn, kind)(3, 4, num_layers=layers, batch_first=True)
    output, last = network(T.arange(24.0).reshape(2, 4, 3).sin())
    seen = [(each._is_view(), each.stride()) for each in (output, *(last if isinstance(last, tuple) else (last,)))]
    if kind == "LSTM":  # a view of what is kept for the backward pass
        return seen
    output.register_hook(lambda grad: grad * 0.5)
    T.nn.functional.hardtanh_(output, -0.1, 0.3)
    output.logsumexp(-1).mean().backward()
    return seen, network.weight_ih_l0.grad, network.bias_hh_l0.grad


@pytest.mark.parametrize("kind", ["RNN", "GRU", "LSTM"])
@pytest.mark.parametrize("shape", [(3, 1, 2), (3, 2), (3, 4, 2)])
def test_networks_that_run_as_one_op_train_with_the_batch_first(
    kind: str, shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A device that runs a network as a whole keeps its output for the backward pass."""
    network = getattr(flambeau.nn, kind)(2, 2, num_layers=2, bidirectional=True, batch_first=True)
    sequence = flambeau.arange(math.prod(shape)).reshape(shape).sin().requires_grad_()

    def differentiated() -> list[Any]:
        output, last = network(sequence)
        total = sum((each.sum() for each in (last if kind == "LSTM" else (last,))), (output * output).sum())
        return [output, *flambeau.autograd.grad(total, [sequence, *network.parameters()])]

    expected = differentiated()
    monkeypatch.setattr(array_functions, "runs_recurrent_network", lambda *given: True)
    for found, want in zip(differentiated(), expected, strict=True):
        assert flambeau.allclose(found, want, rtol=1e-5, atol=1e-6)
