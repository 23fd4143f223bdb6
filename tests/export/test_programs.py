"""Exported programs: sizes that vary, checks of calls, files, decompositions."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

import flambeau as T
from flambeau.export import Dim, ShapesCollection, dims, export
from tests.support.differential import differential


class Pooled(T.nn.Module):
    """Flattens by the sizes of its input, and has a buffer, a plain tensor and a constant."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = T.nn.Linear(3, 4)
        self.register_buffer("shift", T.arange(4.0))
        self.plain = T.ones(4)

    def forward(self, x: Any, factor: int = 2) -> Any:
        batch, length, width = x.shape
        flat = self.linear(x.view(batch * length, width)) * self.plain + self.shift
        positions = T.arange(length).float()[:, None] + T.tensor([0.5, 1.5, 2.5, 3.5])
        return {"out": (flat.view(batch, length, 4) + positions) * factor, "mean": flat.mean(0)}


def _same(program: Any, model: Any, *args: Any, **kwargs: Any) -> bool:
    expected, actual = model(*args, **kwargs), program.module()(*args, **kwargs)
    return all(T.equal(expected[key], actual[key]) for key in expected)


def test_sizes_may_vary() -> None:
    model = Pooled()
    batch, length = dims("batch", "length", min=1)
    program = export(model, (T.randn(2, 5, 3),), dynamic_shapes={"x": {0: batch, 1: length}})
    assert list(program.range_constraints) == ["batch", "length"]
    assert program.range_constraints["batch"].lower == 1
    for shape in ((2, 5, 3), (4, 7, 3), (1, 1, 3), (3, 11, 3)):
        assert _same(program, model, T.randn(*shape)), shape
    assert any(str(node.target) == "aten.sym_size.int" for node in program.graph.nodes)


def test_calls_are_checked() -> None:
    program = export(
        Pooled(), (T.randn(2, 5, 3),), {"factor": 3}, dynamic_shapes={"x": {0: Dim("b", max=8)}, "factor": None}
    )
    module = program.module()
    module(T.randn(8, 5, 3), factor=3)
    with pytest.raises(RuntimeError, match=r"args\[0\]\.shape\[1\] to be equal to 5, but got 6"):
        module(T.randn(2, 6, 3), factor=3)
    with pytest.raises(RuntimeError, match=r"to be <= 8, but got 9"):
        module(T.randn(9, 5, 3), factor=3)
    with pytest.raises(RuntimeError, match="factor to be equal to 3, but got 4"):
        module(T.randn(2, 5, 3), factor=4)
    with pytest.raises(RuntimeError, match="dtype"):
        module(T.randn(2, 5, 3).double(), factor=3)
    with pytest.raises(RuntimeError, match="Unable to call ExportedProgram directly"):
        program(T.randn(2, 5, 3))


def test_automatic_sizes() -> None:
    class Fixed(T.nn.Module):
        def forward(self, x: Any) -> Any:
            return {"out": x + T.ones(3)}

    free, fixed = export(T.nn.ReLU(), (T.ones(2),), dynamic_shapes=({0: Dim.AUTO},)), Fixed()
    free.module()(T.ones(9))
    program = export(fixed, (T.ones(4, 3),), dynamic_shapes=({0: Dim.AUTO, 1: Dim.AUTO},))
    assert _same(program, fixed, T.randn(6, 3))
    with pytest.raises(RuntimeError, match="equal to 3"):
        program.module()(T.ones(4, 5))
    with pytest.raises(RuntimeError, match="Constraints violated"):
        export(fixed, (T.ones(4, 3),), dynamic_shapes=({1: Dim("width")},))


def test_collections() -> None:
    x, shapes = T.ones(2, 5, 3), ShapesCollection()
    shapes[x] = {0: Dim("batch")}
    model = Pooled()
    assert _same(export(model, (x,), dynamic_shapes=shapes), model, T.randn(7, 5, 3))


def test_signature() -> None:
    signature = export(Pooled(), (T.ones(2, 5, 3),)).graph_signature
    assert [str(each) for each in signature.input_specs] == [
        "p_linear_weight: PARAMETER target='linear.weight'", "p_linear_bias: PARAMETER target='linear.bias'",
        "b_shift: BUFFER target='shift' persistent=True", "c_plain: CONSTANT_TENSOR target='plain'",
        "c_lifted_tensor_0: CONSTANT_TENSOR target='lifted_tensor_0'", "x: USER_INPUT",
    ]  # fmt: skip
    assert [each.kind.name for each in signature.output_specs] == ["USER_OUTPUT", "USER_OUTPUT"]


def test_program_is_trained() -> None:
    model, x = Pooled(), T.randn(2, 5, 3)
    module = export(model, (x,)).module()
    model(x)["out"].sum().backward()
    assert model.linear.weight.grad is not None
    expected = model.linear.weight.grad.clone()
    model.zero_grad()
    module(x)["out"].sum().backward()
    assert module.linear.weight is model.linear.weight
    assert T.allclose(model.linear.weight.grad, expected)


def test_files(tmp_path: Path) -> None:
    model, x = Pooled(), T.randn(2, 5, 3)
    program = export(model, (x,), dynamic_shapes={"x": {0: Dim("batch")}})
    T.export.save(program, tmp_path / "program.pt2", extra_files={"note.txt": "hello"})
    extra: dict[str, Any] = {"note.txt": ""}
    again = T.export.load(tmp_path / "program.pt2", extra_files=extra)
    assert extra["note.txt"] == "hello"
    assert _same(again, model, x)
    assert _same(again, model, T.randn(6, 5, 3))
    assert str(again.graph_signature) == str(program.graph_signature)
    assert again.graph_module.code == program.graph_module.code
    buffer = io.BytesIO()
    T.export.save(again, buffer)
    buffer.seek(0)
    assert _same(T.export.load(buffer), model, x)


@pytest.mark.parametrize("target", ["os.system.default", "builtins.eval.default", "operator.attrgetter"])
def test_files_name_operators_only(tmp_path: Path, target: str) -> None:
    T.export.save(export(T.nn.ReLU(), (T.ones(2),)), tmp_path / "program.pt2")
    with zipfile.ZipFile(tmp_path / "program.pt2") as archive:
        contents = {name: archive.read(name) for name in archive.namelist()}
    program = json.loads(contents["program.json"])
    for node in program["nodes"]:
        if node["op"] == "call_function":
            node["target"] = target
    contents["program.json"] = json.dumps(program).encode()
    with zipfile.ZipFile(tmp_path / "wrong.pt2", "w") as archive:
        for name, content in contents.items():
            archive.writestr(name, content)
    with pytest.raises(RuntimeError, match="no operator here"):
        T.export.load(tmp_path / "wrong.pt2")


def test_decompositions() -> None:
    def relu(x: Any) -> Any:
        return T.clamp(x, min=0)

    model = T.nn.Sequential(T.nn.Linear(3, 3), T.nn.ReLU())
    program = export(model, (T.ones(2, 3),))
    changed = program.run_decompositions({T.ops.aten.relu.default: relu})
    targets = [str(node.target) for node in changed.graph.nodes if node.op == "call_function"]
    assert not any("relu" in each for each in targets)
    assert T.equal(changed.module()(T.ones(2, 3)), model(T.ones(2, 3)))
    assert [str(each) for each in changed.graph_signature.input_specs] == [
        str(each) for each in program.graph_signature.input_specs
    ]


def test_unflattened() -> None:
    model, x = Pooled(), T.randn(2, 5, 3)
    module = T.export.unflatten(export(model, (x,)))
    assert set(module.state_dict()) >= set(model.state_dict())
    assert T.equal(module(x)["out"], model(x)["out"])


class Interleaved(T.nn.Module):
    """Takes twice as many of one as of the other, and one more."""

    def forward(self, x: Any, y: Any) -> Any:
        return x + y[:-1:2] + y[1::2].sum() / x.shape[0], y.reshape(-1)[: 2 * x.shape[0]]


def test_dimensions_that_follow_from_others() -> None:
    n = T.export.Dim("n", min=2, max=8)
    assert [each.__name__ for each in (2 * n + 1, (n - 1) * 3)] == ["2*n + 1", "3*n - 3"]
    program = export(Interleaved(), (T.ones(3), T.arange(7.0)), dynamic_shapes=({0: n}, {0: 2 * n + 1}))
    module = program.module()
    for size in (2, 5, 8):
        given = (T.linspace(0, 1, size), T.arange(2.0 * size + 1))
        assert all(T.equal(a, b) for a, b in zip(module(*given), Interleaved()(*given), strict=True))
    for size, said in ((13, r"to be equal to 2\*n \+ 1 = 11, but got 13"), (12, r"of the form 2\*n \+ 1, but got 12")):
        with pytest.raises(RuntimeError, match=said):
            module(T.ones(5), T.ones(size))
    with pytest.raises(RuntimeError, match="<= 8, but got 9"):
        module(T.ones(9), T.ones(19))
    file = io.BytesIO()
    T.export.save(program, file)
    file.seek(0)
    with pytest.raises(RuntimeError, match=r"of the form 2\*n \+ 1, but got 12"):
        T.export.load(file).module()(T.ones(5), T.ones(12))
    with pytest.raises(ValueError, match=r"which is not of the form 2\*n"):
        export(Interleaved(), (T.ones(3), T.arange(7.0)), dynamic_shapes=({0: n}, {0: 2 * n}))
    with pytest.raises(NotImplementedError, match="where a positive integer was expected"):
        n * -1


@differential
def test_arguments_by_name_come_in_any_order(T: Any) -> Any:
    class Module(T.nn.Module):  # type: ignore[misc, name-defined]
        def forward(self, x: Any, first: Any = None, second: Any = None) -> Any:
            return x * first - second

    one, two = T.tensor([1.0, 2.0]), T.tensor([3.0, 5.0])
    program = T.export.export(Module(), (one,), {"second": two, "first": one}).module()
    return program(one, first=one, second=two), program(one, second=two, first=one)


@differential
def test_code_can_ask_whether_it_is_exported(torch: Any) -> Any:
    found = []

    class Asks(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            asked = torch.compiler
            found.append((asked.is_exporting(), asked.is_compiling(), asked.is_dynamo_compiling()))
            return x + 1

    torch.export.export(Asks(), (torch.ones(2),))
    Asks()(torch.ones(2))
    return found[0], found[-1]
