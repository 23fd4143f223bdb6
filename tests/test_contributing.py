"""The recipes of CONTRIBUTING.md, followed to the letter in a copy of the package: what they add works."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import flambeau
from tests.support.simulated_cuda import COMPILER

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"^```(python|diff)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
NAMED = re.compile(r"\A# (flambeau/\S+\.py)\n")


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A package to which all recipes have been added."""
    folder = tmp_path_factory.mktemp("copy")
    _link(ROOT / "flambeau", folder / "flambeau")
    name = ""
    for language, text in BLOCK.findall((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")):
        found = NAMED.match(text)
        if found is not None:
            name, text = found[1], text[found.end() :]
        path = folder / name
        before = path.read_text(encoding="utf-8") if path.exists() else ""
        if language == "diff":
            after = _patched(before, text, name)
        else:
            after = f"{before}\n\n{text}" if before else text
        path.unlink(missing_ok=True)  # it may be a link to the package's own file
        path.write_text(after, encoding="utf-8")
    return folder


def _link(source: Path, target: Path) -> None:
    """The same tree at another place; its files take no room and need not be compiled to bytecode again."""
    target.mkdir()
    for entry in os.scandir(source):
        if entry.is_dir():
            _link(Path(entry.path), target / entry.name)
        else:
            try:
                os.link(entry.path, target / entry.name)
            except OSError:  # another disk
                (target / entry.name).write_bytes(Path(entry.path).read_bytes())


def _patched(before: str, diff: str, name: str) -> str:
    """A file with the lines of a diff behind those that the diff shows around them."""
    lines = diff.splitlines(keepends=True)
    there = "".join(line[1:] for line in lines if not line.startswith("+"))
    assert before.count(there) == 1, f"{name} does not have these lines, or more than once:\n{there}"
    return before.replace(there, "".join(line[1:] for line in lines))


def _run(copy: Path, program: str) -> None:
    """Run a program with the copy; ops of a new file are known when it is imported, as `tools/stubs.py` would tell."""
    start = """
import warnings
import numpy as np
import flambeau as torch
import flambeau._ops.linalg.project
import flambeau._ops.pointwise.contributed
torch.manual_seed(0)
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(copy), str(ROOT)))}
    (copy / "program.py").write_text(start + program, encoding="utf-8")  # a program that is compiled has a file
    command = [sys.executable, "-W", "error", "program.py"]
    done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=copy, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr


def test_ops(copy: Path) -> None:
    _run(
        copy,
        """
assert torch.__file__.startswith(__import__("os").getcwd())
x = torch.tensor([0.5, -1.0, 2.0], dtype=torch.float64, requires_grad=True)
y = torch.tensor([[1.0], [2.0]], dtype=torch.float64, requires_grad=True)
plain = x.detach()
assert torch.softsquare(plain).tolist() == [v * v / (1 + v * v) for v in (0.5, -1.0, 2.0)]
assert torch.special.softsquare(plain).tolist() == torch.softsquare(plain).tolist()
assert torch.softsquare(torch.tensor([1, 2])).dtype is torch.float32
assert torch.softsquare(x).grad_fn.name() == "SoftsquareBackward0"
assert torch.blend(plain, 0.0).tolist() == (plain / 2).tolist()
assert torch.blend(x, y).shape == (2, 3)
assert torch.running_total(plain).tolist() == [0.5, -0.5, 1.5]
assert abs(torch.mean_square(plain).item() - 1.75) < 1e-12
assert torch.mean_square(torch.stack([plain, plain]), axis=1).shape == (2,)
assert torch.nn.functional.softsign_scaled(torch.tensor([-2, 0, 3]), 2.0).dtype is torch.float32
with torch.autocast("cpu", torch.bfloat16):
    assert torch.softsign_scaled(torch.ones(2).bfloat16()).dtype is torch.float32
for name, others in {"softsquare": (), "blend": (y[0],), "running_total": (), "mean_square": ()}.items():
    function = getattr(torch, name)
    assert function.__doc__
    assert torch.equal(getattr(x, name)(*others), function(x, *others))
    out = torch.empty(0, dtype=torch.float64)
    assert torch.equal(function(plain, *[each.detach() for each in others], out=out), out)
    assert torch.autograd.gradcheck(function, (x, *others))
    if name != "mean_square":  # its result has another shape: no in-place form
        changed = x.clone()
        assert getattr(changed, f"{name}_")(*others) is changed
        assert torch.equal(changed, function(x, *others))
        assert torch.autograd.gradcheck(lambda x, *rest, name=name: getattr(x.clone(), f"{name}_")(*rest), (x, *others))
assert not hasattr(x, "mean_square_")
assert torch.autograd.gradcheck(torch.blend, (x, y))
""",
    )


def test_cpu_kernel(copy: Path) -> None:
    _run(
        copy,
        """
from flambeau._backends.cpu.reductions import running_total as lowering
calls, run = [], lowering.running_total
def counted(*args, **kwargs):
    calls.append(args)
    return run(*args, **kwargs)
lowering.running_total = counted
for shape in ((5, 7), (3000, 9), (2, 3, 4), (11,)):
    x = torch.randn(shape)
    expected = np.cumsum(x.numpy().astype(np.float64), -1).astype(np.float32)
    assert np.array_equal(torch.running_total(x).numpy(), expected)
    if x.ndim > 1:
        assert np.array_equal(torch.running_total(x.mT.contiguous()).numpy(), torch.running_total(x.mT).numpy())
assert len(calls) == 10
assert torch.running_total(torch.arange(4)).tolist() == [0, 1, 3, 6]
assert run(np.arange(4)) is None and run(np.empty((0, 3))) is None
""",
    )


def test_compile_rule(copy: Path) -> None:
    _run(
        copy,
        """
def step(x):
    return torch.running_total(x * 2).exp()

compiled = torch.compile(step)
x = torch.randn(40, 30)
for _ in range(6):
    assert torch.equal(compiled(x), step(x))
(line,) = torch.compiler.explain(compiled).table().splitlines()[1:]
assert "mul -> running_total -> exp" in line, line
""",
    )


@pytest.mark.skipif(COMPILER is None, reason="the simulation needs a C++ compiler")
@pytest.mark.skipif(flambeau.cuda.is_available(), reason="libraries of the GPU would take the simulated memory")
def test_cuda_kernel(copy: Path) -> None:
    _run(
        copy,
        """
from tests.support.simulated_cuda import install_simulated_device
install_simulated_device()
from flambeau._backends.cuda.reductions import running_total as lowering
kernels, kernel = [], lowering._kernel
lowering._kernel = lambda dtype: kernels.append(dtype) or kernel(dtype)
for shape in ((5, 7), (300, 9), (2, 3, 4)):
    x = torch.randint(-9, 9, shape).float()
    assert torch.equal(torch.running_total(x.cuda()).cpu(), x.cumsum(-1))
    assert torch.equal(torch.running_total(x.cuda().mT).cpu(), x.mT.cumsum(-1))
assert kernels == ["float32"] * 6
assert torch.running_total(torch.empty(0, 3, device="cuda")).shape == (0, 3)
""",
    )


def test_rules_of_vmap_and_dtensor(copy: Path) -> None:
    _run(
        copy,
        """
from flambeau.distributed.device_mesh import init_device_mesh
from flambeau.distributed.tensor import Partial, Replicate, Shard, distribute_tensor
from flambeau.distributed.testing import run_in_threads
x, matrix = torch.randn(4, 6), torch.randn(6, 2)
whole = x @ matrix
double = x[:2].double().requires_grad_(), matrix.double().requires_grad_()
assert torch.autograd.gradcheck(torch.project, double)
many = torch.randn(5, 4, 6)
result = torch.func.vmap(torch.project, (0, None))(many, matrix)  # a loop would warn, which is an error here
torch.testing.assert_close(result, many @ matrix)

def work(rank):
    mesh = init_device_mesh("cpu", (2,))
    found = []
    for left, right in ((Shard(0), Replicate()), (Replicate(), Shard(1)), (Shard(1), Shard(0))):
        result = torch.project(distribute_tensor(x, mesh, [left]), distribute_tensor(matrix, mesh, [right]))
        torch.testing.assert_close(result.full_tensor(), whole)
        found += result.placements
    return found

assert run_in_threads(work, 2) == [[Shard(0), Shard(1), Partial()]] * 2
""",
    )


def test_rule_of_onnx(copy: Path) -> None:
    _run(
        copy,
        """
x, matrix = torch.randn(4, 6), torch.randn(6, 2)

class Layer(torch.nn.Module):
    def forward(self, x):
        return torch.project(x, matrix)

program = torch.onnx.export(Layer(), (x,), dynamo=True, verbose=False)
assert [node.op_type for node in program.model_proto.graph.node] == ["MatMul"]
torch.testing.assert_close(program(x)[0], x @ matrix)
""",
    )


def test_optimizer(copy: Path) -> None:
    _run(
        copy,
        """
weight, bias = torch.tensor([4.0, -2.0, 0.0], requires_grad=True), torch.ones(2, requires_grad=True)
optimizer = torch.optim.SignSGD([{"params": [weight]}, {"params": [bias], "lr": 0.25}], lr=0.5, momentum=0.5)
for _ in range(2):
    optimizer.zero_grad()
    (weight.square().sum() + (bias * torch.tensor([1.0, -1.0])).sum()).backward()
    optimizer.step()
assert weight.tolist() == [3.0, -1.0, 0.0]
assert bias.tolist() == [0.5, 1.5]
again = torch.optim.SignSGD([{"params": [weight]}, {"params": [bias]}])
again.load_state_dict(optimizer.state_dict())
assert again.state[weight]["momentum_buffer"].tolist() == [5.5, -2.5, 0.0]
try:
    torch.optim.SignSGD([weight], lr=-1.0)
except ValueError as error:
    assert "Invalid learning rate" in str(error)
else:
    raise AssertionError("a negative learning rate")
for name in ("params", "lr", "momentum", "weight_decay"):
    assert f"    {name} (" in torch.optim.SignSGD.__doc__
assert "betas" not in torch.optim.SignSGD.__doc__
""",
    )


def test_collective(copy: Path) -> None:
    _run(
        copy,
        """
from flambeau.distributed.testing import run_in_threads
def work(rank):
    own = torch.full((3,), float(rank))
    out = torch.empty(3)
    assert torch.distributed.shift(out, own) is None
    later = torch.zeros(2, 3)[:, 1]
    version = later._version
    torch.distributed.shift(later, own[:2], async_op=True).wait()
    assert later._version > version
    return out.tolist(), later.tolist()

for size in (1, 3):
    found = run_in_threads(work, size)
    assert found == [([float((rank - 1) % size)] * 3, [float((rank - 1) % size)] * 2) for rank in range(size)]
""",
    )
