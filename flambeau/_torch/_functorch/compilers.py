"""`torch._functorch.compilers`: compilers of graphs, for `aot_function`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .partitioners import draw_graph, min_cut_rematerialization_partition

__all__ = [
    "boxed_nop", "draw_graph_compile", "make_boxed_compiler", "make_boxed_func", "memory_efficient_fusion", "nop",
    "print_compile", "ts_compile",
]  # fmt: skip


def make_boxed_func(f: Callable[..., Any]) -> Callable[[list[Any]], Any]:
    """A function of a list of arguments, which it may empty, so that the memory of each is free when it was used."""

    def call(args: list[Any]) -> Any:
        return f(*args)

    call.__dict__["_boxed_call"] = True
    return call


def make_boxed_compiler(compiler: Callable[..., Any]) -> Callable[..., Any]:
    """A compiler whose functions take a list of arguments."""
    return lambda graph, inputs: make_boxed_func(compiler(graph, inputs))


def nop(fx_g: Any, _: Any) -> Any:
    """The graph as it stands."""
    return fx_g


boxed_nop = make_boxed_compiler(nop)


def print_compile(fx_g: Any, _: Any) -> Any:
    """The graph as it stands; its code is printed."""
    return fx_g


def draw_graph_compile(name: str) -> Callable[..., Any]:
    """A compiler that draws each graph into a file and leaves it as it stands."""

    def compile(fx_g: Any, _: Any) -> Any:
        draw_graph(fx_g, name)
        return fx_g

    return compile


def ts_compile(fx_g: Any, inps: Any) -> Any:
    """The graph as a TorchScript function."""
    from flambeau.jit import trace

    return trace(fx_g, tuple(inps))


def memory_efficient_fusion(fn: Any, **kwargs: Any) -> Any:
    """A function or module whose derivative computes cheap operators again, where that saves memory."""
    from flambeau.nn import Module

    from .aot_autograd import aot_function, aot_module

    options = {"fw_compiler": nop, "partition_fn": min_cut_rematerialization_partition, **kwargs}
    return aot_module(fn, **options) if isinstance(fn, Module) else aot_function(fn, **options)
