"""Models of timm, of transformers and of no library with `torch.compile(model)` and nothing else, beside plain Flambeau
and PyTorch.

python benchmarks/zoo.py
python benchmarks/zoo.py --only 'llama|timm' --how inference --quick
python benchmarks/zoo.py --threads 16
python benchmarks/zoo.py --device cuda --autocast on --pytorch-compiled
python benchmarks/zoo.py --eager --threads 2
python benchmarks/zoo.py --eager --processor-time
python benchmarks/zoo.py --large --eager --threads 16
python benchmarks/zoo.py --counts

Training is the usual loop: loss, backward and optimizer are outside. Inference is under `no_grad`. Both run with and
without bfloat16 autocast. Models of text get other tokens in each of eight steps. Each line says: how many programs,
whether a call is one program, whether its results, weights and random numbers have the bits of a plain call, the
longest of the first calls, and the time of a step under PyTorch, plain Flambeau and compiled Flambeau, which take
turns. Reasons for breaks stand below it. With `--eager` nothing is compiled; with `--pytorch-compiled` PyTorch's
compiler takes part, too; `--processor-time` counts the time of processors instead of that of a clock; with `--large`
models have the sizes that they are published with. On a GPU, how long the host takes to start a step and the most
memory follow for each. Geometric means stand at the end.

Models of libraries that are not installed are left out. The goal: one program each, none slower than plain.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import _measure
from _zoo.large import LARGE
from _zoo.models import MODELS
from _zoo.networks import NETWORKS

_HOW = ("training", "inference")
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
_RUNS = {
    "PyTorch": ("torch", "plain"),
    "PyTorch compiled": ("torch", "compiled"),
    "plain": ("flambeau", "plain"),
    "compiled": ("flambeau", "compiled"),
}
"""What is timed: in which process, and which of its cases."""


class Child:
    """A process with one framework, begun anew where it has ended."""

    def __init__(self, framework: str, threads: int, device: str, clock: str = "perf_counter") -> None:
        path = str(Path(__file__).parent / "_zoo" / "child.py")
        self._command = [sys.executable, path, framework, str(threads), device, clock]
        self._environment = {**os.environ, **dict.fromkeys(_THREADS, str(threads))}
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 (open as long as there is a process)
        self._begin()

    def _begin(self) -> None:
        self._process = subprocess.Popen(
            self._command,
            env=self._environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
        )

    def ask(self, **request: Any) -> Any:
        """Send a request; its answer."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if answer:
            return json.loads(answer)
        self.end()
        self._errors.seek(0)
        error = f"the process ended with {self._process.returncode}: {self._errors.read()[-300:]}"
        self._begin()
        return {"error": error}

    def end(self) -> None:
        """Let the process end."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def _line(children: dict[str, Child], wanted: tuple[str, str, bool], options: argparse.Namespace) -> dict[str, Any]:
    """What there is to say about a model."""
    compiles = {"torch": options.pytorch_compiled, "flambeau": not options.eager}
    if options.counts:
        answer = children["flambeau"].ask(start=wanted, compile=True)
        return {**dict(zip(("model", "how", "autocast"), wanted, strict=True)), **answer, "memory": {}, "host": {}}
    started = {each: child.ask(start=wanted, compile=compiles[each]) for each, child in children.items()}
    found: dict[str, Any] = {**dict(zip(("model", "how", "autocast"), wanted, strict=True)), **started["flambeau"]}
    failed = {each: answer["error"] for each, answer in started.items() if "error" in answer}
    if failed:
        return {**found, "error": str(failed)}
    rounds, seconds = (2, 0.1) if options.quick else (6, 0.5)
    runs = {label: run for label, run in _RUNS.items() if run[1] == "plain" or compiles[run[0]]}
    times: dict[str, list[float]] = {label: [] for label in runs}
    memory: dict[str, float] = {}
    host: dict[str, list[float]] = {}
    for number in range(rounds):
        order = [*runs.items()]
        for label, (child, which) in order[number % len(runs) :] + order[: number % len(runs)]:
            answer = children[child].ask(run=which, seconds=seconds)
            if "error" in answer:
                return {**found, "error": f"{label}: {answer['error']}"}
            times[label] += answer["times"]
            if answer["memory"] is not None:
                memory[label] = answer["memory"]
                host.setdefault(label, []).extend(answer["host"])
    medians = {label: 1e3 * statistics.median(each) for label, each in times.items()}
    on_host = {label: 1e3 * statistics.median(each) for label, each in host.items()}
    return {**found, **medians, "memory": memory, "host": on_host}


def _show(found: dict[str, Any]) -> None:
    name = f"{found['model']:22}{found['how']:10}{'autocast' if found['autocast'] else '':9}"
    if "error" in found:
        print(f"{name} failed: {found['error']}", flush=True)
        return
    whole = ""
    if "programs" in found:
        whole = f"{found['programs']:5}{'yes' if found['whole'] else 'no':>5}{'yes' if found['same'] else 'NO':>5}"
    print(
        f"{name}{whole:15}{found['first']:8.2f}"
        f"{''.join([f'{found[each]:10.2f}' if each in found else ' ' * 10 for each in _RUNS])}"
        f"{''.join([f'{ratio:9.2f}' for _, ratio in _ratios(found)])}"
        f"{'' if not found['host'] else '   host ' + ', '.join([f'{each:.1f}' for each in found['host'].values()])}"
        f"{'' if not found['memory'] else '   MB ' + ', '.join([f'{each:.0f}' for each in found['memory'].values()])}",
        *[f"    {each}" for each in found.get("reasons", ())],
        sep="\n",
        flush=True,
    )


_RATIOS = (("plain", "PyTorch"), ("compiled", "PyTorch"), ("compiled", "PyTorch compiled"), ("compiled", "plain"))


def _ratios(found: dict[str, Any]) -> Iterator[tuple[str, float]]:
    """The ratios of a line, by what they compare."""
    for one, other in _RATIOS:
        if one in found and other in found:
            yield f"{one} / {other}", found[one] / found[other]


def _summary(lines: list[dict[str, Any]]) -> None:
    """Print geometric means, of all lines and by how models are called, and counts."""
    done = [each for each in lines if "error" not in each]
    by_call: dict[str, dict[str, list[float]]] = {}
    for each in done:
        call = f"{each['how']}{', autocast' if each['autocast'] else ''}"
        for label, ratio in _ratios(each):
            by_call.setdefault(label, {}).setdefault(call, []).append(ratio)
    for label, calls in by_call.items():
        every = [ratio for ratios in calls.values() for ratio in ratios]
        parts = "; ".join([f"{call} {_measure.geometric_mean(ratios):.3f}" for call, ratios in calls.items()])
        print(f"geometric mean of {label}: {_measure.geometric_mean(every):.3f} of {len(every)} lines ({parts})")
    compiled = [each for each in done if "programs" in each]
    if compiled:
        print(
            f"{sum([each['whole'] for each in compiled])} of {len(lines)} lines are one program, "
            f"{sum([each['same'] for each in compiled])} have the bits of plain calls, "
            f"{sum([each.get('compiled', 0) > each.get('plain', 0) for each in compiled])} take longer than plain"
        )
    print(f"{len({each['model'] for each in lines})} models, {len(lines) - len(done)} of {len(lines)} lines failed")


def _options() -> argparse.Namespace:
    parser = _measure.parser(__doc__ or "", "models whose names match")
    parser.add_argument("--how", choices=_HOW, help="training or inference alone")
    parser.add_argument("--autocast", choices=("on", "off"), help="with or without it alone")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--processor-time", action="store_true", help="of all threads: for a machine that others use")
    parser.add_argument("--large", action="store_true", help="models as large as they are published, and no others")
    parser.add_argument("--eager", action="store_true", help="compile nothing: plain Flambeau beside PyTorch")
    parser.add_argument("--pytorch-compiled", action="store_true", help="PyTorch's compiler, too")
    parser.add_argument("--counts", action="store_true", help="programs, breaks and bits alone: nothing is timed")
    return parser.parse_args()


def main() -> int:
    options = _options()
    models = LARGE if options.large else MODELS
    names = [each for each in models if options.only.search(each) and find_spec(_library_of(each)) is not None]
    if not names:
        print("no such model, or neither timm nor transformers is installed")
        return 0
    clock = "process_time" if options.processor_time else "perf_counter"
    frameworks = ("torch", "flambeau")[options.counts :]
    children = {each: Child(each, options.threads, options.device, clock) for each in frameworks}
    print(f"{'milliseconds; ratios':41}programs, one, same, first s, {', '.join(_RUNS)}", end="; ")
    print(", ".join([f"{one} / {other}" for one, other in _RATIOS]))
    lines = []
    for name in names:
        for how in (options.how,) if options.how else _HOW:
            for autocast in [options.autocast == "on"] if options.autocast else [False, True]:
                lines.append(_line(children, (name, how, autocast), options))
                _show(lines[-1])
    for child in children.values():
        child.end()
    _summary(lines)
    _measure.write_json(options.json, {"zoo": lines})
    return int(any("error" in each or not each.get("same", True) for each in lines))


def _library_of(model: str) -> str:
    if model in NETWORKS:
        return "torch"
    return "timm" if model.startswith("timm ") else "transformers"


if __name__ == "__main__":
    sys.exit(main())
