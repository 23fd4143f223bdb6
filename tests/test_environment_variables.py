"""Every variable of the environment that the package reads stands on the page about them."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
_READ = re.compile(r"""environ(?:\.get\(|\[)\s*["']([A-Z_]+)["']""")
_OWN = re.compile(r"\bFLAMBEAU_[A-Z_]+\b")
_OF_OTHERS = {"CONDA_EXE", "CXX", "PYTHONPATH", "RAY_ADDRESS", "TERM", "XDG_CACHE_HOME", "CUDA_MODULE_LOADING"}
"""Variables that belong to other programs, and that a user would not set for Flambeau's sake."""
_PREFIXES_OF_OTHERS = ("OMPI_", "SLURM_", "TORCHELASTIC_", "FX_GRAPH_", "ENABLE_PYTORCH_")


def test_every_variable_is_documented() -> None:
    page = (ROOT / "docs" / "environment-variables.md").read_text(encoding="utf-8")
    names = set()
    for path in (ROOT / "flambeau").rglob("*.py"):
        source = path.read_text(encoding="utf-8")
        names |= {*_READ.findall(source), *_OWN.findall(source)}
    ours = {each for each in names if each not in _OF_OTHERS and not each.startswith(_PREFIXES_OF_OTHERS)}
    assert sorted(each for each in ours if each not in page) == []


def test_every_own_variable_of_the_page_exists() -> None:
    page = (ROOT / "docs" / "environment-variables.md").read_text(encoding="utf-8")
    sources = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "flambeau").rglob("*.py"))
    assert sorted(each for each in set(_OWN.findall(page)) if each not in sources) == []
