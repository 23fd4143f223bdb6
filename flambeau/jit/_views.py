"""What a scripted module holds, by kind: small views, under names that PyTorch's package has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..nn.modules.module import Module


@dataclass
class BenchmarkConfig:
    """How a model is to be timed: `utils.ThroughputBenchmark` has a way of its own to be told."""

    num_calling_threads: int = 1
    num_worker_threads: int = 1
    num_warmup_iters: int = 1
    num_iters: int = 100
    profiler_output_path: str = ""


class _View:
    """The members of a module of one kind."""

    _group = ""

    def __init__(self, module: Module) -> None:
        if not isinstance(module, Module):
            raise TypeError(f"{type(self).__name__}(): incompatible constructor arguments: {type(module).__name__}")
        self._module = module

    def _members(self) -> dict[str, Any]:
        members: dict[str, Any] = getattr(self._module, self._group)
        return members

    def contains(self, name: str) -> bool:
        """Whether there is one of this name."""
        return name in self._members()

    def items(self) -> list[tuple[str, Any]]:
        """The names with what they stand for."""
        return [(name, value) for name, value in self._members().items() if value is not None]

    def getattr(self, name: str) -> Any:
        """The one of a name."""
        return getattr(self._module, name)

    def setattr(self, name: str, value: Any) -> None:
        """Put another one in its place."""
        self._members()[name] = value


class ParameterDict(_View):
    """The parameters of a module, those of its submodules left out."""

    _group = "_parameters"


class BufferDict(_View):
    """The buffers of a module, those of its submodules left out."""

    _group = "_buffers"


class ModuleDict(_View):
    """The modules of a module."""

    _group = "_modules"
