"""`torch._logging`: what the compiler tells of its work."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable
from typing import Any

from flambeau.compiler import _logs

__all__ = ["LazyString", "getArtifactLogger", "set_logs", "trace_structured", "warning_once"]


def set_logs(*, all: int | None = None, modules: dict[str, int | bool] | None = None, **artifacts: Any) -> None:
    """Choose what the compiler tells on standard error, as `TORCH_LOGS` does, in place of what was chosen before.

    Args:
        all (int, optional): a level of `logging` for every kind.
        modules (dict, optional): levels of loggers by their names.
        **artifacts: the kinds, each True or False or a level: `graph_breaks`, `recompiles`, `guards`, `output_code`.
    """
    asked = {name for name, wanted in artifacts.items() if wanted}
    _logs.choose({*asked, *(_logs.KINDS if all is not None and all <= logging.INFO else ())})
    for name, level in (modules or {}).items():
        logging.getLogger(name).setLevel(level if isinstance(level, int) else logging.DEBUG)


def getArtifactLogger(module_qname: str, artifact_name: str) -> logging.Logger:
    """The logger of a module for one kind of message."""
    return logging.getLogger(f"{module_qname}.__{artifact_name}")


@functools.lru_cache(None)
def warning_once(logger_obj: logging.Logger, *args: Any, **kwargs: Any) -> None:
    """Write a warning, once for each text."""
    logger_obj.warning(*args, **kwargs)


def trace_structured(name: str, metadata_fn: Callable[..., Any] = dict, **kwargs: Any) -> None:
    """Write an entry of PyTorch's structured log, which there is none of: nothing is done."""


class LazyString:
    """A text that is made when it is shown.

    Args:
        func (Callable): makes the text.
        *args, **kwargs: what it is given.
    """

    def __init__(self, func: Callable[..., str], *args: Any, **kwargs: Any) -> None:
        self.func, self.args, self.kwargs = func, args, kwargs

    def __str__(self) -> str:
        return self.func(*self.args, **self.kwargs)
