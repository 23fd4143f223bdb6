"""Kernels of the CPU: what they are, and where their machine code is kept.

Large tensors are computed by kernels that Flambeau generates while the program runs. These functions show them:

>>> x = flambeau.ones(10000)
>>> print(flambeau.backends.cpu.generated_code(flambeau.exp, x, form="llvm"))     # doctest: +SKIP
; pointwise_flat(...)
define ...
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._backends.tiers import available, numpy_only

__all__ = [
    "clear_code_cache",
    "code_cache_folder",
    "generated_code",
    "get_cpu_capability",
    "is_generating",
    "numpy_only",
]


def is_generating() -> bool:
    """Whether large tensors run generated kernels: they do if llvmlite is installed and nobody has switched it off."""
    return available()


def generated_code(function: Callable[..., Any], *args: Any, form: str = "llvm", **kwargs: Any) -> str:
    """Run `function(*args, **kwargs)`, and show the code of the generated kernels that it used.

    `form` is "llvm" (the intermediate representation, improved), "written" (as Flambeau wrote it) or "assembly".
    """
    if form not in ("llvm", "written", "assembly"):
        raise ValueError(f'form must be "llvm", "written" or "assembly", not {form!r}')
    if not available():
        raise RuntimeError("no code is generated: llvmlite is not installed, or FLAMBEAU_GENERATED=0 is set")
    from .._codegen.show import kernels_of

    parts = []
    for kernel, parameters in kernels_of(function, *args, **kwargs):
        show = {"llvm": kernel.llvm_ir, "assembly": kernel.assembly, "written": kernel.module}[form]
        parts.append(f"; {kernel.name}{parameters!r}\n{show(*parameters)}")
    return "\n\n".join(parts)


def code_cache_folder() -> str | None:
    """Where machine code is kept between runs: `FLAMBEAU_CACHE_DIR`, or a folder of the user's; None: nowhere."""
    from .._codegen.machine.cache import folder

    return folder()


def clear_code_cache() -> int:
    """Remove the machine code that is kept on disk; the number of files."""
    from .._codegen.machine.cache import clear

    return clear()


def get_cpu_capability() -> str:
    """The vector instructions of an x86 processor, "AVX512" or "AVX2"; "DEFAULT" for all others."""
    try:
        from llvmlite.binding import get_host_cpu_features
    except ImportError:
        return "DEFAULT"
    features = get_host_cpu_features()
    if features.get("avx512f"):
        return "AVX512"
    return "AVX2" if features.get("avx2") else "DEFAULT"
