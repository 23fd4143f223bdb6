"""The list of programs, and what one of them is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple


class Program(NamedTuple):
    """A user's program: `run(torch, device)` gets PyTorch or Flambeau, and returns everything that it has found."""

    name: str
    kind: str
    run: Callable[[Any, str], Any]
    accuracy: str
    """The dtype whose tolerance its numbers get, where it computes in a narrower one than it returns; or ""."""
    asks_device: bool
    """Whether it uses `torch.cuda` itself, so that PyTorch without a GPU cannot run it."""
    starts_processes: bool
    """Whether it starts processes that use the device."""
    needs_gpu: bool
    """Whether a simulated device cannot run it: it is in one process, has no TF32, and lends no memory."""


PROGRAMS: dict[str, Program] = {}


def program(
    kind: str, *, accuracy: str = "", cuda: bool = False, processes: bool = False, gpu: bool = False
) -> Callable[[Callable[[Any, str], Any]], Callable[[Any, str], Any]]:
    """Put a function into the list."""

    def listed(run: Callable[[Any, str], Any]) -> Callable[[Any, str], Any]:
        name = run.__name__.replace("_", " ")
        assert name not in PROGRAMS, name
        PROGRAMS[name] = Program(name, kind, run, accuracy, cuda or processes, processes, gpu or processes)
        return run

    return listed


def refusal(call: Callable[[], Any], *words: str) -> list[Any]:
    """The class of the error that a call raises, and which of some words its text has."""
    try:
        call()
    except Exception as error:
        text = str(error).lower()
        return [type(error).__name__, *[each for each in words if each.lower() in text]]
    return ["nothing raised"]
