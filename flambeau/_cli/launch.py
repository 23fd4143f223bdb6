"""`flambeau launch`: a PyTorch program in several processes, as `torchrun` starts them, with Flambeau in its place."""

from __future__ import annotations

import argparse

from ..distributed._launch.options import WrongOption, add_arguments, parsed
from .terminal import CommandError

__all__ = ["add_arguments"]

SUMMARY = "run a PyTorch script in several processes"
DESCRIPTION = "Start a program in several processes that work together, with the options and variables of torchrun."


def run(arguments: argparse.Namespace) -> int:
    """Run the program; gives the exit code."""
    from ..distributed._launch.agent import launch

    try:
        return launch(parsed(arguments))
    except WrongOption as error:
        raise CommandError(str(error), 2) from error
