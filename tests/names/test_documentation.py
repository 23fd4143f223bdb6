"""Messages cite pages of the documentation's site, and each page that one cites is there."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace

import pytest

from flambeau._core.names import documentation

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "flambeau"


def trees() -> Iterator[tuple[Path, ast.Module]]:
    for path in sorted(PACKAGE.rglob("*.py")):
        yield path, ast.parse(path.read_text(encoding="utf-8"))


def test_every_cited_page_is_there() -> None:
    cited, files = set(), []
    for path, tree in trees():
        texts = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}  # docstrings
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "page" and node.args:
                argument = node.args[0]
                if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                    cited.add(argument.value)
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in texts:
                files += [f"{path}:{node.lineno}"] if "docs/" in node.value and ".md" in node.value else []
    assert cited >= {"names", "sparse"}
    assert [each for each in sorted(cited) if not (ROOT / "docs" / f"{each}.md").is_file()] == []
    assert files == [], "cite the page by flambeau._core.names.documentation.page"


@pytest.fixture(autouse=True)
def forget() -> Iterator[None]:
    documentation.page.cache_clear()
    yield
    documentation.page.cache_clear()


def test_a_release_names_its_site(monkeypatch: pytest.MonkeyPatch) -> None:
    addresses = ["Repository, https://example.org/code", "Documentation, https://example.org/site/"]
    installed = SimpleNamespace(get_all=lambda name: addresses if name == "Project-URL" else None)
    monkeypatch.setattr(metadata, "metadata", lambda name: installed)
    assert documentation.page("names") == "https://example.org/site/names.html"


def test_a_checkout_names_the_site_that_it_built(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(documentation, "_published", lambda: "")
    monkeypatch.setattr(documentation, "_BUILT", tmp_path)
    assert documentation.page("names") == "names.html of Flambeau's documentation"
    documentation.page.cache_clear()
    (tmp_path / "names.html").touch()
    assert documentation.page("names") == (tmp_path / "names.html").as_uri()


def test_a_package_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> None:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "metadata", absent)
    assert documentation.page("names").endswith(("names.html", "names.html of Flambeau's documentation"))
