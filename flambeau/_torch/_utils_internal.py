"""Names of `torch._utils_internal` that programs use."""

from __future__ import annotations

import os
from pathlib import Path

TEST_MASTER_ADDR = "127.0.0.1"
TEST_MASTER_PORT = 29500
USE_GLOBAL_DEPS = True
USE_RTLD_GLOBAL_WITH_LIBTORCH = False


def get_file_path(*path_components: str) -> str:
    """A path below the folder that holds the package."""
    return os.path.join(Path(__file__).parents[2], *path_components)


def prepare_multiprocessing_environment(path: str) -> None:
    """Nothing has to be prepared."""


def resolve_library_path(path: str) -> str:
    """The path without links."""
    return os.path.realpath(path)
