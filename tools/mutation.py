"""Mutation testing: small faults are put into a file one after the other, and the tests have to notice each.

    python -m tools.mutation flambeau/autograd/engine.py --tests tests/autograd/test_engine.py --count 50
    python -m tools.mutation flambeau/_dispatch/changes --tests tests/tensor --seed 3 --limit 120
    python -m tools.mutation flambeau/autograd --contexts .coverage --count 60

With `--contexts` each mutant meets the tests that have run its line, and no others: the file is one that `coverage`
wrote with `dynamic_context = test_function`. A line that no test has run is counted apart.

A mutant is the source of one module with one change: another comparison or operator, a condition turned round, a number
one larger, a statement left out, a result that is None. Each runs in a forked process that has imported
PyTorch and pytest, and not Flambeau; so it costs what the tests cost up to the first that fails. Mutants that survive
are printed with their lines: a test is missing there, or the line is.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import functools
import importlib.abc
import importlib.machinery
import importlib.util
import io
import os
import random
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[1]
_SWAPS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.And: ast.Or, ast.Or: ast.And,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.FloorDiv: ast.Mult, ast.Mod: ast.Mult,
}  # fmt: skip


class Mutant(NamedTuple):
    """A change of a module: the number of the node in the order of `ast.walk`, and what is done to it."""

    path: Path
    node: int
    change: str
    line: int


def mutants(path: Path) -> list[Mutant]:
    """All mutants of a file; annotations, docstrings and code for type checkers are left as they are."""
    tree = ast.parse(path.read_text())
    skipped = _untested(tree)
    found = []
    for number, node in enumerate(ast.walk(tree)):
        if id(node) in skipped:
            continue
        line = getattr(node, "lineno", 0)
        found += [Mutant(path, number, change, line) for change in _changes(node)]
    return found


def _untested(tree: ast.Module) -> set[int]:
    """Nodes that no test can notice."""
    hidden: set[int] = set()
    for node in ast.walk(tree):
        parts: list[ast.AST | None] = []
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            parts = [node.returns, *[each.annotation for each in ast.walk(node.args) if isinstance(each, ast.arg)]]
        elif isinstance(node, ast.AnnAssign):
            parts = [node.annotation]
        elif isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            parts = [node]
        elif isinstance(node, ast.Raise):  # the words of an error
            parts = [each for each in ast.walk(node) if isinstance(each, (ast.JoinedStr, ast.Constant))]
        for part in parts:
            if part is not None:
                hidden |= {id(each) for each in ast.walk(part)}
    return hidden


def _changes(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Compare):
        return [f"operator {i}" for i, each in enumerate(node.ops) if type(each) in _SWAPS]
    if isinstance(node, (ast.BoolOp, ast.BinOp)) and type(node.op) in _SWAPS:
        return ["operator"]
    if isinstance(node, (ast.If, ast.IfExp, ast.While)):
        return ["condition"]
    if isinstance(node, ast.Constant) and type(node.value) in (bool, int):
        return ["constant"]
    if isinstance(node, ast.Return) and node.value is not None and not isinstance(node.value, ast.Constant):
        return ["result"]
    left_out = (ast.Assign, ast.AugAssign, ast.Expr, ast.Raise, ast.Continue, ast.Break)
    if isinstance(node, left_out) and not isinstance(getattr(node, "value", None), ast.Constant):
        return ["statement"]
    return []


def mutated(mutant: Mutant) -> ast.Module:
    """The module's tree with the change in it."""
    tree = ast.parse(mutant.path.read_text())
    node: Any = next(each for number, each in enumerate(ast.walk(tree)) if number == mutant.node)
    what, _, place = mutant.change.partition(" ")
    if place:
        node.ops[int(place)] = _SWAPS[type(node.ops[int(place)])]()
    elif what == "operator":
        node.op = _SWAPS[type(node.op)]()
    elif what == "condition":
        node.test = ast.UnaryOp(ast.Not(), node.test)
    elif what == "constant":
        node.value = not node.value if isinstance(node.value, bool) else node.value + 1
    elif what == "result":
        node.value = ast.Constant(None)
    else:
        _leave_out(tree, node)
    return ast.fix_missing_locations(tree)


def _leave_out(tree: ast.Module, statement: ast.stmt) -> None:
    for parent in ast.walk(tree):
        for _, block in ast.iter_fields(parent):
            if isinstance(block, list) and any(each is statement for each in block):
                block[[each is statement for each in block].index(True)] = ast.Pass()


def described(mutant: Mutant) -> str:
    """The mutant's place, and its line before and after."""
    before = ast.unparse(ast.parse(mutant.path.read_text())).splitlines()
    after = ast.unparse(mutated(mutant)).splitlines()
    changed = [(old, new) for old, new in zip(before, after, strict=False) if old != new]
    old, new = changed[0] if changed else ("", "")
    return f"{mutant.path.relative_to(ROOT)}:{mutant.line}: {old.strip()[:100]}  ->  {new.strip()[:100]}"


class _Loader(importlib.abc.InspectLoader, importlib.abc.MetaPathFinder):
    """Gives the mutant when its module is imported."""

    def __init__(self, mutant: Mutant) -> None:
        self._mutant = mutant
        parts = mutant.path.relative_to(ROOT).with_suffix("").parts
        self._is_package = parts[-1] == "__init__"
        self._name = ".".join(parts[:-1] if self._is_package else parts)

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        if fullname != self._name:
            return None
        spec = importlib.util.spec_from_loader(fullname, self, origin=str(self._mutant.path))
        assert spec is not None
        spec.has_location = True
        if self._is_package:
            spec.submodule_search_locations = [str(self._mutant.path.parent)]
        return spec

    def is_package(self, fullname: str) -> bool:
        return self._is_package

    def get_source(self, fullname: str) -> str:
        return self._mutant.path.read_text()

    def exec_module(self, module: Any) -> None:
        exec(compile(mutated(self._mutant), str(self._mutant.path), "exec"), vars(module))


def verdict(prepare: Callable[[], None], tests: Sequence[str], limit: float) -> str:
    """What the tests say of a mutant: "killed", "survived", or "timed out" after so many seconds."""
    child = os.fork()
    if child == 0:
        os.setsid()
        code = 1
        with contextlib.suppress(BaseException):
            prepare()
            code = _run_tests(tests)
        os._exit(code)
    end = time.monotonic() + limit
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return "survived" if status == 0 else "killed"
        time.sleep(0.05)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "timed out"


def _run_tests(tests: Sequence[str]) -> int:
    import pytest

    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), 1)
        os.dup2(nowhere.fileno(), 2)
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            return int(pytest.main(["-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist", *tests]))


class Contexts:
    """Which tests have run which lines, as `coverage` has noted."""

    def __init__(self, path: Path) -> None:
        import coverage

        self._data = coverage.CoverageData(str(path))
        self._data.read()

    def tests(self, mutant: Mutant, most: int) -> list[str]:
        """Tests that have run a mutant's line; for what runs at import, those that have run a line of its file."""
        end = f"/{mutant.path.relative_to(ROOT).as_posix()}"
        noted = next((name for name in self._data.measured_files() if name.endswith(end)), str(mutant.path))
        lines = self._data.contexts_by_lineno(noted)
        names = {name for name in lines.get(mutant.line, []) if name}
        if not names and mutant.line in lines:
            names = {name for found in lines.values() for name in found if name}
        found = sorted(each for each in map(_node_id, names) if each)
        return found if len(found) <= most else sorted(random.Random(most).sample(found, most))


@functools.cache
def _node_id(name: str) -> str:
    """What pytest calls a test function; "" where it has gone."""
    parts = name.split(".")
    for count in range(len(parts) - 1, 0, -1):
        path = Path(*parts[:count]).with_suffix(".py")
        if (ROOT / path).is_file():
            return "::".join([str(path), *parts[count:]])
    return ""


def _files(paths: Sequence[Path]) -> Iterator[Path]:
    for path in paths:
        yield from sorted(path.rglob("*.py")) if path.is_dir() else [path]


def main() -> int:
    """The command; 1 if the tests fail without a mutant."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.mutation", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("paths", nargs="+", type=Path, help="files or folders of the package")
    tests = parser.add_mutually_exclusive_group(required=True)
    tests.add_argument("--tests", nargs="+", help="what pytest runs; quick tests first")
    tests.add_argument("--contexts", type=Path, help="a file of coverage: tests that have run the mutant's line")
    parser.add_argument("--most", type=int, default=40, help="so many tests of those at most")
    parser.add_argument("--count", type=int, help="so many mutants, chosen at random")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--limit", type=float, default=300, help="seconds for one mutant")
    options = parser.parse_args()
    found = [each for path in _files([path.resolve() for path in options.paths]) for each in mutants(path)]
    chosen = found
    if options.count is not None and options.count < len(found):
        chosen = sorted(random.Random(options.seed).sample(found, options.count))
    import pytest  # noqa: F401  (imported once, for all forked processes)

    with contextlib.suppress(ImportError):
        import torch

        torch.set_num_threads(1)
    assert "flambeau" not in sys.modules
    contexts = Contexts(options.contexts) if options.contexts else None
    if contexts is None and verdict(lambda: None, options.tests, 10 * options.limit) != "survived":
        print("the tests fail without a mutant")
        return 1
    counts = {"killed": 0, "survived": 0, "timed out": 0, "not run": 0}
    for number, mutant in enumerate(chosen, 1):
        tests_of_line = options.tests if contexts is None else contexts.tests(mutant, options.most)
        prepare = functools.partial(sys.meta_path.insert, 0, _Loader(mutant))
        result = verdict(prepare, tests_of_line, options.limit) if tests_of_line else "not run"
        counts[result] += 1
        if result != "killed":
            print(f"{result}: {described(mutant)}", flush=True)
        if number % 10 == 0:
            print(f"{number} of {len(chosen)}: {counts}", file=sys.stderr, flush=True)
    noticed = counts["killed"] + counts["timed out"]
    print(f"{noticed} of {len(chosen)} noticed ({len(found)} mutants in all): {counts}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
