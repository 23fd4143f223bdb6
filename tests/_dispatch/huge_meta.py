"""PyTorch's operator database on meta tensors of absurd sizes, as a program: what ends it ends no test run.

    python -m tests._dispatch.huge_meta --pytorch 'nn.functional.*pool*'

Each line of its output is an entry with what is wrong: a call that takes more than a second of processor time, one that
asks for much memory and, with `--pytorch`, other shapes than PyTorch's, or a refusal of what PyTorch takes. The line of
an entry that ends the program is missing.
"""

from __future__ import annotations

import fnmatch
import json
import math
import resource
import signal
import sys
import warnings
from itertools import islice
from typing import Any

import torch as pytorch

import flambeau

from ..conformance.checks import arguments
from ..conformance.entries import Entry, entries
from ..conformance.translate import translate

_SAMPLES = 2
_SECONDS = 1.0
_BYTES = 1 << 30
"""Of addresses, beyond those that the libraries take."""
_MOST = 1 << 24
"""The largest factor: the products of two sizes are still sizes."""
_ELEMENTS = 1 << 55
"""Of the largest tensor, about: its bytes still have a number."""
_LISTS = ("split", "unsafe_split", "unbind", "unbind_copy")
"""Entries that return as many tensors as a dimension is long: these get shorter ones."""
_REFUSALS = (NotImplementedError, RuntimeError, ValueError, IndexError, TypeError, AssertionError)


def _factor(tensors: list[Any], most: int) -> int:
    """By how much every size of some tensors can grow, those of 1 excepted."""
    found = most
    for each in tensors:
        sizes = [size for size in each.shape if size > 1]
        if sizes:
            found = min(found, int((_ELEMENTS / math.prod(sizes)) ** (1 / len(sizes))))
    return max(found, 1)


def _tensors(value: Any, kind: Any) -> list[Any]:
    if isinstance(value, kind):
        return [value]
    if isinstance(value, dict):
        return _tensors(list(value.values()), kind)
    return [each for item in value for each in _tensors(item, kind)] if isinstance(value, (list, tuple)) else []


def enlarged(sample: Any, most: int = _MOST) -> Any:
    """A sample of the database with meta tensors whose sizes have all grown by one factor; None: it has no tensors."""
    tensors = _tensors(list(arguments(sample)), pytorch.Tensor)
    if not tensors or any(each.layout is not pytorch.strided or each.is_nested for each in tensors):
        return None
    factor = _factor(tensors, most)

    def grown(value: Any) -> Any:
        if not isinstance(value, pytorch.Tensor):
            return value
        sizes = [size if size < 2 else size * factor for size in value.shape]
        return pytorch.empty(sizes, dtype=value.dtype, device="meta")

    return sample.transform(grown)


class TooLong(BaseException):
    """A call has taken its time."""


def _stop(*args: Any) -> None:
    raise TooLong


def _shapes(value: Any) -> list[Any]:
    return [tuple(each.shape) for each in _tensors(value, (pytorch.Tensor, flambeau.Tensor))]


def complaint(entry: Entry, sample: Any, with_pytorch: bool) -> str | None:
    """What is wrong with Flambeau's answer to a sample; a refusal is wrong where PyTorch answers."""
    args, kwargs = translate(arguments(sample))
    signal.setitimer(signal.ITIMER_VIRTUAL, _SECONDS)
    try:
        found: Any = _shapes(entry.op(*args, **kwargs))
    except TooLong:
        return f"takes long: {_shapes(list(args))}"
    except MemoryError:
        return f"takes memory: {_shapes(list(args))}"
    except _REFUSALS as error:
        found = f"{type(error).__name__}: {str(error)[:150]}"
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    if "OutOfMemoryError" in found:
        return f"takes memory: {_shapes(list(args))}"
    return _difference(entry, sample, found) if with_pytorch else None


def _difference(entry: Entry, sample: Any, found: Any) -> str | None:
    args, kwargs = arguments(sample)
    signal.setitimer(signal.ITIMER_VIRTUAL, 10 * _SECONDS)
    try:
        expected = _shapes(entry.info.op(*args, **kwargs))
    except (Exception, TooLong):
        return None  # whatever stops PyTorch
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    return None if found == expected else f"{_shapes(list(args))}: {found}, PyTorch {expected}"


def main(given: list[str]) -> None:
    """Print a line for each entry."""
    warnings.simplefilter("ignore")
    with_pytorch = "--pytorch" in given
    patterns = [each for each in given if each != "--pytorch"] or ["*"]
    chosen = [each for each in entries() if each.dtypes and any(fnmatch.fnmatch(each.name, one) for one in patterns)]
    with open("/proc/self/statm") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + _BYTES, used + _BYTES))
    signal.signal(signal.SIGVTALRM, _stop)
    flambeau.ops.aten.relu(
        flambeau.empty(1, device="meta")
    )  # the first operator loads all families: no cost of a shape
    for entry in chosen:
        most = 1 << 10 if entry.name in _LISTS else _MOST
        samples = [enlarged(each, most) for each in islice(entry.samples(entry.main_dtype), _SAMPLES)]
        found = [complaint(entry, each, with_pytorch) for each in samples if each is not None]
        print(json.dumps([entry.name, [each for each in found if each]]), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
