"""Operators of one's own are one call in what `torch.export`, `make_fx` and `torch.jit.trace` write down."""

from __future__ import annotations

import importlib
import io
import warnings
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.differential import differential

_NAMES = iter(range(10_000))


def _operators(torch: Any) -> Any:
    """A namespace of operators that look at elements, give several results or change their argument."""
    name = f"graphs{next(_NAMES)}"

    def rows(x: Any, positions: Any, scale: float = 1.0) -> Any:
        out = torch.zeros_like(x)
        for each in positions.tolist():
            out[each] = x[each] * scale
        return out

    schema = "(Tensor x, Tensor positions, float scale=1.0) -> Tensor"
    made = torch.library.custom_op(f"{name}::rows", rows, mutates_args=(), schema=schema)
    made.register_fake(lambda x, positions, scale=1.0: torch.empty_like(x))
    made.register_autograd(
        lambda ctx, grad: (rows(grad, ctx.positions, ctx.scale), None, None),
        setup_context=lambda ctx, inputs, output: ctx.__dict__.update(positions=inputs[1], scale=inputs[2]),
    )
    two = torch.library.custom_op(
        f"{name}::two", lambda x: (x + 1, x.sum(0)), mutates_args=(), schema="(Tensor x) -> (Tensor, Tensor)"
    )
    two.register_fake(lambda x: (torch.empty_like(x), x.new_empty(x.shape[1:])))

    def grow(x: Any, by: float) -> None:
        x.add_(by)

    torch.library.custom_op(f"{name}::grow", grow, mutates_args=("x",), schema="(Tensor(a!) x, float by) -> ()")
    library = torch.library.Library(name, "FRAGMENT")
    library.define("older(Tensor x) -> Tensor")

    @torch.library.impl(library, "older", "CompositeExplicitAutograd")
    def older(x: Any) -> Any:
        return x * 2 if x.sum().item() > 0 else x * 3

    torch.library.register_fake(f"{name}::older", torch.empty_like)

    @torch.library.define(library, "composed(Tensor x) -> Tensor")
    def composed(x: Any) -> Any:
        return x * 3

    return getattr(torch.ops, name), library


def _grown(ops: Any, x: Any) -> Any:
    y = x.clone()
    ops.grow(y, 2.0)
    return y * 2


_CALLS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "plain": lambda ops, x, n: ops.rows(x, n),
    "a default": lambda ops, x, n: ops.rows(x, n, 1.0) + 1,
    "a number": lambda ops, x, n: ops.rows(x * 2, n, 2.0),
    "by name": lambda ops, x, n: ops.rows(x, scale=3.0, positions=n).sum(),
    "an overload": lambda ops, x, n: ops.rows.default(x, n, 0.5),
    "two results": lambda ops, x, n: list(ops.two(x * 2)),
    "one of two": lambda ops, x, n: ops.two(x)[1],
    "in place": lambda ops, x, n: _grown(ops, x),
    "of a library": lambda ops, x, n: ops.older(x) + 1,
    "composed": lambda ops, x, n: ops.composed(x),
}


def _inputs(torch: Any) -> tuple[Any, Any, Any]:
    x = torch.arange(6.0).reshape(3, 2) + 1
    return x, torch.tensor([0, 2]), torch.cat([x, x]) - 9


def _targets(graph: Any) -> list[str]:
    last = [str(each.target).split(".") for each in graph.nodes if each.op == "call_function"]
    return [each[1] if each[0].startswith("graphs") else ".".join(each) for each in last]


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("name", [each for each in _CALLS if each != "composed"])
@differential
def test_exported(torch: Any, name: str, dynamic: bool) -> Any:
    ops, _kept = _operators(torch)

    class Calls(torch.nn.Module):
        def forward(self, x: Any, n: Any) -> Any:
            return _CALLS[name](ops, x, n)

    x, n, other = _inputs(torch)
    other = other if dynamic else x - 9
    shapes = {"x": {0: torch.export.Dim("rows", min=2)}, "n": None} if dynamic else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # PyTorch's, of its own
        program = torch.export.export(Calls(), (x, n), dynamic_shapes=shapes)
        stream = io.BytesIO()
        torch.export.save(program, stream)
        stream.seek(0)
        loaded = torch.export.load(stream)
        again = program.run_decompositions({})
    found = [each.module()(other, n.flip(0)) for each in (program, again, loaded)]
    return _targets(program.graph), found, Calls()(other, n.flip(0))


@pytest.mark.parametrize("mode", ["real", "fake", "symbolic"])
@pytest.mark.parametrize("name", _CALLS)
@differential
def test_recorded(torch: Any, name: str, mode: str) -> Any:
    make_fx = importlib.import_module(f"{torch.__name__}.fx.experimental.proxy_tensor").make_fx
    ops, _kept = _operators(torch)
    x, n, _ = _inputs(torch)
    graph = make_fx(lambda x, n: _CALLS[name](ops, x, n), tracing_mode=mode)(x, n)
    return _targets(graph.graph), graph(x - 9, n.flip(0)), _CALLS[name](ops, x - 9, n.flip(0))


@pytest.mark.parametrize("name", [each for each in _CALLS if "two" not in each])
@differential
def test_traced(torch: Any, name: str) -> Any:
    ops, _kept = _operators(torch)
    x, n, _ = _inputs(torch)
    traced = torch.jit.trace(lambda x, n: _CALLS[name](ops, x, n), (x, n))
    stream = io.BytesIO()
    torch.jit.save(traced, stream)
    stream.seek(0)
    return traced(x - 9, n.flip(0)), torch.jit.load(stream)(x - 9, n.flip(0)), _CALLS[name](ops, x - 9, n.flip(0))
