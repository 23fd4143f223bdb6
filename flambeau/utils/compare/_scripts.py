"""Two scripts, or one in two ways, in processes of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ._comparison import Comparison
from ._digest import relative_difference
from ._evidence import Evidence, load_evidence
from ._float64 import verdict_of
from ._judge import JUMP, ROUNDING, Difference, Verdict, epsilon_of, judge
from ._trace import Trace

MODES = ("plain", "compiled", "cuda", "pytorch", "float64")
"""How a script is run: as it is, with its `torch.compile` in force, with CUDA as default device, under PyTorch, or
with every op repeated in float64."""

_ROOT = Path(__file__).parents[3]


def run_script(
    script: str, arguments: Sequence[str], folder: Path, *, mode: str = "plain", title: str = "",
    steps: int | None = None, evidence: tuple[list[int], list[int]] | None = None, marks_only: bool = False,
) -> tuple[Trace, dict[int, Evidence], Trace | None]:  # fmt: skip
    """Run a script in a process of its own; gives its trace, evidence, and the trace of the run in float64."""
    options: dict[str, Any] = {
        "script": os.path.abspath(script),
        "arguments": list(arguments),
        "mode": mode,
        "title": title or os.path.basename(script),
        "steps": steps,
        "evidence": evidence,
        "marks_only": marks_only,
        "folder": str(folder),
    }
    environment = dict(os.environ)
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, [str(_ROOT), environment.get("PYTHONPATH")]))
    command = [sys.executable, "-m", "flambeau.utils.compare._child", json.dumps(options)]
    status = subprocess.run(command, env=environment, check=False).returncode
    if status:
        raise RuntimeError(f"{script} ended with exit code {status} ({mode}); what it said stands above")
    trace = Trace.load(folder / "trace")
    found = load_evidence(folder / "evidence") if evidence is not None else {}
    reference = Trace.load(folder / "reference") if mode == "float64" else None
    return trace, found, reference


def scripts(
    one: str, other: str | None = None, *, mode: str = "plain", arguments: Sequence[str] = (), steps: int | None = None
) -> Comparison:
    """Run two scripts, or one script in two ways, and find the first op at which they part.

    Args:
        one: the first script. `import torch` gives Flambeau in it.
        other: the second script; None: the same one, in another `mode`.
        mode: how the second run is made: "plain", "compiled" (functions that the script gives to `torch.compile` are
            compiled, and not in the first run), "cuda" (made on the GPU by default), "pytorch" (by PyTorch, where it
            is installed), "float64" (every op of the first run is repeated in float64).
        arguments: arguments of both scripts.
        steps: after so many steps of optimizers nothing more is recorded; None: everything is.
    """
    if mode not in MODES:
        raise ValueError(f"mode must be one of {', '.join(MODES)}, but got {mode!r}")
    second = other or one
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if mode == "float64":
            trace, _, reference = run_script(one, arguments, folder, mode=mode, steps=steps)
            assert reference is not None
            return Comparison(trace, reference, verdict_of(trace, reference))
        marks_only = mode in ("compiled", "pytorch")
        titles = os.path.basename(one), os.path.basename(second)
        if other is None:
            titles = (*titles[:1], f"{titles[1]} ({mode})")
        eager = "eager" if mode == "compiled" else "plain"

        def asker(script: str, trace: Trace, how: str) -> Callable[[list[int]], dict[int, Evidence]]:
            def ask(ops: list[int]) -> dict[int, Evidence]:
                values = [value for each in ops for value in trace.entries[each].inputs]
                evidence = (ops, values)
                return run_script(
                    script, arguments, folder, mode=how, title=trace.title, steps=steps, evidence=evidence
                )[1]

            return ask

        given: dict[str, Any] = {"steps": steps, "marks_only": mode == "compiled"}
        first = run_script(one, arguments, folder, mode=eager, title=titles[0], **given)[0]
        then = run_script(second, arguments, folder, mode=mode, title=titles[1], **given)[0]
        if mode == "pytorch" and not len(then):
            raise RuntimeError(
                f"{second} ran nothing by PyTorch. Let it say `import torch`, which is Flambeau in the first run and "
                "PyTorch in the second; `import flambeau` is Flambeau in both"
            )
        ask = (None, None) if marks_only else (asker(one, first, eager), asker(second, then, mode))
        verdict = judge(first, then, marks_only=marks_only, ask_one=ask[0], ask_other=ask[1])
        # A device runs some steps as other ops: then results of modules are compared, as between libraries.
        runs_otherwise = mode == "cuda" and verdict.first is not None and verdict.first.kind == "program"
        if mode == "pytorch" or runs_otherwise:
            _, _, reference = run_script(one, arguments, folder, mode="float64", steps=steps)
            assert reference is not None
            verdict = _between_libraries(first, then, reference)
        return Comparison(first, then, verdict)


def _between_libraries(ours: Trace, theirs: Trace, reference: Trace) -> Verdict:
    """The first module or gradient at which one library is much further from float64 than the other."""
    verdict = judge(ours, theirs, marks_only=True)
    rough, verdict.first = verdict.first, None
    verdict.rounded.clear()
    if len(reference) != len(ours):  # the run in float64 decided something else on its way
        verdict.first = rough
        return verdict
    for position, (i, j) in enumerate(verdict.pairs):
        if not verdict.sizes[position]:
            continue
        outputs = ours.entries[i].outputs, theirs.entries[j].outputs, reference.entries[i].outputs
        for a, b, wide in zip(*outputs, strict=False):
            mine = relative_difference(ours.summaries[a], reference.summaries[wide])
            other = relative_difference(theirs.summaries[b], reference.summaries[wide])
            larger, smaller = max(mine, other), min(mine, other)
            if larger > ROUNDING / 2 * epsilon_of(ours.kinds[a]) and larger > JUMP * smaller:
                side = "the first" if mine > other else "the second"
                reason = f"against float64, {side} run is much further off than the other"
                verdict.first = Difference("result", i, j, reason, verdict.sizes[position], (mine, other))
                return verdict
        verdict.rounded.append(position)
    return verdict
