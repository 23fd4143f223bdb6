"""Programs that are called inside contexts, which decide what ops do: autocast, inference mode, kinds of attention."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest

import flambeau as torch
from flambeau import nn
from flambeau.compiler._compiled import Compiled
from flambeau.nn import functional as F
from flambeau.nn.attention import SDPBackend, sdpa_kernel
from flambeau.utils._python_dispatch import TorchDispatchMode

from .test_never_stale import Compile, Program, X, results

PROGRAMS: dict[str, Program] = {}


def program(function: Program) -> Program:
    PROGRAMS[function.__name__] = function
    return function


def network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 8), nn.LayerNorm(8), nn.GELU(), nn.Linear(8, 4), nn.Softmax(-1))


def autocast(dtype: Any = torch.bfloat16, **kwargs: Any) -> Any:
    return torch.autocast("cpu", dtype=dtype, **kwargs)


@program
def training_inside_autocast(compile: Compile) -> Iterator[Any]:
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    f = compile(model)
    for step in range(8):
        with autocast(enabled=step != 5):
            found = f(X)
            loss = found.float().square().sum()
        yield found
        optimizer.zero_grad()
        loss.backward()
        yield [each.grad for each in model.parameters()]
        optimizer.step()
    yield [*model.parameters()]


@program
def autocast_that_comes_and_goes(compile: Compile) -> Iterator[Any]:
    model = network()
    f = compile(model)
    contexts = (contextlib.nullcontext, autocast, lambda: autocast(torch.float16), lambda: autocast(enabled=False))
    for each in (0, 0, 0, 0, 1, 1, 1, 2, 2, 0, 1, 2, 3, 1):
        with contexts[each](), torch.no_grad():
            yield f(X)


@program
def autocast_opened_inside(compile: Compile) -> Iterator[Any]:
    model = network()

    def step(x: Any) -> Any:
        with autocast():
            y = model(x)
            with autocast(enabled=False):
                z = model(x)
        return y, z, torch.is_autocast_enabled("cpu")

    f = compile(step)
    for outside in (False, False, False, False, True, True, False):
        with autocast(torch.float16, enabled=outside):
            y, z, on = f(X)
        yield [y, z, on]
        (y.float().sum() + z.sum()).backward()
        yield [each.grad for each in model.parameters()]


@program
def what_autocast_is_asked(compile: Compile) -> Iterator[Any]:
    f = compile(lambda x: x * 2 if torch.is_autocast_enabled("cpu") else x.to(torch.get_autocast_dtype("cpu")))
    for on in (False, False, False, False, True, True, False, True):
        with autocast(enabled=on):
            yield f(X)


@program
def casts_of_the_region_around(compile: Compile) -> Iterator[Any]:
    """The plain call has left casts in the region's cache, which are none of the compiled one's inputs."""
    model = network()
    f = compile(model)
    for _ in range(6):
        with autocast():
            yield model(X)
            yield f(X)


@program
def inference_mode(compile: Compile) -> Iterator[Any]:
    model = network()
    f = compile(lambda x: (model(x), x[0] * 1, (x * 2)[1:]))
    given = X.clone()
    with torch.inference_mode():
        of_inference = X.clone()
    for on in (True, True, True, True, False, True, False, True):
        with torch.inference_mode(on):
            found = f(given)
            yield [[each, each.is_inference(), each._is_view()] for each in found]
            if on:
                yield [[each, each.is_inference()] for each in f(of_inference)]


@program
def changes_in_inference_mode(compile: Compile) -> Iterator[Any]:
    def write(buffer: Any, x: Any, at: int) -> Any:
        buffer[at] = x[0]
        return buffer.sum(0) * 2

    f = compile(write)
    with torch.inference_mode():
        buffer = torch.zeros(2, 3)
        for at in (0, 0, 0, 0, 1, 1, 1, 0):
            yield f(buffer, X + at, at)
            yield buffer


@program
def gradients_that_come_and_go(compile: Compile) -> Iterator[Any]:
    model = network()
    f = compile(model)
    for on in (True, True, True, True, False, False, True, False):
        with torch.set_grad_enabled(on):
            yield f(X)
            yield f(X).requires_grad


@program
def kinds_of_attention(compile: Compile) -> Iterator[Any]:
    q = torch.randn(1, 2, 4, 8)
    f = compile(lambda q: F.scaled_dot_product_attention(q, q, q, is_causal=True))
    for each in (0, 0, 0, 0, 1, 1, 1, 0, 2):
        kinds = [[SDPBackend.MATH], [SDPBackend.FLASH_ATTENTION], [SDPBackend.CUDNN_ATTENTION]][each]
        with sdpa_kernel(kinds):
            yield f(q)


@program
def deterministic_algorithms(compile: Compile) -> Iterator[Any]:
    f = compile(lambda x: (x * 2, torch.are_deterministic_algorithms_enabled()))
    for on in (False, False, False, False, True, True, False):
        torch.use_deterministic_algorithms(on)
        try:
            yield f(X)
        finally:
            torch.use_deterministic_algorithms(False)


@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_compiled_is_as_plain_in_every_context(name: str) -> None:
    made: list[Compiled] = []

    def compile(function: Any) -> Any:
        made.append(Compiled(function))
        return made[-1]

    assert results(PROGRAMS[name], compile) == results(PROGRAMS[name], lambda each: each)
    assert any(each.programs for each in made), [each.reasons for each in made]


@pytest.mark.parametrize(
    "context", [autocast, torch.inference_mode, torch.no_grad, lambda: sdpa_kernel(SDPBackend.MATH)]
)
def test_calls_inside_run_programs(context: Any) -> None:
    f = torch.compile(network())
    for _ in range(4):
        with context():
            f(X)
    with context(), torch.compiler.set_stance("fail_on_recompile"):
        f(X)
        assert torch.compiler.explain(f).startswith("1 program, no call that could not be compiled")
    with torch.compiler.set_stance("fail_on_recompile"), pytest.raises(RuntimeError, match="Detected recompile"):
        f(X)


class Silent(TorchDispatchMode):
    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize(
    ("context", "told"),
    [
        (Silent, "Silent"),
        (torch.autograd.detect_anomaly, "anomaly detection"),
        (lambda: torch.autograd.graph.saved_tensors_hooks(lambda x: x, lambda x: x), "saved_tensors_hooks"),
        (torch.autograd.forward_ad.dual_level, "forward-mode"),
    ],
)
@pytest.mark.filterwarnings("ignore:Anomaly Detection")
def test_a_context_that_is_not_compiled_says_so(context: Any, told: str) -> None:
    f = torch.compile(lambda x: x * 2)
    for _ in range(5):
        with context():
            assert f(X).tolist() == (X * 2).tolist()
    explained = torch.compiler.explain(f)
    assert explained.startswith("0 programs, 1 call that could not be compiled")
    assert told in explained.reasons[0]
