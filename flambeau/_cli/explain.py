"""`flambeau explain op add`: what runs when an op is called."""

from __future__ import annotations

import argparse
import difflib

from .._dispatch.call.source import kernel_of, source_of
from .._dispatch.op import OPS
from .._dispatch.public import registry
from .terminal import CommandError, say

SUMMARY = "show the source that runs when an op is called"
DESCRIPTION = (
    "Shows what runs when an op is called: the function that Flambeau writes for it, which takes the arrays out of the "
    "tensors, makes a tensor of the result and records it, and the kernel on arrays."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("what", choices=["op"], help="what to explain")
    parser.add_argument("name", help="the name of the op, as profilers and errors say it: add, mm, layer_norm")


def run(options: argparse.Namespace) -> int:
    """Print the sources."""
    registry.load_all()
    op = OPS.get(options.name)
    if op is None:
        close = difflib.get_close_matches(options.name, OPS, 3)
        raise CommandError(f"there is no op {options.name!r}" + (f"; perhaps {' or '.join(close)}" if close else ""))
    say(f"# the call of {op.name}\n{source_of(op)}\n# its kernel\n{kernel_of(op)}".rstrip())
    return 0
