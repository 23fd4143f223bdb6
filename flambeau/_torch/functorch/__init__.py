"""The package `functorch`, from which programs import what is `torch.func` today: its functions say so."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

from flambeau import func
from flambeau._torch._functorch import make_functional as _functional
from flambeau._torch._functorch.make_functional import FunctionalModule, FunctionalModuleWithBuffers
from flambeau.fx.experimental.proxy_tensor import make_fx

__all__ = [
    "FunctionalModule", "FunctionalModuleWithBuffers", "combine_state_for_ensemble", "functionalize", "grad",
    "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "make_functional", "make_functional_with_buffers",
    "make_fx", "vjp", "vmap",
]  # fmt: skip


def _with_warning(function: Callable[..., Any], successor: str) -> Callable[..., Any]:
    name = function.__name__

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        warnings.warn(
            f"We've integrated functorch into PyTorch: `functorch.{name}` is deprecated, use `{successor}`",
            FutureWarning,
            stacklevel=2,
        )
        return function(*args, **kwargs)

    return call


functionalize, grad, grad_and_value, hessian, jacfwd, jacrev, jvp, vjp, vmap = (
    _with_warning(each, f"torch.func.{each.__name__}")
    for each in (
        func.functionalize, func.grad, func.grad_and_value, func.hessian, func.jacfwd, func.jacrev, func.jvp, func.vjp,
        func.vmap,
    )
)  # fmt: skip
make_functional = _with_warning(_functional.make_functional, "torch.func.functional_call")
make_functional_with_buffers = _with_warning(_functional.make_functional_with_buffers, "torch.func.functional_call")
combine_state_for_ensemble = _with_warning(_functional.combine_state_for_ensemble, "torch.func.stack_module_state")
