"""`onnx.export`: its two styles, names, dynamic axes, what it leaves as it was, and what it says when it cannot."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import flambeau as T
from flambeau.onnx.errors import OnnxExporterError, SymbolicValueError, UnsupportedOperatorError

from . import runtime
from .cases import floats


def sizes(value: Any) -> list[Any]:
    return [each.dim_param or each.dim_value for each in value.type.tensor_type.shape.dim]


def net() -> Any:
    return T.nn.Sequential(
        T.nn.Linear(4, 8), T.nn.BatchNorm1d(8), T.nn.ReLU(), T.nn.Dropout(), T.nn.Linear(8, 2)
    ).eval()


def test_the_older_style(tmp_path: Path) -> None:
    path, model, x = tmp_path / "model.onnx", net(), floats(3, 4)
    made = T.onnx.export(
        model,
        x,
        str(path),
        dynamo=False,
        input_names=["data"],
        output_names=["scores"],
        dynamic_axes={"data": {0: "batch"}, "scores": {0: "batch"}},
        opset_version=18,
    )
    assert made is None
    message = onnx.load(path)
    assert message.opset_import[0].version == 18
    assert [each.name for each in message.graph.input] == ["data"]
    assert sizes(message.graph.input[0]) == ["batch", 4]
    assert sizes(message.graph.output[0]) == ["batch", 2]
    assert message.graph.output[0].name == "scores"
    wide = floats(7, 4)
    runtime.check(runtime.run(message, [wide]), model(wide))


def test_parameters_keep_their_names_and_nodes_say_their_module() -> None:
    class Model(T.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.encoder = T.nn.ModuleDict({"fc": T.nn.Linear(4, 3)})

        def forward(self, x: Any) -> Any:
            return self.encoder["fc"](x)

    graph = T.onnx.export(Model(), (floats(2, 4),)).model_proto.graph
    assert {each.name for each in graph.initializer} == {"encoder.fc.weight", "encoder.fc.bias"}
    assert graph.node[0].name == "/encoder.fc/Gemm"
    assert {each.key: each.value for each in graph.node[0].metadata_props} == {"module": "encoder.fc"}


def test_sizes_that_flow_through_python() -> None:
    class Model(T.nn.Module):
        def forward(self, x: Any, mask: Any) -> Any:
            batch, length, width = x.shape
            heads = x.view(batch, length, 2, width // 2).transpose(1, 2).reshape(batch * 2, length, -1)
            places = T.arange(length, device=x.device) / length.__index__() * 0 + T.arange(length)
            causal = T.full((length, length), float("-inf")).triu(1)
            scores = (heads @ heads.mT + causal).softmax(-1)
            pooled = (x * mask[..., None]).sum(1) / x.size(1) * (1 / length) + 2 / length**0.5
            return scores, pooled, places, x[:, -1], x[:, : length // 2], T.eye(length), x.flatten(0, 1)

    model, given = Model(), (floats(2, 4, 6), floats(2, 4))
    shapes = ({0: "batch", 1: "length"}, {0: "batch", 1: "length"})
    message = T.onnx.export(model, given, dynamic_shapes=shapes).model_proto
    for batch, length in ((2, 4), (1, 6), (5, 9)):
        others = [floats(batch, length, 6), floats(batch, length)]
        runtime.check(runtime.run(message, others), model(*others))
        runtime.check(runtime.read(message, others), model(*others))


def test_axes_of_an_image() -> None:
    model = T.nn.Sequential(
        T.nn.Conv2d(3, 4, 3, stride=2, padding=1), T.nn.MaxPool2d(2), T.nn.Upsample(scale_factor=2), T.nn.Flatten(2)
    )
    shapes = ({0: "batch", 2: "height", 3: "width"},)
    message = T.onnx.export(model, (floats(2, 3, 8, 12),), dynamic_shapes=shapes).model_proto
    for sizes_ in ((1, 3, 8, 12), (3, 3, 20, 17)):
        runtime.check(runtime.run(message, [floats(*sizes_)]), model(floats(*sizes_)))


def test_kwargs_and_nested_results() -> None:
    class Model(T.nn.Module):
        def forward(self, x: Any, *, scale: Any, extra: dict[str, Any]) -> Any:
            return {"sum": x * scale, "parts": (x + extra["a"], [x, x])}

    given = {"scale": floats(3), "extra": {"a": floats(2, 3, seed=1)}}
    program = T.onnx.export(Model(), (floats(2, 3),), kwargs=given)
    assert [each.name for each in program.model_proto.graph.input] == ["x", "scale", "extra"]
    expected = Model()(floats(2, 3), **given)
    runtime.check([each.numpy() for each in program(floats(2, 3), **given)], expected)
    runtime.check([each.numpy() for each in program.call_reference(floats(2, 3), **given)], expected)


def test_the_model_stays_as_it_was() -> None:
    model = net().train()
    before = {name: each.clone() for name, each in model.state_dict().items()}
    state = T.get_rng_state()
    program = T.onnx.export(model, (floats(3, 4),), training=T.onnx.TrainingMode.TRAINING)
    assert model.training
    assert T.equal(T.get_rng_state(), state)
    assert all(T.equal(each, before[name]) for name, each in model.state_dict().items())
    assert not model[0]._forward_hooks
    assert not model[0]._forward_pre_hooks
    assert "RandomUniformLike" in {each.op_type for each in program.model_proto.graph.node}
    T.onnx.export(model, (floats(3, 4),))
    assert model.training


def test_it_knows_that_it_exports() -> None:
    seen = []
    T.onnx.export(lambda x: (seen.append(T.onnx.is_in_onnx_export()), x + 1)[1], (floats(2),))
    assert seen == [True]
    assert not T.onnx.is_in_onnx_export()


def test_weights_beside_the_model(tmp_path: Path) -> None:
    path, model = tmp_path / "model.onnx", T.nn.Linear(64, 64)
    T.onnx.export(model, (floats(2, 64),)).save(path, external_data=True)
    assert (tmp_path / "model.onnx.data").stat().st_size >= 64 * 64 * 4
    assert path.stat().st_size < 4096
    x = floats(2, 64)
    runtime.check([T.onnx.load_module(path)(x).detach().numpy()], model(x))


def test_initializers_as_inputs_and_left_out(tmp_path: Path) -> None:
    model = T.nn.Linear(3, 2)
    listed = T.onnx.export(model, (floats(1, 3),), keep_initializers_as_inputs=True).model_proto.graph
    assert [each.name for each in listed.input] == ["input", "weight", "bias"]
    bare = T.onnx.export(model, (floats(1, 3),), export_params=False).model_proto.graph
    assert not bare.initializer
    assert len(bare.input) == 3


def test_other_weights() -> None:
    model, other = T.nn.Linear(3, 2), T.nn.Linear(3, 2)
    program = T.onnx.export(model, (floats(1, 3),))
    program.apply_weights(other.state_dict())
    runtime.check([each.numpy() for each in program(floats(1, 3))], other(floats(1, 3)))


def test_earlier_and_later_opsets() -> None:
    for opset in (13, 18, 21):
        program = T.onnx.export(T.nn.Linear(3, 2), (floats(1, 3),), opset_version=opset)
        assert program.model_proto.opset_import[0].version == opset
    with pytest.raises(ValueError, match=r"opset version: 99"):
        T.onnx.export(T.nn.Linear(3, 2), (floats(1, 3),), opset_version=99)


def test_shared_weights_are_written_once() -> None:
    layer = T.nn.Linear(4, 4)
    graph = T.onnx.export(T.nn.Sequential(layer, T.nn.ReLU(), layer), (floats(2, 4),)).model_proto.graph
    assert len(graph.initializer) == 2


def test_constants_are_folded() -> None:
    def function(x: Any) -> Any:
        return x * (T.arange(3.0) + 1).exp()

    folded, whole = (
        T.onnx.export(function, (floats(3),), do_constant_folding=each).model_proto.graph for each in (True, False)
    )
    assert [each.op_type for each in folded.node] == ["Mul"]
    assert len(whole.node) == 3


def test_what_cannot_be_exported_names_op_and_line() -> None:
    with pytest.raises(UnsupportedOperatorError, match=r"igamma has no converter.*test_export.py:\d+.*T.igamma"):
        T.onnx.export(lambda x: T.igamma(x, x), (floats(2),))
    with pytest.raises(OnnxExporterError, match=r"view_as_complex cannot be exported: .*complex numbers"):
        T.onnx.export(lambda x: T.view_as_complex(x).real, (floats(3, 2),))
    with pytest.raises(OnnxExporterError, match="returns no tensor"):
        T.onnx.export(lambda x: 3, (floats(2),))


def test_a_loop_over_a_dynamic_axis_is_refused() -> None:
    def function(x: Any) -> Any:
        total = x[0]
        for row in range(1, x.shape[0]):
            total = total.tanh() + x[row]
        return total

    with pytest.raises(OnnxExporterError, match="other ops when its dynamic axes have other sizes"):
        T.onnx.export(function, (floats(3, 2),), dynamic_shapes=({0: "n"},))

    with pytest.raises(SymbolicValueError, match=r"the number 1.09861 becomes"):
        T.onnx.export(lambda x: x * math.log(x.shape[0]), (floats(3, 2),), dynamic_shapes=({0: "n"},))


def test_rules_of_the_users_own() -> None:
    def rule(g: Any, x: Any) -> Any:
        return g.op("mine::Shiny", x, strength_f=2.0)

    T.onnx.register_custom_op_symbolic("aten::lgamma", rule, 9)
    try:
        message = T.onnx.export(T.lgamma, (floats(2),), custom_opsets={"mine": 3}).model_proto
    finally:
        T.onnx.unregister_custom_op_symbolic("aten::lgamma", 9)
    (node,) = message.graph.node
    assert (node.domain, node.op_type, node.attribute[0].f) == ("mine", "Shiny", 2.0)
    assert {each.domain: each.version for each in message.opset_import}["mine"] == 3

    table = {T.lgamma: lambda g, x: g.op("Neg", x)}
    message = T.onnx.export(lambda x: T.lgamma(x), (floats(2),), custom_translation_table=table).model_proto
    np.testing.assert_array_equal(runtime.run(message, [floats(2)])[0], -floats(2).numpy())


def test_nodes_that_the_user_writes() -> None:
    def function(x: Any) -> Any:
        return T.onnx.ops.symbolic("mine::Shine", (x, None), {"level": 3}, dtype=x.dtype, shape=x.shape, version=2) + 1

    assert T.equal(function(floats(2)), T.ones(2))
    message = T.onnx.export(function, (floats(2),)).model_proto
    assert [(each.domain, each.op_type) for each in message.graph.node] == [("mine", "Shine"), ("", "Add")]
    assert {each.domain: each.version for each in message.opset_import}["mine"] == 2


def test_a_model_that_is_too_large_for_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("flambeau.onnx._program._LARGEST_MESSAGE", 1000)
    program = T.onnx.export(T.nn.Linear(64, 64), (floats(2, 64),))
    with pytest.raises(OnnxExporterError, match="larger than 2 GB"):
        program.save(tmp_path / "one.onnx", external_data=False)
    program.save(tmp_path / "two.onnx")
    assert (tmp_path / "two.onnx.data").exists()


def test_without_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(OnnxExporterError, match=r"needs the package onnx.*flambeau\[onnx\]"):
        T.onnx.export(T.nn.Linear(2, 2), (floats(1, 2),))


@pytest.mark.parametrize("mode", range(4))
@pytest.mark.parametrize("options", [{}, {"softcap": 2.0}, {"scale": 0.3}])
def test_attention_as_pytorchs(mode: int, options: dict[str, float]) -> None:
    import torch

    arrays = [floats(2, 4, 5, 6, seed=seed).numpy() for seed in range(3)] + [floats(5, 5).numpy()]
    theirs, ours = (
        library.onnx.ops.attention(*map(library.from_numpy, arrays), qk_matmul_output_mode=mode, **options)
        for library in (torch, T)
    )
    for expected, actual in zip(theirs, ours, strict=True):
        np.testing.assert_allclose(actual.numpy(), expected.numpy(), rtol=1e-4, atol=1e-5)


def test_values_that_python_reads_are_constants_and_said_to_be() -> None:
    """As PyTorch's tracer does: a warning on the model's own line. What depends on weights alone is constant anyway."""

    def scaled(x: Any) -> Any:
        return x * 2 if x.sum() > 0 else -x

    weight = T.ones(2)
    with pytest.warns(T.jit.TracerWarning, match="constant in the model") as told:
        message = T.onnx.export(scaled, (floats(3).abs(),)).model_proto
    assert [(each.filename, each.lineno) for each in told] == [(__file__, scaled.__code__.co_firstlineno + 1)]
    given = floats(3).abs()
    runtime.check(runtime.run(message, [given]), given * 2)
    T.onnx.export(lambda x: x * float(weight.sum()), (floats(3),))
