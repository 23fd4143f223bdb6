"""The packages of devices that are not there answer as PyTorch's build for the CPU does."""

from __future__ import annotations

import importlib
import inspect
import warnings
from typing import Any

import pytest
import torch as pytorch

import flambeau

_PLAIN: dict[str, Any] = {"device": 0, "seed": 0, "size": 1, "fraction": 0.5, "enabled": True, "peer_device": 0}
_DIFFERENT = {
    "memory_summary": "PyTorch fails on its own empty statistics",
    "list_gpu_processes": "a text",
    "attach_out_of_memory_observer": "PyTorch looks at its argument first",
    "load_metallib": "PyTorch looks at its argument first",
    "make_graphed_callables": "PyTorch looks at its arguments first",
    "set_stream": "PyTorch looks at its argument first",
    "is_macos_or_newer": "PyTorch looks at its arguments first",
}


def answer(function: Any, arguments: list[Any]) -> Any:
    """What a call gives, or the class of its error."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            result = function(*arguments)
        except Exception as error:
            return type(error).__name__
    return result if isinstance(result, (bool, int, str, list, dict, type(None))) else "an object"


def functions(module: str) -> list[str]:
    theirs = importlib.import_module(f"torch.{module}")
    names = getattr(theirs, "__all__", None) or dir(theirs)
    return [
        each
        for each in names
        if not each.startswith("_")
        and inspect.isfunction(getattr(theirs, each))
        and each not in _DIFFERENT
        and str(getattr(theirs, each).__module__).startswith(f"torch.{module}")
    ]


@pytest.mark.parametrize(
    "module", ["cuda", "cuda.memory", "cuda.random", "xpu", "xpu.memory", "mtia", "mps", "accelerator"]
)
def test_functions_answer_as_pytorchs(module: str) -> None:
    names = functions(module)
    assert len(names) >= 4
    differing = {}
    for name in names:
        theirs = getattr(importlib.import_module(f"torch.{module}"), name)
        ours = getattr(importlib.import_module(f"flambeau.{module}"), name)
        needed = [
            each
            for each in inspect.signature(theirs).parameters.values()
            if each.default is each.empty and each.kind < 2
        ]
        if any(each.name not in _PLAIN for each in needed):
            continue
        arguments = [_PLAIN[each.name] for each in needed]
        expected, actual = answer(theirs, arguments), answer(ours, arguments)
        if expected != actual and "an object" not in (expected, actual):
            differing[name] = (expected, actual)
    assert not differing


def test_an_absent_device_says_which() -> None:
    with pytest.raises(AssertionError, match="Torch not compiled with CUDA enabled"):
        flambeau.cuda.synchronize()
    with pytest.raises(RuntimeError, match="accelerator device when none is available"):
        flambeau.accelerator.current_stream()
    with pytest.raises(NotImplementedError, match="Could not run 'aten::cudnn_grid_sampler'"):
        flambeau.cudnn_grid_sampler(flambeau.ones(1), flambeau.ones(1))


def test_contexts_of_no_device_do_nothing() -> None:
    for torch in (pytorch, flambeau):
        with torch.cuda.device_of(torch.ones(1)), torch.cuda.stream(None):
            assert torch.ones(1).device.type == "cpu"
