"""PyTorch's private modules under both of their names."""

from __future__ import annotations

import importlib
import pkgutil
import subprocess
import sys

import flambeau._torch

_PROGRAM = """
import importlib, sys, types
package, *parts = sys.argv[1:]
short = importlib.import_module(f"flambeau.{package}")
before = {name: getattr(short, name, None) for name in parts}
for name in parts:
    long = importlib.import_module(f"flambeau._torch.{package}.{name}")
    assert long is importlib.import_module(f"flambeau.{package}.{name}"), name
    kept = before[name]
    assert kept is None or getattr(short, name) is kept, (package, name, type(kept), type(getattr(short, name)))
"""


def test_a_part_takes_no_functions_place() -> None:
    """`torch._higher_order_ops.cond` is a function: imports of the file of that name leave it."""
    named = []
    for package in pkgutil.iter_modules(flambeau._torch.__path__):
        module = importlib.import_module(f"flambeau.{package.name}") if package.ispkg else None
        parts = [each.name for each in pkgutil.iter_modules(getattr(module, "__path__", ()))]
        own = [each for each in parts if not each.startswith("_") and callable(getattr(module, each, None))]
        if own:
            named.append(package.name)
            subprocess.run([sys.executable, "-c", _PROGRAM, package.name, *own], check=True)
    assert "_higher_order_ops" in named
