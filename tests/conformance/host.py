"""Which entries of the operator database compute something on the host when their tensors are on a device.

    python -m tests.conformance.host --device simulated          # what differs from the list, host_ops.json
    python -m tests.conformance.host --device cuda --write       # the list anew

The list only shrinks: whatever is in it copies tensors to the host and back, and warns once.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import warnings
from collections.abc import Iterable
from itertools import islice
from pathlib import Path

import flambeau
from flambeau._core.process.host_calls import HOST_OPS

from .checks import SEED, translated
from .entries import Entry, entries
from .foreign import STANDS, gradients_of, on_device

LIST = Path(__file__).with_name("host_ops.json")
_SAMPLES = 5


def host_ops(entry: Entry, device: str) -> list[str]:
    """The ops that ran on the host for the first samples of an entry, and for their gradients."""
    cases = [(entry.main_dtype, False)] if entry.dtypes else []
    cases += [(each, True) for each in entry.gradient_dtypes[:1]]
    HOST_OPS.clear()
    for dtype, gradients in cases:
        for sample in islice(entry.samples(dtype, gradients), _SAMPLES):
            args, kwargs = translated(sample)
            memory: dict[int, object] = {}
            args, kwargs = on_device(args, memory, device), on_device(kwargs, memory, device)
            flambeau.manual_seed(SEED)
            with contextlib.suppress(Exception):  # what is refused is tested elsewhere
                result = entry.op(*args, **kwargs)
                if gradients:
                    gradients_of(entry.process(sample)[1](result), (args, kwargs))
    return sorted(HOST_OPS)


def found(device: str, chosen: Iterable[Entry]) -> dict[str, list[str]]:
    """Entry -> its ops that ran on the host; entries without any are left out."""
    where = STANDS[device]().device
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        every = {each.name: host_ops(each, where) for each in chosen}
    return {name: ops for name, ops in every.items() if ops}


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m tests.conformance.host", description=__doc__)
    parser.add_argument("--device", choices=tuple(STANDS), default="simulated")
    parser.add_argument("--every", type=int, default=1, help="every n-th entry, and those of the list")
    parser.add_argument("--write", action="store_true", help="write the list anew")
    options = parser.parse_args()
    known: dict[str, list[str]] = json.loads(LIST.read_text()) if LIST.exists() else {}
    chosen = [each for place, each in enumerate(entries()) if place % options.every == 0 or each.name in known]
    now = found(options.device, chosen)
    if options.write:
        LIST.write_text(json.dumps(now, indent=1, sort_keys=True) + "\n")
        return 0
    for name in sorted(now.keys() | known.keys()):
        if now.get(name) != known.get(name):
            print(f"{name}: {now.get(name, [])} ran on the host, the list says {known.get(name, [])}")
    print(f"{len(now)} of {len(chosen)} entries compute something on the host")
    return int(now != known)


if __name__ == "__main__":
    raise SystemExit(main())
