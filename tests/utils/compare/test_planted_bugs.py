"""`compare` names the op of each of ten planted bugs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import numpy as np
import pytest

import flambeau
from flambeau._dispatch.op import OPS
from flambeau.nn import functional
from flambeau.utils import compare

from .planted import train

FOUND = {
    # the bug: the op, the kind of the difference, its module, what stands in its line
    "epsilon": ("layer_norm", "arguments", "Net.blocks.0.norm", "self.norm(x)"),
    "dropout order": ("mul", "program", "Net.blocks.0.drop", "self.drop(x)"),
    "detach": ("add", "program", "Net", "self.head(x * 1.5)"),
    "in place": ("mul_", "program", "Net", "x.mul_(1.5)"),
    "mask": ("triu", "arguments", "Net.blocks.0", ".triu("),
    "initialisation": ("normal_", "arguments", "", "nn.init.normal_"),
    "mixed precision": ("to_copy", "program", "Net.blocks.0.qkv", "self.qkv("),
    "data order": ("select", "arguments", "", "data[order[step]]"),
}


@pytest.mark.parametrize("bug", FOUND)
def test_the_first_op_of_a_planted_bug_is_found(bug: str) -> None:
    found = compare.functions(lambda: train(flambeau, steps=1), lambda: train(flambeau, bug, 1), titles=("good", "bad"))
    assert found.first is not None
    assert found.entry is not None
    name, kind, module, line = FOUND[bug]
    assert (found.entry.name, found.first.kind, found.entry.module) == (name, kind, module), str(found)
    assert line in found.entry.line
    if bug == "detach":
        assert "detach in Net of step 0" in str(found)  # what only the good run has


def test_runs_that_are_the_same_have_no_difference() -> None:
    found = compare.functions(lambda: train(flambeau), lambda: train(flambeau))
    assert not found
    assert str(found).endswith("no op differs by more than rounding explains")


def layers(activation: Callable[[Any], Any]) -> None:
    flambeau.manual_seed(3)
    x = flambeau.randn(6, 8, requires_grad=True)
    hidden = activation(flambeau.roll(x, 1, 0) * 2)
    (hidden @ flambeau.randn(8, 2)).sum().backward()


@contextmanager
def one_wrong_index() -> Iterator[None]:
    def wrong(x: Any, *args: Any) -> Any:
        rolled = np.roll(x, 1, 0)
        if x.dtype == np.float32:
            rolled[2, 3] = rolled[2, 4]
        return rolled

    kind, planted = flambeau.ones(1)._kind, {OPS["roll"]: wrong}
    with mock.patch.dict(kind.runs, planted), mock.patch.dict(kind.tries, planted):  # seldom called, often called
        yield


def test_a_kernel_with_one_wrong_index_is_found() -> None:
    flambeau.roll(flambeau.ones(2, 2), 1, 0)  # so that the op is known

    def bad() -> None:
        with one_wrong_index():
            layers(functional.gelu)

    found = compare.functions(lambda: layers(functional.gelu), bad)
    assert found.first is not None
    assert found.entry is not None
    assert (found.entry.name, found.first.kind) == ("roll", "result"), str(found)
    assert found.first.errors is not None
    assert found.first.errors[0] == 0 < found.first.errors[1]
    assert any(line.startswith("result 0 at [2, 3]:") for line in found.elements())
    assert len(found.elements()) == 1


def test_a_changed_library_is_found() -> None:
    def other(x: Any) -> Any:
        return functional.gelu(x, approximate="tanh")

    found = compare.functions(lambda: layers(functional.gelu), lambda: layers(other))
    assert found.first is not None
    assert found.entry is not None
    assert (found.entry.name, found.first.kind) == ("gelu", "arguments")
    assert "in float64" in str(found)
