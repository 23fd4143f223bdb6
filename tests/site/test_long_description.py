"""README.md as PyPI shows it: its links absolute, rendered by PyPI's own renderer."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tools.readme import absolute, with_addresses, with_badges

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
SETTINGS = (Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8")
REPOSITORY = "https://example.org/someone/flambeau"


def test_links_become_absolute() -> None:
    text = absolute(README, REPOSITORY)
    assert not [link for link in re.findall(r"\]\(([^)]+)\)", text) if not link.startswith("https://")]
    assert f"]({REPOSITORY}/blob/main/docs/compile.md)" in text
    assert f"]({REPOSITORY}/raw/main/docs/profile.png)" in text
    assert absolute(text, REPOSITORY) == text


def test_it_has_one_example_one_table_and_one_picture() -> None:
    assert README.count("```python") == 1
    assert len(re.findall(r"^\|---", README, re.MULTILINE)) == 1
    assert README.count("![") == 1


def test_a_release_has_badges_and_names_its_addresses() -> None:
    text = absolute(with_badges(README, REPOSITORY), REPOSITORY)
    assert text.startswith("# Flambeau\n\n[![tests](")
    assert text.count(f"{REPOSITORY}/actions/workflows/tests.yml/badge.svg") == 1
    tomllib = pytest.importorskip("tomllib", reason="Python 3.10 has no reader of TOML")
    project = tomllib.loads(with_addresses(SETTINGS, REPOSITORY, "https://example.org/site"))["project"]
    assert project["urls"]["Documentation"] == "https://example.org/site"
    assert project["scripts"] == tomllib.loads(SETTINGS)["project"]["scripts"]


def test_pypi_renders_it() -> None:
    markdown = pytest.importorskip("readme_renderer.markdown", reason="readme-renderer is not installed")
    page = markdown.render(absolute(README, REPOSITORY))
    if page is None:
        pytest.skip("readme-renderer has no Markdown: pip install 'readme-renderer[md]'")
    assert page.count("<table>") == 1
    assert page.count("<img") == 1
    assert f'href="{REPOSITORY}/blob/main/docs/learn/index.md"' in page
    assert "](" not in page
