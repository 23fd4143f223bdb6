"""Runs users' programs under PyTorch and under Flambeau, and compares everything that they return.

With a GPU both use it. On the simulated device Flambeau uses that, PyTorch the CPU; programs that ask `torch.cuda`
itself are compared there with what PyTorch gave on a GPU (`user_programs/answers.json`, written by `--record`).
"""

from __future__ import annotations

import fnmatch
import json
import time
import traceback
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import torch as pytorch

import flambeau

from .user_programs import PROGRAMS, Program

ANSWERS = Path(__file__).with_name("user_programs") / "answers.json"
TOLERANCES = {
    "float64": 1e-8,
    "complex128": 1e-8,
    "float32": 1e-4,
    "complex64": 1e-4,
    "float16": 5e-3,
    "bfloat16": 3e-2,
}
_KEPT = 48
"""How many elements of a tensor the recorded answers have."""


def plain(torch: Any, value: Any) -> Any:
    """What a program returned as lists, numbers and text: a tensor is its dtype, shape, layout and elements."""
    if isinstance(value, torch.Tensor):
        tensor, layout = value.detach(), str(value.layout)
        if layout != "torch.strided":
            tensor = tensor.to_dense()
        dtype, tensor = str(tensor.dtype).removeprefix("torch."), tensor.cpu().resolve_conj().resolve_neg()
        kind = (
            torch.complex128 if tensor.is_complex() else torch.float64 if tensor.is_floating_point() else tensor.dtype
        )
        numbers = tensor.to(kind).numpy().reshape(-1)
        if numbers.dtype.kind == "c":
            numbers = numbers.view(np.float64)
        return {"dtype": dtype, "shape": list(value.shape), "layout": layout, "numbers": numbers.astype(np.float64)}
    if isinstance(value, dict):
        return [[str(name), plain(torch, value[name])] for name in sorted(value)]
    if isinstance(value, (list, tuple)):
        return [plain(torch, each) for each in value]
    return value if isinstance(value, (bool, int, float, str)) or value is None else str(value)


def difference(want: Any, found: Any, accuracy: str = "", where: str = "") -> str | None:
    """The first place where two plain results differ by more than the tolerance of their dtype."""
    if isinstance(want, dict) and isinstance(found, dict):
        for key in ("dtype", "shape", "layout"):
            if want[key] != found[key]:
                return f"{where}: {key} {found[key]} in place of {want[key]}"
        theirs, ours = want["numbers"], found["numbers"][: len(want["numbers"])]
        tolerance = TOLERANCES.get(accuracy if accuracy and want["dtype"] in TOLERANCES else want["dtype"], 0.0)
        if not np.allclose(ours, theirs, tolerance, tolerance, equal_nan=True):
            return f"{where}: off by {np.nanmax(np.abs(ours - theirs)):.3g}"
        return None
    if isinstance(want, list) and isinstance(found, list):
        if len(want) != len(found):
            return f"{where}: {len(found)} results in place of {len(want)}"
        places = (difference(*pair, accuracy, f"{where}[{n}]") for n, pair in enumerate(zip(want, found, strict=True)))
        return next((each for each in places if each is not None), None)
    if isinstance(want, float) and isinstance(found, float):
        return None if np.isclose(found, want, 1e-4, 1e-6, equal_nan=True) else f"{where}: {found} in place of {want}"
    return None if type(want) is type(found) and want == found else f"{where}: {found!r} in place of {want!r}"


def outcome(torch: Any, program: Program, device: str) -> Any:
    """What a program returns in plain form, or the error that stopped it."""
    torch.manual_seed(0)
    before = torch.backends.cudnn.allow_tf32
    torch.backends.cudnn.allow_tf32 = False  # one of the programs is about it
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return plain(torch, program.run(torch, device))
    except Exception as error:
        steps = traceback.extract_tb(error.__traceback__)
        text = str(error).split("\n")[0][:160]
        return f"raised {type(error).__name__}: {text} ({Path(steps[-1].filename).name}:{steps[-1].lineno})"
    finally:
        torch.backends.cudnn.allow_tf32 = before


def _shortened(value: Any) -> Any:
    """A plain result as it is recorded: the first elements of each tensor."""
    if isinstance(value, dict):
        return {**value, "numbers": [float(f"{each:.9g}") for each in value["numbers"][:_KEPT]]}
    return [_shortened(each) for each in value] if isinstance(value, list) else value


def differs(program: Program, answers: dict[str, Any], has_gpu: bool) -> str | None:
    """What a program gives otherwise under Flambeau than under PyTorch; its answer is put into `answers`."""
    if has_gpu or not program.asks_device:
        answers[program.name] = outcome(pytorch, program, "cuda" if has_gpu else "cpu")
    want = answers.get(program.name)
    if isinstance(want, str):
        return f"under PyTorch: {want}"
    found = outcome(flambeau, program, "cuda")
    if isinstance(found, str):
        return f"under Flambeau: {found}"
    return "PyTorch's answer is not recorded" if want is None else difference(want, found, program.accuracy)


def chosen(patterns: list[str], simulated: bool) -> list[Program]:
    """The programs whose names or kinds match, those that start processes last; a simulated device has not all."""
    return [
        each
        for each in sorted(PROGRAMS.values(), key=lambda each: each.starts_processes)
        if not (simulated and each.needs_gpu)
        and (not patterns or any(fnmatch.fnmatch(word, one) for one in patterns for word in (each.name, each.kind)))
    ]


def main(patterns: list[str], simulated: bool, record: str | None) -> int:
    """The command: a table with a line for each program, and the counts by kind."""
    answers: dict[str, Any] = json.loads(ANSWERS.read_text()) if ANSWERS.exists() and simulated else {}
    agreed, wrong = Counter[str](), Counter[str]()
    for each in chosen(patterns, simulated):
        began = time.monotonic()
        found = differs(each, answers, not simulated)
        (agreed if found is None else wrong)[each.kind] += 1
        print(f"{each.kind:16} {each.name:44} {time.monotonic() - began:5.1f} s  {found or 'agrees'}", flush=True)
    for kind in sorted(agreed | wrong):
        print(f"{kind:16} {agreed[kind]} of {agreed[kind] + wrong[kind]} agree")
    print(f"{agreed.total()} of {agreed.total() + wrong.total()} programs agree with PyTorch {pytorch.__version__}")
    if record is not None:
        kept = {name: _shortened(each) for name, each in answers.items() if PROGRAMS[name].asks_device}
        lines = [f" {json.dumps(name)}: {json.dumps(each)}" for name, each in sorted(kept.items())]
        Path(record).write_text("{\n" + ",\n".join(lines) + "\n}\n")
    return int(wrong.total() > 0)
