"""PyTorch's operator database under `compile`: each sample compiled, with other elements too, equal to the bit.

`python -m tests.compiler.operators` examines all entries and prints what differs, and how many samples are compiled;
with `--device simulated` on the CUDA backend with simulated memory, with `--device cuda` on a GPU.
"""

from __future__ import annotations

import argparse
import copy
import itertools
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import torch as pytorch

import flambeau
from flambeau.compiler._compiled import Compiled

from ..conformance.checks import translated
from ..conformance.entries import UNINITIALISED, Entry, entries
from ..conformance.foreign import STANDS, on_device


class Outcome(NamedTuple):
    """What became of one sample."""

    programs: int
    reason: str
    different: str


def tensors_in(value: Any) -> list[Any]:
    if isinstance(value, flambeau.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    return [found for each in value for found in tensors_in(each)] if isinstance(value, (list, tuple)) else []


def with_other_elements(given: Any) -> Any:
    """The same arguments with the elements of each tensor in the opposite order."""
    changed = copy.deepcopy(given)
    for each in tensors_in(changed):
        array = each._array
        if type(array) is np.ndarray and array.ndim and array.flags.writeable and 0 not in array.strides:
            array[...] = array.reshape(-1)[::-1].reshape(array.shape).copy()
    return changed


def bits(value: Any) -> Any:
    if isinstance(value, flambeau.Tensor):
        array = getattr(value.detach().cpu() if value.is_cuda else value, "_array", None)
        if not isinstance(array, np.ndarray):
            return repr(value)
        content = np.ascontiguousarray(array).tobytes()
        return str(value.dtype), tuple(value.shape), value.stride(), value.requires_grad, content
    if isinstance(value, (list, tuple)):
        return [bits(each) for each in value]
    return {key: bits(each) for key, each in value.items()} if isinstance(value, dict) else repr(value)


def outcome_of(function: Any, given: Any) -> Any:
    """The bits of the results, of the gradients, and of the arguments, which may have changed."""
    args, kwargs = copy.deepcopy(given)
    flambeau.manual_seed(0)
    try:
        result = function(*args, **kwargs)
        found = bits(result)
        total = sum([each.abs().sum() for each in tensors_in(result) if each.requires_grad and not each.is_sparse])
        if isinstance(total, flambeau.Tensor):
            total.backward()
    except Exception as error:
        return type(error).__name__
    given_back = tensors_in((args, kwargs))
    gradients = [each.grad for each in given_back if each.is_leaf]
    return found, bits(given_back), bits(gradients)


def examined() -> list[Entry]:
    """The entries whose results can be compared."""
    return [each for each in entries() if each.dtypes and each.name not in UNINITIALISED]


def examine(entry: Entry, limit: int | None, requires_grad: bool, device: str = "cpu") -> Iterator[Outcome]:
    """What becomes of the samples of an entry."""
    dtype = entry.main_dtype
    needs = requires_grad and entry.info.supports_autograd and dtype is pytorch.float32
    for sample in itertools.islice(entry.samples(dtype, needs), limit):
        given = translated(sample)
        other = with_other_elements(given)
        if device != "cpu":
            given, other = (on_device(each, {}, device) for each in (given, other))
        op = entry.op
        compiled = Compiled(lambda *args, **kwargs: op(*args, **kwargs))  # noqa: B023  (it is called at once)
        different = ""
        plain = [outcome_of(op, each) for each in (given, other)]
        for turn, each in enumerate([given] * 4 + [other, given]):
            expected, found = plain[each is other], outcome_of(compiled, each)
            if expected != found and outcome_of(op, each) == expected:
                where = "other elements" if each is other else f"turn {turn}"
                different = f"{where}: {str(expected)[:150]} is not {str(found)[:150]}"
                break
        yield Outcome(len(compiled.programs), compiled.reasons[-1] if compiled.reasons else "", different)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=None, help="so many of each entry; all unless given")
    parser.add_argument("--part", default="0/1", help="i/n: every n-th entry, from the i-th on")
    parser.add_argument("--gradients", action="store_true")
    parser.add_argument("--device", choices=("cpu", "cuda", "simulated"), default="cpu")
    parser.add_argument("names", nargs="*", help="entries whose names contain one of these; all unless given")
    options = parser.parse_args()
    first, step = map(int, options.part.split("/"))
    device = "cpu" if options.device == "cpu" else STANDS[options.device]().device
    whys: dict[str, int] = {}
    samples = compiled = wrong = 0
    for entry in examined()[first::step]:
        if options.names and not any(each in entry.name for each in options.names):
            continue
        try:
            for each in examine(entry, options.samples, options.gradients, device):
                samples, compiled, wrong = samples + 1, compiled + bool(each.programs), wrong + bool(each.different)
                if each.different:
                    print(f"{entry.name}: {each.different}", flush=True)
                elif not each.programs:
                    why = each.reason.partition(" (/")[0]
                    whys[why] = whys.get(why, 0) + 1
                    if options.names:
                        print(entry.name, each.reason)
        except Exception as error:
            print(f"{entry.name}: cannot be examined: {error!r}"[:200], flush=True)
    print(f"{samples} samples, {compiled} compiled, {wrong} wrong")
    for why, count in sorted(whys.items(), key=lambda each: -each[1]):
        print(f"{count:6} {why}")
    return int(wrong > 0)


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        raise SystemExit(main())
