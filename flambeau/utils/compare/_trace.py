"""`Trace`: what a run did, op by op, with digests in place of tensors; and its file."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ._digest import WIDTH

FORWARD, BACKWARD, STEP = range(3)
PHASES = ("forward", "backward", "optimizer step")
VERSION = 1

MARKS = frozenset({"module", "gradient", "parameter", "call"})
"""Names of entries that are no ops: results of modules and compiled calls, gradients and parameters at a step."""


class Entry(NamedTuple):
    """One op of a run, or one mark."""

    name: str
    module: str
    line: str
    arguments: str
    """The arguments that are no tensors."""
    step: int
    phase: int
    inputs: tuple[int, ...]
    """Numbers of values; -1: not known."""
    outputs: tuple[int, ...]

    @property
    def is_mark(self) -> bool:
        """Whether it is no op."""
        return self.name in MARKS


class Trace:
    """The ops of a run in order, and the values that they read and made.

    A value is a tensor at one moment: `digests`, `summaries` (see `_digest.py`), `kinds` (dtype and shape) and
    `producers` (the number of the op that made it, -1 where it comes from outside) have one item for each.
    """

    def __init__(self, title: str = "") -> None:
        self.title = title
        self.about: dict[str, Any] = {}
        """Library, version, device and the like."""
        self.entries: list[Entry] = []
        self.digests: list[int] = []
        self.summaries: list[Any] = []
        self.kinds: list[str] = []
        self.producers: list[int] = []

    def __len__(self) -> int:
        return len(self.entries)

    def __repr__(self) -> str:
        ops = sum(not each.is_mark for each in self.entries)
        return f"<Trace of {self.title}: {ops} ops, {len(self.digests)} values>"

    def add_value(self, digest: int, summary: Any, kind: str, producer: int) -> int:
        """Add a value; its number."""
        self.digests.append(digest)
        self.summaries.append(summary)
        self.kinds.append(kind)
        self.producers.append(producer)
        return len(self.digests) - 1

    def kinds_of(self, values: Sequence[int]) -> tuple[str, ...]:
        """Dtypes and shapes of values."""
        return tuple(self.kinds[each] if each >= 0 else "?" for each in values)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the trace to a file that `Trace.load` reads."""
        texts: dict[str, int] = {}

        def number(text: str) -> int:
            return texts.setdefault(text, len(texts))

        rows = [
            [number(e.name), number(e.module), number(e.line), number(e.arguments), e.step, e.phase,
             len(e.inputs), len(e.outputs)]
            for e in self.entries
        ]  # fmt: skip
        links = [value for e in self.entries for value in (*e.inputs, *e.outputs)]
        kinds = [number(each) for each in self.kinds]
        header = {"version": VERSION, "title": self.title, "about": self.about, "texts": list(texts)}
        with open(path, "wb") as file:  # savez would add a suffix to a name
            np.savez_compressed(
                file,
                header=np.frombuffer(json.dumps(header).encode(), np.uint8),
                entries=np.array(rows, np.int32).reshape(-1, 8),
                links=np.array(links, np.int32),
                digests=np.array(self.digests, np.uint64),
                summaries=np.array(self.summaries, np.float64).reshape(-1, WIDTH),
                kinds=np.array(kinds, np.int32),
                producers=np.array(self.producers, np.int32),
            )

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Trace:
        """The trace in a file. Nothing in the file is executed."""
        try:
            with np.load(path, allow_pickle=False) as file:
                parts = {name: file[name] for name in file.files}
            header = json.loads(parts["header"].tobytes().decode())
            texts, version = header["texts"], header["version"]
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(f"{os.fspath(path)} is not a trace that `flambeau compare` wrote: {error}") from None
        if version != VERSION:
            raise ValueError(f"{os.fspath(path)} is a trace of version {version}; this Flambeau reads {VERSION}")
        trace = cls(header["title"])
        trace.about = header["about"]
        links, start = parts["links"].tolist(), 0
        for name, module, line, arguments, step, phase, inputs, outputs in parts["entries"].tolist():
            middle, end = start + inputs, start + inputs + outputs
            read, made = tuple(links[start:middle]), tuple(links[middle:end])
            trace.entries.append(
                Entry(texts[name], texts[module], texts[line], texts[arguments], step, phase, read, made)
            )
            start = end
        trace.digests = parts["digests"].tolist()
        trace.summaries = list(parts["summaries"])
        trace.kinds = [texts[each] for each in parts["kinds"].tolist()]
        trace.producers = parts["producers"].tolist()
        return trace
