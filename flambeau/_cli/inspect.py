"""`flambeau inspect`: a table of what is in a checkpoint."""

from __future__ import annotations

import argparse
import math

from .contents import Contents, existing_file, read_contents, shared, total_size
from .terminal import coloured, plural, printable, readable_size, say, table, warn

SUMMARY = "show what is in a checkpoint"
DESCRIPTION = (
    "Show what is in a checkpoint: names, shapes, dtypes, sizes and shared storages. Reads .pt of every year, "
    "TorchScript archives, .safetensors and .npz. The tensors are not loaded, and nothing in the file is executed."
)

_FEW_VALUES = 20
_POWERFUL = (
    "builtins", "os", "posix", "nt", "sys", "subprocess", "shutil", "runpy", "importlib", "socket", "ctypes",
    "pickle", "_pickle", "dill", "marshal", "code", "pty", "operator", "functools", "types", "multiprocessing",
    "urllib", "io", "pathlib", "torch.load", "torch.hub", "torch.jit",
)  # fmt: skip
"""Modules and functions with which a pickle can do whatever it likes."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the command."""
    parser.add_argument("file", metavar="FILE", help="a checkpoint: .pt, .pth, .bin, .safetensors, .npz")
    parser.add_argument("--all", action="store_true", help="show all values beside the tensors, not only the first")


def run(arguments: argparse.Namespace) -> int:
    """Print what is in the file."""
    path = existing_file(arguments.file)
    contents = read_contents(path)
    say(f"{coloured(path.name, 'bold')}: {contents.format}, {readable_size(contents.size)}")
    _show_tensors(contents)
    _show_values(contents, everything=arguments.all)
    for note in contents.notes:
        warn(note)
    _warn_of_code(contents.unknown)
    return 0


def _show_tensors(contents: Contents) -> None:
    rows = [
        (
            printable(row.name), row.kind, str(list(row.shape)), row.dtype, readable_size(row.nbytes),
            "" if row.storage is None else str(row.storage),
        )
        for row in contents.tensors
    ]  # fmt: skip
    if rows:
        say()
        for line in table(("name", "kind", "shape", "dtype", "size", "storage"), rows, frozenset({4, 5})):
            say(line)
    say()
    elements = sum(math.prod(row.shape) for row in contents.tensors)
    say(
        f"{plural(len(rows), 'tensor')}, {plural(elements, 'element')}, {total_size(contents)} in "
        f"{plural(len(contents.storages), 'storage')}"
    )
    for storage, names in shared(contents).items():
        say(f"storage {storage} is shared: {', '.join(map(printable, names))}")


def _show_values(contents: Contents, *, everything: bool) -> None:
    if not contents.values:
        return
    shown = contents.values if everything else contents.values[:_FEW_VALUES]
    say()
    rows = [(printable(name), printable(kind), printable(text)) for name, kind, text in shown]
    for line in table(("other values", "type", ""), rows):
        say(line)
    if len(shown) < len(contents.values):
        say(coloured(f"... and {len(contents.values) - len(shown)} more: see --all", "dim"))


def _warn_of_code(unknown: list[str]) -> None:
    """Say which classes and functions a load that trusts the file would import, call or make objects of."""
    if not unknown:
        return
    warn("to unpickle this file in full (weights_only=False) would import and may run:")
    for name in unknown:
        powerful = name in _POWERFUL or any(name.startswith(f"{each}.") for each in _POWERFUL)
        mark = "  <- can do anything to this machine" if powerful else ""
        warn(f"  {printable(name)}{mark}")
