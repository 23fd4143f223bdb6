"""What the pages in `docs/` and the docstrings show is what happens."""

from __future__ import annotations

import ast
import contextlib
import doctest
import importlib
import linecache
import os
import re
import subprocess
import sys
import traceback
import warnings
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import flambeau
from flambeau._core.process import tracebacks
from flambeau._dispatch.public.registry import FUNCTIONS, METHODS, resolved

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
NAMED_FILE = re.compile(r"`((?:[\w.]+/)+[\w.]*|[\w/]+\.py)`")
PROMPT = "(Pdb) "
FLEXIBLE = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def fences(page: str) -> list[tuple[str, str]]:
    """Language and body of each fenced block of a page of `docs/`."""
    return FENCE.findall((DOCS / page).read_text(encoding="utf-8"))


def matches(shown: str, got: str, flags: int = doctest.ELLIPSIS) -> bool:
    return doctest.OutputChecker().check_output(shown.strip() + "\n", got.strip() + "\n", flags)


# ----- stepping.md --------------------------------------------------------------------------------------------------


def debug(program: str, commands: list[str], folder: Path) -> list[str]:
    """What pdb prints before each prompt, with paths relative to the program and to the package."""
    (folder / "walk.py").write_text(program, encoding="utf-8")
    run = subprocess.run(
        [sys.executable, "-m", "pdb", "walk.py"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "NO_COLOR": "1"},
        input="\n".join([*commands, "quit", ""]),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert not run.stderr, run.stderr
    printed = run.stdout
    for prefix in {str(folder), str(folder.resolve()), str(ROOT)}:
        printed = printed.replace(prefix + os.sep, "")
    return printed.split(PROMPT)


def walk() -> tuple[str, list[str], list[str]]:
    """The program of stepping.md, the commands typed there, and what the page shows before each prompt."""
    blocks = fences("stepping.md")
    program = next(body for language, body in blocks if language == "python")
    transcript = "".join(body for language, body in blocks if language == "text")
    first, *rest = re.split(r"^\(Pdb\) ", transcript, flags=re.MULTILINE)
    commands, shown = zip(*[each.split("\n", 1) for each in rest], strict=True)
    return program, list(commands), [first, *shown]


def test_pdb_walks_as_the_page_shows(tmp_path: Path) -> None:
    program, commands, shown = walk()
    assert len(commands) > 10
    printed = debug(program, commands, tmp_path)
    for command, expected, got in zip(["the start", *commands], shown, printed, strict=False):
        assert matches(expected, got), f"after {command!r} the page shows\n{expected}\nbut pdb prints\n{got}"
    assert len(printed) == len(shown) + 1  # one more prompt: the one that takes `quit`


def test_single_steps_lead_from_backward_into_each_formula(tmp_path: Path) -> None:
    """No breakpoint but the line `loss.backward()`: `step` alone reaches every derivative."""
    program, _, _ = walk()
    line = program.splitlines().index("loss.backward()") + 1
    printed = "".join(debug(program, [f"tbreak {line}", "continue", *["step"] * 5000], tmp_path))
    product = r"> flambeau/_ops/pointwise/binary\.py\(\d+\)<lambda>\(\)\n-> {}=lambda grad, {}: grad \* conj"
    assert re.search(product.format("self", "other"), printed)
    assert re.search(product.format("other", "self"), printed)
    exponential = r"> flambeau/_ops/pointwise/unary\.py\(\d+\)<lambda>\(\)\n-> .*lambda grad, result: grad \* conj"
    assert re.search(exponential, printed)
    assert re.search(r"> flambeau/_ops/reduce/reductions\.py\(\d+\)", printed)


def test_sessions_of_the_page_print_what_it_shows() -> None:
    sessions = [body for language, body in fences("stepping.md") if language == "python" and ">>>" in body]
    assert len(sessions) >= 2
    examples = doctest.DocTestParser().get_doctest("\n".join(sessions), {}, "stepping.md", "stepping.md", 0)
    complaints: list[str] = []
    doctest.DocTestRunner(verbose=False, optionflags=doctest.ELLIPSIS).run(examples, out=complaints.append)
    assert not complaints, "".join(complaints)


def test_traceback_shows_the_generated_function(monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = fences("stepping.md")
    (shown,) = [body for language, body in blocks if language == "pytb"]
    program = blocks[blocks.index(("pytb", shown)) - 1][1]
    monkeypatch.setattr(tracebacks, "_WHOLE", True)
    with pytest.raises(IndexError) as caught:
        run_program(program, monkeypatch)
    lines = traceback.format_exception(caught.value)
    got = re.sub(
        r"^[ ~^]+\n", "", "".join(lines), flags=re.MULTILINE
    )  # without marks, which differ from version to version
    assert matches(shown, got), f"the page shows\n{shown}\nbut the traceback is\n{got}"


# ----- errors.md ----------------------------------------------------------------------------------------------------


def run_program(source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run `source` as a file `program.py` whose lines messages can quote."""
    monkeypatch.setitem(linecache.cache, "program.py", (len(source), None, source.splitlines(True), "program.py"))
    exec(compile(source, "program.py", "exec"), {})


def failing_programs() -> list[Any]:
    blocks = fences("errors.md")
    pairs = list(zip(blocks[::2], blocks[1::2], strict=True))
    assert all(program[0] == "python" and message[0] == "text" for program, message in pairs)
    return [pytest.param(program, shown, id=program.splitlines()[-1]) for (_, program), (_, shown) in pairs]


@pytest.mark.parametrize(("program", "shown"), failing_programs())
def test_error_reads_as_the_page_shows(program: str, shown: str, monkeypatch: pytest.MonkeyPatch) -> None:
    anomaly = flambeau.is_anomaly_enabled()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises((RuntimeError, IndexError, TypeError, ValueError)) as caught:
            run_program("import flambeau as torch\n" + program, monkeypatch)
    assert flambeau.is_anomaly_enabled() is anomaly
    got = f"{type(caught.value).__name__}: {caught.value}"
    assert matches(shown, got, FLEXIBLE), f"the page shows\n{shown}\nbut the error is\n{got}"


def test_anomaly_warning_ends_with_the_user_s_line() -> None:
    with warnings.catch_warnings(record=True) as noted:
        warnings.simplefilter("always")
        with flambeau.autograd.set_detect_anomaly(True), pytest.raises(RuntimeError, match="nan"):
            flambeau.tensor(-1.0, requires_grad=True).sqrt().backward()
    (report,) = [str(each.message) for each in noted if "Traceback of forward call" in str(each.message)]
    assert report.rstrip().endswith("flambeau.tensor(-1.0, requires_grad=True).sqrt().backward()")


def test_freed_history_of_a_changed_view_names_the_forward_line() -> None:
    base = flambeau.ones(4, requires_grad=True) * 1
    base[:2].mul_(3)
    base.sum().backward()
    with pytest.raises(RuntimeError, match=r'(?s)second time.*CopySlices was recorded at .*"base\[:2\]\.mul_\(3\)"'):
        base.sum().backward()


@pytest.mark.parametrize("page", ["export.md", "fx.md", "sharding.md"])
def test_page_shows_what_happens(page: str) -> None:
    session = "\n".join(body for language, body in fences(page) if language == "pycon")
    examples = doctest.DocTestParser().get_doctest(session, {}, page, page, 0)
    assert len(examples.examples) > 5
    failed, _ = doctest.DocTestRunner(optionflags=FLEXIBLE).run(examples)
    assert failed == 0


# ----- all pages ----------------------------------------------------------------------------------------------------


def test_tables_of_contents_lead_to_every_page() -> None:
    reached, waiting = set(), [DOCS / "index.md"]
    while waiting:
        page = waiting.pop()
        if page in reached or not page.is_file():  # the pages of the reference are written when the site is built
            continue
        reached.add(page)
        for listed in re.findall(
            r"^```\{toctree\}\n(.*?)^```$", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
        ):
            entries = [line for line in listed.splitlines() if line and not line.startswith(":")]
            waiting += [(page.parent / f"{entry}.md").resolve() for entry in entries]
    written = {page for page in DOCS.rglob("*.md") if not {"_build", "reference"} & set(page.relative_to(DOCS).parts)}
    assert not written - reached


@pytest.mark.parametrize("page", ["docs/design.md", "CONTRIBUTING.md"])
def test_files_that_a_page_names_exist(page: str) -> None:
    named = set(NAMED_FILE.findall((ROOT / page).read_text(encoding="utf-8")))
    assert len(named) > 5
    folders = (
        ".",
        "flambeau",
        "flambeau/_ops",
        "flambeau/_dispatch",
        "flambeau/_backends",
        "flambeau/_codegen",
        "flambeau/_core",
        "flambeau/autograd",
        "tests",
        "tests/support",
        "tools",
    )
    missing = [name for name in named if not any((ROOT / folder / name).exists() for folder in folders)]
    assert not missing


def test_design_shows_ops_as_they_are_defined() -> None:
    """The definitions that design.md quotes stand in the code, word for word."""
    quoted = [body for language, body in fences("design.md") if language == "python"]
    assert len(quoted) >= 2
    code = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "flambeau/_ops").rglob("*.py"))
    for body in quoted:
        definition = re.sub(r"\A# flambeau/\S+\n", "", body)  # where it stands
        assert definition in code, body


# ----- docstrings ---------------------------------------------------------------------------------------------------


def files_with_examples() -> list[tuple[Path, str]]:
    """Few files of the package have any: the others need neither be imported nor parsed for them."""
    texts = [(path, path.read_text(encoding="utf-8")) for path in sorted((ROOT / "flambeau").rglob("*.py"))]
    return [(path, text) for path, text in texts if ">>>" in text]


def modules_with_examples() -> Iterator[ModuleType]:
    # `autograd.gradcheck` names a function and the module that it is in; whichever is asked for first stays. The import
    # at the top of this file has asked for the function, as programs do.
    for path, _ in files_with_examples():
        *folders, file = path.relative_to(ROOT).with_suffix("").parts
        # Modules in `_torch` load under PyTorch's paths; a second load would hide the functions of the same names.
        parts = [each for each in (*folders, file) if each not in ("_torch", "__init__")]
        yield importlib.import_module(".".join(parts))


class Finder(doctest.DocTestFinder):
    """Finds examples of classes too that say that they stand elsewhere, as those of PyTorch's names do."""

    def _from_module(self, module: ModuleType | None, object: Any) -> bool:
        ours: bool = super()._from_module(module, object)  # type: ignore[misc]
        if ours or module is None or not isinstance(object, type):
            return ours
        return _defines(module, object)


@cache
def _text_of(module: ModuleType) -> str:
    return Path(module.__file__ or "").read_text(encoding="utf-8")


def _defines(module: ModuleType, cls: type) -> bool:
    return re.search(rf"^class {cls.__name__}\b", _text_of(module), re.MULTILINE) is not None


def examples_in(module: ModuleType, finder: doctest.DocTestFinder) -> list[doctest.DocTest]:
    """The examples of a module; to look at its functions may import more of its package, which then has more names."""
    names: set[str] = set()
    while names != set(vars(module)):
        names = set(vars(module))
        with contextlib.suppress(RuntimeError):
            found = finder.find(module, module.__name__, extraglobs={"flambeau": flambeau, "torch": flambeau})
    return found


def documented_examples() -> list[doctest.DocTest]:
    """One for each docstring with examples: a function is found in its file, and again where it is public."""
    finder = Finder(exclude_empty=True)
    found = {
        test.docstring: test
        for module in modules_with_examples()
        for test in examples_in(module, finder)
        if test.examples
    }
    return list(found.values())


EXAMPLES = documented_examples()
ON_A_DEVICE = tuple(
    f"flambeau.cuda._{name}." for name in ("device", "memory", "random", "streams", "graphs", "nccl", "green_contexts")
)
"""Modules whose examples need a CUDA device: `tests/cuda/on_device` runs them, on the simulated one too."""
IN_TWO_PROCESSES = ("flambeau.distributed.",)
"""Modules whose examples several processes run together: `tests/distributed` does."""
HERE = [each for each in EXAMPLES if not each.name.startswith((*ON_A_DEVICE, *IN_TWO_PROCESSES))]


def complaints_about(test: doctest.DocTest) -> str:
    """What an example prints otherwise than it shows."""
    found: list[str] = []
    doctest.DocTestRunner(verbose=False).run(test, out=found.append, clear_globs=False)
    return "".join(found)


@pytest.mark.parametrize("test", HERE, ids=lambda test: test.name)
def test_docstring_example(test: doctest.DocTest) -> None:
    assert not complaints_about(test)


def test_every_docstring_example_is_collected() -> None:
    """None hides in a place where doctest does not look, such as an attribute's or a nested function's docstring."""
    collected = {(each.source, each.want) for test in EXAMPLES for each in test.examples}
    for path, text in files_with_examples():
        for node in ast.walk(ast.parse(text)):
            value = node.value if isinstance(node, ast.Constant) else None
            if isinstance(value, str) and ">>>" in value:
                written = doctest.DocTestParser().get_examples(value)
                assert not [each for each in written if (each.source, each.want) not in collected], path


def test_published_functions_keep_their_docs() -> None:
    bare = [
        f"{space}.{name}".lstrip(".")
        for space, functions in FUNCTIONS.items()
        for name, value in functions.items()
        if not (resolved(value).__doc__ or "").strip()
    ]
    assert not bare
    named = {
        name: value for name, value in METHODS.items() if not name.startswith("__")
    }  # operators speak for themselves
    assert not [name for name, value in named.items() if not (resolved(value).__doc__ or "").strip()]


def test_published_function_shows_the_doc_of_the_code_that_computes() -> None:
    from flambeau._ops.reduce import reductions as reduce

    published: Any = flambeau.sum
    assert published is not reduce.sum
    first_sentence = (reduce.sum.__doc__ or "").splitlines()[0]
    assert (published.__doc__ or "").startswith(first_sentence)
    assert published.__name__ == "sum"
