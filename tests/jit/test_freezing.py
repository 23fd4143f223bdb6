"""`freeze`, `optimize_for_inference` and their kin."""

from __future__ import annotations

import io
from typing import Any

import pytest
import torch as pytorch
from torch import nn

import flambeau

from .archives import compare_calls, loaded, quietly, scripted


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.recurrent = nn.LSTM(3, 3)
        self.norm = nn.BatchNorm1d(3)

    def forward(self, x: pytorch.Tensor) -> pytorch.Tensor:
        return pytorch.relu(self.norm(self.recurrent(x)[0][-1]))


@pytest.fixture
def pair() -> tuple[Any, Any]:
    pytorch.manual_seed(0)
    module = scripted(Net().eval())
    return module, loaded(module)


def test_a_frozen_module_has_constants(pair: tuple[Any, Any]) -> None:
    module, actual = pair
    x = pytorch.randn(4, 2, 3)
    frozen = flambeau.jit.freeze(actual)
    assert list(frozen.state_dict()) == list(quietly(pytorch.jit.freeze, module).state_dict()) == []
    compare_calls(module, frozen, x)
    with flambeau.no_grad():
        actual.norm.weight.zero_()
    compare_calls(module, frozen, x)
    buffer = io.BytesIO()
    frozen.save(buffer)
    buffer.seek(0)
    again = quietly(pytorch.jit.load, buffer)
    assert not list(again.parameters())
    compare_calls(again, frozen, x)
    assert flambeau.jit.optimize_for_inference(frozen) is frozen
    compare_calls(module, flambeau.jit.optimize_for_inference(loaded(module)), x)


def test_modules_in_training_are_not_frozen(pair: tuple[Any, Any]) -> None:
    for T, module in zip((pytorch, flambeau), pair, strict=True):
        with pytest.raises(RuntimeError, match=r"Please call \.eval"):
            quietly(T.jit.freeze, module.train())


def test_what_was_scripted_stays_python() -> None:
    frozen = flambeau.jit.freeze(flambeau.jit.script(flambeau.nn.Linear(2, 2).eval()))
    assert not any(each.requires_grad for each in frozen.parameters())


def test_operators_by_name(pair: tuple[Any, Any]) -> None:
    module, actual = pair
    found = flambeau.jit.export_opnames(actual)
    assert {"aten::relu", "aten::lstm"} <= set(found)
    known = {each.partition(".")[0] for each in quietly(pytorch.jit.export_opnames, module)}
    assert {each for each in found if each in ("aten::relu", "aten::lstm")} <= known
    with flambeau.jit.optimized_execution(False):
        compare_calls(module, actual, pytorch.randn(4, 2, 3))
