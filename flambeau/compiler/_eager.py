"""`compile` without a compiler: what it is given runs as it stands."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any, TypeVar

from .._core.names.absent import PAGE, refusal
from .._core.slots import SLOTS

Function = TypeVar("Function", bound=Callable[..., Any])

_warned = False


def _warn_once() -> None:
    global _warned
    if not _warned:
        _warned = True
        warnings.warn(
            "torch.compile: Flambeau's compiler is not built yet, so the model runs eagerly: with the same results, "
            f"and no faster ({PAGE}). torch.compile(..., backend='eager') says nothing",
            UserWarning,
            stacklevel=4,
        )


def compile(
    model: Any = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: str | Callable[..., Any] | None = None,
    mode: str | None = None,
    options: dict[str, Any] | None = None,
    name: str | None = None,
    disable: bool = False,
    recompile_limit: int | None = None,
    isolate_recompiles: bool = False,
    shapes_spec: Any = None,
) -> Any:
    """`model`, to be run by a compiler; as a decorator too. There is none yet: it runs eagerly.

    >>> double = flambeau.compile(lambda x: x * 2, backend="eager")
    >>> double(flambeau.tensor([1.0]))
    tensor([2.])
    """
    if mode is not None and options is not None:
        raise RuntimeError("Either mode or options can be specified, but both can't be specified at the same time.")
    if model is None:
        return lambda each: compile(
            each, fullgraph=fullgraph, dynamic=dynamic, backend=backend, mode=mode, options=options, disable=disable
        )
    if not callable(model):
        raise RuntimeError(f"torch.compile expects a module or a function, got {type(model).__name__}")
    if disable:
        return model
    if callable(backend):
        raise refusal("torch.compile with a backend of one's own", "it needs graph capture (fx), which is not built")
    if backend != "eager":
        _warn_once()
    if (module := SLOTS.compiled_module(model)) is not None:
        return module

    @functools.wraps(model)
    def compiled(*args: Any, **kwargs: Any) -> Any:
        return model(*args, **kwargs)

    vars(compiled)["_torchdynamo_orig_callable"] = model
    return compiled


def is_compiling() -> bool:
    """Whether this code is being compiled: never, it runs as it stands."""
    return False


def disable(fn: Any = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """Mark a function as one that is not to be compiled; with and without parentheses."""
    return (lambda inner: inner) if fn is None else fn


class set_stance:
    """How compiled functions run: as a call, as a context, or as a decorator. All run eagerly."""

    _STANCES = ("default", "eager_then_compile", "aot_eager_then_compile", "force_eager", "eager_on_recompile",
                "fail_on_recompile")  # fmt: skip

    def __init__(
        self, stance: str = "default", *, skip_guard_eval_unsafe: bool = False, force_backend: Any = None
    ) -> None:
        if stance not in self._STANCES:
            raise RuntimeError(f"invalid torch.compile stance '{stance}'")
        self.stance = stance

    def __call__(self, fn: Function) -> Function:
        return fn

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exception: object) -> None:
        pass
