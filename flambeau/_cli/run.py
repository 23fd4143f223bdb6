"""`flambeau run`: a PyTorch script with Flambeau in PyTorch's place."""

from __future__ import annotations

import argparse
import importlib.util
import io
import os
import re
import runpy
import sys
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType, TracebackType

from .. import _RELEASE
from .._core.names.documentation import page
from .._core.tensor import Tensor
from .._torch._stand_in import FOLDER, PACKAGE, stand_in_for_torch
from .terminal import CommandError, coloured, say

SUMMARY = "run a PyTorch script on Flambeau"
DESCRIPTION = "Run a Python program in which `import torch` gives Flambeau. Processes that it starts get Flambeau too."

_OWN_FILES = frozenset({__file__, runpy.__file__, "<frozen runpy>", "<frozen importlib._bootstrap>"})
_INTERRUPTED = 130


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the command."""
    parser.add_argument("-m", dest="module", action="store_true", help="SCRIPT is the name of a module, as python -m")
    parser.add_argument("script", metavar="SCRIPT", help="the file of the program, or the name of a module after -m")
    parser.add_argument("arguments", metavar="...", nargs=argparse.REMAINDER, help="the arguments of the program")


def run(arguments: argparse.Namespace) -> int:
    """Run the program as `__main__`; gives its exit code."""
    stand_in_for_torch()
    # Processes that the program starts import torch from this folder: see the file there.
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [FOLDER, os.environ.get("PYTHONPATH")]))
    sys.argv = [arguments.script, *arguments.arguments]
    try:
        if arguments.module:
            _run_module(arguments.script)
        else:
            _run_file(arguments.script)
    except KeyboardInterrupt as error:
        _show(error)
        return _INTERRUPTED
    except Exception as error:
        if isinstance(error, CommandError):
            raise
        _show(error)
        return 1
    return 0


def _set_path(folder: str) -> None:
    """Put the program's folder where Python puts it, and the one with our `torch` behind it."""
    if getattr(sys.flags, "safe_path", False):  # python -P: no such folder is wanted
        sys.path.insert(0, FOLDER)
    else:
        sys.path[:1] = [folder, FOLDER]


def _run_file(name: str) -> None:
    try:
        with io.open_code(os.path.abspath(name)) as file:
            source = file.read()
    except OSError as error:
        raise CommandError(f"can't open file {name!r}: {error.strerror}", 2) from None
    _set_path(str(Path(name).resolve().parent))
    code = compile(source, name, "exec", dont_inherit=True)
    main = ModuleType("__main__")
    main.__file__ = name
    main.__loader__ = SourceFileLoader("__main__", name)
    main.__dict__["__builtins__"] = __builtins__
    main.__dict__["__cached__"] = None
    sys.modules["__main__"] = main
    exec(code, main.__dict__)


def _run_module(name: str) -> None:
    _set_path(str(Path.cwd()))
    try:
        found = importlib.util.find_spec(name)
    except (ModuleNotFoundError, ValueError):
        found = None
    if found is None:
        raise CommandError(f"no module named {name!r}", 2)
    runpy.run_module(name, run_name="__main__", alter_sys=True)


def _show(error: BaseException) -> None:
    """Print the error as Python would, from the program's first line on."""
    error.__traceback__ = _from_the_program(error.__traceback__)
    sys.excepthook(type(error), error, error.__traceback__)
    lacking = _lacking(error)
    if lacking:
        say(
            f"{coloured('flambeau:', 'yellow', sys.stderr)} Flambeau {_RELEASE} stands in for torch here, and has "
            f"no {lacking}. {page('names')} lists what it has",
            sys.stderr,
        )


def _from_the_program(traceback: TracebackType | None) -> TracebackType | None:
    while traceback is not None and traceback.tb_frame.f_code.co_filename in _OWN_FILES:
        traceback = traceback.tb_next
    return traceback


def _lacking(error: BaseException) -> str | None:
    """The name of PyTorch's that an error says Flambeau does not have."""
    if isinstance(error, AttributeError):
        owner = error.obj
        if isinstance(owner, ModuleType) and _is_ours(owner.__name__):
            return ".".join(["torch", *owner.__name__.split(".")[1:], str(error.name)])
        if isinstance(owner, Tensor) and type(owner) is Tensor:
            return f"torch.Tensor.{error.name}"
    name = re.search(r"cannot import name '(\w+)'", str(error)) if isinstance(error, ImportError) else None
    if name and isinstance(error, ImportError) and _is_ours(error.name or ""):
        return ".".join(["torch", *(error.name or "").split(".")[1:], name[1]])
    return None


def _is_ours(module: str) -> bool:
    return module.partition(".")[0] in (PACKAGE, "torch")
