"""LLVM, and its types also where it is missing: kernels that NumPy runs (`on_numpy/`) name them, and make no code."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import llvmlite
    import llvmlite.binding as llvm
    import llvmlite.ir as ir
else:
    try:
        import llvmlite
        import llvmlite.binding as llvm
        import llvmlite.ir as ir
    except ImportError:
        from . import ir_types as ir

        llvmlite = llvm = None

COMPILES = llvm is not None and os.environ.get("FLAMBEAU_GENERATED") != "0"
"""Whether kernels become machine code here; else NumPy runs those that it can run with the same bits."""

LIBRARY_WITHOUT_EXCEPTIONS = "libllvmlite.so"
"""LLVM's own code is compiled without exceptions: it throws none and catches none."""

__all__ = ["COMPILES", "LIBRARY_WITHOUT_EXCEPTIONS", "ir", "llvm", "llvmlite"]
