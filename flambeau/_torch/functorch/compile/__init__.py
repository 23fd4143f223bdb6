"""`functorch.compile`: forward and backward of functions as graphs, given to compilers of one's own."""

from __future__ import annotations

from flambeau._torch._functorch.aot_autograd import aot_function, aot_module, aot_module_simplified
from flambeau._torch._functorch.compilers import (
    draw_graph_compile,
    make_boxed_compiler,
    make_boxed_func,
    memory_efficient_fusion,
    nop,
    print_compile,
    ts_compile,
)
from flambeau._torch._functorch.partitioners import (
    default_partition,
    draw_graph,
    min_cut_rematerialization_partition,
)

__all__ = [
    "aot_function", "aot_module", "aot_module_simplified", "compiled_function", "compiled_module", "default_partition",
    "draw_graph", "draw_graph_compile", "make_boxed_compiler", "make_boxed_func", "memory_efficient_fusion",
    "min_cut_rematerialization_partition", "nop", "print_compile", "ts_compile",
]  # fmt: skip

compiled_function = aot_function
compiled_module = aot_module
