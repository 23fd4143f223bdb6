"""`flambeau compare`: two runs of a program, and the first op at which they part."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from .terminal import CommandError, coloured, say

SUMMARY = "find the first op at which two runs of a program part"
DESCRIPTION = (
    "Runs two scripts, or one in two ways, or reads two recorded traces, and says which op was the first whose result "
    "differs by more than rounding explains. Exit code 0: none, 1: there is one."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("one", metavar="A", help="a script, a trace that --record wrote, or a ledger")
    parser.add_argument(
        "other", metavar="B", nargs="?", help="another script or trace; without it, A is run in two ways"
    )
    parser.add_argument(
        "--with", dest="mode", choices=["compiled", "cuda", "pytorch", "float64"], default="plain",
        help="how the second run is made: compiled, on the GPU, by PyTorch, or with every op repeated in float64",
    )  # fmt: skip
    parser.add_argument("--record", metavar="FILE", help="run A alone and write its trace, to compare it elsewhere")
    parser.add_argument("--steps", type=int, metavar="N", help="record the first N steps of optimizers only")
    parser.add_argument("--page", metavar="FILE", help="write an HTML page that shows how the difference grows")
    parser.add_argument("--program", metavar="FILE", help="write a program that shows the first difference alone")
    parser.add_argument(
        "--arguments", metavar="TEXT", default="", help="arguments of the scripts, in one text: --arguments='--lr 0.1'"
    )


def run(options: argparse.Namespace) -> int:
    """Compare, and say what was found; gives the exit code."""
    import shlex

    from ..utils import compare
    from ..utils.compare._scripts import run_script

    for each in filter(None, (options.one, options.other)):
        if not Path(each).is_file():
            raise CommandError(f"there is no file {each!r}", 2)
    arguments = shlex.split(options.arguments)
    if options.record:
        if options.other:
            raise CommandError("--record takes one script", 2)
        with tempfile.TemporaryDirectory() as folder:
            mode = "plain" if options.mode == "float64" else options.mode
            trace = run_script(options.one, arguments, Path(folder), mode=mode, steps=options.steps)[0]
        trace.save(options.record)
        say(f"{options.record}: {len(trace)} entries, {Path(options.record).stat().st_size / 1e6:.2f} MB")
        return 0
    if options.other and all(Path(each).suffix == ".ledger" for each in (options.one, options.other)):
        from ..utils.ledger import first_difference

        step = first_difference(options.one, options.other)
        say("no step differs" if step is None else coloured(str(step), "red"))
        return 0 if step is None else 1
    are_scripts = [Path(each).suffix == ".py" for each in filter(None, (options.one, options.other))]
    if options.other and not any(are_scripts):
        found = compare.traces(options.one, options.other)
    elif all(are_scripts):
        if not options.other and options.mode == "plain":
            raise CommandError("give a second script or trace, or say --with compiled, cuda, pytorch or float64", 2)
        found = compare.scripts(options.one, options.other, mode=options.mode, arguments=arguments, steps=options.steps)
    else:
        raise CommandError("A and B must be two scripts (.py) or two traces", 2)
    head, _, rest = str(found).partition("\n")
    say(head)
    say(coloured(rest, "red") if found else rest)
    if options.page:
        found.save(options.page)
    if options.program and found:
        path = Path(options.program)
        path.write_text(found.program(path.resolve().parent), encoding="utf-8")
    return 1 if found else 0
