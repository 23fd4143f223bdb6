"""`python -m flambeau.distributed.run`: start a program in several processes, as `torchrun` does."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any

from ._launch.options import add_arguments, parsed, processes_per_node

__all__ = ["determine_local_world_size", "get_args_parser", "main", "parse_args", "run"]


def get_args_parser() -> argparse.ArgumentParser:
    """The parser of the command line."""
    parser = argparse.ArgumentParser(prog="flambeau launch", description="Start a program in several processes.")
    add_arguments(parser)
    return parser


def parse_args(args: Sequence[str] | None) -> argparse.Namespace:
    """The arguments of a command line."""
    return get_args_parser().parse_args(args)


def determine_local_world_size(nproc_per_node: str) -> int:
    """How many processes a machine has: a number, or as many as it has processors or GPUs."""
    return processes_per_node(nproc_per_node)


def run(args: argparse.Namespace) -> None:
    """Run a program; an error if one of its processes failed."""
    from ._launch.agent import Agent
    from .elastic.multiprocessing.errors import ChildFailedError, ProcessFailure

    found = {}
    for each in Agent(parsed(args)).run():
        found[each.rank] = failure = ProcessFailure(each.local_rank, each.pid, each.exit_code, "")
        failure.message, failure.timestamp = each.message or failure.message, int(each.when)
    if found:
        raise ChildFailedError(args.script, found)


def main(args: Any = None) -> None:
    """Run a program, and end as it does."""
    from ._launch.agent import launch

    status = launch(parsed(parse_args(args)))
    if status:
        sys.exit(status)


if __name__ == "__main__":
    main()
