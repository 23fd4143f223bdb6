"""`utils.checkpoint`: the same gradients as without it, less memory, a second run that repeats the first, errors."""

from __future__ import annotations

import contextlib
import functools
import gc
import importlib
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import flambeau
from flambeau.utils.checkpoint import (
    CheckpointError,
    checkpoint,
    checkpoint_sequential,
    set_checkpoint_debug_enabled,
    set_checkpoint_early_stop,
)
from tests.support.differential import differential, outcome, warned

BOTH_VARIANTS = pytest.mark.parametrize("use_reentrant", [True, False])


def leaf(T: Any, *values: float) -> Any:
    return T.tensor([float(value) for value in values], requires_grad=True)


def checkpoints(T: Any) -> Any:
    return importlib.import_module(f"{T.__name__}.utils.checkpoint")


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "chain": lambda T, x: x.sin().exp().sum(),
    "product": lambda T, x: (x * x.exp() * x).sum(),
    "scalar arguments": lambda T, x: (x * 2 + 1).sum(),
    "inner graph": lambda T, x: (T.autograd.grad(x.exp().sum(), x, create_graph=True)[0] * x).sum(),
}


@BOTH_VARIANTS
@pytest.mark.parametrize("name", ["chain", "product", "scalar arguments"])
@differential
def test_gradients(T: Any, name: str, use_reentrant: bool) -> Any:
    x = leaf(T, 1, 2)
    out = checkpoints(T).checkpoint(lambda x: FUNCTIONS[name](T, x), x, use_reentrant=use_reentrant)
    out.backward(retain_graph=True)
    out.backward()
    return out, x.grad


@pytest.mark.parametrize("name", FUNCTIONS)
@differential
def test_grad_and_second_order_without_reentrance(T: Any, name: str) -> Any:
    x = leaf(T, 1, 2)
    out = checkpoints(T).checkpoint(lambda x: FUNCTIONS[name](T, x), x, use_reentrant=False)
    (first,) = T.autograd.grad(out, x, create_graph=True)
    second = T.autograd.grad(first.sum(), x, allow_unused=True)[0] if first.requires_grad else None
    return out.tolist(), first.tolist(), None if second is None else second.tolist()


@BOTH_VARIANTS
@differential
def test_forms_of_arguments_and_results(T: Any, use_reentrant: bool) -> Any:
    x, y = leaf(T, 1, 2), leaf(T, 3, 4)

    def function(a: Any, factor: float, nothing: Any, b: Any) -> Any:
        return a * factor, nothing, a * b, 3

    first, nothing, second, number = checkpoints(T).checkpoint(function, x, 2.0, None, y, use_reentrant=use_reentrant)
    (first.sum() + second.sum()).backward()
    return first.tolist(), nothing, second.tolist(), number, x.grad, y.grad


@differential
def test_keyword_arguments(T: Any) -> Any:
    x, y = leaf(T, 1, 2), leaf(T, 3, 4)
    checkpoints(T).checkpoint(lambda a, *, b: (a * b).exp().sum(), x, b=y, use_reentrant=False).backward()
    return (
        x.grad,
        y.grad,
        outcome(
            lambda: checkpoints(T).checkpoint(lambda a, b: a * b, x, b=y, use_reentrant=True),
            "Unexpected keyword arguments: b",
        ),
    )


@BOTH_VARIANTS
@pytest.mark.parametrize("preserve", [True, False])
def test_random_numbers_are_repeated(use_reentrant: bool, preserve: bool) -> None:
    drawn = []

    def noisy(x: Any) -> Any:
        noise = flambeau.rand(2)
        drawn.append(noise.tolist())
        return (x * noise).exp()

    x = leaf(flambeau, 1, 2)
    flambeau.manual_seed(7)
    out = checkpoint(noisy, x, use_reentrant=use_reentrant, preserve_rng_state=preserve)
    flambeau.rand(3)  # so that the state before backward is not the one that the second run ends with
    state = flambeau.get_rng_state()
    out.sum().backward()
    assert (drawn[0] == drawn[1]) is preserve
    assert bool((flambeau.get_rng_state() == state).all()) is preserve


@BOTH_VARIANTS
def test_runs_twice_and_only_as_far_as_needed(use_reentrant: bool) -> None:
    marks: list[str] = []

    def function(x: Any) -> Any:
        marks.append("start")
        y = x.sin().exp()
        marks.append("end")
        return y + 1

    x = leaf(flambeau, 1, 2)
    checkpoint(function, x, use_reentrant=use_reentrant).sum().backward()
    # Without reentrance, exp saves its result, the last tensor that backward needs, before the second "end".
    assert marks == ["start", "end", "start"] + (["end"] if use_reentrant else [])


def test_early_stop_can_be_switched_off() -> None:
    def ends(**options: Any) -> int:
        marks = []

        def function(x: Any) -> Any:
            y = x.exp()
            marks.append("end")
            return y + 1

        checkpoint(function, leaf(flambeau, 1), use_reentrant=False, **options).sum().backward()
        return len(marks)

    assert ends() == 1
    assert ends(early_stop=False) == 2
    with set_checkpoint_early_stop(False):
        assert ends() == 2
        with set_checkpoint_early_stop(True):
            assert ends(early_stop=False) == 1
    assert ends() == 1


def test_early_stop_passes_through_the_users_handlers() -> None:
    handled = []

    def function(x: Any) -> Any:
        try:
            return x.exp()
        except Exception:
            handled.append(True)
            raise

    x = leaf(flambeau, 1)
    checkpoint(function, x, use_reentrant=False).sum().backward()
    assert not handled
    assert x.grad is not None


def test_intermediates_are_not_kept() -> None:
    kept: list[weakref.ref[Any]] = []

    def function(x: Any) -> Any:
        middle = x.exp()
        kept.append(weakref.ref(middle))
        return middle.sin().sum()

    gc.disable()
    try:
        for use_reentrant in (True, False):
            x = leaf(flambeau, 1, 2)
            out = checkpoint(function, x, use_reentrant=use_reentrant)
            assert kept.pop()() is None
            out.backward()
            kept.clear()
            reference = weakref.ref(out)
            del out
            assert reference() is None
    finally:
        gc.enable()


def test_nested_checkpoints() -> None:
    runs = {"inner": 0, "outer": 0}

    def inner(x: Any) -> Any:
        runs["inner"] += 1
        return x.sin().exp()

    def outer(x: Any) -> Any:
        runs["outer"] += 1
        return checkpoint(inner, x.exp(), use_reentrant=False).sin()

    x, y = leaf(flambeau, 0.5, 1), leaf(flambeau, 0.5, 1)
    checkpoint(outer, x, use_reentrant=False).sum().backward()
    y.exp().sin().exp().sin().sum().backward()
    assert x.grad.tolist() == pytest.approx(y.grad.tolist())
    assert runs["outer"] == 2
    assert runs["inner"] == 3


def test_outer_checkpoint_does_not_keep_the_inputs_of_an_inner_one() -> None:
    inputs: list[weakref.ref[Any]] = []

    def outer(x: Any) -> Any:
        middle = x.exp()
        inputs.append(weakref.ref(middle))
        return checkpoint(lambda m: m.sin().exp(), middle, use_reentrant=False)

    out = checkpoint(outer, leaf(flambeau, 1, 2), use_reentrant=False)
    assert inputs[0]() is None
    out.sum().backward()


def test_recomputed_values_are_dropped_after_their_use() -> None:
    runs = []

    def function(x: Any) -> Any:
        runs.append(True)
        return x.sin().exp().sum()

    out = checkpoint(function, leaf(flambeau, 1, 2), use_reentrant=False)
    out.backward(retain_graph=True)
    assert len(runs) == 2
    out.backward()
    assert len(runs) == 3


def test_contexts_surround_the_runs() -> None:
    log: list[str] = []

    @contextlib.contextmanager
    def noted(name: str) -> Iterator[None]:
        log.append(f"enter {name}")
        try:
            yield
        finally:
            log.append(f"leave {name}")

    def function(x: Any) -> Any:
        log.append("run")
        return x.exp()

    out = checkpoint(
        function, leaf(flambeau, 1), use_reentrant=False, context_fn=lambda: (noted("forward"), noted("recompute"))
    )
    assert log == ["enter forward", "run", "leave forward"]
    out.sum().backward()
    assert log[3:] == ["enter recompute", "run", "leave recompute"]


def test_saved_tensors_may_be_read_twice() -> None:
    class Square(flambeau.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx: Any, gradient: Any) -> Any:
            return ctx.saved_tensors[0] * gradient + ctx.saved_tensors[0] * gradient

    x = leaf(flambeau, 1, 2)
    checkpoint(Square.apply, x, use_reentrant=False).sum().backward()
    assert x.grad.tolist() == [2, 4]


def test_no_grad_runs_once() -> None:
    x = leaf(flambeau, 1)
    for use_reentrant in (True, False):
        with flambeau.no_grad():
            assert not checkpoint(lambda a: a.exp(), x, use_reentrant=use_reentrant).requires_grad


@pytest.mark.parametrize("name", ["fewer", "more", "other shape"])
@pytest.mark.parametrize("options", [{}, {"early_stop": False}, {"determinism_check": "none"}])
@differential
def test_second_run_that_differs(T: Any, name: str, options: dict[str, Any]) -> Any:
    runs = []

    def function(x: Any) -> Any:
        runs.append(True)
        first = len(runs) == 1
        if name == "fewer":
            return x.sin().exp().sum() if first else x.sin().sum()
        if name == "more":
            return x.sin().sum() if first else x.sin().exp().sum()
        return x.exp().sum() if first else x[:1].exp().sum()

    x = leaf(T, 1, 2)
    out = checkpoints(T).checkpoint(function, x, use_reentrant=False, **options)
    result = outcome(
        out.backward,
        "A different number of tensors was saved during the original forward and recomputation.\n"
        "Number of tensors saved during forward: 2\nNumber of tensors saved during recomputation: 1.",
        "trying to save more tensors during recomputation than during the original forward pass",
        "Recomputed values for the following tensors have different metadata than during the forward pass.\n"
        "tensor at position 0:\nsaved metadata: {'shape': torch.Size([2]), 'dtype': torch.float32, 'device': device(",
    )
    return tuple(result) if result[0] == "value" else result


def test_debug_shows_the_lines() -> None:
    runs = []

    def changing(x: Any) -> Any:
        runs.append(True)
        if len(runs) % 2:
            return x.exp().sum()
        return x[:1].exp().sum()

    def message(**options: Any) -> str:
        with pytest.raises(CheckpointError) as caught:
            checkpoint(changing, leaf(flambeau, 1, 2), use_reentrant=False, **options).backward()
        return str(caught.value)

    assert "Pass `debug=True`" in message()
    for text in (message(debug=True), _with_debug(message)):
        assert "return x.exp().sum()" in text
        assert "return x[:1].exp().sum()" in text


def _with_debug(message: Callable[[], str]) -> str:
    with set_checkpoint_debug_enabled(True):
        return message()


@differential
def test_errors(T: Any) -> Any:
    run = checkpoints(T).checkpoint
    x = leaf(T, 1, 2)

    def changed(use_reentrant: bool) -> None:
        y = x * 1
        out = run(lambda a: a.exp(), y, use_reentrant=use_reentrant)
        y.add_(1)
        out.sum().backward()

    incompatible = "torch.utils.checkpoint is incompatible with .grad() or passing an `inputs` parameter to .backward()"
    only_hooks = "Passing `context_fn` or `debug` is only supported when use_reentrant=False."
    inplace = "has been modified by an inplace operation"
    return [
        outcome(lambda: run(T.exp, x, use_reentrant=True, debug=True), only_hooks),
        outcome(lambda: run(T.exp, x, use_reentrant=True, context_fn=lambda: (1, 2)), only_hooks),
        outcome(
            lambda: run(T.exp, x, use_reentrant=False, determinism_check="some").sum().backward(),
            "determinism_check should be one of ['default', 'none'], but got some",
        ),
        outcome(lambda: T.autograd.grad(run(T.exp, x, use_reentrant=True).sum(), x), incompatible),
        outcome(lambda: run(T.exp, x, use_reentrant=True).sum().backward(inputs=[x]), incompatible),
        outcome(
            lambda: run(lambda a: a.detach(), x, use_reentrant=True).sum().backward(),
            "none of output has requires_grad=True, this checkpoint() is not necessary",
        ),
        outcome(lambda: changed(True), inplace),
        outcome(lambda: changed(False), inplace),
        outcome(lambda: run(lambda a: 1 / 0, x, use_reentrant=False), "division by zero"),
    ]


@BOTH_VARIANTS
@differential
def test_freed_graph(T: Any, use_reentrant: bool) -> Any:
    out = checkpoints(T).checkpoint(T.exp, leaf(T, 1, 2), use_reentrant=use_reentrant).sum()
    out.backward()
    return outcome(out.backward, "Trying to backward through the graph a second time")


@differential
def test_warnings(T: Any) -> Any:
    run, sequential = checkpoints(T).checkpoint, checkpoints(T).checkpoint_sequential
    x = leaf(T, 1, 2)
    explicit = "the use_reentrant parameter should be passed explicitly."
    return [
        warned(lambda: run(T.exp, x).tolist(), explicit),
        warned(lambda: sequential([T.exp, T.sin], 2, x).tolist(), explicit),
        warned(
            lambda: run(T.exp, x.detach(), use_reentrant=True).tolist(),
            "None of the inputs have requires_grad=True. Gradients will be None",
        ),
        warned(lambda: run(T.exp, x.detach(), use_reentrant=False).tolist()),
    ]


@BOTH_VARIANTS
@pytest.mark.parametrize("segments", [1, 2, 3, 5])
@differential
def test_sequential(T: Any, segments: int, use_reentrant: bool) -> Any:
    runs = [0] * 5

    def step(index: int) -> Callable[[Any], Any]:
        def function(x: Any) -> Any:
            runs[index] += 1
            return (x * 0.5).sin()

        return function

    x = leaf(T, 1, 2)
    out = checkpoints(T).checkpoint_sequential([step(i) for i in range(5)], segments, x, use_reentrant=use_reentrant)
    out.sum().backward()
    return out.tolist(), x.grad, runs


def test_sequential_takes_modules_by_their_children() -> None:
    class Module:
        def children(self) -> Iterator[Callable[[Any], Any]]:
            return iter([flambeau.exp, flambeau.log])

    x = leaf(flambeau, 1, 2)
    checkpoint_sequential(Module(), 2, x, use_reentrant=False, preserve_rng_state=False).sum().backward()
    assert x.grad.tolist() == pytest.approx([1, 1])


def test_sequential_errors() -> None:
    x = leaf(flambeau, 1, 2)
    for segments in (0, 3, -1):
        with pytest.raises(ValueError, match=f"cannot cut 2 functions into {segments} segments"):
            checkpoint_sequential([flambeau.exp, flambeau.log], segments, x, use_reentrant=False)
    with pytest.raises(ValueError, match="Unexpected keyword arguments: debug"):
        checkpoint_sequential([flambeau.exp], 1, x, use_reentrant=False, debug=True)


_NORMS: dict[str, Callable[[Any], tuple[Callable[..., Any], list[Any]]]] = {
    "module": lambda T: _with_statistics(T.nn.BatchNorm1d(3)),
    "instances": lambda T: _with_statistics(T.nn.InstanceNorm1d(3, affine=True, track_running_stats=True)),
    "before another op": lambda T: _followed(T, T.nn.BatchNorm1d(3)),
    "function": lambda T: _functional(T, T.zeros(3), T.ones(3)),
}


def _with_statistics(norm: Any) -> Any:
    return norm, [norm.running_mean, norm.running_var]


def _followed(T: Any, norm: Any) -> Any:
    return T.nn.Sequential(norm, T.nn.Tanh()), [norm.running_mean, norm.running_var]


def _functional(T: Any, mean: Any, variance: Any) -> Any:
    return lambda x: T.native_batch_norm(x, None, None, mean, variance, True, 0.1, 1e-5)[0], [mean, variance]


@pytest.mark.parametrize("early_stop", [True, False])
@pytest.mark.parametrize("name", _NORMS)
@differential
def test_both_runs_move_running_statistics(T: Any, name: str, early_stop: bool) -> Any:
    """Also where the normalisation is the last op, after which the second run stops."""
    function, statistics = _NORMS[name](T)
    x = T.arange(24.0).reshape(2, 3, 4).requires_grad_()
    checkpoints(T).checkpoint(function, x, use_reentrant=False, early_stop=early_stop).square().sum().backward()
    return statistics, x.grad


_SHARED: dict[str, Callable[[Any], Callable[[Any], Any]]] = {
    "mul": lambda T: lambda x: x * x,
    "where": lambda T: lambda x: T.where(x > 0, x, x),
    "mse": lambda T: lambda x: T.nn.functional.mse_loss(x, x * 0),
    "large": lambda T: lambda x: T.nn.functional.mse_loss(x.expand(40000, 2), x.expand(40000, 2) * 0),
    "lerp": lambda T: lambda x: T.lerp(x, x, x),
    "attention": lambda T: lambda x: T.nn.functional.scaled_dot_product_attention(*[x.reshape(1, 1, 2, 1)] * 3),
}


@pytest.mark.parametrize("name", _SHARED)
@differential
def test_a_saved_tensor_is_unpacked_once(T: Any, name: str) -> Any:
    """Where several formulas of a node need it: hooks see one unpacking, a checkpoint runs a second time only once."""
    runs, unpacked = [], []
    function = _SHARED[name](T)
    x = leaf(T, 1, 2)
    checkpoints(T).checkpoint(lambda x: (runs.append(1), function(x))[1], x, use_reentrant=False).sum().backward()
    with T.autograd.graph.saved_tensors_hooks(lambda each: each, lambda each: (unpacked.append(1), each)[1]):
        function(x).sum().backward()
    return len(runs), len(unpacked) if name in ("where", "mse") else None


@differential
def test_each_backward_pass_has_a_second_run_of_its_own(T: Any) -> Any:
    runs = []

    def function(x: Any, y: Any) -> Any:
        runs.append(1)
        return x.exp().sin(), y.sin().exp()

    x, y = leaf(T, 1, 2), leaf(T, 3)
    first, second = checkpoints(T).checkpoint(function, x, y, use_reentrant=False)
    first.sum().backward()
    after_one = len(runs)
    second.sum().backward()
    return after_one, len(runs), x.grad, y.grad


@differential
def test_under_forward_mode(T: Any) -> Any:
    forward_ad = T.autograd.forward_ad
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(T.ones(2), T.tensor([1.0, 2.0]))
        return forward_ad.unpack_dual(checkpoints(T).checkpoint(T.sin, dual, use_reentrant=False)).tangent


@differential
def test_selective_policies_are_not_asked_about_detaching(T: Any) -> Any:
    module = checkpoints(T)
    asked = []

    def policy(context: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
        asked.append(str(func))
        return module.CheckpointPolicy.MUST_SAVE

    x = leaf(T, 1, 2)
    contexts = functools.partial(module.create_selective_checkpoint_contexts, policy)
    module.checkpoint(
        lambda x: (x.sin() * x.detach()).cos(), x, use_reentrant=False, context_fn=contexts
    ).sum().backward()
    wrong = [outcome(lambda op=op: module.create_selective_checkpoint_contexts([op])) for op in (T.ops.aten.mm, "mm")]
    return asked, x.grad, wrong
