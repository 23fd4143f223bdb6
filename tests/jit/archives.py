"""Archives that PyTorch writes, read by Flambeau: what the tests of this folder share."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable
from typing import Any

import torch as pytorch

import flambeau
from tests.conformance.compare import Tolerance, differences
from tests.conformance.translate import translate


def archive_of(module: Any, **options: Any) -> io.BytesIO:
    """The bytes that PyTorch's `jit.save` writes for a scripted or traced module."""
    buffer = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pytorch.jit.save(module, buffer, **options)
    buffer.seek(0)
    return buffer


def quietly(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """A call whose warnings are nobody's business: PyTorch deprecates TorchScript at every use."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return function(*args, **kwargs)


def scripted(module: Any) -> Any:
    """PyTorch's scripted form of a module or function."""
    return quietly(pytorch.jit.script, module)


def loaded(module: Any) -> Any:
    """A module that PyTorch scripted or traced, through its archive, in Flambeau."""
    return flambeau.jit.load(archive_of(module))


def compare_calls(expected: Any, actual: Any, *args: Any, tolerance: Tolerance | None = None, **kwargs: Any) -> None:
    """Fail where both modules, called with the same arguments and seed, differ."""
    pytorch.manual_seed(1)
    wanted = quietly(expected, *args, **kwargs)
    flambeau.manual_seed(1)
    found = quietly(actual, *translated(args), **translated(kwargs))
    wrong = list(differences(wanted, found, tolerance or Tolerance(1e-5, 1e-5)))
    assert not wrong, wrong[:5]


def translated(value: Any) -> Any:
    """Flambeau's counterpart of arguments."""
    if isinstance(value, dict):
        return {key: translated(each) for key, each in value.items()}
    if isinstance(value, tuple) and not hasattr(value, "_fields"):
        return tuple(map(translated, value))
    return translate(value)
