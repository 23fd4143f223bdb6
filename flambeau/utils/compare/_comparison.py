"""`Comparison`: two runs side by side, as text, as a small program and as a page."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from ._evidence import Evidence, literal
from ._judge import Difference, Verdict
from ._page import page
from ._trace import PHASES, Entry, Trace

_SHOWN = 5
_MOST_NOTES = 8


class Comparison:
    """What two runs have in common, and the first op at which they part."""

    def __init__(self, one: Trace, other: Trace, verdict: Verdict) -> None:
        self.one, self.other = one, other
        self._verdict = verdict

    @property
    def first(self) -> Difference | None:
        """The first op whose result differs by more than rounding explains; None: there is none."""
        return self._verdict.first

    @property
    def entry(self) -> Entry | None:
        """The first op that differs: its name, module and line."""
        first = self._verdict.first
        if first is None:
            return None
        if first.one is not None:
            return self.one.entries[first.one]
        return self.other.entries[first.other] if first.other is not None else None

    def __bool__(self) -> bool:
        return self.first is not None

    def __str__(self) -> str:
        return "\n".join(self._lines())

    __repr__ = __str__

    def _lines(self) -> list[str]:
        first, verdict = self.first, self._verdict
        ops = sum(not self.one.entries[i].is_mark for i, _ in verdict.pairs)
        common = f"{ops} ops" if ops else f"{len(verdict.pairs)} results"
        lines = [f"{self.one.title} and {self.other.title}: {common} in common"]
        rounded = [i for i in (verdict.pairs[each][0] for each in verdict.rounded) if not self.one.entries[i].is_mark]
        if rounded:
            where = self.one.entries[min(rounded)]
            lines.append(f"{len(rounded)} of them differ as rounding lets them, first {describe(where)}")
        if first is None:
            alone = len(self._alone(self.one, 0, len(self.one))) + len(self._alone(self.other, 1, len(self.other)))
            alone = alone if ops else 0
            more = f"; {alone} ops are in one run only" if alone else ""
            if not verdict.pairs:
                return [*lines, f"nothing was compared{more}"]
            lines.append(f"no op differs by more than rounding explains{more}")
            return lines + self._notes()
        entry = self.entry
        assert entry is not None
        lines.append(f"the first difference: {describe(entry)}")
        lines.append(f"  {first.reason}")
        if first.size:
            lines.append(f"  relative difference about {first.size:.1e}")
        if first.errors is not None:
            lines.append(f"  relative error against float64: {first.errors[0]:.1e} and {first.errors[1]:.1e}")
        lines += [f"  {each}" for each in self.elements()]
        return lines + self._notes()

    def _notes(self) -> list[str]:
        """Ops before the difference that only one run has."""
        first = self.first
        if all(self.one.entries[i].is_mark for i, _ in self._verdict.pairs):  # ops were not compared
            return []
        ends = (len(self.one), len(self.other)) if first is None else self._ends(first)
        found = []
        for number, (trace, end) in enumerate(((self.one, ends[0]), (self.other, ends[1]))):
            alone = self._alone(trace, number, end)
            found += [f"  {describe(trace.entries[each])}, in {trace.title}" for each in alone]
        if not found:
            return []
        more = [f"  and {len(found) - _MOST_NOTES} more"] if len(found) > _MOST_NOTES else []
        return ["ops until there that only one run has:", *found[:_MOST_NOTES], *more]

    def _ends(self, first: Difference) -> tuple[int, int]:
        """Up to which entries of both traces the runs are compared."""
        ends = [first.one, first.other]
        for number in (0, 1):
            if ends[number] is None:
                mine = ends[1 - number]
                before = [pair for pair in self._verdict.pairs if mine is not None and pair[1 - number] < mine]
                ends[number] = before[-1][number] + 1 if before else 0
        return ends[0] or 0, ends[1] or 0

    def _alone(self, trace: Trace, side: int, end: int) -> list[int]:
        paired = {pair[side] for pair in self._verdict.pairs}
        return [each for each in range(end) if each not in paired and not trace.entries[each].is_mark]

    def elements(self) -> list[str]:
        """Elements of the results that differ most, of both runs and in float64, where they were kept."""
        first = self.first
        ours, theirs = (None, None) if first is None else first.evidence
        if ours is None or theirs is None:
            return []
        lines = []
        for number, (one, other) in enumerate(zip(ours.outputs, theirs.outputs, strict=False)):
            if one.shape != other.shape or one.dtype.kind not in "fciub":
                continue
            with np.errstate(all="ignore"):
                apart = np.abs(one.astype(np.complex128) - other.astype(np.complex128)).reshape(-1)
            for place in np.argsort(-np.nan_to_num(apart, nan=np.inf))[:_SHOWN]:
                if apart[place] == 0:
                    break
                where = tuple(int(each) for each in np.unravel_index(place, one.shape))
                exact = _exact_element(ours, number, where)
                lines.append(f"result {number} at {list(where)}: {one[where]!s} and {other[where]!s}{exact}")
        return lines

    def program(self, folder: str | os.PathLike[str] = ".") -> str:
        """A program that shows the difference alone; tensors that are large are written to `folder`."""
        first = self.first
        entry = self.entry
        if first is None or entry is None:
            return ""
        lines = [
            f'"""{describe(entry)}: {first.reason}."""',
            "",
            "import numpy as np",
            "",
            "import flambeau as torch",
            "",
        ]
        for name, evidence in zip(("one", "other"), first.evidence, strict=True):
            if evidence is None:
                continue
            inside = [f"x{number} = {text}" for number, text in _sources(name, evidence, Path(folder))]
            lines += [f"# the {'first' if name == 'one' else 'second'} run", *inside, f"print({evidence.call})"]
            lines += [f"# it made {_shortened(each)}" for each in evidence.outputs[:2]]
            lines += [f"# in float64 {_shortened(each)}" for each in (evidence.exact or [])[:2]]
            lines.append("")
        if first.evidence == (None, None):
            lines.append("# no tensors were kept: compare two programs, not two files, to have them")
        return "\n".join(lines)

    def page(self) -> str:
        """One HTML page that needs nothing else."""
        return page(self.one, self.other, self._verdict, str(self), self.program() if self.first else "")

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page to a file."""
        Path(path).write_text(self.page(), encoding="utf-8")


def describe(entry: Entry) -> str:
    """An entry in words: the op, its module, the user's line."""
    parts = [entry.name if not entry.is_mark else f"{entry.name} {entry.module}"]
    if entry.module and not entry.is_mark:
        parts.append(f"in {entry.module}")
    where = "" if entry.phase == 0 else f" ({PHASES[entry.phase]})"
    parts.append(f"of step {entry.step}{where}")
    if entry.line:
        parts.append(f"at {entry.line}")
    return " ".join(parts)


def _exact_element(evidence: Evidence, number: int, where: tuple[int, ...]) -> str:
    if evidence.exact is None or number >= len(evidence.exact) or evidence.exact[number].ndim != len(where):
        return ""
    return f"; in float64 {evidence.exact[number][where]!s}"


def _sources(name: str, evidence: Evidence, folder: Path) -> list[tuple[int, str]]:
    found = []
    for number, array in enumerate(evidence.inputs):
        text = None if array is None else literal(array)
        if text is None and array is not None:
            file = folder / f"difference-{name}-{number}.npy"
            text = f"torch.from_numpy(np.load({file.name!r}))"
            if folder != Path("."):
                np.save(file, array)
        found.append((number, text or "...  # not known"))
    return found


def _shortened(array: Any) -> str:
    return " ".join(np.array2string(array.reshape(-1)[:8], precision=9, separator=", ").split())
