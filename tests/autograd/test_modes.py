"""Grad mode, no-grad mode and inference mode: as context, decorator and function; what each allows and refuses."""

from __future__ import annotations

import functools
import threading
from collections.abc import Generator
from typing import Any

import pytest

from tests.support.differential import differential, outcome, warned

SAVED = "Inference tensors cannot be saved for backward"
IN_PLACE = "Inplace update to inference tensor outside InferenceMode is not allowed"
VERSION = "Inference tensors do not track version counter"
SET_GRAD = "Setting requires_grad=True on inference tensor outside InferenceMode is not allowed"


@differential
def test_no_grad_context(T: Any) -> Any:
    x = T.zeros(1, requires_grad=True)
    with T.no_grad():
        y = x * 2
        inside = T.is_grad_enabled()
    return y, inside, T.is_grad_enabled(), (y * x).requires_grad


@differential
def test_enable_grad_inside_no_grad(T: Any) -> Any:
    x = T.zeros(1, requires_grad=True)
    with T.no_grad(), T.enable_grad():
        return x * 2


@pytest.mark.parametrize("mode", [True, False])
@differential
def test_set_grad_enabled_context(T: Any, mode: bool) -> Any:
    x = T.zeros(1, requires_grad=True)
    with T.set_grad_enabled(mode):
        y = x * 2
    return y.requires_grad, T.is_grad_enabled()


@differential
def test_set_grad_enabled_as_function(T: Any) -> Any:
    x = T.zeros(1, requires_grad=True)
    seen = []
    try:
        for mode in (False, True, False):
            T.set_grad_enabled(mode)
            seen.append((T.is_grad_enabled(), (x * 2).requires_grad))
    finally:
        T.set_grad_enabled(True)
    return seen, T.is_grad_enabled()


@differential
def test_set_grad_enabled_wants_a_bool(T: Any) -> Any:
    try:
        return outcome(lambda: T.set_grad_enabled("no"), "must be bool, not str")
    finally:
        T.set_grad_enabled(True)


@differential
def test_contexts_nest_and_restore(T: Any) -> Any:
    seen = []
    with T.no_grad():
        seen.append(T.is_grad_enabled())
        with T.enable_grad():
            seen.append(T.is_grad_enabled())
            with T.set_grad_enabled(False):
                seen.append(T.is_grad_enabled())
            seen.append(T.is_grad_enabled())
        seen.append(T.is_grad_enabled())
    seen.append(T.is_grad_enabled())
    return seen


@differential
def test_mode_is_restored_after_an_error(T: Any) -> Any:
    def fail() -> None:
        with T.no_grad():
            raise KeyError("inside")

    return outcome(fail, "inside"), T.is_grad_enabled()


@differential
def test_one_context_object_used_twice(T: Any) -> Any:
    context = T.no_grad()
    seen = []
    for _ in range(2):
        with context:
            seen.append(T.is_grad_enabled())
        seen.append(T.is_grad_enabled())
    return seen


@pytest.mark.parametrize("form", ["no_grad()", "no_grad", "enable_grad()", "enable_grad", "set_grad_enabled(False)"])
@differential
def test_as_decorator(T: Any, form: str) -> Any:
    decorator = eval(f"T.{form}", {"T": T})

    @decorator
    def triple(x: Any, *, times: int = 3) -> Any:
        """Doc of triple."""
        return x * times, T.is_grad_enabled()

    x = T.ones(1, requires_grad=True)
    outside = triple(x)
    with T.no_grad():
        inside = triple(x, times=4)
    return outside, inside, triple.__name__, triple.__doc__, T.is_grad_enabled()


@differential
def test_decorated_method(T: Any) -> Any:
    class Model:
        @T.no_grad()
        def run(self, x: Any) -> Any:
            return x * 2

    return Model().run(T.ones(1, requires_grad=True)).requires_grad


@differential
def test_decorated_recursion(T: Any) -> Any:
    seen = []

    @T.no_grad()
    def recurse(depth: int) -> None:
        seen.append(T.is_grad_enabled())
        if depth:
            recurse(depth - 1)

    recurse(3)
    return seen, T.is_grad_enabled()


@differential
def test_decorated_generator_function(T: Any) -> Any:
    seen = []

    @T.no_grad()
    def numbers() -> Generator[Any, Any, Any]:
        for value in range(3):
            received = yield T.is_grad_enabled(), value
            seen.append((received, T.is_grad_enabled()))
        return "done"

    generator = numbers()
    first = next(generator)
    between = T.is_grad_enabled()
    second = generator.send("sent")
    rest = list(generator)
    return first, between, second, rest, seen


@differential
def test_decorated_generator_handles_errors_and_close(T: Any) -> Any:
    seen = []

    @T.no_grad()
    def careful() -> Generator[Any, Any, Any]:
        try:
            try:
                yield T.is_grad_enabled()
            except ValueError as error:
                seen.append((str(error), T.is_grad_enabled()))
                yield "recovered"
        finally:
            seen.append(("closed", T.is_grad_enabled()))

    generator = careful()
    first = next(generator)
    recovered = generator.throw(ValueError("thrown"))
    generator.close()
    return first, recovered, seen, T.is_grad_enabled()


@differential
def test_generator_may_change_the_mode_inside(T: Any) -> Any:
    @T.set_grad_enabled(True)
    def steps() -> Generator[Any, Any, Any]:
        yield T.is_grad_enabled()
        with T.no_grad():
            yield T.is_grad_enabled()
        yield T.is_grad_enabled()

    with T.no_grad():
        return [(value, T.is_grad_enabled()) for value in steps()]


@differential
def test_factories_are_not_affected_by_no_grad(T: Any) -> Any:
    with T.no_grad():
        made = [
            T.zeros(2, requires_grad=True),
            T.ones(2, requires_grad=True),
            T.tensor([1.0], requires_grad=True),
            T.rand(2, requires_grad=True).requires_grad,
            T.arange(2.0, requires_grad=True),
            T.full((2,), 3.0, requires_grad=True),
            T.zeros_like(T.ones(2), requires_grad=True),
            T.ones(2).new_zeros(2, requires_grad=True),
            T.ones(2).requires_grad_(),
            T.eye(2, requires_grad=True),
            T.linspace(0, 1, 3, requires_grad=True),
        ]
    (made[0] * 3).sum().backward()
    return made, made[0].grad


@differential
def test_no_grad_results_work_in_grad_mode_later(T: Any) -> Any:
    weight = T.ones(2, requires_grad=True)
    with T.no_grad():
        features = weight * 5
    (features * weight).sum().backward()
    return weight.grad, features.is_inference()


@differential
def test_training_step_under_no_grad(T: Any) -> Any:
    weight = T.tensor([1.0, -2.0], requires_grad=True)
    for _ in range(3):
        (weight**2).sum().backward()
        with T.no_grad():
            weight -= 0.1 * weight.grad
            weight.grad.zero_()
    return weight, weight.is_leaf


@differential
def test_freezing_one_parameter(T: Any) -> Any:
    frozen, live = T.ones(2, requires_grad=True), T.ones(2, requires_grad=True)
    frozen.requires_grad = False
    hidden = frozen * 3
    (hidden * live).sum().backward()
    return hidden.requires_grad, frozen.grad, live.grad


@differential
def test_mode_is_thread_local(T: Any) -> Any:
    seen = []
    with T.no_grad():
        thread = threading.Thread(target=lambda: seen.append((T.is_grad_enabled(), T.is_inference_mode_enabled())))
        thread.start()
        thread.join()
        inside = T.is_grad_enabled()
    with T.inference_mode():
        thread = threading.Thread(target=lambda: seen.append((T.is_grad_enabled(), T.is_inference_mode_enabled())))
        thread.start()
        thread.join()
    return seen, inside


@differential
def test_mode_set_in_a_thread_stays_there(T: Any) -> Any:
    thread = threading.Thread(target=lambda: T.set_grad_enabled(False))
    thread.start()
    thread.join()
    return T.is_grad_enabled()


@differential
def test_two_threads_interleaved(T: Any) -> Any:
    barrier = threading.Barrier(2)
    seen: dict[str, Any] = {}

    def work(name: str, mode: bool) -> None:
        with T.set_grad_enabled(mode):
            barrier.wait(10)
            seen[name] = (T.ones(1, requires_grad=True) * 2).requires_grad
            barrier.wait(10)

    threads = [threading.Thread(target=work, args=("on", True)), threading.Thread(target=work, args=("off", False))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return seen["on"], seen["off"]


# Inference mode


@differential
def test_inference_mode_flags(T: Any) -> Any:
    x = T.ones(2, requires_grad=True)
    with T.inference_mode():
        flags = (T.is_inference_mode_enabled(), T.is_grad_enabled())
        made, computed, view = T.ones(2), x * 2, x[:1]
        inside = [(t.is_inference(), t.requires_grad, t.is_leaf, t.grad_fn) for t in (made, computed, view, x)]
    return flags, inside, T.is_inference_mode_enabled(), T.is_grad_enabled(), made.is_inference(), T.is_inference(made)


@differential
def test_inference_mode_may_be_switched_off_inside(T: Any) -> Any:
    x = T.ones(2, requires_grad=True)
    with T.inference_mode():
        with T.inference_mode(False):
            y = x * 2
            flags = (T.is_inference_mode_enabled(), T.is_grad_enabled())
        with T.inference_mode(mode=True):
            z = x * 2
        with T.enable_grad():
            w = x * 2
    return flags, y, z.is_inference(), w.is_inference(), w.requires_grad


@pytest.mark.parametrize(
    "form", ["inference_mode()", "inference_mode", "inference_mode(False)", "inference_mode(mode=True)"]
)
@differential
def test_inference_mode_decorator(T: Any, form: str) -> Any:
    decorator = eval(f"T.{form}", {"T": T})

    @decorator
    def double(x: Any) -> Any:
        return x * 2

    y = double(T.ones(2, requires_grad=True))
    return y.is_inference(), y.requires_grad, T.is_inference_mode_enabled()


@differential
def test_functional_ops_on_inference_tensors_outside(T: Any) -> Any:
    with T.inference_mode():
        t = T.tensor([1.0, 2.0])
    y = t * 2 + 1
    return (
        y,
        y.is_inference(),
        t.view(2).is_inference(),
        t[0].is_inference(),
        t.clone().is_inference(),
        t.detach().is_inference(),
    )


@pytest.mark.parametrize(
    "expression",
    ["x * t", "t * x", "x / t", "x ** t", "x @ t", "T.addcmul(x, x, t)", "T.maximum(x, t)", "x[i]", "T.where(m, x, x)"],
)
@differential
def test_saving_an_inference_tensor_is_refused(T: Any, expression: str) -> Any:
    x = T.ones(2, requires_grad=True)
    with T.inference_mode():
        t, i, m = T.tensor([1.0, 2.0]), T.tensor([0, 1]), T.tensor([True, False])
    return outcome(lambda: eval(expression, {"T": T, "x": x, "t": t, "i": i, "m": m}), SAVED, "clone")


@pytest.mark.parametrize(
    "expression", ["x + t", "x - t", "T.cat([x, t])", "T.stack([x, t])", "x * 2 + t", "T.add(t, x)"]
)
@differential
def test_ops_that_save_nothing_accept_inference_tensors(T: Any, expression: str) -> Any:
    x = T.ones(2, requires_grad=True)
    with T.inference_mode():
        t = T.tensor([1.0, 2.0])
    y = eval(expression, {"T": T, "x": x, "t": t})
    y.sum().backward()
    return y, y.is_inference(), x.grad


@differential
def test_clone_makes_a_normal_tensor(T: Any) -> Any:
    x = T.ones(2, requires_grad=True)
    with T.inference_mode():
        t = T.tensor([1.0, 2.0])
        still = t.clone()
    normal = t.clone()
    (x * normal).sum().backward()
    return x.grad, still.is_inference(), normal.is_inference()


@pytest.mark.parametrize(
    "statement",
    ["t.add_(1)", "t.zero_()", "t.__setitem__(0, 5.0)", "t[0].mul_(2)", "t.copy_(T.ones(2))"],
)
@differential
def test_in_place_on_inference_tensor(T: Any, statement: str) -> Any:
    with T.inference_mode():
        t = T.tensor([1.0, 2.0])
        eval(statement, {"T": T, "t": t})
        inside = t.tolist()
    outside = outcome(lambda: eval(statement, {"T": T, "t": t}), IN_PLACE)
    with T.no_grad():
        under_no_grad = outcome(lambda: eval(statement, {"T": T, "t": t}), IN_PLACE)
    return inside, outside, under_no_grad


@differential
def test_detach_in_place_is_allowed_outside(T: Any) -> Any:
    with T.inference_mode():
        t = T.tensor([1.0, 2.0])
    return t.detach_() is t, t


@differential
def test_in_place_message(T: Any) -> Any:
    with T.inference_mode():
        t = T.tensor([1.0, 2.0])
    return outcome(lambda: t.add_(1), IN_PLACE, "clone"), outcome(lambda: T.add(t, 1, out=t), IN_PLACE)


@differential
def test_in_place_on_normal_tensor_inside(T: Any) -> Any:
    t = T.ones(2)
    x = T.ones(2, requires_grad=True)
    y = x * 3
    with T.inference_mode():
        t.add_(1)
        y.mul_(2)
        view = t[0]
        leaf = outcome(lambda: x.add_(1).tolist())
    return t, t._version, y.tolist(), y._version, y.grad_fn.name(), view.is_inference(), leaf


@differential
def test_normal_tensor_changed_inside_after_saving(T: Any) -> Any:
    x = T.ones(2, requires_grad=True)
    k = T.ones(2)
    y = x * k
    with T.inference_mode():
        k.add_(1)
    return outcome(y.sum().backward, "modified by an inplace operation")


@differential
def test_view_of_a_normal_tensor_made_inside(T: Any) -> Any:
    x = T.ones(2, requires_grad=True)
    base, plain = x * 3, T.ones(2)
    with T.inference_mode():
        view, plain_view = base[:1], plain[:1]
    phrase = "A view was created in inference mode and is being modified inplace"
    return (
        view.is_inference(),
        view.requires_grad,
        outcome(lambda: view.add_(1), phrase),
        outcome(lambda: plain_view.add_(1).tolist()),
        outcome(lambda: (view * x[:1]).requires_grad),
    )


@differential
def test_inference_tensor_has_no_version(T: Any) -> Any:
    with T.inference_mode():
        t = T.ones(2)
        inside = outcome(lambda: t._version, VERSION)
    return inside, outcome(lambda: t._version, VERSION)


@differential
def test_requires_grad_on_inference_tensor(T: Any) -> Any:
    with T.inference_mode():
        t = T.ones(2)
        inside = outcome(lambda: t.requires_grad_().requires_grad)
        made = T.ones(2, requires_grad=True)
        child = made * 2

    fresh_flags = (made.requires_grad, made.is_inference(), child.requires_grad)
    with T.inference_mode():
        fresh = T.ones(2)

    def assign() -> None:
        fresh.requires_grad = True

    return (
        inside,
        fresh_flags,
        outcome(lambda: fresh.requires_grad_(), SET_GRAD),
        outcome(assign, SET_GRAD),
        fresh.requires_grad_(False) is fresh,
    )


@differential
def test_backward_through_results_made_inside(T: Any) -> Any:
    x = T.ones(2, requires_grad=True)
    with T.inference_mode():
        y = (x * 2).sum()
        inside = outcome(y.backward, "does not require grad")
    return inside, outcome(y.backward, "does not require grad")


@differential
def test_backward_of_a_normal_graph_inside(T: Any) -> Any:
    x = T.tensor([1.0, 2.0], requires_grad=True)
    y = (x**2).sum()
    with T.inference_mode():
        result = outcome(y.backward)
    return result[0], None if x.grad is None else (x.grad.tolist(), x.grad.is_inference())


@differential
def test_inference_tensor_as_gradient_seed(T: Any) -> Any:
    x = T.tensor([1.0, 2.0], requires_grad=True)
    with T.inference_mode():
        seed = T.tensor([3.0, 4.0])
    (x + 1).backward(seed)
    return x.grad.tolist(), x.grad.is_inference()


@differential
def test_custom_function_with_inference_tensor(T: Any) -> Any:
    class Product(T.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any) -> Any:
            ctx.save_for_backward(x, y)
            return x * y

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            x, y = ctx.saved_tensors
            return grad * y, grad * x

    x = T.ones(2, requires_grad=True)
    with T.inference_mode():
        t = T.ones(2)
    return outcome(lambda: Product.apply(x, t), SAVED)


@differential
def test_class_decorated_with_no_grad_warns(T: Any) -> Any:
    def decorate() -> Any:
        @T.no_grad()
        class Box:
            def __init__(self) -> None:
                self.flag = T.is_grad_enabled()

        return Box().flag

    return warned(decorate)[:2]


@differential
def test_clones_of_contexts(T: Any) -> Any:
    names = [type(context).__name__ for context in (T.no_grad(), T.enable_grad(), T.inference_mode())]
    with T.set_grad_enabled(False) as nothing:
        pass
    return names, nothing, T.autograd.no_grad is T.no_grad, T.autograd.grad_mode.no_grad is T.no_grad


@differential
def test_a_detached_inference_tensor_may_be_changed_outside(T: Any) -> Any:
    with T.inference_mode():
        made = T.ones(4) * 2
        inside = made.detach()
    detached, data = made.detach(), made.data
    detached.mul_(3)
    data.add_(1)
    values = made.tolist()
    refused = [outcome(functools.partial(each.add_, 1), IN_PLACE) for each in (made, inside, detached.view(2, 2))]
    saved = outcome(lambda: T.ones(4, requires_grad=True) * detached, SAVED)
    return values, detached.is_inference(), data.is_inference(), detached._version, data._version, refused, saved
