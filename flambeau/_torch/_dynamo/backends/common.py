"""`torch._dynamo.backends.common`: a backend that is given the graph of a call and the graph of its derivative."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau._torch._functorch.aot_autograd import aot_module_simplified

__all__ = ["AotAutograd", "aot_autograd"]


class AotAutograd:
    """A backend whose compilers see forward and backward as two graphs of operators.

    Args:
        **kwargs: what `aot_module_simplified` takes: `fw_compiler`, `bw_compiler`, `partition_fn`, ...
    """

    def __init__(self, **kwargs: Any) -> None:
        self.__name__ = "compiler_fn"
        self.kwargs = kwargs

    def __call__(self, gm: Any, example_inputs: Any, **kwargs: Any) -> Callable[..., Any]:
        return aot_module_simplified(gm, example_inputs, **self.kwargs)


def aot_autograd(**kwargs: Any) -> AotAutograd:
    """A backend for `torch.compile` whose compilers see forward and backward as two graphs of operators."""
    return AotAutograd(**kwargs)
