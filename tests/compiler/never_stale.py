"""The adversarial programs of `test_never_stale*.py` on another device: compiled beside themselves uncompiled.

`python -m tests.compiler.never_stale` runs all of them on the CUDA backend with simulated memory, and prints which
differ.
"""

from __future__ import annotations

import contextlib
import copy
import sys
import warnings
from collections.abc import Iterator
from types import ModuleType
from typing import Any
from unittest import mock

import flambeau as torch
from flambeau.compiler._compiled import Compiled

from ..conformance.foreign import simulated
from . import test_never_stale, test_never_stale_breaks, test_never_stale_further, test_never_stale_libraries

_MODULES: tuple[Any, ...] = (
    test_never_stale, test_never_stale_further, test_never_stale_breaks, test_never_stale_libraries,
)  # fmt: skip


def programs() -> list[tuple[Any, str]]:
    """The modules of the programs, and their names."""
    return [(module, name) for module in _MODULES for name in module.PROGRAMS]


@contextlib.contextmanager
def _on(device: str, module: ModuleType) -> Iterator[None]:
    """Let a module's own tensors and layers, and all new tensors, be on a device."""
    moved: dict[str, Any] = {}
    for name, value in vars(module).items():
        if isinstance(value, torch.Tensor):
            moved[name] = value.detach().to(device).requires_grad_(value.requires_grad)
        elif isinstance(value, torch.nn.Module):
            moved[name] = copy.deepcopy(value).to(device)
    with mock.patch.multiple(module, **moved) if moved else contextlib.nullcontext(), torch.device(device):
        yield


def outcomes(module: Any, name: str, device: str) -> tuple[Any, Any, bool]:
    """What a program gives as it stands, what it gives compiled, and whether anything was compiled."""
    made: list[Compiled] = []

    def compile(function: Any) -> Any:
        made.append(Compiled(function))
        return made[-1]

    found = []
    for each in (lambda function: function, compile):
        if hasattr(module, "SEEN"):
            module.SEEN.clear()
        with _on(device, module):
            found.append(module.results(module.PROGRAMS[name], each))
    return found[0], found[1], any(each.all_programs for each in made)


def main() -> int:
    device = simulated().device
    wrong = compiled = 0
    for module, name in programs():
        expected, found, has_programs = outcomes(module, name, device)
        compiled += has_programs
        if expected != found:
            wrong += 1
            print(f"{name}: {str(expected)[:300]} is not {str(found)[:300]}", flush=True)
    print(f"{len(programs())} programs, {compiled} compiled, {wrong} wrong")
    return int(wrong > 0)


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sys.exit(main())
