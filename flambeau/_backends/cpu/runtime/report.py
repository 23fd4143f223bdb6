"""What the kernels of the CPU are made with, for people: what there is, what is missing, what that costs."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import platform
from typing import Any

from ... import tiers
from ..linalg import blas

_WITHOUT_GENERATOR = "large tensors are computed by NumPy alone, which takes 3 to 11 times as long"
_WITHOUT_ONEDNN = "products of bfloat16 take 8 times as long, those of float16 and convolutions longer too"


def facts() -> dict[str, dict[str, Any]]:
    """All of it, by section."""
    return {
        "code generator": _generator(),
        "onednn": _onednn(),
        "kernel cache": _cache(),
        "memory pool": _pool(),
    }


def blas_threads() -> int | str:
    """How many threads products of matrices use."""
    threads = blas.used_threads()
    return "not known: NumPy has another library than OpenBLAS" if threads is None else threads


def _generator() -> dict[str, Any]:
    if importlib.util.find_spec("llvmlite") is None:
        return {"state": f"off: llvmlite is not installed; {_WITHOUT_GENERATOR}. To install it: pip install llvmlite"}
    import llvmlite.binding as llvm

    state = "on" if tiers.available() else f"off: FLAMBEAU_GENERATED=0 is set; {_WITHOUT_GENERATOR}"
    return {
        "state": state,
        "llvm": ".".join(map(str, llvm.llvm_version_info)),
        "llvmlite": importlib.metadata.version("llvmlite"),
        "target": f"{llvm.get_process_triple()}, {llvm.get_host_cpu_name()}",
    }


def _onednn() -> dict[str, Any]:
    from .. import onednn
    from ..onednn.library import PACKAGE

    if not tiers.available() and os.environ.get("FLAMBEAU_GENERATED") == "0":
        return {"state": "off: FLAMBEAU_GENERATED=0 leaves NumPy alone"}
    if onednn.available():
        return {"state": "on", "version": onednn.version()}
    if platform.system() != "Linux" or platform.machine() != "x86_64":
        return {"state": "off: it is for Linux on x86-64; here generated kernels do its work"}
    return {"state": f"off: {onednn.reason()}; {_WITHOUT_ONEDNN}. To install it: pip install {PACKAGE}"}


def _cache() -> dict[str, Any]:
    from ...._codegen.machine import cache

    place = cache.folder()
    if place is None:
        return {"folder": "none: FLAMBEAU_CACHE=0 is set; every process compiles its kernels anew", "kernels": 0}
    sizes = cache.sizes()
    return {"folder": place, "kernels": len(sizes), "bytes": sum(sizes)}


def _pool() -> dict[str, Any]:
    if not tiers.available():
        return {"state": "off: it needs generated code"}
    from ..memory import allocator

    if not allocator.start():
        reason = "FLAMBEAU_CPU_POOL=0 is set" if os.environ.get("FLAMBEAU_CPU_POOL") == "0" else "not possible here"
        return {"state": f"off: {reason}; memory of large tensors is not kept for the next ones"}
    running = allocator.allocator()
    assert running is not None
    unlimited = running["total_limit"] >= allocator.physical_memory()
    return {
        "state": "on",
        "used bytes": running["allocated"],
        "reserved bytes": running["reserved"],
        "kept at most, bytes": running["cache_limit"],
        "limit, bytes": "none" if unlimited else running["total_limit"],
        "memory of the machine, bytes": allocator.physical_memory(),
    }
