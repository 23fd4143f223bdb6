"""What the README promises: its examples print what it shows, its links lead somewhere, its demo trains."""

from __future__ import annotations

import doctest
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import flambeau
from tools.gallery import PROGRAMS

ROOT = Path(__file__).parent.parent
GENERATED = {ROOT / "docs" / "reference", ROOT / "docs" / "_build"}
"""What `make docs` writes."""
PAGES = [
    page
    for page in sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*.md")])
    if GENERATED.isdisjoint(page.parents)
]
PYTHON_BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)\s]*)?\)")
PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"


def line_of(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1


def readme_blocks() -> list[tuple[int, str]]:
    """Each Python block of the README with the line that it starts on."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    return [(line_of(text, match.start(1)), match.group(1)) for match in PYTHON_BLOCK.finditer(text)]


def test_readme_has_an_example_with_output() -> None:
    parser = doctest.DocTestParser()
    assert any(example.want for _, block in readme_blocks() for example in parser.get_examples(block))


def test_readme_examples_print_what_the_readme_shows() -> None:
    """All blocks run in order in one namespace, as a reader would type them."""
    namespace: dict[str, object] = {}
    complaints: list[str] = []
    runner = doctest.DocTestRunner(verbose=False)
    for line, block in readme_blocks():
        test = doctest.DocTestParser().get_doctest(block, namespace, "README.md", "README.md", line - 1)
        assert test.examples, f"README.md line {line}: a python block without '>>>' is not checked"
        runner.run(test, out=complaints.append, clear_globs=False)
        namespace = test.globs
    assert not complaints, "".join(complaints)


def test_readme_names_targets_of_the_makefile() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    named = set(re.findall(r"\bmake (\w+)", (ROOT / "README.md").read_text(encoding="utf-8")))
    assert {"demo", "test"} <= named
    assert all(re.search(rf"^{target}:", makefile, re.MULTILINE) for target in named)


def test_gpus_are_absent_as_the_readme_says() -> None:
    assert not flambeau.cuda.is_available()


def test_pages_count_tutorials_lessons_and_programs() -> None:
    """The first page, the README and the changes say how many there are."""
    tutorials, lessons = (
        [each for each in (ROOT / "docs/learn" / folder).glob("*.md") if each.stem != "index"]
        for folder in ("", "engine")
    )
    words = {9: "nine", 10: "ten", 18: "eighteen"}
    index, readme = ((ROOT / page).read_text(encoding="utf-8").lower() for page in ("docs/index.md", "README.md"))
    for text in (index, readme):
        assert f"{words[len(tutorials)]} tutorials" in text
        assert f"{words[len(lessons)]} lessons" in text
    assert f"{words[len(PROGRAMS)]} complete programs" in index
    assert f"gallery of {len(PROGRAMS)} programs" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_readme_counts_what_the_compatibility_page_counts() -> None:
    """The number of operators that pass stands in both."""
    passing = json.loads((ROOT / "docs/compatibility.json").read_text())["summary"]["all dtypes"]
    assert f"{passing} of 702 pass in everything" in (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_relative_links_lead_to_files(page: Path) -> None:
    targets = [target for target in LINK.findall(page.read_text(encoding="utf-8")) if "://" not in target]
    missing = [target for target in targets if not (page.parent / target).exists()]
    assert not missing


def test_demo_trains_and_draws(tmp_path: Path) -> None:
    """One epoch of `make demo`'s program: it must learn, write no terminal codes into a pipe, and save a picture."""
    picture = tmp_path / "new folder" / "curves.png"
    run = subprocess.run(
        [sys.executable, ROOT / "examples/digits/train.py", "--epochs", "1", "--out", picture],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    accuracy = re.search(r"final test accuracy: ([\d.]+)%", run.stdout)
    assert accuracy is not None, run.stdout
    assert float(accuracy.group(1)) > 80  # chance is 10; PyTorch reaches 90 with the same seed
    assert "\r" not in run.stdout
    assert "\033" not in run.stdout
    assert picture.read_bytes().startswith(PNG_SIGNATURE)
