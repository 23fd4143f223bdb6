"""Whole modules and optimizers, pickled with their classes: by both libraries, for both libraries."""

from __future__ import annotations

import io
import pickle
from typing import Any

import pytest
import torch as pytorch

import flambeau
from flambeau._serialization.globals import SafeGlobals
from flambeau._serialization.unpickler import Machine
from flambeau.serialization import get_unsafe_globals_in_checkpoint, load, safe_globals

from .test_matrix import saved

PAIRS = [(pytorch, flambeau), (flambeau, pytorch), (flambeau, flambeau)]


def network(torch: Any) -> Any:
    torch.manual_seed(0)
    nn = torch.nn
    return nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Dropout(0.1),
        nn.Linear(16, 5), nn.LayerNorm(5), nn.GELU(),
    )  # fmt: skip


def answers(torch: Any, model: Any) -> list[float]:
    model.eval()
    result: list[float] = model(torch.arange(16.0).view(1, 1, 4, 4) / 16).detach().reshape(-1).tolist()
    return result


@pytest.mark.parametrize("stacked", [False, True])
@pytest.mark.parametrize(("writer", "reader"), PAIRS)
def test_whole_model(writer: Any, reader: Any, stacked: bool) -> None:
    model = network(writer)
    file = saved(writer, model, _use_new_zipfile_serialization=not stacked)
    read = reader.load(file, weights_only=False)
    assert isinstance(read, reader.nn.Sequential)
    assert answers(reader, read) == pytest.approx(answers(writer, model), rel=1e-5, abs=1e-6)
    assert list(read.state_dict()) == list(model.state_dict())


def test_whole_model_needs_permission() -> None:
    file = saved(pytorch, network(pytorch))
    with pytest.raises(pickle.UnpicklingError, match=r"add_safe_globals\(\[torch\.nn\.modules\.\w+\.\w+\]\)"):
        load(file)
    refused = get_unsafe_globals_in_checkpoint(io.BytesIO(file.getvalue()))
    assert "torch.nn.modules.conv.Conv2d" in refused
    nn = flambeau.nn
    allowed = [
        nn.Sequential, nn.Conv2d, nn.BatchNorm2d, nn.ReLU, nn.MaxPool2d, nn.Flatten, nn.Dropout, nn.Linear,
        nn.LayerNorm, nn.GELU,
    ]  # fmt: skip
    file.seek(0)
    with safe_globals(allowed):
        assert get_unsafe_globals_in_checkpoint(io.BytesIO(file.getvalue())) == []
        read = load(file)
    assert answers(flambeau, read) == pytest.approx(answers(pytorch, network(pytorch)), rel=1e-5, abs=1e-6)


@pytest.mark.parametrize(("writer", "reader"), PAIRS)
def test_whole_optimizer(writer: Any, reader: Any) -> None:
    weight = writer.nn.Parameter(writer.ones(3))
    optimizer = writer.optim.Adam([weight], lr=0.1)
    (weight**2).sum().backward()
    optimizer.step()
    copied_weight, copy = reader.load(saved(writer, (weight, optimizer)), weights_only=False)
    assert copy.param_groups[0]["params"][0] is copied_weight
    for torch, parameter, each in ((writer, weight, optimizer), (reader, copied_weight, copy)):
        parameter.grad = torch.ones(3)
        each.step()
    assert copied_weight.tolist() == pytest.approx(weight.tolist())


@pytest.mark.parametrize(("writer", "reader"), PAIRS)
def test_state_dict_goes_over(writer: Any, reader: Any) -> None:
    model, other = network(writer), network(reader)
    for parameter in other.parameters():
        parameter.data.zero_()
    state = reader.load(saved(writer, model.state_dict()))
    assert type(state).__name__ == "OrderedDict"
    assert state._metadata == model.state_dict()._metadata
    other.load_state_dict(state)
    assert answers(reader, other) == pytest.approx(answers(writer, model), rel=1e-5, abs=1e-6)


class Tagged(flambeau.Tensor):
    """A user's class of tensors."""


class Plain:
    """A user's class."""

    def __init__(self) -> None:
        self.weight = flambeau.ones(2)
        self.name = "plain"


class Slotted:
    """A user's class that restores itself."""

    __slots__ = ("value",)

    def __init__(self, value: int) -> None:
        self.value = value

    def __getstate__(self) -> tuple[None, dict[str, int]]:
        return None, {"value": self.value}


class Strict:
    """A user's class that may refuse its state."""

    def __init__(self) -> None:
        self.fine = False

    def __setstate__(self, state: dict[str, Any]) -> None:
        if not state["fine"]:
            raise LookupError("not fine")
        self.__dict__.update(state)


@pytest.mark.parametrize("protocol", [2, 4])
def test_users_classes(protocol: int) -> None:
    tensor = flambeau.ones(2).as_subclass(Tagged)
    original = [Plain(), Slotted(3), tensor]
    file = saved(flambeau, original, pickle_protocol=protocol)
    with pytest.raises(pickle.UnpicklingError, match=r"add_safe_globals\(\[tests.serialization.test_models.Plain\]\)"):
        load(file)
    file.seek(0)
    with safe_globals([Plain, Slotted, Tagged]):
        plain, slotted, tagged = load(file)
    assert (plain.weight.tolist(), plain.name, slotted.value) == ([1.0, 1.0], "plain", 3)
    assert type(tagged) is Tagged
    assert tagged.tolist() == [1.0, 1.0]


def test_errors_of_users_classes_are_theirs() -> None:
    file = saved(flambeau, Strict())
    with safe_globals([Strict]), pytest.raises(LookupError, match="not fine"):
        load(file)


def test_a_class_under_another_name() -> None:
    content = pickle.dumps(Slotted(4), 2).replace(__name__.encode(), b"elsewhere")
    with safe_globals([(Slotted, "elsewhere.Slotted")]):
        assert Machine(content, SafeGlobals()).load().value == 4
