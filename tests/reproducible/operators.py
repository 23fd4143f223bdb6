"""PyTorch's operator database with several numbers of threads: which entries give the same bits?

Each entry runs with its first samples, and with the same samples repeated to tens of thousands of elements, so that
threads share the work; results and gradients are compared bit by bit.
"""

from __future__ import annotations

import contextlib
import fnmatch
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch as pytorch

import flambeau
from tests.conformance.checks import SEED, translated
from tests.conformance.compare import tensors_in
from tests.conformance.entries import Entry, entries

THREADS = (1, 2, 3, 7)
SAMPLES = 2
LARGE = 60_000


def held(entry: Entry, level: str | None) -> str | None:
    """Whether an entry gives the same bits for each number of threads; else what differs, or None if nothing ran."""
    ran = False
    before = flambeau.get_num_threads()
    try:
        for sample in _samples(entry):
            for grown in (False, True):
                found = [_bits(entry, sample, grown, level, threads) for threads in THREADS]
                if None in found:
                    continue
                ran = True
                for threads, bits in zip(THREADS, found, strict=True):
                    if bits != found[0]:
                        return f"{threads} threads, {'large' if grown else 'small'}"
    finally:
        flambeau.set_num_threads(before)
    return "" if ran else None


def _samples(entry: Entry) -> Iterator[Any]:
    dtype = entry.main_dtype if entry.dtypes else None
    if dtype is None:
        return
    needs_grad = bool(entry.info.supports_autograd) and dtype.is_floating_point
    with contextlib.suppress(Exception):  # an entry that cannot make its samples has none
        for number, sample in enumerate(entry.samples(dtype, requires_grad=needs_grad)):
            if number == SAMPLES:
                return
            yield sample


def _bits(entry: Entry, sample: Any, grown: bool, level: str | None, threads: int) -> list[bytes] | None:
    """The bits of results and gradients; None: the call is refused, or does not take larger tensors."""
    flambeau.set_num_threads(threads)
    flambeau.manual_seed(SEED)
    with warnings.catch_warnings(), _at(level):
        warnings.simplefilter("ignore")
        try:
            args, kwargs = translated(sample)
            if grown:
                args, kwargs = _repeated(args), _repeated(kwargs)
            given = [each for each in tensors_in((args, kwargs)) if each.requires_grad]
            results = tensors_in(entry.op(*args, **kwargs))
            recorded = [each for each in results if each.requires_grad]
            gradients: Any = ()
            if recorded and given:
                weights = [flambeau.ones_like(each) * 0.37 for each in recorded]
                gradients = flambeau.autograd.grad(recorded, given, weights, allow_unused=True)
            return [
                np.ascontiguousarray(each.detach().resolve_conj()._array).tobytes()
                for each in (*results, *gradients)
                if each is not None
            ]
        except Exception:  # larger tensors do not fit every op
            return None


def _at(level: str | None) -> Any:
    return contextlib.nullcontext() if level is None else flambeau.reproducible(level)


def _repeated(value: Any) -> Any:
    """A value with its tensors repeated along their first dimension until they are large."""
    if isinstance(value, flambeau.Tensor):
        if value.dim() == 0 or not value.numel():
            return value
        times = max(1, LARGE // value.numel())
        larger = value.detach().repeat(times, *[1] * (value.dim() - 1))
        return larger.requires_grad_(value.requires_grad)
    if isinstance(value, (list, tuple)) and type(value) in (list, tuple):
        return type(value)(_repeated(each) for each in value)
    if type(value) is dict:
        return {key: _repeated(each) for key, each in value.items()}
    return value


def survey(pattern: str = "*", report: Callable[[str], object] = print) -> dict[str, dict[str, str]]:
    """For each level the entries that do not hold, with what differs; and the number of those that do."""
    found: dict[str, dict[str, str]] = {"none": {}, "threads": {}}
    counts = {"none": 0, "threads": 0}
    assert pytorch is not None
    for entry in entries():
        if not fnmatch.fnmatch(entry.name, pattern):
            continue
        for level, differing in found.items():
            what = held(entry, None if level == "none" else level)
            if what:
                differing[entry.name] = what
                report(f"{entry.name} at {level}: {what}")
            elif what is not None:
                counts[level] += 1
    for level, count in counts.items():
        found[level]["entries that hold"] = str(count)
    return found
