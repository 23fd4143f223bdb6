"""A pytest plugin that hides optional packages, as on a machine where they are not installed.

FLAMBEAU_TEST_WITHOUT=ml_dtypes,llvmlite,onednn python -m pytest -p tests.support.missing_packages_plugin tests/nn
"""

from __future__ import annotations

import os
import sys
from typing import Any


def hide(names: str) -> None:
    """Make the packages in a list with commas impossible to import. Before Flambeau is imported."""
    for name in filter(None, names.split(",")):
        if name == "onednn":  # a library that is loaded by its file name
            os.environ["FLAMBEAU_ONEDNN"] = "0"
        else:
            absent: Any = None
            sys.modules[name] = absent


hide(os.environ.get("FLAMBEAU_TEST_WITHOUT", ""))
