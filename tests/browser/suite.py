"""The part of the suite that runs in the browser: recorded calls and small programs, compared with recorded results.

PyTorch is not needed here: `recording.py` has written down what it gives.
"""

from __future__ import annotations

import functools
import math
import pickle
import time
import traceback
from typing import Any

import numpy as np

TOLERANCES = {"bfloat16": (1e-3, 1.6e-2), "float16": (1e-3, 2e-3), "float64": (1e-7, 1e-7), "complex128": (1e-7, 1e-7)}
"""Absolute and relative, by the name of a dtype; the others have those of float32."""


def recorded(value: Any, package: Any) -> Any:
    """A value without tensors: tensors and dtypes of a package become tuples with a mark."""
    if isinstance(value, package.Tensor):
        name = str(value.dtype).removeprefix("torch.")
        value = value.detach().resolve_conj().resolve_neg()
        if name == "bfloat16":
            return "tensor", name, value.contiguous().view(package.int16).numpy().copy()
        return "tensor", name, value.contiguous().numpy().copy()
    if isinstance(value, package.dtype):
        return "dtype", str(value).removeprefix("torch."), None
    if isinstance(value, (tuple, list)):
        return (
            type(value)(recorded(each, package) for each in value)
            if type(value) in (tuple, list)
            else tuple(recorded(each, package) for each in value)
        )
    if isinstance(value, dict):
        return {key: recorded(each, package) for key, each in value.items()}
    if (
        isinstance(value, slice)
        or value is Ellipsis
        or value is None
        or isinstance(value, (bool, int, float, complex, str))
    ):
        return value
    raise ValueError(f"cannot be recorded: {type(value).__name__}")


def restored(value: Any, package: Any) -> Any:
    """What `recorded` was given, with tensors of a package."""
    if type(value) is tuple and len(value) == 3 and value[0] == "tensor":
        tensor = package.from_numpy(value[2].copy())
        return tensor.view(package.bfloat16) if value[1] == "bfloat16" else tensor
    if type(value) is tuple and len(value) == 3 and value[0] == "dtype":
        return getattr(package, value[1])
    if type(value) in (tuple, list):
        return type(value)(restored(each, package) for each in value)
    if type(value) is dict:
        return {key: restored(each, package) for key, each in value.items()}
    return value


def different(found: Any, expected: Any) -> str | None:
    """Where two recorded results differ; None: they agree."""
    if type(expected) is tuple and len(expected) == 3 and expected[0] == "tensor":
        if type(found) is not tuple or found[:2] != expected[:2]:
            return f"{found!r:.80}, not {expected[:2]}"
        return _different_numbers(found[2], expected[2], expected[1])
    if type(expected) in (tuple, list):
        if not isinstance(found, (tuple, list)) or len(found) != len(expected):
            return f"{found!r:.80}, not {len(expected)} results"
        return next(filter(None, map(different, found, expected)), None)
    if isinstance(expected, float) and isinstance(found, float):
        same = math.isclose(found, expected, rel_tol=1e-5, abs_tol=1e-5) or (found != found and expected != expected)
        return None if same else f"{found}, not {expected}"
    return None if found == expected else f"{found!r:.80}, not {expected!r:.80}"


def _different_numbers(found: Any, expected: Any, name: str) -> str | None:
    if found.shape != expected.shape:
        return f"shape {found.shape}, not {expected.shape}"
    if name == "bfloat16":
        found, expected = ((each.astype(np.uint32) << 16).view(np.float32) for each in (found, expected))
    absolute, relative = TOLERANCES.get(name, (1e-5, 1e-5) if expected.dtype.kind in "fc" else (0, 0))
    if expected.dtype.kind not in "fc":
        return None if np.array_equal(found, expected) else f"{found.ravel()[:3]}, not {expected.ravel()[:3]}"
    same = np.isclose(found, expected, relative, absolute, equal_nan=True)
    return None if same.all() else f"{found[~same][:3]}, not {expected[~same][:3]}"


def run_case(case: Any, package: Any) -> str | None:
    """Run a recorded call; what is wrong with its result, None if nothing is."""
    path, args, kwargs, expected = case
    function = functools.reduce(getattr, path.split("."), package)
    package.manual_seed(42)
    return different(recorded(function(*restored(args, package), **restored(kwargs, package)), package), expected)


def run(file: str) -> dict[str, Any]:
    """Run everything in a file of records; counts, failures and seconds."""
    began = time.perf_counter()
    import flambeau

    imported = time.perf_counter() - began
    from tests.support.small_programs import PROGRAMS

    with open(file, "rb") as stream:
        records = pickle.load(stream)
    failures = []
    counts = {"calls": len(records["cases"]), "programs": len(PROGRAMS)}
    for case in records["cases"]:
        print(case[0])  # the last line tells which call never returned
        try:
            wrong = run_case(case, flambeau)
        except Exception:
            wrong = traceback.format_exc(limit=-2)
        if wrong:
            failures.append(f"{case[0]}: {wrong}")
    for name, program in PROGRAMS.items():
        try:
            expected = records["programs"][name]
            wrong = _different_lists(program(flambeau), expected, 1e-2 if "bfloat16" in name else 1e-4)
        except Exception:
            wrong = traceback.format_exc(limit=-3)
        if wrong:
            failures.append(f"program {name}: {wrong}")
    for name, check in ABSENT.items():
        counts["absent"] = counts.get("absent", 0) + 1
        try:
            wrong = check(flambeau)
        except Exception:
            wrong = traceback.format_exc(limit=-3)
        if wrong:
            failures.append(f"absent {name}: {wrong}")
    seconds = time.perf_counter() - began
    return {"counts": counts, "failures": failures, "seconds": round(seconds, 1), "import": round(imported, 2)}


def _different_lists(found: Any, expected: Any, places: float) -> str | None:
    if isinstance(expected, (list, tuple)):
        if len(found) != len(expected):
            return f"{len(found)} values, not {len(expected)}"
        pairs = zip(found, expected, strict=True)
        return next(filter(None, (_different_lists(*each, places) for each in pairs)), None)
    if isinstance(expected, float):
        near = abs(found - expected) <= places * (1 + abs(expected))
        return None if near or (found != found and expected != expected) else f"{found}, not {expected}"
    return None if found == expected else f"{found!r}, not {expected!r}"


def _refusal(words: str, call: Any) -> str | None:
    """None if a call is refused with these words, in one sentence, or works."""
    try:
        call()
    except Exception as error:
        text = str(error)
        return None if words in text else f"{type(error).__name__}: {text}"
    return None


def _worker_processes(package: Any) -> str | None:
    dataset = package.utils.data.TensorDataset(package.arange(4.0))
    return _refusal("num_workers=0", lambda: list(package.utils.data.DataLoader(dataset, num_workers=2)))


def _process_groups(package: Any) -> str | None:
    def start() -> None:
        package.distributed.init_process_group("gloo", init_method="tcp://127.0.0.1:29511", rank=0, world_size=2)

    return _refusal("browser", start)


def _spawn(package: Any) -> str | None:
    return _refusal("browser", lambda: package.multiprocessing.spawn(print, nprocs=1))


ABSENT = {"worker processes": _worker_processes, "process groups": _process_groups, "spawn": _spawn}
"""What the browser does not have: a call says so."""
