"""Records what PyTorch gives for calls of its operator database and for small programs, in a file.

A call is kept if Flambeau agrees here, without the optional packages that the browser does not have.
"""

from __future__ import annotations

import functools
import json
import pickle
import sys
import warnings
from pathlib import Path
from typing import Any

from tests.support.missing_packages_plugin import hide

hide("ml_dtypes,llvmlite,onednn")

import torch as pytorch  # noqa: E402

import flambeau  # noqa: E402
from tests.conformance.entries import UNINITIALISED, Entry, entries  # noqa: E402
from tests.support.small_programs import PROGRAMS  # noqa: E402

from .suite import recorded, run_case  # noqa: E402

SAMPLES = {"float32": 3, "int64": 1, "bool": 1, "complex64": 1, "bfloat16": 1}
"""Dtypes, and how many samples of an entry are recorded in each."""
LARGEST = 4096
"""Samples with more elements are left out."""


def _size(value: Any) -> int:
    if isinstance(value, pytorch.Tensor):
        return value.numel()
    if isinstance(value, (tuple, list)):
        return sum(map(_size, value))
    return 0


def _sample(entry: Entry, sample: Any) -> Any:
    path = entry.info.name
    function = functools.reduce(getattr, path.split("."), pytorch)
    args = (sample.input, *sample.args)
    given = recorded(args, pytorch), recorded(sample.kwargs, pytorch)
    pytorch.manual_seed(42)
    return path, *given, recorded(function(*args, **sample.kwargs), pytorch)


def cases(entry: Entry) -> Any:
    """Calls of an entry that can be recorded."""
    if entry.info.variant_test_name or entry.name in UNINITIALISED:
        return
    for name, count in SAMPLES.items():
        dtype = getattr(pytorch, name)
        if dtype not in entry.dtypes:
            continue
        for number, sample in enumerate(entry.samples(dtype)):
            if number == count:
                break
            if _size((sample.input, *sample.args, *sample.kwargs.values())) <= LARGEST:
                yield sample


def main() -> None:
    """Record all, and say how much was left out."""
    kept: list[Any] = []
    left_out: dict[str, list[str]] = {"cannot be recorded": [], "differs here": []}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for entry in entries():
            for sample in cases(entry):
                try:
                    case = _sample(entry, sample)
                except Exception:  # no function of that name, arguments of other classes
                    left_out["cannot be recorded"].append(entry.name)
                    continue
                try:
                    wrong = run_case(case, flambeau)
                except Exception as error:
                    wrong = repr(error)
                if wrong:
                    left_out["differs here"].append(f"{entry.name}: {wrong:.200}")
                else:
                    kept.append(case)
        programs = {name: json.loads(json.dumps(program(pytorch))) for name, program in PROGRAMS.items()}
    Path(sys.argv[1]).write_bytes(pickle.dumps({"cases": kept, "programs": programs}))
    counts = ", ".join(f"{len(found)} {why} ({len(set(found))})" for why, found in left_out.items())
    print(f"{len(kept)} calls of {len({case[0] for case in kept})} entries, {len(programs)} programs; {counts}")
    if "-v" in sys.argv:
        print("\n".join(left_out["differs here"]))


if __name__ == "__main__":
    main()
