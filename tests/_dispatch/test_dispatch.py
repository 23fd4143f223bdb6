"""The way of every op: the listener's slot, the shape of the path, the registry."""

from __future__ import annotations

import sys
import threading
from types import FrameType
from typing import Any

import numpy as np
import pytest

import flambeau
from flambeau._dispatch.dispatch import PRIMITIVES, listening
from flambeau._dispatch.registry import FUNCTIONS, METHODS, load_all, resolved


def heard(action: Any) -> list[str]:
    names: list[str] = []
    with listening(lambda op, args, outputs: names.append(op.name)):
        action()
    return names


def test_listener_hears_forward_and_backward() -> None:
    x = flambeau.ones(2, 3, requires_grad=True)
    names = heard(lambda: (x.exp() * 2).sum().backward())
    assert names[:3] == ["exp", "mul", "_sum_all"]
    assert "_expand" in names[3:]  # the derivative of the sum
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
def test_no_short_path_escapes_the_listener(action: Any) -> None:
    a = flambeau.ones(3, 3)
    assert heard(lambda: action(a))


def test_listener_sees_arguments_and_results() -> None:
    a = flambeau.ones(2)
    calls: list[Any] = []
    with listening(lambda op, args, outputs: calls.append((op.name, args, outputs))):
        b = a * 3.0
    ((name, args, outputs),) = calls
    assert name == "mul"
    assert args[0] is a
    assert args[1] == 3.0
    assert outputs[0] is b


def test_one_slot_and_its_own_thread() -> None:
    elsewhere: list[str] = []
    with listening(lambda op, args, outputs: elsewhere.append(op.name)):
        with pytest.raises(RuntimeError, match="one slot"), listening(print):
            pass
        thread = threading.Thread(target=lambda: flambeau.ones(2) * 2)
        thread.start()
        thread.join()
    assert elsewhere == []
    assert flambeau.ones(2).mul(2).tolist() == [2, 2]


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


def test_every_public_name_resolves_and_is_documented() -> None:
    load_all()
    for functions in FUNCTIONS.values():
        for name, entry in functions.items():
            assert callable(resolved(entry)), name
    for name in METHODS:
        assert getattr(flambeau.Tensor, name) is not None, name
    assert len(PRIMITIVES) > 300


def test_unknown_names_are_refused() -> None:
    with pytest.raises(AttributeError, match="no attribute 'no_such_op'"):
        flambeau.no_such_op
    with pytest.raises(AttributeError, match="no_such_op"):
        flambeau.ones(1).no_such_op
    with pytest.raises(AttributeError, match=r"flambeau\.linalg"):
        flambeau.linalg.no_such_op
