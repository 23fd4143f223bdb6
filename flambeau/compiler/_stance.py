"""How compiled functions run: `set_stance`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

Function = TypeVar("Function", bound=Callable[..., Any])

_STANCES = ("default", "eager_then_compile", "aot_eager_then_compile", "force_eager", "eager_on_recompile",
            "fail_on_recompile")  # fmt: skip


class Stance:
    """The stance of all threads."""

    name = "default"
    restricts = False
    """Whether it is one in which nothing new is compiled."""

    def take(self, name: str) -> None:
        self.name = name
        self.restricts = name in _STANCES[3:]


STANCE = Stance()


class set_stance:
    """How compiled functions run from now on: as a call, as a context, or as a decorator.

    `force_eager`: as they stand; `eager_on_recompile`: by the programs that there are, else as they stand;
    `fail_on_recompile`: the same, but an error where there is no program.

    Args:
        stance (str): "default", "force_eager", "eager_on_recompile" or "fail_on_recompile". Default: `"default"`.
        skip_guard_eval_unsafe (bool): whether guards are not checked; the caller promises that they hold. Default:
            `False`.
        force_backend: the backend to use, whatever `compile` was told.

    Example:
        >>> with torch.compiler.set_stance("force_eager"):
        ...     torch.compile(torch.exp)(torch.zeros(1))
        tensor([1.])
    """

    def __init__(
        self, stance: str = "default", *, skip_guard_eval_unsafe: bool = False, force_backend: Any = None
    ) -> None:
        if stance not in _STANCES:
            raise RuntimeError(f"invalid torch.compile stance '{stance}'")
        if skip_guard_eval_unsafe:
            raise NotImplementedError("set_stance(skip_guard_eval_unsafe=True): programs are not run without checks")
        self.stance = stance
        self._before = STANCE.name
        STANCE.take(stance)

    def __call__(self, fn: Function) -> Function:
        STANCE.take(self._before)  # it holds in calls of the function alone

        @functools.wraps(fn)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            with set_stance(self.stance):
                return fn(*args, **kwargs)

        return cast(Function, wrapped)

    def __enter__(self) -> None:
        STANCE.take(self.stance)

    def __exit__(self, *exception: object) -> None:
        STANCE.take(self._before)
