"""The kinds of random programs: what writes them, and what judges them."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from . import around, calls, files, functions, models, statements, tensors, training
from .program import Judge, Program, alone, judge
from .statement_writer import write_program


class Kind(NamedTuple):
    """Writes the program of a seed, and says of a program where its runs disagree."""

    write: Callable[[int], Program]
    judge: Judge = judge
    alone: Callable[[Program], None] = alone
    """Runs a program under Flambeau."""


KINDS = {
    "training": Kind(training.write, training.judge),
    "tensors": Kind(tensors.write),
    "calls": Kind(calls.write, calls.judge),
    "around": Kind(around.write),
    "functions": Kind(functions.write),
    "models": Kind(models.write),
    "files": Kind(files.write, files.judge, files.alone),
    "statements": Kind(write_program, statements.judge, statements.alone),
}
