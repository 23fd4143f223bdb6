"""PyTorch's code generator, under the names of `torch._inductor`: its settings, and programs compiled ahead of time."""

from __future__ import annotations

from flambeau._core.names.absent import Table

__getattr__, __dir__ = (
    Table(__name__)
    .submodules("config cpp_builder cpu_vec_isa runtime")
    .elsewhere("aoti_compile_and_package aoti_load_package", "_inductor._packages")
    .absent(
        "this part of PyTorch's compiler is not built",
        functions="list_mode_options list_options compile compile_fx aot_compile cudagraph_mark_step_begin",
    )
    .parts()
)
