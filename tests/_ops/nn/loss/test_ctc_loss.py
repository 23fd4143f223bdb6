"""`ctc_loss` against PyTorch: lengths and targets of every kind, impossible alignments, wrong input."""

from __future__ import annotations

from typing import Any

import pytest

from ....support.differential import differential, outcome

TIMES, BATCH, CLASSES = 7, 4, 6


def _log_probs(T: Any) -> Any:
    scores = T.linspace(0.0, 90.0, TIMES * BATCH * CLASSES, dtype=T.float64).sin() * 2
    return scores.reshape(TIMES, BATCH, CLASSES).log_softmax(-1).detach().requires_grad_()


def _targets(T: Any) -> Any:
    return T.tensor([[1, 2, 2], [3, 3, 1], [4, 1, 3], [2, 1, 4]])


def _with_gradient(T: Any, x: Any, loss: Any) -> Any:
    (gradient,) = T.autograd.grad(loss, x, T.linspace(1.0, 2.0, loss.numel(), dtype=loss.dtype).reshape(loss.shape))
    return loss, gradient


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize(
    "lengths", [((7, 7, 7, 7), (3, 3, 3, 3)), ((7, 5, 6, 4), (2, 3, 1, 3)), ((7, 0, 1, 2), (0, 0, 1, 3))]
)
@differential(tolerance=1e-5)
def test_values_and_gradients(T: Any, reduction: str, lengths: Any) -> Any:
    observed = []
    for blank in (0, 5):
        for make in (tuple, T.tensor):
            x = _log_probs(T)
            inputs, labels = (make(each) for each in lengths)
            loss = T.nn.functional.ctc_loss(x, _targets(T), inputs, labels, blank, reduction, True)
            observed.append(_with_gradient(T, x, loss))
    return observed


@differential(tolerance=1e-5)
def test_targets_in_one_line(T: Any) -> Any:
    x = _log_probs(T)
    line = T.tensor([1, 2, 3, 4, 2, 1], dtype=T.int32)
    loss = T.nn.functional.ctc_loss(x, line, T.tensor([7, 6, 5, 4]), T.tensor([2, 1, 1, 2]), reduction="none")
    return _with_gradient(T, x, loss)


@differential(tolerance=1e-5)
def test_one_sequence_without_batch(T: Any) -> Any:
    observed = []
    for reduction in ("none", "mean", "sum"):
        x = _log_probs(T)
        for targets, lengths in (
            (T.tensor([1, 2]), ((7,), (2,))),
            (T.tensor([[1, 2]]), (T.tensor(7), T.tensor(2))),
        ):
            loss = T.nn.functional.ctc_loss(x[:, 0], targets, *lengths, reduction=reduction)
            observed.append(_with_gradient(T, x, loss))
    return observed


@differential(tolerance=1e-5)
def test_impossible_alignments(T: Any) -> Any:
    observed = []
    for zero_infinity in (False, True):
        x = _log_probs(T)
        loss = T.nn.functional.ctc_loss(
            x, _targets(T), (3, 3, 0, 7), (3, 3, 1, 3), reduction="none", zero_infinity=zero_infinity
        )
        observed.append(_with_gradient(T, x, loss))
    return observed


@differential(tolerance=1e-5)
def test_the_functions_below(T: Any) -> Any:
    x = _log_probs(T)
    losses, alpha = T._ctc_loss(x, _targets(T), (7, 7, 7, 7), (3, 3, 3, 3))
    return losses, alpha.detach(), T.ctc_loss(x, _targets(T), (7, 7, 7, 7), (3, 3, 3, 3), 0, 2, False)


@differential
def test_without_a_second_derivative(T: Any) -> Any:
    x = _log_probs(T)
    loss = T.nn.functional.ctc_loss(x, _targets(T), (7, 7, 7, 7), (3, 3, 3, 3))
    (first,) = T.autograd.grad(loss, x, create_graph=True)
    return first.grad_fn.name(), outcome(lambda: T.autograd.grad(first.sum(), x), "is not implemented")


@differential(tolerance=1e-5)
def test_float32(T: Any) -> Any:
    return T.nn.functional.ctc_loss(_log_probs(T).float(), _targets(T), (7, 5, 6, 4), (2, 3, 1, 3), reduction="none")


@differential
def test_meta(T: Any) -> Any:
    x, targets = T.empty(7, 4, 5, device="meta"), T.empty(4, 3, device="meta", dtype=T.int64)
    return [
        T.nn.functional.ctc_loss(x, targets, (7, 7, 7, 7), (3, 3, 3, 3), reduction=each) for each in ("none", "sum")
    ]


@pytest.mark.parametrize(
    ("changed", "phrase"),
    [
        ({"blank": 6}, "blank must be in label range"),
        ({"input_lengths": (8, 7, 7, 7)}, "to have value at most 7"),
        ({"input_lengths": (7, 7, 7, -1)}, "Expected input_lengths to have value at least 0"),
        ({"target_lengths": (3, 3, 3, -1)}, "Expected target_lengths to have value at least 0"),
        ({"target_lengths": (4, 3, 3, 3)}, "to have size at least 4 at dimension 1"),
        ({"input_lengths": (7, 7)}, "input_lengths must be of size batch_size"),
        ({"target_lengths": (3, 3)}, "target_lengths must be of size batch_size"),
        ({"targets": lambda T: _targets(T)[:2]}, "to have size 4 at dimension 0"),
        ({"targets": lambda T: T.ones(5, dtype=T.int64)}, "to have size 12 at dimension 0"),
        ({"targets": lambda T: _targets(T)[None]}, "Expected 1 to 2 dimensions"),
        ({"log_probs": lambda T: _log_probs(T)[None]}, "Expected 3-dimensional tensor"),
        ({"log_probs": lambda T: _log_probs(T)[:0]}, "log_probs tensor must not be empty"),
        ({"log_probs": lambda T: _log_probs(T).half()}, "not implemented for 'Half'"),
        (
            {"input_lengths": lambda T: T.ones(4), "target_lengths": lambda T: T.ones(4, dtype=T.int64)},
            "input_lengths must be integral",
        ),
        ({"reduction": "abc"}, "is not a valid value for reduction"),
    ],
)
@differential
def test_wrong_input(T: Any, changed: Any, phrase: str) -> Any:
    arguments: dict[str, Any] = {
        "log_probs": _log_probs, "targets": _targets, "input_lengths": (7, 7, 7, 7), "target_lengths": (3, 3, 3, 3),
    }  # fmt: skip
    made = {name: value(T) if callable(value) else value for name, value in {**arguments, **changed}.items()}
    return outcome(lambda: T.nn.functional.ctc_loss(**made), phrase)
