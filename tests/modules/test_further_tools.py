"""Further names of the modules around a model: those of exporting, scripting, profiling and of operators."""

from __future__ import annotations

import importlib
import importlib.util
import warnings
from typing import Any

import pytest

import flambeau
from tests.support.differential import differential, outcome


@differential
def test_graphs_cut_by_tables(torch: Any) -> Any:
    """Parts of a graph as submodules, and as a module of its own."""
    split = importlib.import_module(f"{torch.__name__}.fx.passes.split_module")
    optimization = importlib.import_module(f"{torch.__name__}.fx.experimental.optimization")

    def program(x: Any, y: Any) -> Any:
        z = (x * 2).relu()
        return torch.add(z.exp(), 3) + y.mul(y), z

    traced = torch.fx.symbolic_trace(program)
    nodes = list(traced.graph.nodes)
    inner = [node for node in nodes if node.op not in ("placeholder", "output")]
    x, y = torch.linspace(-1.0, 1.0, 4), torch.arange(4.0)
    seen = []
    for size, affix in ((4, "part"), (2, None), (1, None)):
        table = {node: number // size for number, node in enumerate(inner)}
        cut = split.split_module_simple(traced, table, partition_affix=affix)
        seen.append((cut.code, [(name, each.code) for name, each in cut.named_children()], cut(x, y)))
    mul, relu, exp, add = inner[:4]
    alone = optimization.extract_subgraph(traced, [exp, add], [relu], [add, exp])
    return (
        seen, alone.code, alone(x), mul.name,
        outcome(lambda: split.split_module_simple(traced, dict.fromkeys(inner[:-1], 0)))[:2],
        outcome(lambda: optimization.extract_subgraph(traced, [exp], [], [exp]))[:2],
    )  # fmt: skip


@differential(tolerance=1e-5)
def test_modules_for_inference(torch: Any) -> Any:
    """Normalisations and dropout layers are gone, the results are the same."""
    optimization = importlib.import_module(f"{torch.__name__}.fx.experimental.optimization")
    nn = torch.nn
    net = nn.Sequential(nn.Conv2d(2, 3, 1), nn.BatchNorm2d(3), nn.Dropout(), nn.Linear(4, 2)).eval()
    with torch.no_grad():
        net[1].running_mean.copy_(torch.arange(3.0))
    x = torch.linspace(-1.0, 1.0, 32).reshape(1, 2, 4, 4)
    made = optimization.optimize_for_inference(net)
    only = optimization.optimize_for_inference(net, {"conv_bn_fuse": False, "mkldnn_layout_optimize": False})
    wrong = [{"mkldnn_layout_optimize": True}, {"mkldnn_layout_optimize": {}}]
    return (
        made.code, only.code, made(x).detach(), bool(torch.allclose(made(x), net(x), atol=1e-5)), only(x).detach(),
        [outcome(lambda each=each: optimization.optimize_for_inference(net, each), "mkldnn_layout") for each in wrong],
    )  # fmt: skip


@differential
def test_examples_decide_what_is_dynamic(torch: Any) -> Any:
    """Sizes that differ between examples; a program that takes them, and one that does not."""
    export = torch.export

    class Net(torch.nn.Module):
        def forward(self, x: Any, y: Any) -> Any:
            return x.sum(0) + y["scale"]

    def example(rows: int, columns: int = 3) -> Any:
        return torch.ones(rows, columns), {"scale": torch.ones(columns)}

    more = export.AdditionalInputs()
    for rows in (5, 7):
        more.add(example(rows))
    shapes = more.dynamic_shapes(Net(), example(4))
    dynamic = [[each is not None for each in leaf] for leaf in (shapes["x"], shapes["y"]["scale"])]
    program = export.export(Net(), example(4), dynamic_shapes=more, strict=False)
    other = export.AdditionalInputs()
    other.add(example(4, 2))
    return (
        dynamic, type(shapes["x"]).__name__, more.verify(program), program.module()(*example(9)),
        outcome(lambda: other.verify(program), "shape[1] to be equal to 3, but got 2"),
        outcome(lambda: other.add([1]), "must be a tuple"),
        outcome(lambda: other.add((), [1]), "must be None or a dict"),
    )  # fmt: skip


@differential
def test_arguments_of_another_structure(torch: Any) -> Any:
    """An adapter arranges the leaves of a call as the program wants them."""
    warnings.simplefilter("ignore", FutureWarning)  # PyTorch's, of its own code
    export = torch.export

    class Net(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return x * 2

    class Last(export.FlatArgsAdapter):
        def adapt(
            self, target_spec: Any, input_spec: Any, input_args: Any, metadata: Any = None, obj: Any = None
        ) -> Any:
            seen.append((target_spec.num_leaves, input_spec.num_leaves, type(obj).__name__, max(metadata)))
            return input_args[-target_spec.num_leaves :]

    class Nothing(Last):
        def adapt(self, *args: Any, **kwargs: Any) -> Any:
            return []

    seen: list[Any] = []
    x = torch.arange(3.0)
    program = export.export(Net(), (x,), strict=False)
    adapted = export.unflatten(program, Last())
    return (
        adapted(x), adapted(x, {"a": x + 1}), adapted([x, x + 2]), seen, Last().get_flat_arg_paths(),
        outcome(lambda: export.unflatten(program)([x]), "There is no flat args adapter specified"),
        outcome(lambda: export.unflatten(program, Nothing())(x, x), "number of args mismatch"),
        outcome(export.FlatArgsAdapter)[:2],
    )  # fmt: skip


@differential
def test_drafts_and_backward_signatures(torch: Any) -> Any:
    export = torch.export
    draft = export.draft_export(torch.nn.Linear(3, 2), (torch.ones(1, 3),))
    backward = export.ExportBackwardSignature({"g": "weight"}, {"h": "x"}, "loss")
    again = export.ExportBackwardSignature(gradients_to_parameters={"g": "weight"}, gradients_to_user_inputs={"h": "x"},
                                           loss_output="loss")  # fmt: skip
    return (
        isinstance(draft, export.ExportedProgram), draft.graph_signature.user_inputs,
        draft.module()(torch.ones(1, 3)),
        repr(backward), backward == again, isinstance(3, export.Constraint),
    )  # fmt: skip


@differential
def test_tables_of_decompositions(torch: Any) -> Any:
    """One's own functions for operators; PyTorch's table has others besides, so that its size is not looked at."""
    warnings.simplefilter("ignore", FutureWarning)  # PyTorch's, of its own code
    export, aten = torch.export, torch.ops.aten

    class Net(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return torch.nn.functional.silu(x) + 1

    def silu(x: Any) -> Any:
        return x * torch.sigmoid(x)

    table = export.default_decompositions()
    table[aten.silu.default] = silu
    copied = table.copy()
    removed = copied.pop(aten.silu.default)
    copied.update({aten.silu.default: removed})
    program = export.export(Net(), (torch.ones(2),), strict=False)
    taken_apart = program.run_decompositions(table)
    empty = program.run_decompositions({})
    return (
        isinstance(table, export.CustomDecompTable), type(copied).__name__, type(table.materialize()).__name__,
        removed is silu, aten.silu.default in copied, copied.pop(aten.relu.default, 3),
        outcome(lambda: copied.pop(aten.relu.default))[:2],
        [str(node.target) for node in taken_apart.graph.nodes], [str(node.target) for node in empty.graph.nodes],
        taken_apart.module()(torch.ones(2)), outcome(lambda: export.CustomDecompTable({}))[:2],
    )  # fmt: skip


@differential
def test_functions_compiled_from_text(torch: Any) -> Any:
    """Functions by their source: what they call, which values they take, what is refused."""
    unit = torch.jit.CompilationUnit("def half(x):\n    return x / 2\n")
    unit.define(
        "def double(x):\n    return x * 2\n\n"
        "def scaled(x, n: int = 3):\n    return double(x) * n\n\n"
        "def total(xs: List[Tensor], skip: bool):\n"
        "    result = torch.zeros(2)\n"
        "    for x in xs:\n"
        "        if not skip:\n"
        "            result = result + scaled(x, 2)\n"
        "    return result\n"
    )
    x = torch.arange(2.0)
    names = [each.name for each in unit.get_functions()]
    results = (
        unit.half(x),
        unit.double(x),
        unit.scaled(x),
        unit.scaled(x, n=4),
        unit.total([x, x + 1], False),
        unit.total([x], True),
    )
    refused = (
        outcome(lambda: unit.scaled(x, "a"))[:2],
        outcome(lambda: unit.define("def double(x):\n    return x\n"), "method 'double' already defined"),
        outcome(lambda: unit.define("def other(x):\n    return half(x)\n"))[:2],
        outcome(lambda: unit.define("x = 3\n"), "expected def but found"),
        outcome(lambda: torch.jit.CompilationUnit("def f(:"))[:2],
        outcome(lambda: unit.none, "has no attribute 'none'"),
    )
    found = (
        unit.find_function("double").name,
        unit.find_function("none"),
        isinstance(unit.double, torch.jit.ScriptFunction),
    )
    dropped = unit.drop_all_functions(), unit.get_functions(), torch.jit.CompilationUnit().get_functions()
    return names, results, refused, found, dropped


def test_texts_run_no_python() -> None:
    unit = flambeau.jit.CompilationUnit()
    for text in (
        "def f(x=print(1)):\n    return x\n",
        "@print\ndef f(x):\n    return x\n",
        "def f(x):\n    return __import__('os')\n",
    ):
        with pytest.raises(RuntimeError):
            unit.define(text)
    assert unit.get_functions() == []


@differential
def test_interfaces_of_scripts(torch: Any) -> Any:
    """A class that says what others have: a module inside is known by it."""

    @torch.jit.interface
    class Layer(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            pass

    Layer.__qualname__ = "Layer"

    class Add(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return x + 1

    mark = Layer.__torch_script_interface__.rpartition(".")[2]
    return (
        isinstance(Layer, type), mark, hasattr(Add, "__torch_script_interface__"), Add()(torch.ones(1)),
        outcome(lambda: torch.jit.interface(Add()), "interface must be applied to a class"),
        outcome(lambda: torch.jit.interface(len), "interface must be applied to a class"),
    )  # fmt: skip


@pytest.mark.skipif(flambeau.cuda.is_available(), reason="the oracle is PyTorch's build for the CPU")
@differential
def test_ranges_for_profilers_of_vendors(torch: Any) -> Any:
    """Where they are switched off, and where there is no such device."""
    profiler = torch.autograd.profiler
    with profiler.emit_nvtx(enabled=False) as off, profiler.emit_itt(enabled=False) as off_too:
        y = torch.ones(2) + 1
    marks = profiler.emit_nvtx(record_shapes=True)
    missing = outcome(marks.__enter__, "Torch not compiled with CUDA enabled")
    return off, off_too, y, missing, marks.record_shapes, torch.profiler.kineto_available()


def test_ranges_of_ops_that_cannot_be_marked() -> None:
    with pytest.raises(RuntimeError, match="ITT functions not installed"), flambeau.autograd.profiler.emit_itt():
        pass


@differential
def test_operators_of_kernels(torch: Any) -> Any:
    """An operator that may launch kernels is one as others: fake tensors, gradients, its name."""
    space = f"kernels{torch.__name__}"

    def twice_sum(x: Any) -> Any:
        return x.sum() * 2

    twice_sum.__annotations__ = {"x": torch.Tensor, "return": torch.Tensor}
    run = torch.library.triton_op(f"{space}::twice_sum", twice_sum, mutates_args={})
    run.register_fake(lambda x: x.new_empty(()))
    run.register_autograd(lambda ctx, grad: grad * 2 * torch.ones(3))
    x = torch.ones(3, requires_grad=True)
    y = run(x)
    y.backward()
    return (
        y.detach(),
        x.grad,
        getattr(torch.ops, space).twice_sum(torch.ones(2)),
        run(torch.ones(2, device="meta")).shape,
    )


@pytest.mark.skipif(importlib.util.find_spec("triton") is not None, reason="there is Triton")
@differential
def test_kernels_without_triton(torch: Any) -> Any:
    return outcome(lambda: torch.library.wrap_triton(len), "No module named 'triton'")


@differential
def test_modules_that_know_how_they_are_exported(torch: Any) -> Any:
    """What a subclass must have, and what it has unless it says otherwise."""
    onnx = importlib.import_module(f"{torch.__name__}.onnx")

    class Unfinished(onnx.ExportableModule):
        pass

    class Double(onnx.ExportableModule):
        def forward(self, x: Any) -> Any:
            return x * 2

        def example_arguments(self) -> Any:
            return (torch.ones(2, 3),), None

    made = Double()
    return made.dynamic_shapes(), made.input_names(), made.output_names(), made(torch.ones(1)), outcome(Unfinished)[:2]


def test_programs_of_such_modules() -> None:
    class Scaled(flambeau.onnx.ExportableModule):
        def forward(self, x: Any, by: Any) -> Any:
            return x * by

        def example_arguments(self) -> Any:
            return (flambeau.ones(2, 3),), {"by": flambeau.ones(3)}

        def input_names(self) -> Any:
            return ["rows", "factors"]

        def output_names(self) -> Any:
            return ["products"]

        def dynamic_shapes(self) -> Any:
            return {"x": {0: "batch"}, "by": None}

    for program in (Scaled().to_onnx(), flambeau.onnx.export(Scaled())):
        graph = program.model_proto.graph
        assert [each.name for each in graph.input] == ["rows", "factors"]
        assert [each.name for each in graph.output] == ["products"]
        assert graph.input[0].type.tensor_type.shape.dim[0].dim_param == "batch"
