"""Python's `multiprocessing` under the names of `torch.multiprocessing`: tensors travel as shared memory.

What goes through a queue, a pipe or the arguments of a process is moved to memory that both sides see, by
`reductions.py`: what one writes the other reads. See docs/multiprocessing.md.
"""

from __future__ import annotations

import importlib
import multiprocessing
import sys
from multiprocessing import *  # noqa: F403
from typing import Any

from .._core.shared_memory import Strategy
from . import reductions as reductions
from .spawn import ProcessContext as ProcessContext
from .spawn import ProcessExitedException as ProcessExitedException
from .spawn import ProcessRaisedException as ProcessRaisedException
from .spawn import SpawnContext as SpawnContext
from .spawn import spawn as spawn
from .spawn import start_processes as start_processes

_STRATEGIES = {"file_system"} if sys.platform in ("darwin", "win32") else {"file_descriptor", "file_system"}


def get_all_sharing_strategies() -> set[str]:
    """The ways in which memory is shared on this system."""
    return set(_STRATEGIES)


def get_sharing_strategy() -> str:
    """The way in which memory is shared from now on."""
    return Strategy.current


def set_sharing_strategy(new_strategy: str) -> None:
    """Choose it: open files without a name (`file_descriptor`), or names in the file system (`file_system`)."""
    if new_strategy not in _STRATEGIES:
        raise AssertionError(f"invalid sharing strategy {new_strategy!r}: there are {sorted(_STRATEGIES)}")
    if new_strategy == "file_system" and sys.platform != "win32":  # which has nothing to track
        from multiprocessing import resource_tracker

        resource_tracker.ensure_running()  # now, so that processes forked later have the same one
    Strategy.current = new_strategy


def __getattr__(name: str) -> Any:
    if name in ("pool", "queue"):
        return importlib.import_module(f"{__name__}.{name}")
    return getattr(multiprocessing, name)


reductions.init_reductions()
