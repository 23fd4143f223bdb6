"""Windows, macOS and the browser, stood in for: small programs agree with PyTorch, without what these systems lack.

The parts of Python that differ there are taken away before Flambeau is imported. It is not the system itself: its C
library and its file system are not tested. Generated code stays off for Windows here, since it would call that system's
functions; `_codegen/test_targets.py` writes it. `FLAMBEAU_WINDOWS_PYTHON`, the path of a `python.exe` that has
Flambeau's dependencies and finds this folder, lets the programs run there, under Wine.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

from .support.process_programs import EXPECTED
from .support.small_programs import differences, results

ROOT = Path(__file__).parent.parent
NOT_ON_WINDOWS = (
    "fork", "forkpty", "register_at_fork", "memfd_create", "sched_getaffinity", "sched_setaffinity", "sysconf",
    "getuid", "geteuid", "killpg", "getpgid", "setsid", "posix_fallocate", "mkfifo", "pipe2", "uname", "getloadavg",
)  # fmt: skip
NOT_ON_MACOS = ("memfd_create", "sched_getaffinity", "sched_setaffinity", "posix_fallocate", "pipe2")
NOT_IN_BROWSER = (*NOT_ON_WINDOWS, "thread_time", "pthread_getcpuclockid")
MODULES_NOT_IN_BROWSER = ("llvmlite", "ml_dtypes", "resource")
MODULES_NOT_ON_WINDOWS = ("fcntl", "resource", "pwd", "grp", "termios")

PROGRAM = """
import json, sys
platform, names, modules = json.loads(sys.argv[1])
# Python's own modules look at the platform when they are imported.
import asyncio, concurrent.futures, ctypes, ctypes.util, multiprocessing.connection, multiprocessing.pool
import multiprocessing.queues, multiprocessing.reduction, multiprocessing.resource_tracker
import multiprocessing.shared_memory, multiprocessing.spawn, multiprocessing.synchronize
import os, selectors, signal, socket, subprocess, tempfile, threading, time
import numpy, numpy.random, numpy.linalg, numpy.fft
for name in names:
    for module in (os, time):
        if hasattr(module, name):
            delattr(module, name)
for name in modules:
    sys.modules[name] = None
if platform == "win32":
    del signal.SIGKILL, socket.AF_UNIX
    real, access = os.path.isdir, os.access
    os.path.isdir = lambda path: path != "/dev/shm" and real(path)
elif platform == "darwin":
    import llvmlite.binding
sys.platform = platform
from tests.support.small_programs import PROGRAMS
import flambeau
print(json.dumps({name: program(flambeau) for name, program in PROGRAMS.items()}))
import importlib, pkgutil, types, warnings
warnings.simplefilter("ignore")
sys.modules.setdefault("_scproxy", types.SimpleNamespace(_get_proxy_settings=None, _get_proxies=None))  # of macOS
for module in pkgutil.walk_packages(flambeau.__path__, "flambeau."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
print("imported")
"""


def differing(found: dict[str, Any]) -> list[str]:
    """The programs of which PyTorch has other results."""
    torch = pytest.importorskip("torch")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch's own
        return list(differences(found, results(torch)))


LACKING: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "win32": (NOT_ON_WINDOWS, MODULES_NOT_ON_WINDOWS),
    "darwin": (NOT_ON_MACOS, ()),
    "emscripten": (NOT_IN_BROWSER, MODULES_NOT_IN_BROWSER),
}
"""What a platform lacks: names of `os` and `time`, and modules."""


@pytest.mark.parametrize("platform", LACKING)
def test_programs_agree_with_pytorch_on(platform: str) -> None:
    windows = platform == "win32"
    given = json.dumps([platform, *LACKING[platform]])
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "FLAMBEAU_ONEDNN": "0"}
    if windows:
        environment["FLAMBEAU_GENERATED"] = "0"
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM, given], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr[-3000:]
    found, imported = run.stdout.splitlines()[-2:]
    assert imported == "imported"
    assert not differing(json.loads(found))


WINE = next((path for path in map(shutil.which, ("wine64", "wine", "/usr/lib/wine/wine64")) if path), None)
UNDER_WINE = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
import json
from tests.support.small_programs import PROGRAMS
import flambeau
from flambeau._backends import tiers
from flambeau._codegen.machine import threads
found = {{name: program(flambeau) for name, program in PROGRAMS.items()}}
assert sys.platform == "win32" and tiers.FAMILIES["pointwise"] is not None
flambeau.set_num_threads(2)
flambeau.ones(1 << 20).exp()
assert threads.pool_size() == 1
print(json.dumps(found))
"""


@pytest.mark.skipif(
    WINE is None or "FLAMBEAU_WINDOWS_PYTHON" not in os.environ, reason="no Wine, or no Python for Windows"
)
def test_programs_agree_with_pytorch_under_wine() -> None:
    assert WINE is not None
    command = [WINE, os.environ["FLAMBEAU_WINDOWS_PYTHON"], "-c", UNDER_WINE]
    environment = {**os.environ, "WINEDEBUG": "-all"}
    run = subprocess.run(
        command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stdout[-3000:] + run.stderr[-3000:]
    assert not differing(json.loads(run.stdout.splitlines()[-1]))


def _run_with_several_processes(python: list[str], environment: dict[str, str]) -> None:
    command = [*python, "-m", "tests.support.process_programs"]
    run = subprocess.run(
        command, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stdout[-3000:] + run.stderr[-3000:]
    assert dict(json.loads(line) for line in run.stdout.splitlines() if line.startswith("[")) == EXPECTED


def test_programs_with_several_processes() -> None:
    """Processes are spawned, as Windows does it, although this system could fork."""
    _run_with_several_processes([sys.executable], {**os.environ, "PYTHONPATH": str(ROOT)})


@pytest.mark.skipif(
    WINE is None or "FLAMBEAU_WINDOWS_PYTHON" not in os.environ, reason="no Wine, or no Python for Windows"
)
def test_programs_with_several_processes_under_wine() -> None:
    assert WINE is not None
    # Names of files have other letters than English ones.
    environment = {**os.environ, "WINEDEBUG": "-all", "LC_ALL": "C.UTF-8"}
    _run_with_several_processes([WINE, os.environ["FLAMBEAU_WINDOWS_PYTHON"]], environment)
