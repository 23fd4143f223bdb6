"""Wrong calls by family (`refused_calls.txt`): PyTorch's type of error, and the words that people search for."""

from __future__ import annotations

import copy
import importlib
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy
import pytest

import flambeau

pytorch = pytest.importorskip("torch")

_FILE = Path(__file__).with_name("refused_calls.txt")
_BEGINNING = 9
"""So many words of a message are looked at: further ones are about the case."""
_ENOUGH = 0.6

_COMPUTED = "PyTorch's backward has only the result of the change; Flambeau kept the input and gives its gradient"
_MEMORY = "which step runs out of memory first is the implementation's"
_CLEARER = "the message names the argument, where PyTorch's is about a line of its own code"
_OTHERWISE = {
    "F.leaky_relu_(ones(2, requires_grad=True) * 1, -1.0).sum().backward()": _COMPUTED,
    "F.elu_(ones(2, requires_grad=True) * 1, -1.0).sum().backward()": _COMPUTED,
    "F.conv2d(image, kernel, padding=2 ** 40)": _MEMORY,
    "F.pad(image, (2 ** 62, 2 ** 62))": _MEMORY,
    "F.pad(image, (2 ** 50, 0))": _MEMORY,
    "torch.segment_reduce(ones(4), 'sum', lengths=ones(1))": "there is no kernel for lengths that are no integers",
    "F.conv2d(image, kernel.double())": "PyTorch's other convolutions say it in these words",
    "F.adaptive_avg_pool2d(ones(2), 1)": _CLEARER,
    "F.fractional_max_pool2d(image, 2, output_ratio=1.5)": _CLEARER,
    "F.pad(image, (-5, 0, 0, 0), mode='replicate')": _CLEARER,
    "F.unfold(ones(2), 1)": _CLEARER,
    "F.group_norm(ones(2, 3, 2), 0)": _CLEARER,
    "F.binary_cross_entropy(ones(2), ones(2), ones(3))": _CLEARER,
    "torch.istft(torch.zeros(3, 9, dtype=torch.complex64), 4, window=torch.zeros(4))": _CLEARER,
}
"""Calls that are answered in another way, with the reason. A call that is answered as by PyTorch leaves the list."""


def _families() -> Iterator[tuple[str, list[str]]]:
    for block in _FILE.read_text().split("\n\n"):
        title, *calls = block.strip().split("\n")
        yield title.removeprefix("# "), calls


def _names(torch: Any) -> dict[str, Any]:
    """What the calls are written with."""
    forward_ad = torch.autograd.forward_ad

    def longs(*values: int) -> Any:
        return torch.tensor(values)

    def dual(function: Any) -> Any:
        with forward_ad.dual_level():
            return function(lambda x: forward_ad.make_dual(x, torch.ones_like(x)))

    importlib.import_module(f"{torch.__name__}.nn.utils.prune")  # neither package loads it by itself
    return {
        "torch": torch, "nn": torch.nn, "F": torch.nn.functional, "forward_ad": forward_ad, "np": numpy, "copy": copy,
        "__name__": __name__,
        "ones": torch.ones, "longs": longs, "dual": dual, "nan": float("nan"), "inf": float("inf"),
        "table": torch.ones(4, 2), "image": torch.ones(1, 1, 4, 4), "kernel": torch.ones(1, 1, 2, 2),
        "matrix": torch.ones(2, 3), "labels": longs(0, 1), "log_probs": torch.ones(4, 2, 3).log_softmax(2),
        "with_nan": torch.tensor([[float("nan"), 0], [0, 1.0]]),
    }  # fmt: skip


def _answer(call: str, names: dict[str, Any]) -> Exception | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            eval(call, names)
    except Exception as error:
        return error
    return None


def _words(text: str) -> list[str]:
    return re.findall(r"[a-z_']+", text.lower())


def _difference(call: str, expected: Exception | None, actual: Exception | None) -> str | None:
    assert expected is not None, f"PyTorch takes {call}"
    if actual is None:
        return f"no error: {expected}"
    if type(expected).__name__ not in [base.__name__ for base in type(actual).__mro__]:
        return f"{type(actual).__name__}, not {type(expected).__name__}"
    wanted, found = _words(str(expected).split("\n")[0])[:_BEGINNING], set(_words(str(actual)))
    if sum(word in found for word in wanted) < _ENOUGH * len(wanted):
        return f"{actual}, not: {expected}"
    return None


@pytest.fixture(name="two_threads")
def _two_threads() -> Iterator[None]:
    """On one thread PyTorch takes bags whose offsets fall."""
    before = pytorch.get_num_threads()
    pytorch.set_num_threads(2)
    yield
    pytorch.set_num_threads(before)


@pytest.mark.usefixtures("two_threads")
@pytest.mark.parametrize("calls", [pytest.param(calls, id=title) for title, calls in _families()])
def test_wrong_calls_are_refused_with_pytorchs_words(calls: list[str]) -> None:
    here, there = _names(flambeau), _names(pytorch)
    found = {call: _difference(call, _answer(call, there), _answer(call, here)) for call in calls}
    assert {call: text for call, text in found.items() if text and call not in _OTHERWISE} == {}
    assert [call for call in calls if call in _OTHERWISE and not found[call]] == []


def test_every_exception_is_a_call_of_the_list() -> None:
    assert _OTHERWISE.keys() <= {call for _, calls in _families() for call in calls}
