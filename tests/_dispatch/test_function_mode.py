"""`TorchFunctionMode`: a context that is asked to run every public function, beside PyTorch's."""

from __future__ import annotations

import threading

import pytest

import flambeau
from tests.support.differential import compare

CALLS = {
    "an operator": lambda torch, x: x + x,
    "an operator with a number": lambda torch, x: x * 2,
    "a function": lambda torch, x: torch.add(x, x),
    "a method": lambda torch, x: x.sum(),
    "an in-place method": lambda torch, x: x.clone().add_(1),
    "a factory": lambda torch, x: torch.ones(3),
    "a factory of data": lambda torch, x: torch.tensor([1.0]),
    "a random factory": lambda torch, x: torch.rand(2),
    "a factory like another": lambda torch, x: torch.zeros_like(x),
    "a function of a list": lambda torch, x: torch.cat([x, x]),
    "a function of networks": lambda torch, x: torch.nn.functional.relu(x),
    "a subscript": lambda torch, x: x[0],
    "an element": lambda torch, x: x[0, 0].item(),
    "lists": lambda torch, x: x.tolist(),
    "a composed function": lambda torch, x: torch.einsum("ij,jk->ik", x, x),
    "a conversion": lambda torch, x: x.double(),
}


def _mode(torch, log, act=None):
    class Log(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            log.append(func.__name__)
            if act is not None:
                return act(func, args, kwargs or {})
            return func(*args, **(kwargs or {}))

    return Log()


@pytest.mark.parametrize("name", CALLS)
def test_every_function_is_seen_once(name):
    def scenario(torch):
        log = []
        x = torch.ones(2, 2)
        with _mode(torch, log):
            CALLS[name](torch, x)
        CALLS[name](torch, x)
        return log

    compare(scenario)


def test_modes_nest_and_the_innermost_is_asked_first():
    def scenario(torch):
        outer, inner = [], []
        stack = torch.overrides._get_current_function_mode_stack
        with _mode(torch, outer) as first, _mode(torch, inner) as second:
            assert stack() == [first, second]
            assert torch.overrides._get_current_function_mode() is second
            torch.ones(2).exp()
        assert stack() == []
        return outer, inner

    compare(scenario)


def test_a_mode_may_answer_by_itself():
    def scenario(torch):
        log = []
        with _mode(torch, log, lambda func, args, kwargs: 42):
            return torch.ones(2), torch.overrides.has_torch_function((torch.ones(1),))

    compare(scenario)


def test_a_mode_may_change_the_arguments():
    def scenario(torch):
        def doubled(func, args, kwargs):
            if func.__name__ in ("ones", "zeros"):
                kwargs["dtype"] = torch.float64
            return func(*args, **kwargs)

        with _mode(torch, [], doubled):
            return torch.ones(2), torch.zeros(1).dtype == torch.float64

    compare(scenario)


def test_what_a_mode_refuses_is_an_error():
    def scenario(torch):
        with pytest.raises(TypeError, match="__torch_function__"), _mode(torch, [], lambda *_: NotImplemented):
            torch.ones(2)

    compare(scenario)


def test_modes_come_before_classes():
    def scenario(torch):
        log = []

        class Mine(torch.Tensor):
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                log.append(f"class {func.__name__}")
                return super().__torch_function__(func, types, args, kwargs)

        x = torch.ones(2).as_subclass(Mine)
        with _mode(torch, log):
            torch.exp(x)
            with torch._C.DisableTorchFunctionSubclass():
                torch.exp(x)
            with torch._C.DisableTorchFunction():
                torch.exp(x)
        return log

    compare(scenario)


def test_a_mode_is_popped_for_a_while():
    def scenario(torch):
        log = []
        with _mode(torch, log):
            with torch.overrides._pop_mode_temporarily():
                torch.ones(2).exp()
            torch.ones(2)
        return log

    compare(scenario)


def test_an_error_leaves_no_mode_behind():
    def scenario(torch):
        log = []
        with pytest.raises(RuntimeError), _mode(torch, log):
            torch.ones(2) + torch.ones(3)
        torch.ones(2)
        return log

    compare(scenario)


def test_derivatives_are_not_seen():
    log = []
    x = flambeau.ones(3, requires_grad=True)
    with _mode(flambeau, log):
        loss = (x * x).sum()
        before = len(log)
        loss.backward()
    assert log[before:] == []
    assert x.grad.tolist() == [2, 2, 2]


def test_other_threads_are_not_seen():
    log, results = [], []
    with _mode(flambeau, log):
        thread = threading.Thread(target=lambda: results.append((flambeau.ones(3)[0] + 1).item()))
        thread.start()
        thread.join()
    assert log == []
    assert results == [2.0]


def functions_are_the_public_ones(T):
    seen = []

    class Keep(T.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            seen.append(func)
            return func(*args, **(kwargs or {}))

    x = T.ones(2)
    with Keep():
        x + x
        x.sum()
        T.sum(x)
        T.nn.functional.relu(x)
        x / 2
        T.exp_(x)
    functional = T.nn.functional
    known = [T.Tensor.add, T.Tensor.sum, T.sum, functional.relu, T.relu, T.Tensor.div, T.Tensor.div_, T.exp_]
    return [known.index(each) for each in seen]


def test_functions_are_the_public_ones():
    compare(functions_are_the_public_ones)
