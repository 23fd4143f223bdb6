"""The way of every op: the interpreters' slot, the shape of the path, the registry."""

from __future__ import annotations

import sys
import threading
from types import FrameType
from typing import Any

import numpy as np
import pytest

import flambeau
from flambeau._dispatch.dispatch import primitive
from flambeau._dispatch.interpreter import Interpreter
from flambeau._dispatch.op import OPS, Op
from flambeau._dispatch.public.registry import FUNCTIONS, METHODS, load_all, resolved

from ..support.interpreters import Log, heard


def test_an_interpreter_runs_forward_and_backward() -> None:
    x = flambeau.ones(2, 3, requires_grad=True)
    names = heard(lambda: (x.exp() * 2).sum().backward())
    assert names[:3] == ["exp", "mul", "sum_all"]
    assert "expand" in names[3:]  # the derivative of the sum
    assert names.count("mul") >= 3  # one forward, at least two in the derivatives


@pytest.mark.parametrize(
    "action",
    [
        lambda a: a + a,
        lambda a: a.add_(1.0),
        lambda a: a @ a,
        lambda a: a[0],
        lambda a: a.view(-1),
        lambda a: a.clone(),
        lambda a: a.sum(),
        lambda a: a.to(flambeau.float64),
        lambda a: flambeau.cat([a, a]),
        lambda a: a < 0,
        lambda a: a.softmax(1),
        lambda a: a.detach(),
    ],
)
def test_no_short_path_escapes_the_interpreter(action: Any) -> None:
    a = flambeau.ones(3, 3)
    assert heard(lambda: action(a))


def test_an_interpreter_sees_arguments_and_results() -> None:
    a = flambeau.ones(2)
    with Log() as log:
        b = a * 3.0
    ((name, args, result),) = log.calls
    assert name == "mul"
    assert args[0] is a
    assert args[1] == 3.0
    assert result is b


def test_interpreters_nest() -> None:
    class Doubling(Interpreter):
        def run(self, op: Op, args: Any) -> Any:
            return op(*args) * 2

    a = flambeau.ones(2, requires_grad=True)
    with Log() as outer, Doubling(), Log() as inner:
        b = a + 1
    assert b.tolist() == [4, 4]
    assert inner.names == ["add"]
    assert outer.names == ["add", "mul"]
    assert type(b.grad_fn).__name__ == "AddBackward0"  # recorded outside of all of them


def test_an_interpreter_replaces_results() -> None:
    class Zeros(Interpreter):
        def run(self, op: Op, args: Any) -> Any:
            result = op(*args)
            return result.new_zeros(result.shape)

    a = flambeau.ones(3, 3, requires_grad=True)
    with Zeros():
        b = a @ a
    assert b.sum().item() == 0
    b.sum().backward()
    assert a.grad is not None
    assert a.grad.tolist() == [[6.0] * 3] * 3


def test_views_made_under_an_interpreter_are_views() -> None:
    a = flambeau.zeros(2, 3, requires_grad=True) * 1
    with Log():
        b = a.view(6)
        b.add_(1)
    assert b._base is a
    assert a.tolist() == [[1.0] * 3] * 2
    assert type(a.grad_fn).__name__ == "CopySlices"


def test_an_interpreter_is_its_own_threads() -> None:
    with Log() as log:
        thread = threading.Thread(target=lambda: flambeau.ones(2) * 2)
        thread.start()
        thread.join()
    assert log.names == []


def test_names_of_ops_are_their_own() -> None:
    load_all()
    assert all(op.name == name for name, op in OPS.items())
    with pytest.raises(TypeError, match="already"):
        primitive(None, op_name="mul")(lambda self: self)


def test_an_operator_reaches_its_kernel_in_few_frames() -> None:
    """From `x * y` to the array function there are at most four Python frames."""
    a, b = flambeau.ones(4), flambeau.ones(4)
    frames: list[str] = []

    class Spy(np.ndarray[Any, Any]):
        def __array_ufunc__(self, *args: Any, **kwargs: Any) -> Any:
            frame: FrameType | None = sys._getframe(1)
            while frame is not None and frame.f_code.co_name != "multiply_once":
                frames.append(frame.f_code.co_name)
                frame = frame.f_back
            return np.ones(4, np.float32)

    a._array = a._array.view(Spy)

    def multiply_once() -> None:
        a * b

    multiply_once()
    assert 1 <= len(frames) <= 4, frames


def _frames_of(action: Any) -> int:
    """How many Python functions of the package run in one call, once everything is prepared."""
    action()
    count = 0

    def count_call(frame: FrameType, event: str, _: Any) -> None:
        nonlocal count
        count += event == "call" and "flambeau" in frame.f_code.co_filename and "tests" not in frame.f_code.co_filename

    sys.setprofile(count_call)
    try:
        action()
    finally:
        sys.setprofile(None)
    return count


def test_recording_and_backward_take_few_frames() -> None:
    """The operator, the op, its recorder, the place and a saved tensor; and what a pass through two nodes needs."""
    x, b = flambeau.ones(4, 4, requires_grad=True), flambeau.ones(4, 4)
    linear, row = flambeau.nn.Linear(4, 4), flambeau.ones(2, 4)

    def learn() -> None:
        x.grad = None
        (x * b).sum().backward()

    assert _frames_of(lambda: x * b) <= 5
    assert _frames_of(learn) <= 70
    assert _frames_of(lambda: linear(row)) <= 30


def test_every_public_name_resolves_and_is_documented() -> None:
    load_all()
    for functions in FUNCTIONS.values():
        for name, entry in functions.items():
            assert callable(resolved(entry)), name
    for name in METHODS:
        assert getattr(flambeau.Tensor, name) is not None, name
    assert len(OPS) > 300


def test_unknown_names_are_refused() -> None:
    with pytest.raises(AttributeError, match="no attribute 'no_such_op'"):
        flambeau.no_such_op
    with pytest.raises(AttributeError, match="no_such_op"):
        flambeau.ones(1).no_such_op
    with pytest.raises(AttributeError, match=r"flambeau\.linalg"):
        flambeau.linalg.no_such_op
