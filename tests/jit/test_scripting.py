"""`jit.save` of what was scripted: written from its source, loaded here and by PyTorch, with equal results."""

from __future__ import annotations

import copy
import enum
import io
import pickle
from pathlib import Path
from typing import Any

import pytest
import torch as pytorch

import flambeau
from flambeau import Tensor, nn
from tests.conformance.compare import Tolerance, differences

from . import scripted
from .archives import quietly
from .networks import names, network
from .test_tracing import to_pytorch

CASES = scripted.cases()

REFUSED = {
    "test_hand_written_attention": "a generator",
    "test_transformer_translation": "a variable of an enclosing function that is a library",
    "test_word_bags": "a list from a loop over two variables",
    "test_bidirectional_lstm_with_packed_sequences": "packed sequences",
    "test_character_rnn": "a state that is None without an annotation",
    "test_lstm_with_projection_and_cells": "a state that is None without an annotation",
}
"""Networks of `tests/training` that are not written; of these PyTorch scripts none."""


def saved(obj: Any) -> bytes:
    buffer = io.BytesIO()
    flambeau.jit.save(flambeau.jit.script(obj), buffer)
    return buffer.getvalue()


def compare(obj: Any, args: tuple[Any, ...], content: bytes) -> None:
    """The object itself, its archive here and its archive in PyTorch give the same."""
    ours = flambeau.jit.load(io.BytesIO(content))
    theirs = quietly(pytorch.jit.load, io.BytesIO(content))
    flambeau.manual_seed(1)
    expected = to_pytorch(quietly(copy.deepcopy(obj), *args))
    flambeau.manual_seed(1)
    found = quietly(ours, *args)
    pytorch.manual_seed(1)
    other = quietly(theirs, *to_pytorch(args))
    close = Tolerance(1e-4, 1e-5)
    assert not list(differences(expected, found, close))
    assert not list(differences(other, found, close))


@pytest.mark.parametrize("name", CASES)
def test_programs(name: str) -> None:
    obj, args = CASES[name]
    compare(obj, args, saved(obj))


@pytest.mark.parametrize(("file", "name"), [each for each in names() if each[1] not in REFUSED][::4])
def test_networks(file: str, name: str) -> None:
    """A quarter of them: they have much in common."""
    call = network(flambeau, file, name)
    compare(call.model.eval(), call.args, saved(call.model))


def test_state_moves_on() -> None:
    """Attributes that methods change are the archive's own; what is loaded can be saved again."""
    module = flambeau.jit.load(io.BytesIO(saved(scripted.Counter())))
    x = flambeau.ones(1, 2)
    assert flambeau.allclose(module(x) + 1, module(x))
    assert module.count == 5
    again = quietly(pytorch.jit.load, io.BytesIO(module.save_to_buffer()))
    assert again.count == 5
    assert list(again.state_dict()) == ["w"]


def test_what_was_scripted_has_its_program(tmp_path: Path) -> None:
    """It runs as Python; `code`, `graph` and `save` are the program's, in a function, a module and a `ScriptModule`."""

    class Own(flambeau.jit.ScriptModule):
        @flambeau.jit.script_method
        def forward(self, x: Tensor) -> Tensor:
            return flambeau.relu(x)

    function = flambeau.jit.script(scripted.branches)
    module = flambeau.jit.script(scripted.Net().eval())
    images = flambeau.randn(2, 1, 8, 8)
    for each, operator in ((function, "abs"), (module, "log_softmax"), (Own(), "relu")):
        assert f"torch.{operator}(" in each.code
        assert f"aten::{operator}" in {node.kind() for node in each.graph.nodes()}
        each.save(tmp_path / "archive.pt")
        loaded = quietly(pytorch.jit.load, str(tmp_path / "archive.pt"))
        assert not list(differences(quietly(loaded, to_pytorch(images)), each(images), Tolerance(1e-4, 1e-5)))
    assert isinstance(function, flambeau.jit.ScriptFunction)
    assert isinstance(module, flambeau.jit.ScriptModule)
    assert pickle.loads(pickle.dumps(scripted._inner)) is scripted._inner
    assert module.original_name == "Net"
    assert flambeau.jit.script(module) is module
    with pytest.raises(AttributeError, match="'Net' object has no attribute 'codes'"):
        _ = module.codes


def scaled(x, factor: float, offset: float = 1.0):  # type: ignore[no-untyped-def]
    return x * factor + offset


@pytest.mark.filterwarnings("ignore:.*torch.jit.script")
def test_integers_for_parameters_of_floats_are_floats() -> None:
    for torch in (pytorch, flambeau):
        function = torch.jit.script(scaled)
        x = torch.tensor([1, 2])
        for result in (function(x, 2), function(x, factor=2), function(x, 2, 3), function(x, offset=3, factor=2.0)):
            assert result.dtype is torch.float32
        assert function(x, 2, 3).tolist() == [5.0, 7.0]


def test_scripting_leaves_a_module_as_it_was() -> None:
    """As in PyTorch the parameters are shared, and all else is the result's own."""

    def scenario(T: Any) -> Any:
        first = T.nn.Linear(2, 2)
        net = T.nn.Sequential(first, T.nn.Tanh(), first)
        made = quietly(T.jit.script, net)
        made.eval()
        other = copy.deepcopy(made)
        x = T.ones(1, 2)
        inside, copied = getattr(made, "0"), getattr(other, "0")
        with T.no_grad():
            inside.weight.fill_(0.5)
        return (
            net.training, first.training, inside.training, inside is first, inside.weight is first.weight,
            first.weight.tolist(), copied.weight is inside.weight, bool((made(x) == net(x)).all()),
            bool((other(x) == made(x)).all()), list(made.state_dict()), isinstance(net, T.jit.ScriptModule),
        )  # fmt: skip

    assert scenario(flambeau) == scenario(pytorch)
    made = flambeau.jit.script(nn.Linear(2, 2))
    assert isinstance(pickle.loads(pickle.dumps(made)), flambeau.jit.ScriptModule)


def test_marks() -> None:
    module = flambeau.jit.load(io.BytesIO(saved(scripted.Marked())))
    assert module.twice(flambeau.ones(2)).tolist() == [2.0, 2.0]
    assert not hasattr(module, "python")
    assert "numpy" not in module.code
    assert "self.training" not in flambeau.jit.load(io.BytesIO(saved(scripted.Counter()))).code


def test_errors_inside_of_a_program() -> None:
    content = saved(scripted.words)
    ours = flambeau.jit.load(io.BytesIO(content))
    theirs = quietly(pytorch.jit.load, io.BytesIO(content))
    for run, ones in ((ours, flambeau.ones), (theirs, pytorch.ones)):
        with pytest.raises(Exception, match="no such word as no"):
            run(ones(1, 2), "no")
        with pytest.raises(Exception, match="expected two, got 1"):
            run(ones(2), "yes")


class Hooked(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x


class Computed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(flambeau.ones(2))
        self.log: set[int] = set()

    @property
    def doubled(self) -> Tensor:
        return self.weight.detach() * 2

    def forward(self, x: Tensor) -> Tensor:
        return x * self.doubled

    def fit(self) -> None:
        self.log = {1}


class Fitted(Computed):
    def forward(self, x: Tensor) -> Tensor:
        return x * self.weight


def generators(x: Tensor) -> Any:
    return sum(each for each in x)


def unknown_function(x: Tensor) -> Any:
    return x.sum() + len(open("nowhere").read())


def opened(x: Tensor) -> Tensor:
    with flambeau.profiler.record_function("sum"):
        return x + 1


class Derived(scripted.Running):
    pass


def of_derived(x: Tensor) -> Tensor:
    return Derived(x, 0.5, ["a"]).total


class Mixed(enum.Enum):
    ONE = 1
    TWO = "two"


def of_mixed(x: Tensor, kind: Mixed) -> Tensor:
    return x


def forks_an_operator(x: Tensor) -> Any:
    return flambeau.jit.fork(flambeau.sin, x)


def any_number(*xs: Tensor) -> Tensor:
    return xs[0]


def no_type(x: Tensor, y: set[int]) -> Tensor:
    return x + len(y)


def no_operator(x: Tensor) -> Any:
    return x.numpy()


@pytest.mark.parametrize(
    ("obj", "message"),
    [
        (generators, r'test_scripting.py:\d+: "\(each for each in x\)": TorchScript cannot express this'),
        (unknown_function, r'"open\(\'nowhere\'\).*": '),
        (opened, r'"flambeau.profiler.record_function\(\'sum\'\)": TorchScript has no such context'),
        (of_derived, "Derived inherits from another class"),
        (of_mixed, "the values of Mixed must all be"),
        (forks_an_operator, "what is forked must be a function of the program"),
        (any_number, "any number of arguments"),
        (no_type, r"set\[int\] is no type of TorchScript"),
        (no_operator, r'"x.numpy\(\)": there is no operator called numpy'),
    ],
)
def test_what_cannot_be_expressed_is_named_with_its_line(obj: Any, message: str) -> None:
    with pytest.raises(RuntimeError, match=message):
        saved(obj)


def test_what_no_method_of_the_program_reads_does_not_matter() -> None:
    assert "log" not in saved(Fitted()).decode("latin-1")
    with pytest.raises(RuntimeError, match=r'"self.doubled": Computed holds no doubled: properties are not written'):
        saved(Computed())


def test_hooks_are_not_written() -> None:
    module = Hooked()
    module.register_forward_hook(lambda *args: None)
    with pytest.raises(RuntimeError, match="Hooked has hooks"):
        saved(module)
    with pytest.raises(RuntimeError, match="not int"):
        flambeau.jit.save(3, io.BytesIO())


def _checked(x: int) -> int:
    assert x > 0, "not positive"
    if x > 5:
        raise ValueError("above five")
    return x


class _Checks(flambeau.nn.Module):
    def forward(self, x: flambeau.Tensor) -> flambeau.Tensor:
        assert x.ndim == 1, "not a vector"
        return x @ flambeau.ones(3)


def test_what_scripted_code_raises_is_an_error_of_torchscript() -> None:
    """The interpreter's `jit.Error` in functions and modules; what an op refuses keeps its type."""
    function, module = flambeau.jit.script(_checked), flambeau.jit.script(_Checks())
    assert function(3) == 3
    for value, text in ((-1, "AssertionError: not positive"), (9, "builtins.ValueError: above five")):
        with pytest.raises(flambeau.jit.Error, match=text):
            function(value)
    with pytest.raises(flambeau.jit.Error, match="AssertionError: not a vector"):
        module(flambeau.ones(1, 3))
    with pytest.raises(RuntimeError, match="same number of elements") as refused:
        module(flambeau.ones(2))
    assert not isinstance(refused.value, flambeau.jit.Error)
