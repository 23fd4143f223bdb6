"""Anomaly mode: which backward made the first NaN, and which forward line it belongs to."""

from __future__ import annotations

import io
import threading
import warnings
from contextlib import redirect_stderr
from typing import Any

from tests.support.differential import differential, outcome

NAN = "returned nan values in its 0th output"


def _bad_graph(T: Any) -> Any:
    x = T.zeros(2, requires_grad=True)
    root = x.sqrt()  # the line that a report names
    return (root * 0).sum()


def _reports(action: Any) -> tuple[Any, str]:
    """What `action` gave, and all that it said in warnings and on stderr."""
    stream = io.StringIO()
    with warnings.catch_warnings(record=True) as caught, redirect_stderr(stream):
        warnings.simplefilter("always")
        result = action()
    return result, "\n".join(str(warning.message) for warning in caught) + stream.getvalue()


@differential
def test_nan_is_found_and_named(T: Any) -> Any:
    def run() -> None:
        with T.autograd.detect_anomaly():
            _bad_graph(T).backward()

    return outcome(run, "Function 'SqrtBackward0' " + NAN)


@differential
def test_without_anomaly_mode_nan_passes(T: Any) -> Any:
    x = T.zeros(2, requires_grad=True)
    (x.sqrt() * 0).sum().backward()
    return x.grad


@differential
def test_report_shows_the_forward_line(T: Any) -> Any:
    def run() -> Any:
        with T.autograd.detect_anomaly():
            return outcome(_bad_graph(T).backward, NAN)

    result, text = _reports(run)
    return (
        result,
        "Traceback of forward call that caused the error" in text,
        "root = x.sqrt()" in text,
        "test_anomaly" in text,
    )


@differential
def test_error_in_backward_also_shows_the_forward_line(T: Any) -> Any:
    class Fails(T.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 1

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            raise ValueError("broken formula")

    def run() -> Any:
        with T.autograd.detect_anomaly():
            y = Fails.apply(T.ones(1, requires_grad=True))  # the guilty line
            return outcome(y.backward, "broken formula")

    result, text = _reports(run)
    return result, "Error detected in FailsBackward" in text, "the guilty line" in text


@differential
def test_in_place_error_shows_the_forward_line(T: Any) -> Any:
    def run() -> Any:
        with T.autograd.detect_anomaly():
            y = T.ones(1, requires_grad=True).exp()  # saves its result
            y.add_(1)
            return outcome(y.backward, "modified by an inplace operation")

    result, text = _reports(run)
    return result, "Error detected in ExpBackward0" in text, "saves its result" in text


@differential
def test_graph_built_before_the_mode_is_checked_too(T: Any) -> Any:
    loss = _bad_graph(T)

    def run() -> Any:
        with T.autograd.detect_anomaly():
            return outcome(loss.backward, NAN)

    return _reports(run)[0]


@differential
def test_check_nan_false(T: Any) -> Any:
    x = T.zeros(2, requires_grad=True)
    with T.autograd.detect_anomaly(check_nan=False):
        enabled = (T.is_anomaly_enabled(), T.is_anomaly_check_nan_enabled())
        (x.sqrt() * 0).sum().backward()
    return enabled, x.grad


@differential
def test_set_detect_anomaly(T: Any) -> Any:
    seen = [T.is_anomaly_enabled()]
    with T.autograd.set_detect_anomaly(True):
        seen.append(T.is_anomaly_enabled())
        with T.autograd.set_detect_anomaly(False):
            seen.append(T.is_anomaly_enabled())
        seen.append(T.is_anomaly_check_nan_enabled())
    seen.append(T.is_anomaly_enabled())
    try:
        T.autograd.set_detect_anomaly(True)  # as a function
        seen.append(T.is_anomaly_enabled())
    finally:
        T.autograd.set_detect_anomaly(False)
    return seen


@differential
def test_entering_warns(T: Any) -> Any:
    def enter() -> None:
        with T.autograd.detect_anomaly():
            pass

    _, text = _reports(enter)
    return "Anomaly Detection has been enabled" in text


@differential
def test_infinities_are_not_reported(T: Any) -> Any:
    x = T.zeros(2, requires_grad=True)
    with T.autograd.detect_anomaly():
        x.sqrt().sum().backward()
    return x.grad


@differential
def test_the_first_nan_in_backward_order_is_reported(T: Any) -> Any:
    x = T.zeros(1, requires_grad=True)

    def run() -> None:
        with T.autograd.detect_anomaly():
            ((x.sqrt() * 2).log() * 0).backward()

    return outcome(run, "Function 'LogBackward0' returned nan values")


@differential
def test_nan_in_the_second_argument(T: Any) -> Any:
    x, y = T.ones(1, requires_grad=True), T.zeros(1, requires_grad=True)

    def run() -> None:
        with T.autograd.detect_anomaly():
            T.pow(x - 2, y).backward()  # the base is negative, so the exponent has no derivative

    return outcome(run, "Function 'PowBackward1' returned nan values in its 1th output")


@differential
def test_double_backward_names_the_parent(T: Any) -> Any:
    def run() -> Any:
        with T.autograd.detect_anomaly():
            x = T.zeros(1, requires_grad=True)
            y = x**1.5  # the ancestor
            (first,) = T.autograd.grad(y, x, create_graph=True)
            return outcome(lambda: (first * 0).backward(), "returned nan values")

    result, text = _reports(run)
    return result, "Traceback of forward call" in text


@differential
def test_mode_is_seen_in_other_threads(T: Any) -> Any:
    seen = []
    with T.autograd.detect_anomaly():
        thread = threading.Thread(target=lambda: seen.append(T.is_anomaly_enabled()))
        thread.start()
        thread.join()
    return seen


@differential
def test_clean_graph_is_untouched(T: Any) -> Any:
    x = T.tensor([1.0, 2.0], requires_grad=True)
    with T.autograd.detect_anomaly():
        y = (x.exp() * x).sum()
        y.backward()
    return x.grad
