"""`flambeau info`: what Flambeau runs on."""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import platform
import sys
from pathlib import Path
from typing import Any

import numpy as np

from .. import _RELEASE, cuda
from .._backends.cpu.runtime.report import blas_threads, facts
from .._dispatch.public.settings import get_num_threads
from .terminal import coloured, readable_size, say

SUMMARY = "show versions, processor, kernels, memory, accelerators, threads"
DESCRIPTION = (
    "Show what Flambeau runs on: versions, the processor's features, what kernels are made with and where they are "
    "kept, the memory pool, accelerators and threads; and of what is missing, what that costs and how to install it."
)

_PACKAGES = ("numpy", "ml-dtypes")
_THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the command."""
    parser.add_argument("--json", action="store_true", help="print JSON for programs")


def run(arguments: argparse.Namespace) -> int:
    """Print the facts."""
    facts = collect()
    if arguments.json:
        say(json.dumps(facts, indent=2))
        return 0
    for section, entries in facts.items():
        say(coloured(section, "bold"))
        width = max(map(len, entries))
        for name, value in entries.items():
            say(f"  {name.ljust(width)}  {_text(name, value)}")
    return 0


def _text(name: str, value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    return readable_size(value) if isinstance(value, int) and name.endswith("bytes") else str(value)


def collect() -> dict[str, dict[str, Any]]:
    """All facts by section."""
    configuration: Any = np.show_config(mode="dicts")
    simd = configuration.get("SIMD Extensions", {})
    blas = configuration.get("Build Dependencies", {}).get("blas", {})
    return {
        "versions": {
            "flambeau": _RELEASE,
            "python": f"{platform.python_version()} ({platform.python_implementation()})",
            **{name: _version(name) for name in _PACKAGES},
            "platform": platform.platform(),
        },
        "processor": {
            "model": _processor(),
            "architecture": platform.machine(),
            "byte order": sys.byteorder,
            "features": [*simd.get("baseline", []), *simd.get("found", [])],
            "blas": f"{blas.get('name', 'unknown')} {blas.get('version', '')}".strip(),
        },
        **facts(),
        "threads": {
            "flambeau": get_num_threads(),
            "blas": blas_threads(),
            "processors": os.cpu_count(),
            "usable": _usable_processors(),
            **{name: os.environ[name] for name in _THREAD_VARIABLES if name in os.environ},
        },
        "accelerators": {"cuda": _cuda_devices()},
    }


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def _processor() -> str:
    """The name of the processor, where the system tells it."""
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text(errors="replace").splitlines():
            key, _, value = line.partition(":")
            if key.strip() in ("model name", "Model", "Hardware"):
                return value.strip()
    return platform.processor() or "unknown"


def _usable_processors() -> int:
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity is not None else os.cpu_count() or 1


def _cuda_devices() -> list[str]:
    name = getattr(cuda, "get_device_name", lambda index: f"device {index}")
    return [str(name(index)) for index in range(cuda.device_count())]
