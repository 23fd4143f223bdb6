"""`python -m tests.reproducible.machine found.json`: digests of PyTorch's operator database at "machine".

Each run is of one tier and one processor, as the environment says (`FLAMBEAU_GENERATED=0`, `FLAMBEAU_PROCESSOR`); files
of several runs are compared by `python -m tests.reproducible.machine --compare a.json b.json`. A run stops after some
time, and goes on where it stopped when it is called again.
"""

from __future__ import annotations

import argparse
import fnmatch
import hashlib
import json
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import flambeau
from tests.conformance.checks import SEED, translated
from tests.conformance.compare import tensors_in
from tests.conformance.entries import Entry

from .operators import _samples, chosen

HELD = Path(__file__).with_name("held_on_machines.json")
REFUSED = "cannot be kept by reproducible"


def digest_of(arrays: list[Any]) -> str:
    """The digest of arrays; which NaN it is does not count: processors differ in the sign of theirs."""
    digest = hashlib.sha256()
    for array in arrays:
        if array is None:
            digest.update(b"none")
            continue
        array = np.ascontiguousarray(array)
        if array.dtype.kind in "fc":
            parts = array.view(array.real.dtype) if array.ndim else array.reshape(1).view(array.real.dtype)
            array = np.where(np.isnan(parts), np.array(np.nan, parts.dtype), parts)
        digest.update(f"{array.dtype} {array.shape}".encode() + array.tobytes())
    return digest.hexdigest()[:16]


def outcome(entry: Entry) -> str | None:
    """The digest of an entry's results and gradients, why it is refused, or None: it did not run."""
    found = []
    for sample in _samples(entry):
        flambeau.manual_seed(SEED)
        with warnings.catch_warnings(), flambeau.reproducible("machine"):
            warnings.simplefilter("ignore")
            try:
                found.append(digest_of(_results(entry, sample)))
            except Exception as error:
                if REFUSED in str(error):
                    return "refused: " + str(error).split(". Use")[0]
                found.append(f"raises {type(error).__name__}")
    return " ".join(found) or None


def _results(entry: Entry, sample: Any) -> list[Any]:
    args, kwargs = translated(sample)
    given = [each for each in tensors_in((args, kwargs)) if each.requires_grad]
    results = tensors_in(entry.op(*args, **kwargs))
    recorded = [each for each in results if each.requires_grad]
    gradients: Any = ()
    if recorded and given:
        weights = [_weight(each.detach()) for each in recorded]
        gradients = flambeau.autograd.grad(recorded, given, weights, allow_unused=True)
    return [
        None if each is None else each.detach().resolve_conj().resolve_neg()._array for each in (*results, *gradients)
    ]


def _weight(result: Any) -> Any:
    """What a gradient begins with; of complex numbers the parts, whose product alone is not refused."""
    if result.is_complex():
        return flambeau.view_as_complex(flambeau.view_as_real(result.resolve_conj()) * 0.37 + 0.5)
    return result * 0.37 + 0.5


def survey(path: Path, only: str, names: list[str], seconds: float) -> None:
    """Find outcomes for some time, and keep them in a file."""
    found = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    end = time.monotonic() + seconds
    entries = [each for each in chosen() if (each.name in names if names else fnmatch.fnmatch(each.name, only))]
    for entry in entries:
        if entry.name in found:
            continue
        if time.monotonic() > end:
            break
        begin = time.monotonic()
        found[entry.name] = outcome(entry)
        if time.monotonic() - begin > 3:
            print(f"{entry.name}: {time.monotonic() - begin:.1f} s", flush=True)
    path.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(f"{sum(each.name in found for each in entries)} of {len(entries)} entries")


def compare(paths: list[Path]) -> dict[str, list[str]]:
    """Of the entries that all files have: which hold, differ, are refused, and did not run."""
    files = [json.loads(path.read_text(encoding="utf-8")) for path in paths]
    result: dict[str, list[str]] = {"hold": [], "differ": [], "refused": [], "not run": []}
    for name in sorted(set(files[0]).intersection(*files[1:])):
        outcomes = {each[name] for each in files}
        first = files[0][name]
        if len(outcomes) > 1:
            kind = "differ"
        elif first is None or all(part.startswith("raises") or "Error" in part for part in first.split()):
            kind = "not run"
        else:
            kind = "refused" if first.startswith("refused") else "hold"
        result[kind].append(name)
    return result


def main() -> None:
    """Survey, or compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("paths", nargs="+", type=Path)
    parser.add_argument("--compare", action="store_true")
    parser.add_argument("--update", action="store_true", help="write held_on_machines.json")
    parser.add_argument("--only", default="*")
    parser.add_argument("--names", nargs="*", default=[])
    parser.add_argument("--seconds", type=float, default=150.0)
    options = parser.parse_args()
    if not options.compare:
        survey(options.paths[0], options.only, options.names, options.seconds)
        return
    found = compare(options.paths)
    if options.update:
        HELD.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    for kind, names in found.items():
        print(f"{kind}: {len(names)}" + ("" if kind == "hold" else f" {' '.join(names)}"))


if __name__ == "__main__":
    main()
