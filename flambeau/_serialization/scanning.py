"""What a file names, found without executing its pickle."""

from __future__ import annotations

import contextlib
import pickle
import pickletools
from typing import Any

from .archive import ArchiveReader
from .globals import SafeGlobals
from .names import canonical_name
from .reading import ZIP_START


def globals_in(data: Any) -> list[tuple[str, str]]:
    """Module and name of every global in the pickles that `data` begins with, in order."""
    found: dict[tuple[str, str], None] = {}
    strings: list[str] = []
    memo: dict[int, str] = {}
    argument: Any
    for opcode, argument, _ in pickletools.genops(data):
        name = opcode.name
        if name in ("GLOBAL", "INST"):
            module, _, last = argument.partition(" ")
            found[module, last] = None
        elif name == "STACK_GLOBAL" and len(strings) >= 2:
            found[strings[-2], strings[-1]] = None
        elif name == "MEMOIZE":
            memo[len(memo)] = strings[-1] if strings else ""
        elif name in ("BINPUT", "LONG_BINPUT", "PUT"):
            memo[argument] = strings[-1] if strings else ""
        elif name in ("BINGET", "LONG_BINGET", "GET"):
            strings.append(memo.get(argument, ""))
        elif isinstance(argument, str):
            strings.append(argument)
        else:
            continue
        del strings[:-2]
    return list(found)


def unsafe_globals(file: Any) -> list[str]:
    """The names in the pickle of a zip archive that are not allowed by default or by the user."""
    head = file.read(4)
    file.seek(0)
    if head != ZIP_START:
        raise ValueError("Expected input to be a checkpoint returned by torch.save: a zip archive")
    with contextlib.closing(ArchiveReader(file)) as archive:
        if archive.has("constants.pkl"):
            raise ValueError(
                "Expected input to be a checkpoint returned by torch.save, but got a torchscript checkpoint"
            )
        content = archive.read("data.pkl")
    known = SafeGlobals()
    try:
        named = globals_in(content)
    except ValueError as error:
        raise pickle.UnpicklingError(f"pickle data is corrupt: {error}") from error
    return [canonical_name(*each) for each in named if not known.is_known(*each)]
