"""The command line: which command, and what becomes of its errors."""

from __future__ import annotations

import argparse
import importlib
import os
import pickle
import sys
from collections.abc import Sequence

from .. import _RELEASE
from .terminal import CommandError, coloured, say

_COMMANDS = ("inspect", "convert", "run", "compare", "launch", "info", "explain", "learn", "demo", "trim")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="flambeau",
        description="PyTorch's programming model in Python: look at checkpoints, convert them, run PyTorch scripts.",
        epilog="Exit codes: 0 if all went well, 1 if something failed, 2 if the command was called wrongly.",
    )
    parser.add_argument("--version", action="version", version=f"flambeau {_RELEASE}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name in _COMMANDS:
        module = importlib.import_module(f"flambeau._cli.{name}")
        command = commands.add_parser(name, help=module.SUMMARY, description=module.DESCRIPTION)
        module.add_arguments(command)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line; gives the exit code."""
    parsed = _parser().parse_args(arguments)
    try:
        status: int = importlib.import_module(f"flambeau._cli.{parsed.command}").run(parsed)
        sys.stdout.flush()
    except CommandError as error:
        return _fail(parsed.command, str(error), error.status)
    except BrokenPipeError:  # the reader of our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (OSError, EOFError, RuntimeError, ValueError, pickle.UnpicklingError) as error:
        return _fail(parsed.command, str(error) or type(error).__name__, 1)
    return status


def _fail(command: str, message: str, status: int) -> int:
    say(f"flambeau {command}: {coloured('error:', 'red', sys.stderr)} {message}", sys.stderr)
    return status
