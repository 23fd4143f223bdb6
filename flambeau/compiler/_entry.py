"""`compile`: how functions and modules are given to the compiler, and what else users say to it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypedDict, overload

from .._core.process.tracebacks import leave_out_library
from .._core.slots import SLOTS
from ._marks import COMPILED, Model
from ._registry import resolved

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["compile"]


class _Options(TypedDict, total=False):
    """The types of what is given by name to `compile`."""

    fullgraph: bool
    dynamic: bool | None
    backend: str | Callable[..., Any] | None
    mode: str | None
    options: dict[str, Any] | None
    name: str | None
    disable: bool
    recompile_limit: int | None
    isolate_recompiles: bool
    shapes_spec: Any


@overload
def compile(model: Model, **options: Unpack[_Options]) -> Model: ...


@overload
def compile(model: None = None, **options: Unpack[_Options]) -> Callable[[Model], Model]: ...


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
    """`model`, a function or a module, so that later calls are programs of ops; as a decorator too.

    The first calls run as they stand and are watched. A call that finds the same Python state and alike tensors then
    runs the program of an earlier one, with the same results to the bit. What cannot be known to be the same runs as
    it stands; with `fullgraph` it is an error that says why.

    >>> double = flambeau.compile(lambda x: x * 2)
    >>> double(flambeau.tensor([1.0]))
    tensor([2.])

    Args:
        model: a function or a module; None returns a decorator.
        fullgraph (bool): whether a graph break is an error. Default: `False`.
        dynamic (bool, optional): whether sizes may differ from call to call without compiling anew; None decides by
            the first calls.
        backend (str or Callable, optional): what compiles: a name of `torch.compiler.list_backends()`, or a function
            of a graph and example inputs.
        mode (str, optional): "default", "reduce-overhead" or "max-autotune".
        options (dict, optional): options of the backend.
        name (str, optional): a name for the compiled function, which explanations show.
        disable (bool): whether to return `model` as it is. Default: `False`.
        recompile_limit (int, optional): how many programs one function may have. Default: 8.
        isolate_recompiles (bool): whether copies of the function count their programs apart. Default: `False`.
        shapes_spec: which sizes are dynamic.

    Returns:
        what is called in place of `model`.
    """
    if mode is not None and options is not None:
        raise RuntimeError("Either mode or options can be specified, but both can't be specified at the same time.")
    if model is None:
        return lambda each: compile(
            each,
            fullgraph=fullgraph,
            dynamic=dynamic,
            backend=backend,
            mode=mode,
            options=options,
            disable=disable,
            recompile_limit=recompile_limit,
        )
    if not callable(model):
        raise RuntimeError(f"torch.compile expects a module or a function, got {type(model).__name__}")
    if disable:
        return model
    backend = resolved(backend)
    _check_choices(mode, options)
    tunes = mode in _TUNING_MODES or bool((options or {}).get("max_autotune"))
    run = compiled_by(model, fullgraph, dynamic, backend, tunes)
    if recompile_limit is not None:
        run.recompile_limit = recompile_limit
    if (module := SLOTS.compiled_module(model, run)) is not None:
        return module

    @functools.wraps(model)
    def compiled(*args: Any, **kwargs: Any) -> Any:
        try:
            return run(*args, **kwargs)
        except Exception as error:
            leave_out_library(error)
            raise

    vars(compiled).update(
        _torchdynamo_orig_callable=model, _run=run, aot_compile=functools.partial(_compiled_ahead, model)
    )
    return compiled


def _compiled_ahead(function: Any, example_inputs: tuple[tuple[Any, ...], dict[str, Any]]) -> Any:
    """A function as it runs on such arguments: `(args, kwargs)`."""
    from .ahead.load import CompiledAhead

    return CompiledAhead(function, *example_inputs)


_TUNING_MODES = ("max-autotune-no-cudagraphs", "max-autotune")
_MODES = ("default", "lite", "reduce-overhead", *_TUNING_MODES)


def _check_choices(mode: str | None, options: dict[str, Any] | None) -> None:
    if mode is not None and mode not in _MODES:
        raise RuntimeError(f"Unrecognized mode={mode}, should be one of: {', '.join(_MODES)}")
    known = SLOTS.compiler_options() if options else {}
    for name, value in (options or {}).items():
        if name == "guard_filter_fn":
            if not callable(value):
                raise TypeError(f"guard_filter_fn is to be a function of guards, not {type(value).__name__}")
            continue  # a permission to leave checks out: all of them stay
        if name.replace("-", "_") not in known:
            raise RuntimeError(f"Unexpected optimization option {name}, known options are {sorted(known)}")
        usual = known[name.replace("-", "_")]
        if usual is not None and type(value) is not type(usual):
            raise RuntimeError(
                f"Unexpected type of attr {name}, got {type(value).__name__} should be {type(usual).__name__}"
            )


def compiled_by(model: Any, fullgraph: bool, dynamic: bool | None, backend: Any, tunes: bool) -> Any:
    """What calls a function or a module by the programs of its calls."""
    from ._compiled import Compiled

    made: Any
    if backend == "eager":
        from ._custom_backends import CompiledEagerly

        made = CompiledEagerly(model, fullgraph, dynamic=dynamic)
    elif callable(backend):
        from ._custom_backends import CompiledByBackend

        made = CompiledByBackend(model, fullgraph, dynamic=dynamic, backend=backend)
    elif backend == "verify":
        from .tools.verify import Verified

        made = Verified(model, fullgraph, dynamic=False)
    else:
        made = Compiled(model, fullgraph, dynamic=dynamic, tunes=tunes)
    COMPILED.add(made)
    return made
