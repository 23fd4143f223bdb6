"""PyTorch's operator database under `vmap`: each sample on three examples at once, beside PyTorch on one after the
other.

    python -m tests.func.operators [--samples 10] [--only 'nn.functional.*'] [--update]

counts the entries that run without a loop, with one, and not at all, and shows what fails. `--update` writes
`tests/func/vmap_gaps.json`, the list of what fails and of what runs in a loop, which only becomes shorter.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import sys
import warnings
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import torch as pytorch

import flambeau
from flambeau.utils import _pytree
from tests.conformance.checks import arguments, text
from tests.conformance.compare import differences
from tests.conformance.entries import UNINITIALISED, Entry, entries
from tests.conformance.translate import Missing, translate
from tests.conformance.undetermined import settled

GAPS = Path(__file__).with_name("vmap_gaps.json")
EXAMPLES = 3
_RANDOM = "randomness error mode"


def other_examples(value: pytorch.Tensor, number: int, pivots: bool) -> pytorch.Tensor:
    """A tensor of the same kind with other elements."""
    value = value.detach()
    if number == 0 or "float8" in str(value.dtype):
        return value.clone()
    if value.dtype.is_floating_point or value.dtype.is_complex:
        return value * (0.5 if number == 1 else 1.25)
    return value.flip(-1) if value.dim() and number == 1 and not pivots else value.clone()


def _call(op: Any, leaves: list[Any], structure: Any, unflatten: Any) -> Any:
    args, kwargs = unflatten(leaves, structure)
    return op(*args, **kwargs)


def choices(leaves: list[Any]) -> Iterator[dict[int, int]]:
    """Which leaves have examples, and along which dimension: all along the first, then each along the last."""
    tensors = [
        i for i, each in enumerate(leaves) if isinstance(each, pytorch.Tensor) and each.layout is pytorch.strided
    ]
    if not tensors:
        return
    yield dict.fromkeys(tensors, 0)
    for number in tensors[:3]:
        yield {number: -1}


def check(entry: Entry, sample: Any) -> Iterator[tuple[str, str]]:
    """For each way to run a sample: "ok", "loop", "refused" or "fails", and what is to be said of it."""
    leaves, structure = pytorch.utils._pytree.tree_flatten(arguments(sample))
    for chosen in choices(leaves):
        examples: list[Any] = []
        expected: list[Any] = []
        for number in range(EXAMPLES):
            for attempt in (number, 0):
                given = [
                    other_examples(each, attempt, entry.name.startswith(("linalg", "lu_"))) if i in chosen else each
                    for i, each in enumerate(leaves)
                ]
                try:
                    result = _call(
                        entry.info.op,
                        [_copied(each) for each in given],
                        structure,
                        pytorch.utils._pytree.tree_unflatten,
                    )
                except Exception:
                    continue
                examples.append(given)
                expected.append((result, given))
                break
        if len(expected) < EXAMPLES:
            continue
        yield _outcome(entry, leaves, structure, chosen, examples, expected)


def _copied(value: Any) -> Any:
    return value.detach().clone() if isinstance(value, pytorch.Tensor) else value


def _tensor_leaves(result: Any) -> list[Any]:
    return pytorch.utils._pytree.tree_leaves(result) if isinstance(result, (tuple, list, dict)) else [result]


def _stacked(results: list[Any]) -> list[Any]:
    columns = list(zip(*[_tensor_leaves(each) for each in results], strict=True))
    return [pytorch.stack([each.detach() for each in column]) for column in columns]


def _outcome(
    entry: Entry, leaves: list[Any], structure: Any, chosen: dict[int, int], examples: list[Any], expected: list[Any]
) -> tuple[str, str]:
    name = entry.info.name
    where = f"in_dims {chosen} of {[list(each.shape) if isinstance(each, pytorch.Tensor) else each for each in leaves]}"
    try:
        stacked: Any = _stacked(
            [
                settled(name, result, *pytorch.utils._pytree.tree_unflatten(given, structure))
                for result, given in expected
            ]
        )
    except Exception:
        stacked = None  # sizes depend on the elements, or there are no tensors
    tensors = {
        i: translate(pytorch.stack([each[i] for each in examples], dim if leaves[i].dim() else 0))
        for i, dim in chosen.items()
    }
    rest = [None if i in chosen else translate(each) for i, each in enumerate(leaves)]
    our_structure = _pytree.tree_flatten(translate(pytorch.utils._pytree.tree_unflatten(leaves, structure)))[1]

    def run(*batched: Any) -> Any:
        given = list(rest)
        for i, each in zip(chosen, batched, strict=True):
            given[i] = each
        args, kwargs = _pytree.tree_unflatten(given, our_structure)
        result = entry.op(*args, **kwargs)
        return tuple(_pytree.tree_leaves(settled(name, result, args, kwargs)))

    dims = tuple(dim if leaves[i].dim() else 0 for i, dim in chosen.items())
    random = False
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            try:
                actual = flambeau.func.vmap(run, dims)(*tensors.values())
            except RuntimeError as error:
                if _RANDOM not in str(error):
                    raise
                random = True
                actual = flambeau.func.vmap(run, dims, randomness="different")(*tensors.values())
        except Missing as error:
            return "fails", f"{text(error)} {where}"
        except Exception as error:
            refused = stacked is None or _pytorch_refuses(entry, leaves, structure, chosen, examples)
            return ("refused" if refused else "fails"), f"{text(error)} {where}"
    if stacked is None:
        return "fails", f"does not refuse {where}"
    if random or name in UNINITIALISED:
        found = next(
            (
                f"shape {a.shape}, not {e.shape}"
                for a, e in zip(actual, stacked, strict=True)
                if tuple(a.shape) != tuple(e.shape)
            ),
            None,
        )
    elif len(actual) != len(stacked):
        found = f"{len(actual)} results, not {len(stacked)}"
    else:
        found = next(
            differences(stacked, [each.resolve_conj() for each in actual], entry.tolerance(pytorch.float64)), None
        )
    if found is not None:
        return "fails", f"{found} {where}"
    slow = sorted(
        {
            str(each.message).split("batching rule for ")[1].split(":")[0]
            for each in said
            if "batching rule for" in str(each.message)
        }
    )
    return ("loop", " ".join(slow)) if slow else ("ok", "")


def _pytorch_refuses(
    entry: Entry, leaves: list[Any], structure: Any, chosen: dict[int, int], examples: list[Any]
) -> bool:
    """Whether PyTorch's own `vmap` raises an error."""

    def run(*batched: Any) -> Any:
        given = list(leaves)
        for i, each in zip(chosen, batched, strict=True):
            given[i] = each
        return _call(entry.info.op, given, structure, pytorch.utils._pytree.tree_unflatten)

    try:
        pytorch.vmap(run)(*[pytorch.stack([each[i] for each in examples]) for i in chosen])
    except Exception:
        return True
    return False


def entry_outcome(entry: Entry, samples: int) -> tuple[str, str]:
    """The worst outcome of an entry's first samples."""
    if not entry.dtypes:
        return "none", "no dtype on the CPU"
    dtype = pytorch.float64 if pytorch.float64 in entry.dtypes else entry.main_dtype
    seen: dict[str, str] = {}
    for sample in islice(entry.samples(dtype), samples):
        for kind, detail in check(entry, sample):
            seen.setdefault(kind, detail)
            if kind == "fails":
                return kind, detail
    for kind in ("loop", "ok", "refused"):
        if kind in seen:
            return kind, seen[kind]
    return "none", "no tensors"


def gaps() -> dict[str, tuple[str, str]]:
    """The entries that fail or run in a loop: what they do, and why."""
    return {name: (kind, reason) for name, (kind, reason) in json.loads(GAPS.read_text()).items()}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=10)
    parser.add_argument("--only", default="*")
    parser.add_argument("--update", action="store_true")
    options = parser.parse_args()
    counts: dict[str, int] = {}
    found: dict[str, tuple[str, str]] = {}
    for entry in entries():
        if not fnmatch.fnmatch(entry.name, options.only):
            continue
        kind, detail = entry_outcome(entry, options.samples)
        counts[kind] = counts.get(kind, 0) + 1
        if kind in ("fails", "loop"):
            found[entry.name] = kind, detail[:160]
            print(f"{kind:7} {entry.name}: {detail}", flush=True)
    print(counts)
    if options.update:
        GAPS.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
