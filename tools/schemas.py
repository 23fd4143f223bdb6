"""Write `flambeau/_dispatch/public/schemas.txt.gz`: the schemas of PyTorch's operators.

They are read from the installed PyTorch. A test compares the file with what this makes; `zcat` shows it.
"""

from __future__ import annotations

import gzip
import sys
import types
from pathlib import Path

import torch as pytorch

import flambeau

FILE = Path(flambeau.__file__).parent / "_dispatch" / "public" / "schemas.txt.gz"


def generated() -> str:
    """The file's text: sections of schemas, and the names of functions that are not their operators' in PyTorch."""
    known = set(pytorch._C._dispatch_get_all_op_names())
    sections: dict[str, list[str]] = {"aten": [], "script": [], "prims": []}
    names = {schema.name for schema in pytorch._C._jit_get_all_schemas()}
    for full in sorted(names):
        space, _, name = full.partition("::")
        if space in ("aten", "prims"):
            # In the order in which PyTorch tries them.
            for overload in getattr(getattr(pytorch.ops, space), name).overloads():
                which = f"{full}.{overload}" if overload != "default" else full
                schema = pytorch._C._get_schema(full, "" if overload == "default" else overload)
                section = "script" if space == "aten" and which not in known else space
                sections[section].append(str(schema).partition("::")[2])
    operators = sorted({text.partition("(")[0].partition(".")[0] for text in sections["aten"]})
    sections["written in Python"] = [
        name for name in operators if isinstance(getattr(pytorch, name, None), types.FunctionType)
    ]
    return "".join(f"[{title}]\n" + "".join(f"{each}\n" for each in found) for title, found in sections.items())


def main() -> int:
    """Write the file, or with --check say whether it is as it should be."""
    text = generated()
    if "--check" in sys.argv:
        if gzip.decompress(FILE.read_bytes()).decode() != text:
            print(f"{FILE.name} is out of date: run tools/schemas.py")
            return 1
        return 0
    FILE.write_bytes(gzip.compress(text.encode(), mtime=0))
    return 0


if __name__ == "__main__":
    sys.exit(main())
