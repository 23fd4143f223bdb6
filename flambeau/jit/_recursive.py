"""How TorchScript compiles modules, under the names of `torch.jit._recursive`: there is no compiler."""

from __future__ import annotations

from .._core.names.absent import Table

__getattr__, __dir__ = (
    Table(__name__)
    .absent(
        "TorchScript's compiler does not exist: what is scripted runs as Python",
        functions="create_script_module infer_methods_to_compile make_stub_from_method wrap_cpp_module",
        classes="ScriptMethodStub",
    )
    .parts()
)
