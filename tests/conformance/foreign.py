"""The operator database on the device that stands in for a GPU: every sample runs there and on the CPU.

The kernels are NumPy's on both, so results must agree as far as the order of additions allows, and be on the device.
"""

from __future__ import annotations

import fnmatch
import json
import time
import traceback
import warnings
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch as pytorch

import flambeau
from flambeau._backends.tiers import numpy_only
from tests.support.foreign import DEVICE, ForeignArray, Refused, install_foreign_device

from .checks import SEED, text, translated
from .entries import UNINITIALISED, Entry, entries
from .translate import Missing

KNOWN = Path(__file__).parent / "foreign_gaps.json"
"""The entries that do not pass, with reasons; the list only becomes shorter."""

_TOLERANCES = {"f": 1e-5, "c": 1e-5}


def known_gaps() -> dict[str, str]:
    return json.loads(KNOWN.read_text())  # type: ignore[no-any-return]


def on_device(value: Any, moved: dict[int, Any]) -> Any:
    """`value` with its tensors, and the devices that it names, on the device; tensors that are one stay one."""
    if isinstance(value, flambeau.Tensor):
        if id(value) not in moved:
            moved[id(value)] = value.detach().to(DEVICE).requires_grad_(value.requires_grad), value
        return moved[id(value)][0]
    if isinstance(value, flambeau.device) or value == "cpu":
        return flambeau.device(DEVICE) if str(value) == "cpu" else value
    if isinstance(value, (list, tuple)):
        items = [on_device(each, moved) for each in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    if isinstance(value, dict):
        return {name: on_device(each, moved) for name, each in value.items()}
    if isinstance(value, flambeau.nn.Module):
        return value.to(DEVICE)
    return value


def outcomes(entry: Entry, dtype: pytorch.dtype) -> Iterator[str | None]:
    """For each sample None where the device does as the CPU does, else what differs."""
    for sample in entry.samples(dtype):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield _outcome(entry, sample)


def _outcome(entry: Entry, sample: Any) -> str | None:
    args, kwargs = translated(sample)
    with numpy_only():
        expected, refusal = _run(entry, args, kwargs)
    args, kwargs = translated(sample)  # the first call may have changed its arguments
    memory: dict[int, Any] = {}
    try:
        args, kwargs = on_device(args, memory), on_device(kwargs, memory)
    except Exception as error:
        return _place(error)
    actual, error = _run(entry, args, kwargs)
    if refusal is not None:
        return None if isinstance(error, type(refusal)) else f"{error!r} in place of {refusal!r}"
    if error is not None:
        return _place(error)
    try:
        return _difference(expected, actual, entry.info.name in UNINITIALISED)
    except Refused as error:
        return _place(error)


def _run(entry: Entry, args: Any, kwargs: Any) -> tuple[Any, Exception | None]:
    flambeau.manual_seed(SEED)
    try:
        return entry.op(*args, **kwargs), None
    except Missing:
        raise
    except Exception as error:
        return None, error


def _place(error: Exception) -> str:
    """An error and the line of the package where it came from."""
    steps = [step for step in traceback.extract_tb(error.__traceback__) if "/flambeau/" in step.filename]
    where = f"{steps[-1].filename.rpartition('/flambeau/')[2]}:{steps[-1].lineno}" if steps else "outside"
    return f"{text(error)} at {where}"


def _difference(expected: Any, actual: Any, only_shapes: bool) -> str | None:
    if isinstance(expected, flambeau.Tensor):
        if not isinstance(actual, flambeau.Tensor):
            return f"a {type(actual).__name__} in place of a tensor"
        return _tensors_differ(expected, actual, only_shapes)
    if isinstance(expected, (list, tuple)):
        if len(expected) != len(actual):
            return f"{len(actual)} results in place of {len(expected)}"
        pairs = zip(expected, actual, strict=True)
        return next((found for a, b in pairs if (found := _difference(a, b, only_shapes)) is not None), None)
    if isinstance(expected, (flambeau.device, str)) or type(expected).__module__ != "builtins":
        return None
    return None if expected == actual or expected != expected else f"{actual!r} in place of {expected!r}"


def _tensors_differ(expected: Any, actual: Any, only_shapes: bool) -> str | None:
    if actual.layout is not flambeau.strided:
        expected, actual = expected.to_dense(), actual.to_dense()
    if (actual.device.type == DEVICE) != (type(actual._array) is ForeignArray):
        return f"a {type(actual._array).__name__} in a tensor on {actual.device}"
    if (expected.shape, expected.dtype) != (actual.shape, actual.dtype):
        return f"{actual.shape}, {actual.dtype} in place of {expected.shape}, {expected.dtype}"
    if expected.device.type == "meta" or only_shapes:
        return None
    ours, theirs = (each.detach().cpu().resolve_conj().resolve_neg()._array for each in (actual, expected))
    tolerance = _TOLERANCES.get(ours.dtype.kind)
    if tolerance is None:
        same = np.array_equal(ours, theirs)
    else:
        same = np.allclose(ours, theirs, tolerance, tolerance, equal_nan=True)
    return None if same else "other numbers"


def examine(entry: Entry, limit: int | None = None) -> list[str]:
    """What differs, in the first `limit` samples of an entry."""
    install_foreign_device()
    if not entry.dtypes:
        return []
    try:
        return [each for each in islice(outcomes(entry, entry.main_dtype), limit) if each is not None]
    except Missing as missing:
        return [f"missing: {missing}"]


def main(patterns: list[str] | None, limit: int | None) -> int:
    """The command: all entries, or those whose names match; 0 where exactly the listed ones fail."""
    began = time.monotonic()
    chosen = [
        entry for entry in entries() if not patterns or any(fnmatch.fnmatch(entry.name, each) for each in patterns)
    ]
    known = known_gaps()
    passed = surprises = 0
    for entry in chosen:
        found = examine(entry, limit)
        passed += not found
        if bool(found) is not (entry.name in known) and (found or limit is None):
            surprises += 1
            print(f"{entry.name}: {found[0] if found else 'passes now: take it off the list'}", flush=True)
    print(f"{passed} of {len(chosen)} entries pass on the foreign device, {time.monotonic() - began:.0f} s")
    return int(surprises > 0)
