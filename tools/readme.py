"""Writes into README.md and pyproject.toml what a release knows: the addresses of the repository and of the site.

`python tools/readme.py REPOSITORY SITE`, two addresses: links of README.md become absolute, as PyPI needs them,
badges show what the repository's workflows and PyPI say, and the package names both addresses, so that errors can cite
pages of the site. The release's workflow does it before it builds: in a checkout relative links are the ones that work.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
README, SETTINGS = ROOT / "README.md", ROOT / "pyproject.toml"
_LINK = re.compile(r"(!?)\[([^]]*)\]\((?!\w+:|#)([^)\s]+)\)")


def absolute(text: str, repository: str) -> str:
    """`text` with links to files of the repository at this address; pictures as they are, pages as they are shown."""
    base = repository.rstrip("/")
    return _LINK.sub(
        lambda found: f"{found[1]}[{found[2]}]({base}/{'raw' if found[1] else 'blob'}/main/{found[3]})", text
    )


def with_badges(text: str, repository: str) -> str:
    """`text` with badges below its title: whether the tests pass, the newest release, the Pythons it is for."""
    tests = f"{repository.rstrip('/')}/actions/workflows/tests.yml"
    on_pypi = "https://pypi.org/project/flambeau"
    badges = [
        f"[![tests]({tests}/badge.svg)]({tests})",
        f"[![PyPI](https://img.shields.io/pypi/v/flambeau)]({on_pypi})",
        f"[![Python](https://img.shields.io/pypi/pyversions/flambeau)]({on_pypi})",
    ]
    return text.replace("# Flambeau\n", "# Flambeau\n\n" + " ".join(badges) + "\n", 1)


def with_addresses(settings: str, repository: str, site: str) -> str:
    """The text of pyproject.toml with the addresses that the package names."""
    base = repository.rstrip("/")
    addresses = {"Repository": base, "Documentation": site, "Changelog": f"{base}/blob/main/CHANGELOG.md"}
    lines = ["[project.urls]", *(f'{name} = "{address}"' for name, address in addresses.items()), "", ""]
    return settings.replace("[project.scripts]\n", "\n".join(lines) + "[project.scripts]\n", 1)


if __name__ == "__main__":
    repository, site = sys.argv[1:]
    README.write_text(absolute(with_badges(README.read_text("utf-8"), repository), repository), encoding="utf-8")
    SETTINGS.write_text(with_addresses(SETTINGS.read_text("utf-8"), repository, site), encoding="utf-8")
