"""`flambeau trim`: make the installation smaller."""

from __future__ import annotations

import argparse

from .._backends.cpu.runtime.library_copies import link_copies
from .terminal import readable_size, say

SUMMARY = "make the installation smaller: equal copies of the kernel library become links"
DESCRIPTION = (
    "Replace the copies of the kernel library that its wheel brings along by links to one of them. It changes no "
    "result and no speed, can be run again at any time, and pip removes the package as before."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command has no arguments."""


def run(arguments: argparse.Namespace) -> int:
    """Link the copies, and say what that freed."""
    library, freed = link_copies()
    if library is None:
        say("There is no kernel library in this environment: nothing to trim.")
    else:
        say(f"{readable_size(freed)} freed beside {library}." if freed else f"{library} is there only once already.")
    return 0
