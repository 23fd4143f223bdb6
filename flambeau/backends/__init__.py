"""Settings of the libraries behind kernels, under PyTorch's names: programs set them, on the CPU without effect."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from .._core.names.absent import Table
from . import cpu, cuda, cudnn, mkl, mps, openmp
from ._modules import ContextProp as ContextProp
from ._modules import GenericModule as GenericModule
from ._modules import PropModule as PropModule
from ._modules import disable_global_flags as disable_global_flags
from ._modules import flags_frozen as flags_frozen
from ._modules import unfrozen

__all__ = ["cpu", "cuda", "cudnn", "flags", "mkl", "mps", "openmp", "set_flags"]

__getattr__, __dir__ = (
    Table(__name__)
    .submodules("_nnapi cusparselt kleidiai mha miopen mkldnn nnpack opt_einsum quantized xnnpack")
    .parts()
)

fp32_precision = "none"
"""In what float32 products may be computed; here they are always float32."""


def set_flags(_fp32_precision: str = "none") -> tuple[str]:
    """Set `fp32_precision`; gives what it was."""
    global fp32_precision
    before, fp32_precision = fp32_precision, _fp32_precision
    return (before,)


@contextlib.contextmanager
def flags(fp32_precision: str = "none") -> Iterator[None]:
    """Set options inside a `with` block; what was set before returns afterwards."""
    before = set_flags(fp32_precision)
    try:
        yield
    finally:
        set_flags(*before)


__allow_nonbracketed_mutation = unfrozen
__allow_nonbracketed_mutation_flag = True
"""PyTorch's name for the opposite of `flags_frozen()`; assigning to it does nothing here."""
