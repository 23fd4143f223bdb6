"""`utils.checkpoint`: both variants recompute in backward; random state, keyword arguments, early stop, errors."""

from __future__ import annotations

import importlib
from typing import Any

import pytest

from tests.support.differential import differential, outcome, warned

VARIANTS = pytest.mark.parametrize("reentrant", [True, False])


def _module(T: Any) -> Any:
    return importlib.import_module(f"{T.__name__}.utils.checkpoint")


def _leaf(T: Any, *values: float) -> Any:
    return T.tensor(list(values), requires_grad=True)


@VARIANTS
@differential
def test_same_result_with_a_second_forward(T: Any, reentrant: bool) -> Any:
    calls = []

    def block(t: Any) -> Any:
        calls.append(T.is_grad_enabled())
        return (t * t).exp()

    x = _leaf(T, 0.5, 1.0)
    y = _module(T).checkpoint(block, x, use_reentrant=reentrant)
    before = len(calls)
    y.sum().backward()
    return y.detach(), before, calls, x.grad


@VARIANTS
@differential
def test_several_inputs_outputs_and_constants(T: Any, reentrant: bool) -> Any:
    def block(a: Any, b: Any, factor: float, nothing: Any) -> Any:
        return a * b * factor, a + b

    a, b = _leaf(T, 1.0, 2.0), _leaf(T, 3.0, 4.0)
    product, total = _module(T).checkpoint(block, a, b, 3.0, None, use_reentrant=reentrant)
    (product.sum() + (total**2).sum()).backward()
    return product.detach(), total.detach(), a.grad, b.grad


@VARIANTS
@differential
def test_closure_over_a_parameter(T: Any, reentrant: bool) -> Any:
    weight = _leaf(T, 2.0, 3.0)
    x = _leaf(T, 1.0, 1.0)
    _module(T).checkpoint(lambda t: (t * weight).sin(), x, use_reentrant=reentrant).sum().backward()
    return weight.grad, x.grad


@VARIANTS
@differential
def test_random_state_is_replayed(T: Any, reentrant: bool) -> Any:
    draws = []

    def block(t: Any) -> Any:
        noise = T.rand(2)
        draws.append(noise.tolist())
        return t * noise

    x = _leaf(T, 1.0, 1.0)
    T.manual_seed(5)
    y = _module(T).checkpoint(block, x, use_reentrant=reentrant)
    between = T.rand(1)
    y.sum().backward()
    return draws[0] == draws[1], x.grad.tolist() == draws[0], between, T.rand(1)


@VARIANTS
@differential
def test_random_state_not_preserved(T: Any, reentrant: bool) -> Any:
    draws = []

    def block(t: Any) -> Any:
        noise = T.rand(2)
        draws.append(noise.tolist())
        return t * noise

    x = _leaf(T, 1.0, 1.0)
    y = _module(T).checkpoint(block, x, use_reentrant=reentrant, preserve_rng_state=False)
    y.sum().backward()
    return draws[0] == draws[1]


@differential
def test_keyword_arguments(T: Any) -> Any:
    def block(t: Any, *, scale: float, shift: Any = None) -> Any:
        return t.exp() * scale + shift

    x, shift = _leaf(T, 1.0), _leaf(T, 2.0)
    checkpoint = _module(T).checkpoint
    y = checkpoint(block, x, use_reentrant=False, scale=3.0, shift=shift)
    y.backward()
    refused = outcome(lambda: checkpoint(block, x, use_reentrant=True, scale=3.0), "Unexpected keyword arguments")
    return y.detach(), x.grad, shift.grad, refused


@differential
def test_nested_structures_in_the_plain_variant(T: Any) -> Any:
    def block(items: Any) -> Any:
        return {"out": [items["a"] * items["b"][0]]}

    a, b = _leaf(T, 2.0), _leaf(T, 3.0)
    result = _module(T).checkpoint(block, {"a": a, "b": (b,)}, use_reentrant=False)
    result["out"][0].backward()
    return a.grad, b.grad


@differential
def test_reentrant_needs_an_input_that_requires_grad(T: Any) -> Any:
    weight = _leaf(T, 2.0)
    checkpoint = _module(T).checkpoint
    reentrant = warned(lambda: checkpoint(lambda t: t * weight, T.ones(1), use_reentrant=True).requires_grad)
    plain = checkpoint(lambda t: t * weight, T.ones(1), use_reentrant=False)
    plain.backward()
    return reentrant[0], plain.requires_grad, weight.grad


@differential
def test_reentrant_refuses_autograd_grad(T: Any) -> Any:
    x = _leaf(T, 2.0)
    checkpoint = _module(T).checkpoint
    y = checkpoint(lambda t: t.exp(), x, use_reentrant=True)
    plain = checkpoint(lambda t: t.exp(), x, use_reentrant=False)
    return (
        outcome(
            lambda: T.autograd.grad(y, x),
            "When use_reentrant=True, torch.utils.checkpoint is incompatible with .grad()",
        ),
        T.autograd.grad(plain, x),
    )


@differential
def test_double_backward_in_the_plain_variant(T: Any) -> Any:
    x = T.tensor([0.5, 1.5], dtype=T.float64, requires_grad=True)
    y = _module(T).checkpoint(lambda t: t**3, x, use_reentrant=False)
    (first,) = T.autograd.grad(y.sum(), x, create_graph=True)
    (second,) = T.autograd.grad(first.sum(), x)
    return first.detach(), second


@VARIANTS
@differential
def test_retain_graph(T: Any, reentrant: bool) -> Any:
    calls = []

    def block(t: Any) -> Any:
        calls.append(1)
        return t.exp()

    x = _leaf(T, 2.0)
    y = _module(T).checkpoint(block, x, use_reentrant=reentrant)
    y.backward(retain_graph=True)
    y.backward()
    return x.grad, len(calls)


@VARIANTS
@differential
def test_chain_of_checkpoints(T: Any, reentrant: bool) -> Any:
    checkpoint = _module(T).checkpoint
    x = T.tensor([0.3, 0.6], dtype=T.float64, requires_grad=True)
    y = x
    for _ in range(4):
        y = checkpoint(lambda t: t.sin() * 1.5, y, use_reentrant=reentrant)
    y.sum().backward()
    return y.detach(), x.grad


@VARIANTS
@differential
def test_checkpoint_inside_checkpoint(T: Any, reentrant: bool) -> Any:
    checkpoint = _module(T).checkpoint
    x = T.tensor([0.3, 0.6], dtype=T.float64, requires_grad=True)

    def outer(t: Any) -> Any:
        return checkpoint(lambda u: u.exp(), t * 2, use_reentrant=reentrant).sin()

    checkpoint(outer, x, use_reentrant=reentrant).sum().backward()
    return x.grad


@VARIANTS
@differential
def test_under_no_grad_and_without_tracked_inputs(T: Any, reentrant: bool) -> Any:
    checkpoint = _module(T).checkpoint
    with T.no_grad():
        y = checkpoint(lambda t: t * 2, _leaf(T, 1.0), use_reentrant=reentrant)
    z = checkpoint(lambda t: t * 2, T.ones(1), use_reentrant=reentrant)
    return y, z


@VARIANTS
@differential
def test_errors_inside_propagate(T: Any, reentrant: bool) -> Any:
    state = {"calls": 0}

    def fails_second_time(t: Any) -> Any:
        state["calls"] += 1
        if state["calls"] == 2:
            raise ValueError("second run")
        return t * t

    checkpoint = _module(T).checkpoint
    x = _leaf(T, 1.0)
    y = checkpoint(fails_second_time, x, use_reentrant=reentrant)
    first = outcome(y.backward, "second run")

    def fails_at_once(t: Any) -> Any:
        raise KeyError("first run")

    return first, outcome(lambda: checkpoint(fails_at_once, x, use_reentrant=reentrant), "first run")


@differential
def test_recomputation_must_save_the_same(T: Any) -> Any:
    state = {"calls": 0}

    def changing(t: Any) -> Any:
        state["calls"] += 1
        return t.exp() if state["calls"] == 1 else T.cat([t, t]).exp()

    def shorter(t: Any) -> Any:
        state["calls"] += 1
        return t.exp().sin() if state["calls"] % 2 else t + 1

    checkpoint_module = _module(T)
    x = _leaf(T, 1.0)
    y = checkpoint_module.checkpoint(changing, x, use_reentrant=False)
    first = outcome(y.backward, "Recomputed values for the following tensors have different metadata")
    state["calls"] = 0
    z = checkpoint_module.checkpoint(shorter, x, use_reentrant=False)
    second = outcome(
        z.backward, "A different number of tensors was saved during the original forward and recomputation"
    )
    return first, second, hasattr(checkpoint_module, "CheckpointError")


@differential
def test_determinism_check_may_be_switched_off(T: Any) -> Any:
    x = _leaf(T, 1.0, 2.0)
    checkpoint = _module(T).checkpoint
    y = checkpoint(lambda t: t.exp(), x, use_reentrant=False, determinism_check="none")
    y.sum().backward()
    return x.grad, outcome(
        lambda: checkpoint(lambda t: t, x, use_reentrant=False, determinism_check="loud"),
        "determinism_check should be one of",
    )


@differential
def test_early_stop(T: Any) -> Any:
    seen: list[str] = []

    def block(t: Any) -> Any:
        y = t.exp()
        seen.append("exp")
        z = y + 1
        seen.append("add")
        return z

    module = _module(T)
    x = _leaf(T, 1.0)
    module.checkpoint(block, x, use_reentrant=False).backward()
    early = list(seen)
    seen.clear()
    module.checkpoint(block, x, use_reentrant=False, early_stop=False).backward()
    late = list(seen)
    seen.clear()
    with module.set_checkpoint_early_stop(False):
        module.checkpoint(block, x, use_reentrant=False).backward()
    return early, late, seen, x.grad


@differential
def test_context_fn(T: Any) -> Any:
    log: list[str] = []

    class Mark:
        def __init__(self, name: str) -> None:
            self.name = name

        def __enter__(self) -> None:
            log.append(f"enter {self.name}")

        def __exit__(self, *error: Any) -> None:
            log.append(f"exit {self.name}")

    x = _leaf(T, 1.0)
    checkpoint = _module(T).checkpoint
    y = checkpoint(lambda t: t.exp(), x, use_reentrant=False, context_fn=lambda: (Mark("forward"), Mark("recompute")))
    y.backward()
    refused = outcome(
        lambda: checkpoint(lambda t: t, x, use_reentrant=True, context_fn=lambda: (Mark("a"), Mark("b"))), "context_fn"
    )
    return log, refused


@differential
def test_choosing_no_variant_warns_or_fails(T: Any) -> Any:
    x = _leaf(T, 1.0)
    try:
        result = warned(lambda: _module(T).checkpoint(lambda t: t.exp(), x).tolist())
    except Exception as error:
        return type(error).__name__, "use_reentrant" in str(error)
    return result[:2]


@VARIANTS
@differential
def test_detached_and_integer_outputs(T: Any, reentrant: bool) -> Any:
    x = _leaf(T, 3.0, 1.0)
    values, order = _module(T).checkpoint(lambda t: t.sort(), x, use_reentrant=reentrant)
    (values * T.tensor([1.0, 2.0])).sum().backward()
    return values.requires_grad, order, x.grad


@VARIANTS
@differential
def test_hooks_run_once(T: Any, reentrant: bool) -> Any:
    seen = []
    x = _leaf(T, 1.0)

    def block(t: Any) -> Any:
        y = t * 2
        y.requires_grad and y.register_hook(lambda grad: seen.append(grad.item()))
        return y.exp()

    _module(T).checkpoint(block, x, use_reentrant=reentrant).backward()
    return seen, x.grad


@VARIANTS
@differential
def test_checkpoint_sequential(T: Any, reentrant: bool) -> Any:
    calls: list[int] = []

    def step(number: int) -> Any:
        def function(t: Any) -> Any:
            calls.append(number)
            return t.sin() * number

        return function

    x = T.tensor([0.4], dtype=T.float64, requires_grad=True)
    y = _module(T).checkpoint_sequential([step(n) for n in (1, 2, 3, 4)], 2, x, use_reentrant=reentrant)
    y.backward()
    return y.detach(), calls, x.grad
