"""`torch.compile` and the names of `torch.compiler`.

The folders are the way of a call:

- `capture/` runs it, and writes down its ops, what its Python reads (guards) and what it changes;
- `program/` is what comes of that: ops on values, in order;
- `passes/` leave out what only Python needed;
- `plan/` makes schedules of kernels on fixed memory;
- `emit/` writes guards and program as one Python function, and the backward part;
- `ahead/` keeps programs in files, `tools/` show and compare them.

`_compiled.py` has the programs of a function and says which runs, `_entry.py` is `compile`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from .._core.names.absent import Table
from . import _registry
from ._entry import compile
from ._marks import disable, is_compiling, is_exporting, reset, trust
from ._stance import set_stance

__all__ = [
    "allow_in_graph", "aot_compile", "aot_load", "assume_constant_result", "compile", "cudagraph_mark_step_begin",
    "disable", "explain", "get_default_backend", "is_compiling", "is_dynamo_compiling", "is_exporting", "list_backends",
    "minify", "nested_compile_region", "reset", "set_default_backend", "set_enable_guard_collectives", "set_stance",
    "substitute_in_graph", "verify", "wrap_numpy",
]  # fmt: skip

Function = TypeVar("Function", bound=Callable[..., Any])

__getattr__, __dir__ = (
    Table(__name__)
    .submodules("config")
    .elsewhere("aot_compile", "compiler.ahead.save")
    .elsewhere("aot_load", "compiler.ahead.load")
    .elsewhere("explain", "compiler.tools.explain")
    .elsewhere("verify", "compiler.tools.verify")
    .elsewhere("minify", "compiler.tools.minify")
    .elsewhere("load_compiled_function", "compiler.ahead.load")
    .elsewhere("load_cache_artifacts save_cache_artifacts", "compiler.ahead.machine_code")
    .elsewhere(
        "keep_portable_guards_unsafe keep_tensor_guards_unsafe skip_all_guards_unsafe "
        "skip_guard_on_all_nn_modules_unsafe skip_guard_on_globals_unsafe skip_guard_on_inbuilt_nn_modules_unsafe",
        "_dynamo.guard_filters",
    )
    .parts()
)


def is_dynamo_compiling() -> bool:
    """Whether this code is part of a compiled function: `is_compiling`, but not in an export.

    Returns:
        bool: whether it is.

    Example:
        >>> torch.compiler.is_dynamo_compiling()
        False
    """
    return is_compiling() and not is_exporting()


def allow_in_graph(fn: Any) -> Any:
    """Mark a function whose ops are compiled, and whose Python is not looked at: it is not run again.

    Args:
        fn: the function, or a list of them.

    Returns:
        the same.

    Example:
        >>> @torch.compiler.allow_in_graph
        ... def double(x):
        ...     return 2 * x
        >>> torch.compile(lambda x: double(x) + 1)(torch.ones(2))
        tensor([3., 3.])
    """
    if isinstance(fn, (list, tuple)):
        return [allow_in_graph(each) for each in fn]
    if not callable(fn):
        raise AssertionError("allow_in_graph expects a callable")
    trust(fn)
    return fn


def assume_constant_result(fn: Function) -> Function:
    """Mark a function whose result compiled code keeps: it is not called again.

    Args:
        fn (Function): the function.

    Returns:
        the function.

    Example:
        >>> @torch.compiler.assume_constant_result
        ... def factor():
        ...     return 3
        >>> torch.compile(lambda x: x * factor())(torch.ones(2))
        tensor([3., 3.])
    """
    trust(fn)
    fn._dynamo_marked_constant = True  # type: ignore[attr-defined]  # PyTorch marks functions so
    return fn


def substitute_in_graph(
    original_fn: Callable[..., Any], *, can_constant_fold_through: bool = False, skip_signature_check: bool = False
) -> Callable[[Function], Function]:
    """Mark a function as the one to compile in another's place.

    Args:
        original_fn (Callable): the function to replace.
        can_constant_fold_through (bool): not used. Default: `False`.
        skip_signature_check (bool): whether their parameters may differ. Default: `False`.

    Returns:
        a decorator.

    Example:
        >>> import math
        >>> @torch.compiler.substitute_in_graph(math.dist, skip_signature_check=True)
        ... def dist(p, q):
        ...     return sum((a - b) ** 2 for a, b in zip(p, q)) ** 0.5
        >>> dist((0, 0), (3, 4))
        5.0
    """
    if not callable(original_fn):
        raise TypeError(f"substitute_in_graph expects a function but got {type(original_fn)!r}")
    return lambda fn: fn


def nested_compile_region(
    fn: Any = None, *, options: Any = None, max_reuse_entries: int = 8, reuse_hash_fn: Any = None
) -> Any:
    """Mark a function that is compiled once and called often.

    Args:
        fn: the function; None returns a decorator.
        options: not used.
        max_reuse_entries (int): not used. Default: `8`.
        reuse_hash_fn: not used.

    Returns:
        the function, or a decorator.

    Example:
        >>> @torch.compiler.nested_compile_region
        ... def layer(x):
        ...     return x.relu()
        >>> layer(torch.tensor([-1.0]))
        tensor([0.])
    """
    return (lambda inner: inner) if fn is None else fn


def cudagraph_mark_step_begin() -> None:
    """Say that a new iteration begins: recorded graphs may then be run again, and none is recorded.

    Example:
        >>> torch.compiler.cudagraph_mark_step_begin()
    """


def set_enable_guard_collectives(enabled: bool) -> bool:
    """Let all ranks compile together; gives the setting before.

    Args:
        enabled (bool): whether they do; it is remembered and changes nothing.

    Returns:
        bool: the setting before.

    Example:
        >>> torch.compiler.set_enable_guard_collectives(False)
        False
    """
    global _guard_collectives
    before, _guard_collectives = _guard_collectives, enabled
    return before


_guard_collectives = False


def list_backends(exclude_tags: Any = ("debug", "experimental")) -> list[str]:
    """The compilers there are; all but those for looking at it are left out unless `exclude_tags` is empty.

    Args:
        exclude_tags: the kinds that are left out. Default: `('debug', 'experimental')`.

    Returns:
        list of strs: their names.

    Example:
        >>> torch.compiler.list_backends()
        ['inductor']
    """
    return _registry.names(exclude_tags)


def set_default_backend(backend: str | Callable[..., Any]) -> None:
    """Choose what `compile` uses unless it is told.

    Args:
        backend (str or Callable): a name, or a function of a graph and example inputs.

    Example:
        >>> torch.compiler.set_default_backend(torch.compiler.get_default_backend())
    """
    _registry.set_default(backend)


def get_default_backend() -> str | Callable[..., Any]:
    """What `compile` uses unless it is told.

    Returns:
        its name, or the function.

    Example:
        >>> torch.compiler.get_default_backend()
        'inductor'
    """
    return _registry.default()


def wrap_numpy(fn: Callable[..., Any]) -> Callable[..., Any]:
    """A function of arrays as a function of tensors.

    Args:
        fn (Callable): the function of arrays.

    Returns:
        a function of tensors.

    Example:
        >>> import numpy
        >>> torch.compiler.wrap_numpy(numpy.exp)(torch.zeros(2))
        tensor([1., 1.])
    """
    import functools

    import numpy as np

    from .._core.slots import SLOTS
    from .._core.tensor import Tensor
    from .._ops.create.constants import from_numpy

    @functools.wraps(fn)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        args, kwargs = SLOTS.tree_map_only(Tensor, lambda each: each.numpy(), (args, kwargs))
        return SLOTS.tree_map_only(np.ndarray, from_numpy, fn(*args, **kwargs))

    return wrapped
