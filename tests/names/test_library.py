"""`torch.library`: operators by schema, by device, under autocast, with derivatives; dispatch keys."""

from __future__ import annotations

from typing import Any

import pytest

import flambeau
from tests.support.differential import differential, outcome


@differential
def test_operators_of_a_library(torch: Any) -> Any:
    library = torch.library.Library("shelf", "DEF")
    try:
        name = library.define("scale(Tensor x, float factor=2.0) -> Tensor")
        library.impl("scale", lambda x, factor=2.0: x * factor, "CPU")
        library.impl(torch.ops.shelf.scale.default, lambda x, factor=2.0: torch.empty_like(x), "Meta")
        x = torch.tensor([1.0, 2.0])
        return (
            name,
            torch.ops.shelf.scale(x),
            torch.ops.shelf.scale.default(x, 3.0),
            torch.ops.shelf.scale(x.to("meta")).shape,
            outcome(lambda: library.define("scale(Tensor x) -> Tensor"), "multiple times"),
            outcome(lambda: torch.library.Library("shelf", "OTHER"), "Unsupported kind"),
            outcome(lambda: torch.library.Library("prim", "DEF"), "reserved namespace"),
            outcome(lambda: library.impl("scale", 3, "CPU"), "callable"),
        )
    finally:
        library._destroy()


@differential
def test_define_and_impl_by_name(torch: Any) -> Any:
    torch.library.define("rack::twice", "(Tensor x) -> Tensor")

    @torch.library.impl("rack::twice", "cpu")
    def twice(x: Any) -> Any:
        return x.detach() * 2

    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.factor = 2

    torch.library.register_autograd("rack::twice", lambda ctx, grad: grad * ctx.factor, setup_context=setup_context)
    x = torch.tensor([1.0, 3.0], requires_grad=True)
    result = torch.ops.rack.twice(x)
    result.sum().backward()
    return (
        result.detach(),
        x.grad,
        outcome(lambda: torch.library.register_fake("rack::none", lambda: None), "does not exist"),
    )


@differential
def test_autocast_of_an_operator(torch: Any) -> Any:
    @torch.library.custom_op("bench::product", mutates_args=(), schema="(Tensor a, Tensor b) -> Tensor")
    def product(a: Any, b: Any) -> Any:
        return a @ b

    torch.library.register_autocast("bench::product", "cpu", torch.bfloat16)
    a = torch.ones(2, 2)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        inside = torch.ops.bench.product(a, a)
    return inside.dtype, torch.ops.bench.product(a, a).dtype


@differential
def test_dispatch_keys(torch: Any) -> Any:
    keys, key_set = torch._C.DispatchKey, torch._C.DispatchKeySet
    both = key_set(keys.AutocastCPU) | key_set(keys.CPU)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        with torch._C._ExcludeDispatchKeyGuard(key_set(keys.AutocastCPU)):
            excluded = (torch.ones(2, 2) @ torch.ones(2, 2)).dtype
        after = (torch.ones(2, 2) @ torch.ones(2, 2)).dtype
    return both.has(keys.CPU), both.has(keys.CUDA), (both - key_set(keys.CPU)).has(keys.CPU), excluded, after


def test_what_a_library_cannot_do_is_refused() -> None:
    library = flambeau.library.Library("aten", "IMPL")
    with pytest.raises(NotImplementedError, match="cannot replace"):
        library.impl("add.Tensor", lambda a, b: a, "CPU")
    with pytest.raises(NotImplementedError, match="not CPU"):
        flambeau._C._ExcludeDispatchKeyGuard(flambeau._C.DispatchKeySet(flambeau._C.DispatchKey.CPU))
    with pytest.raises(OSError, match="Could not load"):
        flambeau.ops.load_library("/nowhere/other.so")
    with pytest.raises(RuntimeError, match="does not exist"):
        flambeau.classes.mine
