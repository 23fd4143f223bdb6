"""Archives that PyTorch wrote: they load, and compute what they compute there."""

from __future__ import annotations

import copy
import enum
import io
import pickle
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch as pytorch
from torch import Tensor, nn

import flambeau

from .archives import archive_of, compare_calls, loaded, quietly, scripted, translated
from .modules import module_db, outcome, samples
from .networks import names, network


class Point(NamedTuple):
    x: Tensor
    y: int


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


class Language(nn.Module):
    """A bit of everything that the language has."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(2)])
        self.norm = nn.BatchNorm1d(4)
        self.words = ["a", "bcd"]
        self.table = {"x": 1, "y": 2}
        self.register_buffer("calls", pytorch.zeros(1, dtype=pytorch.int64))

    def forward(
        self, x: Tensor, other: Tensor | None = None, count: int = 3, scale: float = 0.5
    ) -> tuple[Tensor, list[Tensor], str, dict[str, Tensor]]:
        self.calls += 1
        x = self.norm(x)
        for layer in self.layers:
            x = pytorch.relu(layer(x))
        step = 0
        while step < count:
            x = x * scale + step
            if step == 5:
                break
            step += 1
        collected: list[Tensor] = []
        for number, word in enumerate(self.words):
            if number == 7:
                continue
            collected.append(x + len(word))
        collected = [each * 2 for each in collected]
        x = x[..., 1:, None].squeeze(-1)
        chosen = x[x > 0.1]
        if other is not None:
            chosen = chosen.sum() + other
        with pytorch.no_grad():
            chosen = chosen + 1
        later = pytorch.jit.fork(pytorch.sin, chosen)
        best, place = x.max(0)
        text = f"{count} {step} {self.words} {scale}"
        assert x.dim() == 2, "two dimensions"
        if count > 50:
            raise ValueError("too many: " + str(count))
        point = Point(x, 3)
        total = pytorch.zeros(2, dtype=pytorch.float64)
        total[0] = point.y + self.table["y"]
        value: int | Tensor = 2
        if isinstance(value, int):
            total[1] = value
        return pytorch.jit.wait(later), collected, text, {"best": best, "place": place, "total": total}

    @pytorch.jit.export
    def numbers(self, a: int, b: int, x: float) -> tuple[int, float, int, int, float, bool, list[int], str, float]:
        values = [3, 1, 2]
        values.sort()
        values.extend([a, b])
        values.pop(0)
        return (
            a // b, a / b, a % b, a * b - a, float(a) ** b, a in values and not b > a, values[1:], "p-q",
            max(x, 1.0) + min(a, b) + abs(-x) + round(x) + int(x),
        )  # fmt: skip

    @pytorch.jit.export
    def colour(self, of: Colour) -> str:
        return "red" if of == Colour.RED else of.name

    @pytorch.jit.export
    def packed(self, x: Tensor) -> Point:
        return Point(x + 1, 7)


@pytest.fixture
def language() -> tuple[Any, Any]:
    pytorch.manual_seed(0)
    module = scripted(Language())
    return module, loaded(module)


def test_the_language(language: tuple[Any, Any]) -> None:
    module, actual = language
    x = pytorch.randn(5, 4)
    compare_calls(module, actual, x)
    compare_calls(module, actual, x, pytorch.ones(()), count=8, scale=2)
    compare_calls(module, actual, x, None, 1)
    assert actual.calls.tolist() == module.calls.tolist() == [3]
    for arguments in ((7, 2, 2.5), (-7, 2, -0.5), (5, 3, 1.5)):
        assert actual.numbers(*arguments) == module.numbers(*arguments)
    point, same = module.packed(x), actual.packed(*translated((x,)))
    assert type(same).__name__ == "Point"
    assert same._fields == point._fields
    assert same.y == point.y
    assert actual.colour(Colour.RED) == "red"
    assert actual.colour(Colour.BLUE) == "BLUE"


def test_what_a_module_is(language: tuple[Any, Any]) -> None:
    module, actual = language
    assert repr(actual) == repr(module)
    assert list(actual.state_dict()) == list(module.state_dict())
    assert [name for name, _ in actual.named_parameters()] == [name for name, _ in module.named_parameters()]
    assert [name for name, _ in actual.named_buffers()] == [name for name, _ in module.named_buffers()]
    assert [name for name, _ in actual.named_modules()] == [name for name, _ in module.named_modules()]
    assert actual.original_name == module.original_name == "Language"
    assert (actual.words, actual.table, actual.training) == (module.words, module.table, module.training)
    assert "torch.relu" in actual.code
    assert isinstance(actual, flambeau.jit.ScriptModule)
    assert not hasattr(actual, "nothing")
    assert len(actual.layers) == 2


def test_errors(language: tuple[Any, Any]) -> None:
    module, actual = language
    wrong: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
        ((1,), {}), ((), {}), ((pytorch.ones(2, 4),), {"unknown": 1}), ((pytorch.ones(3, 4), None, 1, 1.0, 1), {}),
        ((pytorch.ones(2, 3),), {}), ((pytorch.ones(2, 4), None, "x"), {}),
    ]  # fmt: skip
    for args, kwargs in wrong:
        with pytest.raises(RuntimeError):
            module(*args, **kwargs)
        with pytest.raises(RuntimeError):
            actual(*translated(args), **kwargs)
    with pytest.raises(flambeau.jit.Error, match=r"(?s)code/.*in forward.*builtins\.ValueError: too many: 51"):
        actual(flambeau.ones(2, 4), count=51)
    with pytest.raises(RuntimeError, match=r"Expected a value of type 'Tensor' for argument 'x' but instead found"):
        actual("text")


def test_modules_are_trained_moved_and_copied(language: tuple[Any, Any]) -> None:
    module, actual = language
    x = pytorch.randn(5, 4)
    for T, model, inputs in ((pytorch, module, x), (flambeau, actual, translated((x,))[0])):
        optimizer = T.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            model(inputs)[1][0].sum().backward()
            optimizer.step()
    for name, value in module.state_dict().items():
        np.testing.assert_allclose(actual.state_dict()[name].numpy(), value.numpy(), rtol=1e-5, atol=1e-6)
    module.eval(), actual.eval()
    assert actual.norm.training is False
    compare_calls(module, actual, x)
    for copied in (copy.deepcopy(actual), pickle.loads(pickle.dumps(actual))):
        compare_calls(module, copied, x)
        with flambeau.no_grad():
            copied.layers.get_submodule("0").weight.zero_()
    compare_calls(module, actual, x)
    assert actual.double()(flambeau.ones(3, 4, dtype=flambeau.float64))[0].dtype is flambeau.float64


def test_what_was_loaded_is_saved_again(language: tuple[Any, Any]) -> None:
    module, actual = language
    module.eval(), actual.eval()
    actual.words = ["a", "bcd", "e"]
    module.words = ["a", "bcd", "e"]
    buffer = io.BytesIO()
    flambeau.jit.save(actual, buffer, _extra_files={"notes.txt": b"made here"})
    buffer.seek(0)
    extra = {"notes.txt": ""}
    again = quietly(pytorch.jit.load, buffer, _extra_files=extra)
    assert extra["notes.txt"] == b"made here"
    buffer.seek(0)
    compare_calls(again, flambeau.jit.load(buffer), pytorch.randn(5, 4))
    compare_calls(again, actual, pytorch.randn(5, 4))


def test_extra_files_and_map_location() -> None:
    archive = archive_of(scripted(nn.Linear(2, 2)), _extra_files={"a.json": b"{}"})
    extra: dict[str, Any] = {"a.json": None, "absent": "kept"}
    module = flambeau.jit.load(archive, map_location="meta", _extra_files=extra)
    assert extra["a.json"] == b"{}"
    assert module.weight.device.type == "meta"


def test_files(tmp_path: Path) -> None:
    path = tmp_path / "model.pt"
    path.write_bytes(archive_of(scripted(nn.Linear(2, 2))).read())
    module = flambeau.jit.load(path)
    flambeau.jit.save(module, tmp_path / "again.pt")
    compare_calls(quietly(pytorch.jit.load, str(tmp_path / "again.pt")), module, pytorch.ones(1, 2))
    for T in (pytorch, flambeau):
        with pytest.raises(ValueError, match="does not exist"):
            quietly(T.jit.load, str(tmp_path / "absent.pt"))
        with pytest.raises(ValueError, match="is a directory"):
            quietly(T.jit.load, str(tmp_path))


def test_shared_weights_stay_shared() -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.recurrent = nn.LSTM(3, 3)
            self.first = nn.Linear(3, 3)
            self.second = nn.Linear(3, 3)
            self.second.weight = self.first.weight

        def forward(self, x: Tensor) -> Tensor:
            return self.second(self.first(self.recurrent(x)[0]))

    actual = loaded(quietly(pytorch.jit.trace, Tied(), pytorch.ones(2, 1, 3)))
    assert actual.first.weight is actual.second.weight
    actual(flambeau.ones(2, 1, 3)).sum().backward()
    assert all(each.grad is not None for each in actual.parameters())


@pytest.mark.parametrize(("file", "name"), names())
def test_networks(file: str, name: str) -> None:
    """Scripted where PyTorch can, else traced: loaded, equal, and what is written again is equal in PyTorch."""
    call = network(pytorch, file, name)
    model = call.model.eval()
    try:
        program = scripted(model)
    except Exception:
        try:
            program = quietly(pytorch.jit.trace, model, call.args, check_trace=False)
        except RuntimeError:
            pytest.skip("PyTorch neither scripts nor traces it")
    program = quietly(pytorch.jit.load, archive_of(program))
    actual = loaded(program)
    compare_calls(program, actual, *call.args, **call.kwargs)
    buffer = io.BytesIO()
    flambeau.jit.save(actual, buffer)
    buffer.seek(0)
    again = quietly(pytorch.jit.load, buffer)
    for left, right in zip(again.state_dict().values(), program.state_dict().values(), strict=True):
        assert pytorch.equal(left, right)


@pytest.mark.parametrize("info", module_db[::12], ids=lambda info: info.module_cls.__name__)
def test_layers(info: Any) -> None:
    """A part of the module database; `python -m tests.jit.modules` runs all of it."""
    for module, call in samples(info, most=2):
        assert outcome(module, call) in ("equal", "not scripted")
