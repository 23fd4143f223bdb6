"""ONNX files as modules: derivatives, control flow, old opsets, weights in other files, damage."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import flambeau as T
from flambeau._cli.main import main
from flambeau.onnx._reading import READERS, NotRead, OnnxFileError, load_module

from .cases import floats

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


def value(name: str, kind: int = FLOAT, shape: Any = None) -> Any:
    return helper.make_tensor_value_info(name, kind, shape)


def model(nodes: Any, inputs: Any, outputs: Any, opset: int = 20, initializers: Any = ()) -> Any:
    graph = helper.make_graph(nodes, "g", inputs, outputs, list(initializers))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])


def array(name: str, data: Any) -> Any:
    return onnx.numpy_helper.from_array(np.asarray(data), name)


@pytest.fixture
def linear() -> Any:
    return T.nn.Sequential(T.nn.Linear(4, 8), T.nn.Tanh(), T.nn.Linear(8, 2))


def test_weights_are_parameters_and_have_gradients(linear: Any) -> None:
    x = floats(3, 4)
    module = load_module(T.onnx.export(linear, (x,), dynamic_shapes=({0: "n"},)).model_proto)
    assert set(module.state_dict()) == set(linear.state_dict())
    module(x).sum().backward()
    linear(x).sum().backward()
    for name, parameter in linear.named_parameters():
        np.testing.assert_allclose(
            module.get_parameter(name).grad.numpy(), parameter.grad.numpy(), rtol=1e-5, atol=1e-6
        )
    module.load_state_dict({name: each * 0 for name, each in module.state_dict().items()})
    assert not module(floats(5, 4)).any()
    assert "input -> output_0" in repr(module)


def test_a_condition() -> None:
    branches = [
        helper.make_graph([helper.make_node(kind, ["x", "x"], ["y"])], kind, [], [value("y")])
        for kind in ("Add", "Mul")
    ]
    node = helper.make_node("If", ["c"], ["z"], then_branch=branches[0], else_branch=branches[1])
    module = load_module(model([node], [value("c", BOOL, []), value("x")], [value("z")]))
    x = floats(3)
    assert T.equal(module(T.tensor(True), x), x + x)
    assert T.equal(module(T.tensor(False), x), x * x)


def test_a_loop_collects() -> None:
    body = helper.make_graph(
        [
            helper.make_node("Mul", ["state", "two"], ["next"]),
            helper.make_node("Identity", ["next"], ["seen"]),
            helper.make_node("Identity", ["going"], ["still"]),
        ],
        "body",
        [value("i", INT64, []), value("going", BOOL, []), value("state")],
        [value("still", BOOL, []), value("next"), value("seen")],
    )
    node = helper.make_node("Loop", ["count", "", "x"], ["last", "all"], body=body)
    two = array("two", np.float32(2))
    module = load_module(
        model([node], [value("count", INT64, []), value("x")], [value("last"), value("all")], 20, [two])
    )
    last, every = module(T.tensor(3), T.ones(2))
    assert last.tolist() == [8.0, 8.0]
    assert every.tolist() == [[2.0, 2.0], [4.0, 4.0], [8.0, 8.0]]


def test_a_scan() -> None:
    body = helper.make_graph(
        [helper.make_node("Add", ["sum", "row"], ["next"]), helper.make_node("Identity", ["next"], ["out"])],
        "body",
        [value("sum"), value("row")],
        [value("next"), value("out")],
    )
    node = helper.make_node("Scan", ["start", "x"], ["last", "all"], body=body, num_scan_inputs=1)
    module = load_module(model([node], [value("start"), value("x")], [value("last"), value("all")]))
    x = floats(4, 2)
    last, every = module(T.zeros(2), x)
    np.testing.assert_allclose(every.numpy(), x.cumsum(0).numpy(), rtol=1e-6)
    np.testing.assert_allclose(last.numpy(), x.sum(0).numpy(), rtol=1e-6)


def test_old_opsets_keep_their_meaning() -> None:
    x = floats(2, 3, 4)
    nodes = [helper.make_node("Unsqueeze", ["x"], ["y"], axes=[0]), helper.make_node("Squeeze", ["y"], ["z"], axes=[0])]
    assert T.equal(load_module(model(nodes, [value("x")], [value("z")], 7))(x), x)
    soft = [helper.make_node("Softmax", ["x"], ["y"])]
    old, new = (load_module(model(soft, [value("x")], [value("y")], opset))(x) for opset in (11, 13))
    np.testing.assert_allclose(old.numpy(), x.reshape(2, 12).softmax(1).reshape(2, 3, 4).numpy(), rtol=1e-5)
    np.testing.assert_allclose(new.numpy(), x.softmax(-1).numpy(), rtol=1e-5)
    clip = load_module(model([helper.make_node("Clip", ["x"], ["y"], min=0.0, max=1.0)], [value("x")], [value("y")], 6))
    assert T.equal(clip(x), x.clamp(0, 1))


def test_a_function_of_the_models_own() -> None:
    twice = helper.make_function(
        "mine", "Twice", ["a"], ["b"], [helper.make_node("Add", ["a", "a"], ["b"])], [helper.make_opsetid("", 20)]
    )
    graph = helper.make_graph([helper.make_node("Twice", ["x"], ["y"], domain="mine")], "g", [value("x")], [value("y")])
    imports = [helper.make_opsetid("", 20), helper.make_opsetid("mine", 1)]
    module = load_module(helper.make_model(graph, opset_imports=imports, functions=[twice]))
    assert module(T.ones(2)).tolist() == [2.0, 2.0]


def test_inputs_by_name_and_too_few(linear: Any) -> None:
    module = load_module(T.onnx.export(lambda a, b: a - b, (floats(2), floats(2))).model_proto)
    assert T.equal(module(b=T.zeros(2), a=T.ones(2)), T.ones(2))
    with pytest.raises(TypeError, match="the model's inputs are a, b"):
        module(T.ones(2))


NOT_READ = {
    "ImageDecoder",
    "MelWeightMatrix",
    "RegexFullMatch",
    "SequenceMap",
    "StringConcat",
    "StringNormalizer",
    "StringSplit",
    "TfIdfVectorizer",
    "DeformConv",
    "MaxRoiPool",
}
"""Operators on strings and encoded images, and a few rare ones: this list only becomes shorter."""


def test_all_operators_up_to_opset_20_are_read_but_these() -> None:
    schemas = [each for each in onnx.defs.get_all_schemas_with_history() if not each.domain]
    older = {each.name for each in schemas if each.since_version <= 20}
    deprecated = {each.name for each in schemas if each.deprecated}
    missing = {each for each in older - deprecated if ("", each) not in READERS}
    assert missing == NOT_READ


# ----- what is not believed -------------------------------------------------------------------------------------------


def _outside(location: str, length: int = 16) -> Any:
    tensor = TensorProto(name="w", data_type=FLOAT, dims=[4], data_location=TensorProto.EXTERNAL)
    for key, text in (("location", location), ("length", str(length))):
        tensor.external_data.add(key=key, value=text)
    return model([helper.make_node("Add", ["x", "w"], ["y"])], [value("x")], [value("y")], 20, [tensor])


def test_weights_outside_of_the_folder_are_not_read(tmp_path: Path) -> None:
    folder = tmp_path / "models"
    folder.mkdir()
    (tmp_path / "secret").write_bytes(bytes(16))
    (folder / "short").write_bytes(bytes(8))
    (folder / "link").symlink_to(tmp_path / "secret")
    path = folder / "m.onnx"
    for location in ("../secret", str(tmp_path / "secret"), "link", "", "nowhere", "short"):
        path.write_bytes(_outside(location).SerializeToString())
        with pytest.raises(OnnxFileError, match="w: "):
            load_module(path)
    with pytest.raises(OnnxFileError, match="not read from a folder"):
        load_module(_outside("short").SerializeToString())


def test_wrong_files_say_what_is_wrong(tmp_path: Path) -> None:
    good = model([helper.make_node("Add", ["x", "w"], ["y"])], [value("x")], [value("y")], 20, [array("w", np.ones(2))])
    for data in (b"", b"not a model", b"\x80\x02}q\x00."):
        with pytest.raises(OnnxFileError, match="not an ONNX file"):
            load_module(data)
    short = onnx.ModelProto()
    short.CopyFrom(good)
    short.graph.initializer[0].raw_data = b"abc"
    with pytest.raises(OnnxFileError, match="w has 3 bytes"):
        load_module(short)
    unknown = model([helper.make_node("Nonsense", ["x"], ["y"])], [value("x")], [value("y")])
    with pytest.raises(NotRead, match="the operator Nonsense is not read"):
        load_module(unknown)
    missing = model([helper.make_node("Add", ["x", "nobody"], ["y"], name="sum")], [value("x")], [value("y")])
    with pytest.raises(OnnxFileError, match=r"the node 'sum' \(Add\) reads 'nobody'"):
        load_module(missing)(T.ones(2))


def test_damaged_files_give_errors_and_nothing_else(linear: Any) -> None:
    whole = T.onnx.export(linear, (floats(3, 4),)).model_proto.SerializeToString()
    source = random.Random(0)
    x = floats(3, 4)
    outcomes = set()
    for _ in range(150):
        data = bytearray(whole)
        for _ in range(source.randint(1, 6)):
            data[source.randrange(len(data))] = source.randrange(256)
        if source.random() < 0.3:
            del data[source.randrange(len(data)) :]
        try:
            load_module(bytes(data))(x)
            outcomes.add("runs")
        except Exception as error:
            outcomes.add(type(error).__name__)
    assert {"runs", "OnnxFileError"} <= outcomes
    assert outcomes <= {"runs", "OnnxFileError", "NotRead", "TypeError", "RuntimeError"}


# ----- the command line -----------------------------------------------------------------------------------------------


def test_convert_and_inspect_take_onnx_files(linear: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, target = tmp_path / "m.onnx", tmp_path / "m.safetensors"
    T.onnx.export(linear, (floats(3, 4),), str(path))
    assert main(["convert", str(path), str(target)]) == 0
    found = T.safetensors.load_file(target)
    assert {name: tuple(each.shape) for name, each in found.items()} == {
        name: tuple(each.shape) for name, each in linear.state_dict().items()
    }
    assert main(["inspect", str(path)]) == 0
    assert "ONNX model" in capsys.readouterr().out
    path.write_bytes(b"\x08nonsense")
    assert main(["convert", str(path), str(tmp_path / "other.npz")]) == 1
    assert "damaged" in capsys.readouterr().err
