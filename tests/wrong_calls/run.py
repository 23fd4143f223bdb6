"""Runs wrong calls under one of the libraries, each function's in a process of its own.

The process is forked from one that has everything imported: a crash costs nothing but the call, memory is limited, and
what a call does to the state of the library is gone with the process.
"""

from __future__ import annotations

import gc
import itertools
import json
import os
import resource
import select
import signal
import sys
import tempfile
import warnings
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from .valid import Case, Group, Parameter
from .variations import kinds, wrong

Outcome = list[Any]
"""["ok"], ["crash", signal], ["hang"], or the names of an error's classes, outermost first, and its message."""

MEMORY = 3 << 30
PATIENCE = 10
"""Bytes that a call may get, and seconds that it may take."""


def variations(case: Case, library: Any, every: int) -> Iterator[tuple[str, Parameter, str]]:
    """(key, parameter, kind) of the wrong calls made from a case: every so many of them, always the same.

    The same for all samples of a function, too: the list of known differences does not tell them apart.
    """
    function = case.name.partition("#")[0]
    _, args, kwargs = case.make(library)
    for parameter in case.parameters():
        value = args[parameter] if isinstance(parameter, int) else kwargs[parameter]
        for kind in kinds(str(parameter), value, library):
            if zlib.crc32(f"{function}|{parameter}|{kind}".encode()) % every == 0:
                yield f"{case.name}|{parameter}|{kind}", parameter, kind
    for kind in ("an argument more", "an unknown keyword", "an argument less"):
        if zlib.crc32(f"{function}||{kind}".encode()) % every == 0:
            yield f"{case.name}||{kind}", "", kind


def _attempt(case: Case, parameter: Parameter, kind: str, library: Any) -> Outcome:
    try:
        function, args, kwargs = case.make(library)
        if kind == "an argument more":
            args.append(object())
        elif kind == "an unknown keyword":
            kwargs["no_such_keyword"] = 1
        elif kind == "an argument less":
            args = args[:-1]
        elif isinstance(parameter, int):
            args[parameter] = wrong(kind, args[parameter], library)
        elif parameter:
            kwargs[parameter] = wrong(kind, kwargs[parameter], library)
        library.manual_seed(0)
    except Exception as error:
        return ["unmade", f"{type(error).__name__}: {error}"[:300]]
    try:
        if function(*args, **kwargs) is NotImplemented:
            return [["TypeError", "Exception"], "the operator does not know these operands"]  # as Python says it
    except Exception as error:
        return [[each.__name__ for each in type(error).__mro__[:-2]], str(error)[:600]]
    return ["ok"]


def _calls(groups: list[Group], library: Any, every: int) -> Iterator[tuple[Case, str, Parameter, str]]:
    for group in groups:
        for case in group.cases():
            try:
                wrong_calls = list(variations(case, library, every))
            except Exception:  # the library lacks something that the right call needs
                yield case, f"{case.name}||right call", "", "right call"
                continue
            for call in wrong_calls:
                yield case, *call


def _child(groups: list[Group], library: Any, every: int, skip: int, pipe: int, folder: str) -> None:
    if sys.platform == "linux":
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))
    os.chdir(folder)  # a wrong call may write a file
    with os.fdopen(pipe, "w") as stream, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for case, key, parameter, kind in itertools.islice(_calls(groups, library, every), skip, None):
            stream.write(json.dumps([key]) + "\n")
            stream.flush()
            stream.write(json.dumps([key, _attempt(case, parameter, kind, library)]) + "\n")
            stream.flush()
        stream.write("[]\n")


def _lines(pipe: int) -> Iterator[str | None]:
    """Lines as they come; None when none has come for too long."""
    rest = b""
    while True:
        ready, _, _ = select.select([pipe], [], [], PATIENCE)
        if not ready:
            yield None
            return
        data = os.read(pipe, 1 << 16)
        if not data:
            return
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            yield line.decode()


def _batches(groups: Iterable[Group]) -> Iterator[list[Group]]:
    """Groups that share a process; those that change the state of the library have one of their own."""
    batch: list[Group] = []
    for group in groups:
        if group.is_written and group.name.startswith(("set_", "use_", "inference", "autocast")):
            yield [group]
            continue
        batch.append(group)
        if len(batch) == 25:
            yield batch
            batch = []
    if batch:
        yield batch


def outcomes(groups: Iterable[Group], library: Any, every: int = 1) -> Iterator[tuple[str, Outcome]]:
    """Every wrong call of `groups` with its outcome."""
    gc.collect()
    gc.freeze()
    with tempfile.TemporaryDirectory() as folder:
        for batch in _batches(groups):
            yield from _outcomes_of(batch, library, every, folder)


def _outcomes_of(batch: list[Group], library: Any, every: int, folder: str) -> Iterator[tuple[str, Outcome]]:
    done = 0
    finished = False
    while not finished:
        reader, writer = os.pipe()
        process = os.fork()
        if process == 0:
            os.close(reader)
            null = os.open(os.devnull, os.O_RDWR)
            for stream in (0, 1, 2):
                os.dup2(null, stream)
            try:
                _child(batch, library, every, done, writer, folder)
            finally:
                os._exit(0)
        os.close(writer)
        pending = None
        hangs = False
        for line in _lines(reader):
            if line is None:
                hangs = True
                os.kill(process, signal.SIGKILL)
                break
            key, *found = json.loads(line) or [None]
            if key is None:
                finished = True
            elif found:
                done += 1
                pending = None
                yield key, found[0]
            else:
                pending = key
        os.close(reader)
        _, status = os.waitpid(process, 0)
        if pending is not None:
            done += 1
            yield pending, ["hang"] if hangs else ["crash", os.waitstatus_to_exitcode(status)]
        elif not finished:
            raise RuntimeError(f"the process of {batch} ended before its last call")
