"""Writes `flambeau/_core/names/settings.json.gz`: the settings of PyTorch's compilers, with their first values.

    python tools/settings.py

It needs PyTorch. Settings whose values are objects, or paths of a machine, are left out. A test compares the file.
"""

from __future__ import annotations

import gzip
import importlib
import json
import sys
import warnings
from pathlib import Path
from typing import Any

import flambeau

FILE = Path(flambeau.__file__).parent / "_core" / "names" / "settings.json.gz"

MODULES = ("_dynamo.config", "_inductor.config", "compiler.config")


def _is_plain(value: Any) -> bool:
    return value is None or type(value) in (bool, int, float) or (type(value) is str and "/" not in value)


def generated() -> str:
    """The file's text: for each module the values of its settings; those of a group have a dot in their names."""
    found: dict[str, dict[str, Any]] = {}
    for name in MODULES:
        module = importlib.import_module(f"torch.{name}")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # some settings do nothing any more, and say so
            values = {each: getattr(module, each) for each in sorted(module._config) if not each.startswith("_")}
        found[name] = {each: value for each, value in values.items() if _is_plain(value)}
    return json.dumps(found, indent=0) + "\n"


def main() -> int:
    """Write the file, or with --check say whether it is as it should be."""
    if "--check" in sys.argv:
        if gzip.decompress(FILE.read_bytes()).decode() != generated():
            print(f"{FILE.name} is out of date: run tools/settings.py")
            return 1
        return 0
    FILE.write_bytes(gzip.compress(generated().encode(), mtime=0))
    return 0


if __name__ == "__main__":
    sys.exit(main())
