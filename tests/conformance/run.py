"""Runs the checks of an entry and counts their outcomes."""

from __future__ import annotations

import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from itertools import islice
from typing import Any

import torch as pytorch

from . import checks, gradients, states
from .entries import Entry
from .translate import Missing

Report = dict[str, dict[str, Any]]
"""aspect -> {"checked": samples, "failed": how many of them, "examples": the first few differences}"""

_IN_MAIN_DTYPE: dict[str, checks.Check] = {
    "noncontiguous": checks.noncontiguous,
    "strides": checks.strides,
    "method": checks.method,
    "inplace": checks.inplace,
    "out": checks.out,
    "meta": checks.meta,
    "errors": checks.errors,
}
_IN_DOUBLE: dict[str, checks.Check] = {
    "gradient": gradients.gradient,
    "second gradient": gradients.second_gradient,
    "forward mode": gradients.forward_mode,
}
_KEPT = 3
_OTHERWISE_IN_ONEDNN = ("torch._scaled_mm", "torch._scaled_mm_v2")
"""What PyTorch gives to oneDNN on processors with AMX alone: it stores the largest float8 there in place of NaN."""


def short(dtype: pytorch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def aspects(entry: Entry) -> Iterator[tuple[str, checks.Check, pytorch.dtype]]:
    """Everything that is checked for an entry."""
    if not entry.dtypes:
        return
    main = entry.main_dtype
    for dtype in entry.dtypes:
        yield f"values {short(dtype)}", checks.values, dtype
    for name, check in _IN_MAIN_DTYPE.items():
        yield name, check, main
    for dtype in entry.gradient_dtypes:
        for name, check in _IN_DOUBLE.items():
            yield f"{name} {short(dtype)}", check, dtype


def state_aspects(entry: Entry) -> Iterator[tuple[str, checks.Check, pytorch.dtype]]:
    """What is checked for an entry in further states: transforms, modes, compilers."""
    if not entry.dtypes:
        return
    for name, check in states.IN_MAIN_DTYPE.items():
        yield name, check, entry.main_dtype
    if pytorch.float64 in entry.gradient_dtypes:
        for name, check in states.IN_DOUBLE.items():
            yield name, check, pytorch.float64


@contextmanager
def _without_onednn() -> Iterator[None]:
    """A context in which PyTorch does not use oneDNN. Its own, `backends.mkldnn.flags`, warns of another setting."""
    before = pytorch._C._get_mkldnn_enabled()
    pytorch._C._set_mkldnn_enabled(False)
    try:
        yield
    finally:
        pytorch._C._set_mkldnn_enabled(before)


def examine(
    entry: Entry, limit: int | None = None, only: str | tuple[str, ...] = "", in_states: bool = False
) -> Report:
    """The report of an entry; at most `limit` samples for each aspect, and only aspects that begin with `only`."""
    report: Report = {}
    for aspect, check, dtype in state_aspects(entry) if in_states else aspects(entry):
        if aspect.startswith(only):
            began = time.perf_counter()
            is_other = entry.name in _OTHERWISE_IN_ONEDNN
            with _without_onednn() if is_other else nullcontext():
                report[aspect] = _count(check, entry, dtype, limit)
            report[aspect]["seconds"] = round(time.perf_counter() - began, 2)
    return report


def _count(check: checks.Check, entry: Entry, dtype: pytorch.dtype, limit: int | None) -> dict[str, Any]:
    checked = failed = 0
    examples: list[str] = []
    try:
        for outcome in islice(check(entry, dtype), limit):
            checked += 1
            if outcome is not None:
                failed += 1
                examples.append(outcome)
    except Missing as missing:
        checked, failed, examples = checked + 1, failed + 1, [*examples[: _KEPT - 1], f"missing: {missing}"]
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        examples = [*examples[: _KEPT - 1], f"{checks.text(error)} at {where.name}:{where.lineno}"]
        checked, failed = checked + 1, failed + 1
    return {"checked": checked, "failed": failed, "examples": examples[:_KEPT]}
