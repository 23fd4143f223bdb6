"""Two runs side by side: which op was the first whose result differs by more than rounding explains?

    from flambeau.utils import compare

    with compare.record("run A") as trace:
        train()
    trace.save("a.trace")

    print(compare.traces("a.trace", "b.trace"))       # of two machines
    print(compare.functions(one_version, another))    # run here, and again for the tensors of what differs
    print(compare.scripts("old.py", "new.py"))        # in processes of their own; `flambeau compare old.py new.py`

A trace holds digests, not tensors. PyTorch has nothing of the kind.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from typing import Any

from ._comparison import Comparison
from ._evidence import Evidence, EvidenceOfRun
from ._float64 import Float64Recorder
from ._judge import Difference, judge
from ._recorder import Recorder
from ._scripts import MODES, scripts
from ._trace import Entry, Trace

__all__ = [
    "MODES", "Comparison", "Difference", "Entry", "Evidence", "Trace", "against_float64", "functions", "record",
    "scripts", "traces",
]  # fmt: skip


@contextlib.contextmanager
def record(title: str = "a run", *, steps: int | None = None) -> Iterator[Trace]:
    """A context that records the ops of this thread: gives the `Trace`, which is complete when the context is left.

    Args:
        title: what the trace is called in reports.
        steps: after so many steps of optimizers nothing more is recorded; None: everything is.

    >>> from flambeau.utils import compare
    >>> with compare.record() as trace:
    ...     _ = flambeau.ones(2, 3).exp().sum()
    >>> [entry.name for entry in trace.entries]
    ['full', 'exp', 'sum_all']
    """
    recorder = Recorder(title, steps=steps)
    with recorder:
        yield recorder.trace
    recorder.finish()


def traces(one: Trace | str | os.PathLike[str], other: Trace | str | os.PathLike[str]) -> Comparison:
    """Compare two traces, or files of traces.

    Where results differ without a difference of program or data, the size of the difference decides: there are no
    tensors to compute in float64 with.
    """
    first, second = (each if isinstance(each, Trace) else Trace.load(each) for each in (one, other))
    libraries = {str(each.about.get("library", "")).partition(" ")[0] for each in (first, second)}
    marks_only = len(libraries) > 1 or any(each.about.get("marks_only") for each in (first, second))
    return Comparison(first, second, judge(first, second, marks_only=marks_only))


def functions(
    one: Callable[[], Any], other: Callable[[], Any], *, titles: tuple[str, str] | None = None, steps: int | None = None
) -> Comparison:
    """Run two functions, each on the same random numbers, and find the first op at which they part.

    Each function is run twice where ops have to be looked at more closely, and must do the same each time: it makes its
    model and its data itself. The default generator has the same state before each run.

    Args:
        one, other: functions without arguments.
        titles: what the runs are called in reports; by default the functions' names.
        steps: after so many steps of optimizers nothing more is recorded; None: everything is.

    >>> from flambeau.utils import compare
    >>> x = flambeau.tensor([1.0, 2.0])
    >>> found = compare.functions(lambda: (x * 2).exp(), lambda: (x * 3).exp())
    >>> found.entry.name, found.first.kind
    ('mul', 'arguments')
    """
    from ...random import get_rng_state, set_rng_state

    state = get_rng_state()
    names = titles or (getattr(one, "__name__", "the first run"), getattr(other, "__name__", "the second run"))

    def run(function: Callable[[], Any], title: str, evidence: EvidenceOfRun | None = None) -> Recorder:
        set_rng_state(state)
        recorder = Recorder(title, steps=steps, evidence=evidence)
        with recorder:
            function()
        recorder.finish()
        return recorder

    first, second = run(one, names[0]).trace, run(other, names[1]).trace

    def asker(function: Callable[[], Any], trace: Trace) -> Callable[[list[int]], dict[int, Evidence]]:
        def ask(ops: list[int]) -> dict[int, Evidence]:
            evidence = EvidenceOfRun(ops, [value for each in ops for value in trace.entries[each].inputs])
            run(function, trace.title, evidence)
            return evidence.found

        return ask

    return Comparison(first, second, judge(first, second, ask_one=asker(one, first), ask_other=asker(other, second)))


def against_float64(function: Callable[[], Any], *, steps: int | None = None) -> Comparison:
    """Run a function with every op repeated in float64, from the start on: where does rounding become a difference?

    Random numbers, integers and decisions are those of the run itself. `Comparison.first` is the first op whose own
    error is above what rounding explains; the page shows how the error grows.
    """
    recorder = Float64Recorder(getattr(function, "__name__", "the run"), steps=steps)
    with recorder:
        function()
    recorder.finish()
    return Comparison(recorder.trace, recorder.reference, recorder.verdict())
