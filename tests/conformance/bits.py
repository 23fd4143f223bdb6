"""Digests of results and gradients over the operator database: whether two versions of the package give the same bits.

    python -m tests.conformance.bits --device simulated before.json      # in the tree of one version
    python -m tests.conformance.bits --device simulated after.json --against before.json

A digest is of the bits, the shapes, the strides and the dtypes of what the first samples of an entry give.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import warnings
from itertools import islice
from pathlib import Path
from typing import Any

import torch as pytorch

import flambeau

from .checks import SEED, text, translated
from .compare import tensors_in
from .entries import UNINITIALISED, Entry, entries
from .foreign import STANDS, gradients_of, on_device


def _described(tensor: Any) -> bytes:
    """The form of a tensor and its bits; of one without data the form alone."""
    if tensor.layout is not flambeau.strided:
        tensor = tensor.to_dense()
    form = f"{tuple(tensor.shape)} {tensor.stride()} {tensor.dtype} {tensor.device}".encode()
    if tensor.device.type == "meta":
        return form
    return form + bytes(tensor.detach().cpu().resolve_conj().resolve_neg()._array.tobytes())


def digest(entry: Entry, dtype: pytorch.dtype, device: str, limit: int, gradients: bool) -> str:
    """Of the results of the first samples, or of the gradients of their inputs; an error counts as its text."""
    found = hashlib.sha256()
    for sample in islice(entry.samples(dtype, gradients), limit):
        memory: dict[int, Any] = {}
        args, kwargs = translated(sample)
        if device != "cpu":
            args, kwargs = on_device(args, memory, device), on_device(kwargs, memory, device)
        flambeau.manual_seed(SEED)
        try:
            result = entry.op(*args, **kwargs)
            if gradients:
                result = gradients_of(entry.process(sample)[1](result), (args, kwargs))
            for each in tensors_in(result):
                found.update(b"" if entry.info.name in UNINITIALISED else _described(each))
        except Exception as error:
            found.update(text(error).encode())
    return found.hexdigest()[:16]


def digests(device: str, limit: int) -> dict[str, str]:
    """Entry and what was digested -> digest."""
    where = "cpu" if device == "cpu" else STANDS[device]().device
    found: dict[str, str] = {}
    for entry in entries():
        cases = [(f"{entry.name} results", entry.main_dtype, False)] if entry.dtypes else []
        cases += [(f"{entry.name} gradients", each, True) for each in entry.gradient_dtypes[:1]]
        for name, dtype, gradients in cases:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found[name] = digest(entry, dtype, where, limit, gradients)
    return found


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m tests.conformance.bits", description=__doc__)
    parser.add_argument("file", type=Path, help="where the digests are written")
    parser.add_argument("--device", choices=("cpu", *STANDS), default="cpu")
    parser.add_argument("--limit", type=int, default=2, help="so many samples of each entry")
    parser.add_argument("--against", type=Path, help="digests of another version: which differ")
    options = parser.parse_args()
    found = digests(options.device, options.limit)
    options.file.write_text(json.dumps(found, indent=1) + "\n")
    before = found if options.against is None else json.loads(options.against.read_text())
    differing = [name for name in {**before, **found} if before.get(name) != found.get(name)]
    print(f"{len(found)} digests on {options.device}; {len(differing)} differ", *differing, sep="\n  ")
    return int(bool(differing))


if __name__ == "__main__":
    raise SystemExit(main())
