"""The legacy `Variable`: a name for tensors, `volatile`, `.creator`."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import flambeau
from tests.support.differential import differential, outcome


@differential
def test_variable_is_a_tensor(T: Any) -> Any:
    Variable = T.autograd.Variable
    plain = T.ones(2, 2)
    x = Variable(plain, requires_grad=True)
    return (
        x,
        isinstance(x, T.Tensor),
        isinstance(x, Variable),
        isinstance(plain, Variable),
        isinstance(3, Variable),
        type(x).__name__,
        x is plain,
        plain.requires_grad,
        x.data_ptr() == plain.data_ptr(),
    )


@differential
def test_variable_default_needs_no_grad(T: Any) -> Any:
    return T.autograd.Variable(T.ones(2)), T.autograd.Variable(T.ones(2, requires_grad=True)).requires_grad


@differential
def test_the_classic_walk_through(T: Any) -> Any:
    Variable = T.autograd.Variable
    x = Variable(T.ones(2, 2), requires_grad=True)
    first = (x.data, x.grad, x.grad_fn)
    y = x + 2
    z = y * y * 3
    out = z.mean()
    out.backward(retain_graph=True)
    quarter = x.grad.clone()
    y.backward(T.tensor([[1.0, 0.0], [0.0, 1.0]]), retain_graph=True)
    return first, repr(y), repr(out), quarter, x.grad


@differential
def test_variables_mix_with_tensors(T: Any) -> Any:
    x = T.autograd.Variable(T.ones(2), requires_grad=True)
    y = (x * T.ones(2) + 1).sum()
    y.backward()
    return y, x.grad, x.data, type(x.data).__name__


pytestmark = pytest.mark.filterwarnings("ignore:volatile")


def _volatile(data: Any) -> Any:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        variable = flambeau.autograd.Variable(data, volatile=True)
    return variable, caught


def test_volatile_warns_and_names_the_successor() -> None:
    _, caught = _volatile(flambeau.ones(2))
    assert len(caught) == 1
    message = str(caught[0].message)
    assert "volatile" in message
    assert "no_grad" in message


def test_volatile_variable_does_not_require_grad() -> None:
    variable, _ = _volatile(flambeau.ones(2))
    assert variable.requires_grad is False
    assert variable.volatile is True


def test_volatile_spreads_through_operations() -> None:
    variable, _ = _volatile(flambeau.ones(2))
    weight = flambeau.ones(2, requires_grad=True)
    result = (variable * weight).sum()
    assert result.requires_grad is False
    assert result.volatile is True
    assert result.creator is None
    assert result.grad_fn is None


def test_regular_variable_is_not_volatile() -> None:
    regular = flambeau.autograd.Variable(flambeau.ones(2))
    weight = flambeau.ones(2, requires_grad=True)
    assert regular.volatile is False
    assert (regular * weight).volatile is False
    assert (regular * weight).requires_grad is True


def test_volatile_with_requires_grad_is_refused() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(ValueError, match="volatile"):
            flambeau.autograd.Variable(flambeau.ones(2), requires_grad=True, volatile=True)


def test_creator_is_grad_fn() -> None:
    x = flambeau.autograd.Variable(flambeau.ones(2), requires_grad=True)
    y = x * 2
    assert x.creator is None
    assert y.creator is y.grad_fn
    assert y.creator.name() == "MulBackward0"


@differential
def test_the_engine_as_an_object(T: Any) -> Any:
    engine = T.autograd.Variable._execution_engine
    seen: list[Any] = []
    x = T.ones(2, requires_grad=True)
    y = x * 2
    y.register_hook(lambda grad: engine.queue_callback(lambda: seen.append(x.grad is not None)))
    engine.run_backward((y,), (T.ones(2),), True, False, (), True, accumulate_grad=True)
    gradients = engine.run_backward((x * 3,), (T.ones(2),), False, False, (x,), True)
    outside = outcome(lambda: engine.queue_callback(print), "during backward pass")
    return x.grad, seen, gradients, outside, engine.is_checkpoint_valid()


@differential
def test_resize_of_the_first_years(T: Any) -> Any:
    import importlib

    resize = importlib.import_module(f"{T.__name__}.autograd._functions").Resize
    x = T.arange(4.0, requires_grad=True)
    (resize.apply(x, (2, 2)) ** 2).sum().backward()
    return x.grad, outcome(lambda: resize.apply(x, (3, 2)), "requested resize to 3x2")
