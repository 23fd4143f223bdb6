"""`Module`: members, attributes, conversions, copies and printing, beside PyTorch's."""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys
import traceback
import typing
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import flambeau
from tests.nn.samples import small, tree
from tests.support.differential import differential, outcome, warned


def groups(module: Any) -> Any:
    """The names of all members by kind, and those of the plain attributes."""
    plain = sorted(name for name in vars(module) if not name.startswith("_"))
    return list(module._parameters), list(module._buffers), list(module._modules), plain


# ----- members and attributes -----------------------------------------------------------------------------------------


@differential
def test_assigning_to_attributes(T: Any) -> Any:
    nn = T.nn

    def assigned(name: str, value: Any) -> Any:
        module = small(T)
        setattr(module, name, value)
        return groups(module), sorted(module._non_persistent_buffers_set)

    values = {
        "parameter": nn.Parameter(T.ones(1)),
        "module": nn.ReLU(),
        "buffer": nn.Buffer(T.ones(1)),
        "passing buffer": nn.Buffer(T.ones(1), persistent=False),
        "tensor": T.ones(1),
        "none": None,
        "number": 3,
    }
    names = ("w", "b", "count", "lin", "x", "new")
    return {
        f"{name} = {what}": outcome(lambda n=name, v=value: assigned(n, v))
        for name in names
        for what, value in values.items()
    }


@differential
def test_words_of_refused_assignments(T: Any) -> Any:
    module = small(T)
    return (
        outcome(lambda: setattr(module, "w", 1), "cannot assign 'int' as parameter 'w' (torch.nn.Parameter or None"),
        outcome(lambda: setattr(module, "w", T.ones(1)), "cannot assign 'torch.FloatTensor' as parameter 'w'"),
        outcome(
            lambda: setattr(module, "lin", 1), "cannot assign 'int' as child module 'lin' (torch.nn.Module or None"
        ),
        outcome(lambda: setattr(module, "b", 1), "cannot assign 'int' as buffer 'b' (torch.nn.Buffer, torch.Tensor or"),
    )


@differential
def test_registration(T: Any) -> Any:
    nn = T.nn
    module = small(T)
    parameter = nn.Parameter(T.ones(1))
    return (
        [outcome(lambda n=n: module.register_parameter(n, parameter)) for n in (1, "a.b", "", "x", "b", "lin", "w")],
        [outcome(lambda n=n: module.register_buffer(n, T.ones(1))) for n in (1, "a.b", "", "x", "b", "lin", "w")],
        [outcome(lambda n=n: module.add_module(n, nn.ReLU())) for n in (1, "a.b", "", "x", "b", "lin", "w")],
        outcome(lambda: module.register_parameter("a.b", None), "parameter name can", "contain"),
        outcome(lambda: module.register_parameter("", None), "be empty string"),
        outcome(lambda: module.register_parameter("x", None), "attribute 'x' already exists"),
        outcome(lambda: module.register_parameter(1, None), "parameter name should be a string. Got int"),
        outcome(
            lambda: module.register_parameter("q", T.ones(1)), "cannot assign 'torch.FloatTensor' object to parameter"
        ),
        outcome(
            lambda: module.register_buffer("q", 3), "cannot assign 'int' object to buffer 'q' (torch Tensor or None"
        ),
        outcome(lambda: module.add_module("q", 3), "int is not a Module subclass"),
        outcome(lambda: module.register_module("r", nn.ReLU())),
        outcome(lambda: module.register_parameter("none", None)),
        groups(module),
    )


@differential
def test_before_init(T: Any) -> Any:
    def early(use: Callable[[Any], Any]) -> Callable[[], Any]:
        class Early(T.nn.Module):  # type: ignore[misc, name-defined]
            def __init__(self) -> None:
                use(self)

        return lambda: type(Early()).__name__

    nn = T.nn
    return (
        outcome(early(lambda m: setattr(m, "a", nn.Parameter(T.ones(1)))), "cannot assign parameters before Module."),
        outcome(early(lambda m: setattr(m, "a", nn.ReLU())), "cannot assign module before Module.__init__() call"),
        outcome(
            early(lambda m: setattr(m, "a", nn.Buffer(T.ones(1)))), "cannot assign buffer before Module.__init__()"
        ),
        outcome(early(lambda m: m.register_buffer("a", None)), "cannot assign buffer before Module.__init__() call"),
        outcome(
            early(lambda m: m.register_parameter("a", None)), "cannot assign parameter before Module.__init__() call"
        ),
        outcome(early(lambda m: m.add_module("a", None))),
        outcome(early(lambda m: setattr(m, "a", 3))),
        outcome(early(lambda m: setattr(m, "a", T.ones(1)))),
        outcome(lambda: nn.Module(1), "Module.__init__() takes 1 positional argument but 2 were given"),
        outcome(lambda: nn.Module(a=1), "Module.__init__() got an unexpected keyword argument 'a'"),
    )


@differential
def test_reading_and_deleting_attributes(T: Any) -> Any:
    module = small(T)
    before = module.w, module.b, module.x, repr(module.lin), [name in dir(module) for name in ("w", "b", "lin", "x")]
    for name in ("w", "count", "lin", "x"):
        delattr(module, name)
    return (
        before,
        groups(module),
        module._non_persistent_buffers_set,
        outcome(lambda: module.nope, "object has no attribute 'nope'"),
        outcome(lambda: delattr(module, "nope"), "nope"),  # Python 3.10 says no more
        outcome(lambda: T.nn.Module()(1), 'Module [Module] is missing the required "forward" function'),
        hasattr(module, "w"),
    )


@differential
def test_call_super_init(T: Any) -> Any:
    class Other:
        def __init__(self, number: int) -> None:
            self.number = number

    class Both(T.nn.Module, Other):  # type: ignore[misc, name-defined]
        call_super_init = True

        def __init__(self) -> None:
            super().__init__(5)

    return Both().number


@differential
def test_registration_hooks(T: Any) -> Any:
    nn, seen = T.nn, []
    space = nn.modules.module
    replacement = nn.Linear(1, 1)
    handles = [
        space.register_module_parameter_registration_hook(lambda m, name, p: seen.append(("parameter", name))),
        space.register_module_buffer_registration_hook(lambda m, name, b: T.full((3,), 7.0)),
        space.register_module_module_registration_hook(lambda m, name, s: replacement),
    ]
    try:
        module = nn.Module()
        module.p = nn.Parameter(T.ones(1))
        module.register_buffer("b", T.zeros(1))
        module.s = nn.ReLU()
        module.add_module("t", nn.ReLU())
    finally:
        for handle in handles:
            handle.remove()
    module.later = nn.Parameter(T.ones(1))
    return seen, module.b, repr(module)


# ----- iterators and paths --------------------------------------------------------------------------------------------


@differential
def test_iterators(T: Any) -> Any:
    model = tree(T)
    keys = ({}, {"prefix": "p"}, {"recurse": False}, {"remove_duplicate": False}, {"prefix": "p", "recurse": False})
    return (
        [[name for name, _ in model.named_parameters(**each)] for each in keys],
        [[name for name, _ in model.named_buffers(**each)] for each in keys],
        [[name for name, _ in model.named_modules(**each)] for each in keys if "recurse" not in each],
        [name for name, _ in model.named_modules(memo={model.a})],
        [name for name, _ in model.named_children()],
        [type(each).__name__ for each in model.children()],
        [type(each).__name__ for each in model.modules()],
        [type(each).__name__ for each in model.modules(remove_duplicate=False)],
        [tuple(each.shape) for each in model.parameters()],
        [tuple(each.shape) for each in model.parameters(recurse=False)],
        [tuple(each.shape) for each in model.buffers()],
    )


@differential
def test_members_by_path(T: Any) -> Any:
    nn = T.nn
    model = nn.Sequential(OrderedDict(deep=nn.Sequential(small(T))))
    paths = ("", "deep", "deep.0", "deep.0.lin", "deep.0.q", "deep.0.w", "deep.0.w.x", "nope", "deep.0.x", "deep.0.b")
    return (
        [outcome(lambda p=p: type(model.get_submodule(p)).__name__) for p in paths],
        [outcome(lambda p=p: model.get_parameter(p)) for p in paths],
        [outcome(lambda p=p: model.get_buffer(p)) for p in paths],
        outcome(lambda: model.get_submodule("deep.0.q"), "Small has no attribute `q`"),
        outcome(lambda: model.get_submodule("deep.0.w"), "`w` is not an nn.Module"),
        outcome(lambda: model.get_parameter("deep.0.b"), "`b` is not an nn.Parameter"),
        outcome(lambda: model.get_buffer("deep.0.w"), "`w` is not a buffer"),
    )


@differential
def test_set_submodule(T: Any) -> Any:
    def after(path: str, **options: Any) -> Any:
        model = T.nn.Sequential(small(T))
        model.set_submodule(path, T.nn.ReLU(), **options)
        return repr(model)

    paths = ("", "0", "0.lin", "0.new", "0.lin.deep", "nope.q", "0.x", "0.w", "0.x.y")
    return (
        [outcome(lambda p=p, s=s: after(p, strict=s)) for p in paths for s in (False, True)],
        outcome(lambda: after(""), "Cannot set the submodule without a target name!"),
        outcome(lambda: small(T).set_submodule("lin", 3), "`module` is not an nn.Module, found"),
    )


# ----- conversions ----------------------------------------------------------------------------------------------------


def kinds(module: Any) -> Any:
    return [(name, str(each.dtype), str(each.device)) for name, each in module.state_dict().items()], str(
        module.count.dtype
    )


@differential
def test_conversions(T: Any) -> Any:
    def converted(change: Callable[[Any], Any]) -> Any:
        module = small(T)
        module(T.ones(1, 2)).sum().backward()
        weight, gradient = module.w, module.w.grad
        result = change(module)
        return kinds(module), result is module, module.w is weight, module.w.grad is gradient, module.w.grad

    changes: dict[str, Callable[[Any], Any]] = {
        "double": lambda m: m.double(),
        "half": lambda m: m.half(),
        "bfloat16": lambda m: m.bfloat16(),
        "float": lambda m: m.double().float(),
        "type": lambda m: m.type(T.float64),
        "type by name": lambda m: m.type("torch.DoubleTensor"),
        "cpu": lambda m: m.cpu(),
        "to dtype": lambda m: m.to(T.float64),
        "to device": lambda m: m.to("cpu"),
        "to both": lambda m: m.to("cpu", T.float64),
        "to tensor": lambda m: m.to(T.ones(1, dtype=T.float64)),
        "to keywords": lambda m: m.to(device="cpu", dtype=T.float64, non_blocking=True),
        "to nothing": lambda m: m.to(),
        "to complex": lambda m: m.to(T.complex64),
        "to meta": lambda m: m.to("meta"),
        "to_empty": lambda m: m.to_empty(device="meta"),
    }
    results = {name: converted(change) for name, change in changes.items()}
    return (
        results,
        outcome(lambda: small(T).to(T.int32), "nn.Module.to only accepts floating point or complex dtypes"),
        warned(lambda: small(T).to(T.complex64) and None, "Complex modules are a new feature"),
        outcome(lambda: small(T).to("meta").to("cpu"), "Please use torch.nn.Module.to_empty() instead of"),
        kinds(small(T).to("meta").to_empty(device="cpu")),
        outcome(lambda: small(T).cuda(), "Torch not compiled with CUDA enabled"),
        outcome(lambda: small(T).to("cuda"), "Torch not compiled with CUDA enabled"),
        outcome(lambda: small(T).to_empty("cpu")),
        outcome(lambda: small(T).type("foo"), "invalid type: 'foo'"),
    )


@differential
def test_memory_format_is_for_images(T: Any) -> Any:
    module = T.nn.Module()
    module.image = T.nn.Parameter(T.ones(2, 3, 4, 5))
    module.matrix = T.nn.Parameter(T.ones(2, 3))
    module.to(memory_format=T.channels_last)
    return module.image.stride(), module.matrix.stride()


@differential
def test_apply(T: Any) -> Any:
    model, order = tree(T), []
    result = model.apply(lambda m: order.append(type(m).__name__))
    return order, result is model


@differential
def test_train_and_eval(T: Any) -> Any:
    model = tree(T)
    model.eval()
    frozen = [each.training for each in model.modules()]
    model.train()
    return (
        frozen,
        [each.training for each in model.modules()],
        [outcome(lambda m=m: model.train(m), "training mode is expected to be boolean") for m in (1, "x", None)],
    )


@differential
def test_requires_grad_and_zero_grad(T: Any) -> Any:
    module = small(T)
    module(T.ones(1, 2)).sum().backward()
    gradient = module.w.grad
    module.zero_grad(set_to_none=False)
    zeros = module.w.grad, module.w.grad is gradient
    module.zero_grad()
    module.requires_grad_(False)
    return zeros, module.w.grad, [each.requires_grad for each in module.parameters()]


@differential
def test_share_memory(T: Any) -> Any:
    module = small(T)
    return [each.is_shared() for each in (module.w, module.b)], [
        each.is_shared() for each in (module.share_memory().w, module.b)
    ]


# ----- copies and printing --------------------------------------------------------------------------------------------


@differential
def test_copies_and_pickles(T: Any) -> Any:
    T.manual_seed(0)
    model = tree(T)
    observed = []
    for each in (copy.deepcopy(model), pickle.loads(pickle.dumps(model)), copy.copy(model)):
        same = each.a.weight is model.a.weight
        observed.append((repr(each), each.state_dict(), each.a is each.c, each.tied.weight is each.a.weight, same))
    return observed


@differential
def test_old_pickles_get_what_they_lack(T: Any) -> Any:
    module = T.nn.ReLU()
    old = ("training", "_parameters", "_buffers", "_modules", "_backward_hooks", "_forward_hooks", "inplace")
    state = {name: vars(module)[name] for name in old}
    loaded = T.nn.ReLU.__new__(T.nn.ReLU)
    loaded.__setstate__(state)
    return loaded(T.tensor([-1.0, 1.0])), list(loaded.state_dict())


@differential
def test_printing(T: Any) -> Any:
    nn = T.nn

    class Lines(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self, extra: str, *modules: Any) -> None:
            super().__init__()
            self.extra = extra
            for number, module in enumerate(modules):
                self.add_module(f"m{number}", module)

        def extra_repr(self) -> str:
            return self.extra

    samples = [
        Lines(""),
        Lines("one=1"),
        Lines("one=1\ntwo=2"),
        Lines("one=1", nn.ReLU()),
        Lines("", Lines("a\nb", nn.ReLU(), None), nn.Linear(2, 3)),
        nn.Module(),
        tree(T),
    ]
    return [repr(each) for each in samples]


@differential
def test_module_state_is_where_programs_look_for_it(T: Any) -> Any:
    return sorted(vars(small(T)))


def test_factory_kwargs() -> None:
    choose = flambeau.nn.factory_kwargs
    assert choose(None) == {}
    assert choose({"device": "cpu", "factory_kwargs": {"dtype": 1}}) == {"device": "cpu", "dtype": 1}
    with pytest.raises(TypeError, match="unexpected kwargs"):
        choose({"other": 1})
    with pytest.raises(TypeError, match="device specified twice"):
        choose({"device": 1, "factory_kwargs": {"device": 2}})


# ----- beyond PyTorch -------------------------------------------------------------------------------------------------


TYPED = """
import flambeau
from flambeau import nn

class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(2, 3)

    def forward(self, x: flambeau.Tensor, flag: bool = False) -> tuple[flambeau.Tensor, int]:
        return self.fc(x), 1

net = Net().to("cpu").train()
reveal_type(net(flambeau.ones(2), flag=True))
reveal_type(net.fc(flambeau.ones(2)))
net("text")
net.fc()
reveal_type(flambeau.compile(net))
reveal_type(flambeau.compile(dynamic=True)(Net.forward))
reveal_type(flambeau.optim.SGD(net.parameters()).step(lambda: 1.0))
"""


def test_a_type_checker_knows_modules_by_their_forward(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Path(flambeau.__file__).parent.parent)  # where its settings and its cache are
    program = tmp_path / "typed.py"
    program.write_text(TYPED, encoding="utf-8")
    printed, _, _ = pytest.importorskip("mypy.api").run([str(program)])
    found = [line.partition(": ")[2] for line in printed.splitlines() if "typed.py" in line]
    assert found == [
        'note: Revealed type is "tuple[flambeau._core.tensor.Tensor, int]"',
        'note: Revealed type is "flambeau._core.tensor.Tensor"',
        'error: Argument 1 has incompatible type "str"; expected "Tensor"  [arg-type]',
        "error: Too few arguments  [call-arg]",
        'note: Revealed type is "typed.Net"',
        (
            'note: Revealed type is "def (self: typed.Net, x: flambeau._core.tensor.Tensor, flag: bool =) -> '
            'tuple[flambeau._core.tensor.Tensor, int]"'
        ),
        'note: Revealed type is "float"',
    ]


def test_errors_name_the_path() -> None:
    nn = flambeau.nn

    class Caller(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.missing = nn.Module()
            self.hidden = [nn.Linear(2, 2)]  # a plain list: no member

        def forward(self, which: str) -> Any:
            return self.missing(1) if which == "missing" else self.hidden[0](flambeau.ones(3))

    model = nn.Sequential(OrderedDict(encoder=nn.Sequential(nn.Identity(), Caller())))
    with pytest.raises(NotImplementedError) as caught:
        model("missing")
    assert caught.value.__notes__ == ["in module `encoder.1.missing` (Module) of Sequential"]
    with pytest.raises(RuntimeError) as caught_hidden:
        model("hidden")
    assert caught_hidden.value.__notes__ == ["in module Linear"]
    if sys.version_info >= (3, 11):
        assert "in module Linear" in "".join(traceback.format_exception(caught_hidden.value))


class _Doubling(flambeau.nn.Module):
    """A user's module around a layer."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = flambeau.nn.Sequential(flambeau.nn.ReLU(), flambeau.nn.Linear(3, 2))

    def forward(self, x: Any) -> Any:
        return self.inner(x * 2)


def test_tracebacks_in_modules_show_the_user_s_lines_and_the_cause_alone() -> None:
    with pytest.raises(RuntimeError, match="cannot be multiplied") as caught:
        _Doubling()(flambeau.ones(1, 4))
    lines = traceback.extract_tb(caught.value.__traceback__)
    if sys.version_info < (3, 11):
        assert lines.pop(1).name == "__call__"  # there `raise` puts its own frame back
    assert [each.filename == __file__ for each in lines] == [True, True, False]
    assert [each.line for each in lines][:2] == ["_Doubling()(flambeau.ones(1, 4))", "return self.inner(x * 2)"]
    assert lines[-1].name == "check_mm"


def test_a_variable_keeps_the_library_s_frames_in_tracebacks() -> None:
    program = "import flambeau as torch\ntorch.nn.Linear(3, 2)(torch.ones(1, 4))"
    variables = {**os.environ, "FLAMBEAU_FULL_TRACEBACK": "1"}
    command = [sys.executable, "-c", program]
    run = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60, env=variables)
    assert "nn/modules/linear.py" in run.stderr.replace(os.sep, "/")
    variables.pop("FLAMBEAU_FULL_TRACEBACK")
    run = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60, env=variables)
    assert "cannot be multiplied" in run.stderr
    frames = run.stderr.replace(os.sep, "/")
    assert "nn/modules/linear.py" not in frames
    assert sys.version_info < (3, 11) or "nn/modules" not in frames


@pytest.mark.parametrize(
    ("make", "shape"),
    [
        (lambda nn: nn.Linear(3, 2), (1, 3)),
        (lambda nn: nn.Conv2d(3, 2, 1), (1, 3, 4, 4)),
        (lambda nn: nn.LayerNorm(3), (2, 3)),
        (lambda nn: nn.BatchNorm1d(3), (2, 3)),
        (lambda nn: nn.LSTM(3, 2), (1, 1, 3)),
        (lambda nn: nn.Sequential(nn.ReLU(), nn.Linear(3, 2)), (1, 3)),
    ],
)
def test_an_input_of_another_dtype_is_told_how_to_convert(make: Any, shape: tuple[int, ...]) -> None:
    with pytest.raises((RuntimeError, ValueError)) as caught:
        make(flambeau.nn)(flambeau.ones(shape, dtype=flambeau.float64))
    notes = [each for each in caught.value.__notes__ if "input.float()" in each]
    assert len(notes) == 1
    assert "model.double()" in notes[0]


def test_errors_about_other_things_give_no_advice_on_dtypes() -> None:
    with pytest.raises(RuntimeError) as caught:
        flambeau.nn.Linear(3, 2)(flambeau.ones(1, 4, dtype=flambeau.float64))
    assert not [each for each in caught.value.__notes__ if "input." in each]


def test_annotations_can_be_evaluated() -> None:
    """As transformers does with those of every model class."""

    class Model(flambeau.nn.Module):
        config: dict[str, int]

    hints = typing.get_type_hints(Model)
    assert hints["config"] == dict[str, int]
    assert hints["_modules"] == dict[str, flambeau.nn.Module | None]
    assert typing.get_type_hints(flambeau.nn.Module.apply)["fn"].__args__[0] is flambeau.nn.Module
