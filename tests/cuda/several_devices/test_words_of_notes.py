"""The programs of users' notes that name several GPUs, word for word: losses and results are PyTorch's on the CPU.

Where the notes lie beside the checkout, the words are compared with them.
"""

from __future__ import annotations

import contextlib
import io
import textwrap
from pathlib import Path
from typing import Any

import pytest
import torch as pytorch

import flambeau as torch

COUNT = torch.cuda.device_count()
_FOLDER = Path(__file__).parents[4] / "shared" / "seeds"

PARALLEL = """
net = torch.nn.DataParallel(model, device_ids=[0, 1, 2])
output = net(input_var)
"""
TO_CPU = """
device = torch.device("cpu")
model.load_state_dict(torch.load(PATH, map_location=device))
"""
TO_ANOTHER = """
device = torch.device("cuda:1")
model.load_state_dict(torch.load(PATH))
model.to(device)
input = input.to(device)
"""
FROM_CPU = """
device = torch.device("cuda")
model.load_state_dict(torch.load(PATH, map_location="cuda:0"))
model.to(device)
"""
CHECKPOINT = """
torch.save(model.state_dict(),mypath)
mymodel.load_state_dict(torch.load(path))
"""
MEMORY = """
import torch
class Net(torch.nn.Module):
    def __init__(self):
        super(Net, self).__init__()
        self.conv = torch.nn.Conv2d(3, 10, kernel_size=3)
    def forward(self, x):
        return self.conv(x)

a = Net().cuda()
# 700M
print(torch.cuda.memory_cached())
images = torch.ones(1, 3, 321, 321)
for i in range(5):
    a(images.cuda())
print(torch.cuda.memory_cached())
# 22000M
images = torch.ones(3, 3, 321, 321)
for i in range(5):
    a(images.cuda())
print(torch.cuda.memory_cached())
# 53000M
images = torch.ones(1, 3, 321, 321)
for i in range(5):
    a(images.cuda())
print(torch.cuda.memory_cached())
"""
MODEL = """
class Model(nn.Module):
    def __init__(self):
        super(Model, self).__init__()
        self.conv2 = nn.Linear(1, 2)
        self.vari = Variable(torch.rand([1]))
        self.par = nn.Parameter(torch.rand([1]))
        self.register_buffer("buffer", torch.randn([2,3]))

model = Model()
print(model.state_dict().keys())
"""
WORDS = (PARALLEL, TO_CPU, TO_ANOTHER, FROM_CPU, CHECKPOINT, MEMORY, MODEL)


def _lines(text: str) -> list[str]:
    return [each.strip() for each in text.splitlines() if each.strip()]


@pytest.mark.skipif(not _FOLDER.exists(), reason="no notes beside this checkout")
@pytest.mark.parametrize("words", WORDS)
def test_the_words_are_those_of_the_notes(words: str) -> None:
    wanted = _lines(words)
    for path in _FOLDER.glob("*.txt"):
        found = _lines(path.read_text(encoding="utf-8"))
        if any(found[at : at + len(wanted)] == wanted for at in range(len(found))):
            return
    raise AssertionError("no note has these lines one after the other")


def _model(T: Any) -> Any:
    """Some layers with parameters that are always the same."""
    made = T.nn.Sequential(T.nn.Linear(2, 16), T.nn.Tanh(), T.nn.Linear(16, 2))
    with T.no_grad():
        for number, each in enumerate(made.parameters()):
            values = pytorch.linspace(-1, 1, each.numel()).add(0.1 * number).reshape(each.shape)
            each.copy_(T.tensor(values.tolist()))
    return made


def _batches(T: Any) -> list[Any]:
    return [T.tensor([[number + row * 0.25, row * 0.5 - 1] for row in range(9)]) for number in range(6)]


def _losses(T: Any, model: Any, call: Any, place: Any) -> list[float]:
    """Six steps of training, each of which calls the model by the words of a note."""
    optimizer = T.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    losses = []
    for batch in _batches(T):
        loss = (call(batch.to(place)) - 0.5).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def _play(words: str, scope: dict[str, Any]) -> dict[str, Any]:
    exec(textwrap.dedent(words), scope)
    return scope


def test_data_parallel() -> None:
    """With two GPUs the notes' three ids are refused, as by PyTorch on such a machine."""
    if COUNT < 3:
        with pytest.raises((AssertionError, RuntimeError), match=r"[Ii]nvalid device"):
            _play(PARALLEL, {"torch": torch, "model": _model(torch).cuda(), "input_var": _batches(torch)[0]})
    found = []
    for T in (torch, pytorch):
        words = PARALLEL if T is pytorch or COUNT > 2 else PARALLEL.replace("[0, 1, 2]", "[0, 1]")
        model = _model(T).cuda() if T is torch else _model(T)

        def call(batch: Any, T: Any = T, model: Any = model, words: str = words) -> Any:
            return _play(words, {"torch": T, "model": model, "input_var": batch})["output"]

        found.append(_losses(T, model, call, "cuda" if T is torch else "cpu"))
    assert found[0] == pytest.approx(found[1], rel=1e-5)
    assert found[0][-1] < found[0][0]


@pytest.mark.parametrize(
    ("words", "saved", "place"),
    [
        (TO_CPU, "cuda:1", "cpu"), (TO_ANOTHER, "cuda:0", "cuda:1"), (TO_ANOTHER, "cuda:1", "cuda:1"),
        (FROM_CPU, "cpu", "cuda:0"), (FROM_CPU, "cuda:1", "cuda:0"),
    ],
)  # fmt: skip
def test_a_checkpoint_on_another_device_is_trained_on(words: str, saved: str, place: str, tmp_path: Path) -> None:
    path = tmp_path / "model.pt"
    torch.save(_model(torch).to(saved).state_dict(), path)
    fresh: Any = torch.nn.Sequential(torch.nn.Linear(2, 16), torch.nn.Tanh(), torch.nn.Linear(16, 2))
    scope = _play(words, {"torch": torch, "model": fresh, "PATH": path, "input": torch.ones(1, 2)})
    assert {str(each.device) for each in fresh.parameters()} == {place}
    if words is TO_ANOTHER:
        assert str(scope["input"].device) == place
    expected = _losses(pytorch, (theirs := _model(pytorch)), theirs, "cpu")
    assert _losses(torch, fresh, fresh, place) == pytest.approx(expected, rel=1e-5)


def test_a_checkpoint_where_it_was_saved(tmp_path: Path) -> None:
    with torch.cuda.device(COUNT - 1):
        model, other = _model(torch).cuda(), torch.nn.Sequential(
            torch.nn.Linear(2, 16), torch.nn.Tanh(), torch.nn.Linear(16, 2)
        ).cuda()  # fmt: skip
    path = tmp_path / "my.pt"
    _play(CHECKPOINT, {"torch": torch, "model": model, "mymodel": other, "mypath": path, "path": path})
    assert [each.tolist() for each in other.parameters()] == [each.tolist() for each in model.parameters()]
    assert {str(each.device) for each in other.parameters()} == {f"cuda:{COUNT - 1}"}


@pytest.mark.parametrize("ordinal", range(COUNT))
def test_memory_grows_and_is_not_given_back(ordinal: int) -> None:
    """On every device; its own memory is what is printed, and the others' stays as it is."""
    torch.cuda.empty_cache()
    others = [torch.cuda.memory_reserved(each) for each in range(COUNT) if each != ordinal]
    printed = io.StringIO()
    old_name = pytest.warns(FutureWarning, match="memory_cached")
    with torch.cuda.device(ordinal), contextlib.redirect_stdout(printed), old_name:
        _play(MEMORY.replace("import torch\n", ""), {"torch": torch})
    found = [int(each) for each in printed.getvalue().split()]
    assert found == sorted(found)
    assert found[0] < found[2] == found[3]
    assert [torch.cuda.memory_reserved(each) for each in range(COUNT) if each != ordinal] == others


def test_parameters_and_buffers_move_and_variables_do_not() -> None:
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        scope = _play(MODEL, {"torch": torch, "nn": torch.nn, "Variable": torch.autograd.Variable})
    model = scope["model"].cuda(1)
    assert printed.getvalue() == "odict_keys(['par', 'buffer', 'conv2.weight', 'conv2.bias'])\n"
    assert {str(each.device) for each in (*model.parameters(), model.buffer)} == {"cuda:1"}
    assert str(model.vari.device) == "cpu"
