"""`torch._dynamo.testing`: backends that count or keep what they are given, for tests of programs that are compiled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import flambeau
from flambeau._torch._functorch.compilers import boxed_nop

from .backends.common import aot_autograd
from .backends.registry import lookup_backend
from .utils import same

__all__ = [
    "AotEagerAndRecordGraphs", "CompileCounter", "CompileCounterWithBackend", "EagerAndRecordGraphs", "rand_strided",
    "same",
]  # fmt: skip


class CompileCounterWithBackend:
    """A backend that counts its graphs and their operators, keeps the graphs, and leaves them to another backend.

    Args:
        backend (str): the name of the backend that runs the graphs.
    """

    def __init__(self, backend: str) -> None:
        self.backend = backend
        self.clear()

    def __call__(self, gm: Any, example_inputs: Sequence[Any]) -> Callable[..., Any]:
        self.frame_count += 1
        self.op_count += len([each for each in gm.graph.nodes if "call" in each.op])
        self.graphs.append(gm)
        return lookup_backend(self.backend)(gm, example_inputs)

    def clear(self) -> None:
        """Count from zero, and forget the graphs."""
        self.frame_count, self.op_count = 0, 0
        self.graphs: list[Any] = []


class CompileCounter(CompileCounterWithBackend):
    """A backend that counts its graphs and their operators, and runs the graphs as they stand."""

    def __init__(self) -> None:
        super().__init__("eager")


class EagerAndRecordGraphs:
    """A backend that keeps its graphs, and runs them as they stand."""

    def __init__(self) -> None:
        self.graphs: list[Any] = []

    def __call__(self, gm: Any, example_inputs: Sequence[Any]) -> Callable[..., Any]:
        self.graphs.append(gm)
        found: Callable[..., Any] = gm.forward
        return found


class AotEagerAndRecordGraphs:
    """A backend that keeps the graphs of calls and those of forward and backward, and runs them as they stand."""

    def __init__(self) -> None:
        self.graphs: list[Any] = []
        self.fw_graphs: list[Any] = []
        self.bw_graphs: list[Any] = []

    def __call__(self, gm: Any, example_inputs: Sequence[Any]) -> Callable[..., Any]:
        self.graphs.append(gm)

        def keeping(graphs: list[Any]) -> Callable[..., Any]:
            def keep(graph: Any, inputs: Any) -> Any:
                graphs.append(graph)
                return boxed_nop(graph, inputs)

            return keep

        backend = aot_autograd(fw_compiler=keeping(self.fw_graphs), bw_compiler=keeping(self.bw_graphs))
        return backend(gm, example_inputs)


def rand_strided(
    size: Sequence[int],
    stride: Sequence[int],
    dtype: Any = flambeau.float32,
    device: Any = "cpu",
    extra_size: int = 0,
) -> Any:
    """A tensor of random numbers with these sizes and strides."""
    needed = 1 + sum([(extent - 1) * step for extent, step in zip(size, stride, strict=True)]) + extra_size
    if dtype.is_floating_point or dtype.is_complex:
        elements = flambeau.randn(needed, dtype=dtype, device=device)
    else:
        elements = flambeau.zeros(needed, dtype=dtype, device=device)
    return flambeau.as_strided(elements, size, stride)
