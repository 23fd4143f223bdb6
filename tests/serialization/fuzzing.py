"""Fuzzing of every reader with inputs mutated from valid files.

A reader may load an input or refuse it with one of its documented errors. Anything else is a finding: another
exception, a call of the canary, a long wait, or much memory.

    python -m tests.serialization.fuzzing --seconds 600
"""

from __future__ import annotations

import argparse
import io
import pickle
import random
import resource
import struct
import sys
import time
import warnings
import zipfile
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import flambeau
from flambeau import safetensors
from flambeau._serialization.globals import SafeGlobals
from flambeau._serialization.unpickler import Machine
from flambeau.serialization import get_unsafe_globals_in_checkpoint

Reader = Callable[[bytes], Any]
REFUSALS = (pickle.UnpicklingError, RuntimeError, EOFError, safetensors.SafetensorError)
LONGEST = 5.0
MOST_MEMORY = 300_000  # kilobytes above the peak at the start
CANARY: list[str] = []
_INTERESTING = (0, 1, 2, 127, 128, 255, 2**15, 2**16 - 1, 2**31 - 1, 2**31, 2**32 - 1, 2**40, 2**63 - 1, 2**64 - 1)


def canary(text: str) -> str:
    """What no reader may call."""
    CANARY.append(text)
    return text


class Caller:
    """Would call the canary if it were unpickled by Python."""

    def __reduce__(self) -> Any:
        return canary, ("called",)


def checkpoint(torch: Any) -> Any:
    """An object with a little of everything."""
    base = torch.arange(12.0).view(3, 4)
    return {
        "model": {"weight": torch.nn.Parameter(base), "bias": base[0], "half": torch.ones(2, dtype=torch.bfloat16)},
        "optimizer": {"state": {0: {"step": torch.tensor(1.0)}}, "param_groups": [{"lr": 0.1, "params": [0]}]},
        "array": np.arange(4.0),
        "number": np.float32(3),
        "size": torch.Size([1, 2]),
        "set": {1, 2},
        "small": torch.ones(2, dtype=torch.uint16),
        "dtype": torch.float16,
    }


def _saved(obj: Any, **options: Any) -> bytes:
    file = io.BytesIO()
    flambeau.save(obj, file, **options)
    return file.getvalue()


def _deflated(content: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            new.writestr(name, old.read(name))
    return file.getvalue()


def _scripted() -> bytes:
    """A TorchScript archive, made by hand."""
    state = b"(\x8c\x07storagectorch\nFloatStorage\n\x8c\x010\x8c\x03cpuK\x04tQ"
    tensor = b"ctorch._utils\n_rebuild_tensor_v2\n(" + state + b"K\x00(K\x04t(K\x01t\x89ccollections\nOrderedDict\n)RtR"
    inner = b"c__torch__.Inner\nInner\n)\x81}(\x8c\x06weight" + tensor + b"\x8c\x08training\x88ub"
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("m/data.pkl", b"\x80\x02c__torch__\nNet\n)\x81}(\x8c\x05first" + inner + b"ub.")
        archive.writestr("m/constants.pkl", b"\x80\x02).")
        archive.writestr("m/data/0", bytes(16))
        archive.writestr("m/version", b"3\n")
    return file.getvalue()


def _tar() -> bytes:
    from .test_old_formats import tar_file

    return tar_file().getvalue()


def _load(content: bytes) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return flambeau.load(io.BytesIO(content))


def _machine(content: bytes) -> Any:
    return Machine(content, SafeGlobals()).load()


def _scan(content: bytes) -> Any:
    try:
        return get_unsafe_globals_in_checkpoint(io.BytesIO(content))
    except ValueError as error:
        if "Expected input" not in str(error):
            raise
        return None


def corpus() -> list[tuple[str, Reader, bytes]]:
    """Readers and valid inputs for them."""
    archive = _saved(checkpoint(flambeau))
    tensors = {"a": flambeau.ones(2, 3), "b": flambeau.arange(4)}
    plain = pickle.dumps({"a": [1, 2.5, ("x", b"y")], "array": np.arange(5), "set": {1}}, 4)
    with zipfile.ZipFile(io.BytesIO(archive)) as opened:
        inner = opened.read("archive/data.pkl")
    return [
        ("zip", _load, archive),
        ("data.pkl in zip", _load_pickle(archive), inner),
        ("deflated", _load, _deflated(archive)),
        ("stacked", _load, _saved(checkpoint(flambeau), _use_new_zipfile_serialization=False)),
        ("tar", _load, _tar()),
        ("torchscript", _load, _scripted()),
        ("pickle", _machine, plain),
        ("pickle 0", _machine, pickle.dumps({"a": [1, 2.5, ("x", "y")], 2: None}, 0)),
        ("call", _load, _saved({"evil": Caller(), "weight": flambeau.ones(2)})),
        ("scan", _scan, archive),
        ("safetensors", safetensors.load, safetensors.save(tensors, {"key": "value"})),
    ]


def _load_pickle(archive: bytes) -> Reader:
    """A reader of other pickles in the place of an archive's, with sizes and sums that fit."""
    with zipfile.ZipFile(io.BytesIO(archive)) as opened:
        records = {name: opened.read(name) for name in opened.namelist()}

    def read(content: bytes) -> Any:
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w") as new:
            for name, each in records.items():
                new.writestr(name, content if name.endswith("data.pkl") else each)
        return _load(file.getvalue())

    return read


def mutated(content: bytes, chance: random.Random) -> bytes:
    """`content` with a few changes: flips, interesting numbers, cuts, copies of its own parts."""
    data = bytearray(content)
    for _ in range(chance.choice((1, 1, 1, 2, 3, 8))):
        if not data:
            break
        at = chance.randrange(len(data))
        kind = chance.randrange(7)
        if kind == 0:
            data[at] ^= 1 << chance.randrange(8)
        elif kind == 1:
            data[at] = chance.randrange(256)
        elif kind == 2:
            layout = chance.choice("BHIQ")
            number = struct.pack(f"<{layout}", chance.choice(_INTERESTING) % 2 ** (8 * struct.calcsize(layout)))
            data[at : at + len(number)] = number
        elif kind == 3:
            del data[at : at + chance.randrange(1, 20)]
        elif kind == 4:
            source = chance.randrange(len(data))
            data[at:at] = data[source : source + chance.randrange(1, 40)]
        elif kind == 5:
            source = chance.randrange(len(data))
            part = data[source : source + chance.randrange(1, 20)]
            data[at : at + len(part)] = part
        else:
            data[at:] = data[at : chance.randrange(at, len(data)) + 1]
    return bytes(data)


def findings(seconds: float, seed: int, most: int = 10**9) -> Iterator[str]:
    """Try inputs until the time is over; yields a line for every reader at the end, and one for each finding."""
    chance = random.Random(seed)
    entries = corpus()
    counts = {name: [0, 0] for name, _, _ in entries}
    base = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.monotonic()
    turn = 0
    while time.monotonic() - start < seconds and turn < most:
        name, read, content = entries[turn % len(entries)]
        turn += 1
        data = mutated(content, chance)
        begin = time.monotonic()
        try:
            read(data)
            counts[name][0] += 1
        except REFUSALS as error:
            if isinstance(error, RecursionError) or not str(error):
                yield f"FINDING {name}: {error!r} for {data!r}"
            counts[name][1] += 1
        except Exception as error:
            if not str(error).startswith("Unknown endianness type"):  # PyTorch has a ValueError for this one
                yield f"FINDING {name}: {type(error).__name__}: {error} for {data!r}"
        if CANARY:
            CANARY.clear()
            yield f"FINDING {name}: code was executed for {data!r}"
        if time.monotonic() - begin > LONGEST:
            yield f"FINDING {name}: took {time.monotonic() - begin:.1f} s for {data!r}"
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        if peak - base > MOST_MEMORY:
            base = peak
            yield f"FINDING {name}: the peak of memory rose to {peak} kB for {data!r}"
    for name, (loaded, refused) in counts.items():
        yield f"{name}: {loaded} loaded, {refused} refused"


def main() -> int:
    """Fuzz from the command line; the exit code says whether there were findings."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=None)
    options = parser.parse_args()
    seed = random.SystemRandom().randrange(2**32) if options.seed is None else options.seed
    print(f"seed {seed}")
    found = 0
    for line in findings(options.seconds, seed):
        found += line.startswith("FINDING")
        print(line[:2000], flush=True)
    return min(found, 1)


if __name__ == "__main__":
    sys.exit(main())
