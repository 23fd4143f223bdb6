"""Inputs that travel with a TorchScript file, under the names of `torch.utils.bundled_inputs`."""

from __future__ import annotations

from typing import Any, NamedTuple

from .._core.names.absent import Table

__getattr__, __dir__ = (
    Table(__name__)
    .absent(
        "inputs do not travel with the files of jit.save",
        functions="augment_many_model_functions_with_bundled_inputs augment_model_with_bundled_inputs bundle_inputs "
        "bundle_large_tensor bundle_randn",
    )
    .parts()
)


class InflatableArg(NamedTuple):
    """An argument that is written small and made large when it is read."""

    value: Any
    fmt: str = "{}"
    fmt_fn: str = ""
