"""Models of timm and transformers with `torch.compile(model)` and nothing else, beside plain Flambeau and PyTorch.

python benchmarks/zoo.py
python benchmarks/zoo.py --only 'llama|timm' --how inference --quick
python benchmarks/zoo.py --threads 2

Training is the usual loop: loss, backward and optimizer are outside. Inference is under `no_grad`. Both run with and
without bfloat16 autocast. Each line says: how many programs, whether a call is one program, whether its results,
weights and random numbers have the bits of a plain call, the longest of the first calls, and the time of a step under
PyTorch, plain Flambeau and compiled Flambeau, which take turns. Reasons for breaks stand below it.

It needs timm and transformers, with what they depend on. The goal: one program each, none slower than plain.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import _measure
from _zoo.models import MODELS

_HOW = ("training", "inference")


class Child:
    """A process with one framework."""

    def __init__(self, framework: str, threads: int) -> None:
        command = [sys.executable, str(Path(__file__).parent / "_zoo" / "child.py"), framework, str(threads)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )

    def ask(self, **request: Any) -> Any:
        """Send a request; its answer."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        return json.loads(answer) if answer else {"error": "the process ended"}

    def end(self) -> None:
        """Let the process end."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def _line(
    children: dict[str, Child], name: str, how: str, autocast: bool, rounds: int, seconds: float
) -> dict[str, Any]:
    """What there is to say about a model."""
    started = {each: child.ask(start=[name, how, autocast]) for each, child in children.items()}
    found: dict[str, Any] = {"model": name, "how": how, "autocast": autocast, **started["flambeau"]}
    failed = {each: answer["error"] for each, answer in started.items() if "error" in answer}
    if failed:
        return {**found, "error": str(failed)}
    times: dict[str, list[float]] = {"PyTorch": [], "plain": [], "compiled": []}
    runs = [("PyTorch", "torch", "plain"), ("plain", "flambeau", "plain"), ("compiled", "flambeau", "compiled")]
    for number in range(rounds):
        for label, child, which in runs[number % 3 :] + runs[: number % 3]:
            times[label] += children[child].ask(run=which, seconds=seconds)
    return {**found, **{label: 1e3 * statistics.median(each) for label, each in times.items()}}


def _show(found: dict[str, Any]) -> None:
    name = f"{found['model']:20}{found['how']:10}{'autocast' if found['autocast'] else '':9}"
    if "error" in found:
        print(f"{name} failed: {found['error']}", flush=True)
        return
    times = [found[each] for each in ("PyTorch", "plain", "compiled")]
    print(
        f"{name}{found['programs']:5}{'yes' if found['whole'] else 'no':>6}{'yes' if found['same'] else 'NO':>6}"
        f"{found['first']:8.2f}{''.join([f'{each:10.2f}' for each in times])}"
        f"{times[1] / times[0]:8.2f}{times[2] / times[0]:8.2f}{times[2] / times[1]:8.2f}",
        *[f"    {each}" for each in found["reasons"]],
        sep="\n",
        flush=True,
    )


def main() -> int:
    parser = _measure.parser(__doc__ or "", "models whose names match")
    parser.add_argument("--how", choices=_HOW, help="training or inference alone")
    parser.add_argument("--autocast", choices=("on", "off"), help="with or without it alone")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    rounds, seconds = (2, 0.1) if options.quick else (6, 0.5)
    names = [each for each in MODELS if options.only.search(each) and find_spec(_library_of(each)) is not None]
    if not names:
        print("no such model, or neither timm nor transformers is installed")
        return 0
    children = {each: Child(each, options.threads) for each in ("torch", "flambeau")}
    headings = ("programs", "one", "same", "first s", "PyTorch", "plain", "compiled", "plain", "compiled", "of plain")
    print(f"{'milliseconds; ratios':39}{' '.join(headings)}")
    lines = []
    for name in names:
        for how in (options.how,) if options.how else _HOW:
            for autocast in [options.autocast == "on"] if options.autocast else [False, True]:
                lines.append(_line(children, name, how, autocast, rounds, seconds))
                _show(lines[-1])
    for child in children.values():
        child.end()
    whole = [each for each in lines if "error" not in each]
    _measure.print_summary({_label(each): each["compiled"] / each["PyTorch"] for each in whole}, "0.6")
    print(f"{sum([each['whole'] for each in whole])} of {len(lines)} lines are one program")
    _measure.write_json(options.json, {"zoo": lines})
    return int(not all(each.get("same") for each in lines))


def _library_of(model: str) -> str:
    return "timm" if model.startswith("timm ") else "transformers"


def _label(found: dict[str, Any]) -> str:
    return f"{found['model']} {found['how']}{' autocast' if found['autocast'] else ''}"


if __name__ == "__main__":
    sys.exit(main())
