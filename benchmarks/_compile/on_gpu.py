"""Whole training steps on a GPU: PyTorch eager and compiled, Flambeau eager and compiled, in bursts that take turns."""

from __future__ import annotations

import gc
import re
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import _measure
from _train_steps.cuda import WORKLOADS, Workload, burst

from .fresh_on_gpu import run_fresh

GOALS = {"GPT-2": 0.8, "ResNet-18": 0.9, "MLP": 0.1}
"""Of PyTorch's eager times."""

_NAMES = re.compile("ResNet|GPT-2|Llama|LSTM|convnet|MLP")
_HEADINGS = ("PyTorch", "compiled", "Flambeau", "compiled", "eager", "compiled")


def compare(only: re.Pattern[str], quick: bool, with_torch_compile: bool) -> int:
    """Print milliseconds of each, and Flambeau's to PyTorch's eager ones; 1 if results differ."""
    torch, flambeau = _measure.load("torch"), _measure.load("flambeau")
    print(f"{'milliseconds; ratios':44}{''.join([f'{each:>11}' for each in _HEADINGS])}", flush=True)
    differs = False
    for workload in _chosen(only):
        differs |= _line(torch, flambeau, workload, quick, with_torch_compile)
        gc.collect()
        for each in (torch, flambeau):
            each.compiler.reset()
            each.cuda.empty_cache()
    return int(differs)


def _chosen(only: re.Pattern[str]) -> list[Workload]:
    steps = (each for each in WORKLOADS if _NAMES.match(each.name) and not each.name.endswith("captured"))
    return [each for each in steps if only.search(each.name)]


def first_calls(only: re.Pattern[str]) -> int:
    """Print seconds of first calls, without and with kernels on disk, and peaks of the device's memory: what is in use,
    and what is taken from the device eagerly and compiled."""
    headings = ("no cache, s", "cache, s", "eager, s", "eager, MB", "first, MB", "later, MB", "taken, MB", "taken, MB")
    print(f"{'the longest of the first calls; memory':44}{''.join([f'{each:>12}' for each in headings])}", flush=True)
    for workload in _chosen(only):
        with tempfile.TemporaryDirectory() as folder:
            runs = [run_fresh(workload.name, compiled, Path(folder)) for compiled in (True, True, False)]
        _, cached, eager = runs
        seconds = "".join([f"{each.longest:12.2f}" for each in runs])
        peaks = max(eager.first, eager.later), cached.first, cached.later, eager.reserved, cached.reserved
        print(f"{workload.name:44}{seconds}{''.join([f'{each:12.0f}' for each in peaks])}", flush=True)
    return 0


def _line(torch: Any, flambeau: Any, workload: Workload, quick: bool, with_torch_compile: bool) -> bool:
    steps = [(torch, workload.build(torch)), (flambeau, workload.build(flambeau))]
    compiled = flambeau.compile(workload.build(flambeau))
    steps.append((flambeau, compiled))
    if with_torch_compile:
        steps.append((torch, torch.compile(workload.build(torch))))
    for _ in range(7):  # the fourth call is a program, the seventh a graph
        results = [float(step().detach().float().mean()) for _, step in steps]
    spread = max(results) - min(results)
    if not spread <= workload.tolerance * max(abs(results[0]), 1e-3):
        print(f"{workload.name:44} the results differ: {results}", flush=True)
        return True
    bursts = [partial(burst, step, framework.cuda.synchronize) for framework, step in steps]
    times = [each.median / 1e3 for each in _measure.alternate_bursts(bursts, *((5, 0.1) if quick else (9, 0.3)))]
    theirs = f"{times[3]:11.3f}" if with_torch_compile else f"{'-':>11}"
    goal = next((f"   goal {ratio}" for name, ratio in GOALS.items() if workload.name.startswith(name)), "")
    print(
        f"{workload.name:44}{times[0]:11.3f}{theirs}{times[1]:11.3f}{times[2]:11.3f}{times[1] / times[0]:11.2f}"
        f"{times[2] / times[0]:11.2f}{goal}",
        flush=True,
    )
    return False
