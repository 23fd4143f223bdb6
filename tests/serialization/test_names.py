"""Every class that both libraries have is written under PyTorch's name for it, and found under that name."""

from __future__ import annotations

import importlib
from typing import Any

import pytest
import torch as pytorch

import flambeau
from flambeau._serialization.names import object_named, torch_name


def classes(place: str) -> list[tuple[Any, Any]]:
    theirs, ours = importlib.import_module(f"torch{place}"), importlib.import_module(f"flambeau{place}")
    found = [
        (each, getattr(ours, name))
        for name, each in vars(theirs).items()
        if isinstance(each, type) and each.__module__.startswith("torch") and hasattr(ours, name)
    ]
    assert found
    return found


@pytest.mark.parametrize("place", [".nn", ".optim", ".optim.lr_scheduler", ".distributions", ".nn.parameter"])
def test_classes(place: str) -> None:
    for theirs, ours in classes(place):
        module, name = torch_name(ours) or ("", "")
        assert getattr(importlib.import_module(module), name, None) is theirs, f"{ours} is written as {module}.{name}"
        assert object_named(theirs.__module__, theirs.__qualname__) is ours


@pytest.mark.parametrize("name", ["relu", "softmax", "stack"])
def test_functions(name: str) -> None:
    assert torch_name(getattr(flambeau, name)) == ("torch", name)
    assert object_named("torch", name) is getattr(flambeau, name)
    assert getattr(object_named("torch._C", "_VariableFunctionsClass"), name) is getattr(flambeau, name)


def test_what_is_not_flambeaus_keeps_its_name() -> None:
    assert torch_name(classes) is None
    assert torch_name(pytorch.nn.Linear) is None
