"""Names that the modules around a model document, in small programs that run under both libraries."""

from __future__ import annotations

import dataclasses
import importlib
import io
import multiprocessing
import warnings
from pathlib import Path
from typing import Any

import pytest

import flambeau
from tests.support.differential import differential, outcome, warned
from tests.support.oracle import pytorch

STANDARD = (
    "Array AuthenticationError Barrier BoundedSemaphore BufferTooShort Condition Event JoinableQueue Lock Manager Pipe "
    "Pool Process ProcessError Queue RLock RawArray RawValue Semaphore SimpleQueue TimeoutError Value active_children "
    "allow_connection_pickling cpu_count current_process freeze_support get_all_start_methods get_context get_logger "
    "get_start_method log_to_stderr parent_process reducer set_executable set_forkserver_preload set_start_method"
)
"""What `torch.multiprocessing` passes on from Python's own."""


@differential
def test_multiprocessing_is_pythons(torch: Any) -> Any:
    """The names are there; those that carry no tensors are Python's own."""
    own = torch.multiprocessing
    same = {each: getattr(own, each) == getattr(multiprocessing, each) for each in STANDARD.split()}
    value, array = own.Value("i", 3), own.Array("d", [1.0, 2.0])
    with value.get_lock():
        value.value += 1
    return same, value.value, list(array), own.get_all_start_methods() == multiprocessing.get_all_start_methods()


def _kept(x: Any) -> Any:
    return x * len(x.shape)


flambeau.fx.wrap("_kept")
if pytorch is not None:
    pytorch.fx.wrap("_kept")


@differential
def test_functions_that_fx_does_not_look_into(torch: Any) -> Any:
    seen = []

    def program(x: Any) -> Any:
        seen.append(isinstance(x, torch.fx.Proxy))
        return _kept(x) + 1

    traced = torch.fx.symbolic_trace(program)
    return traced.code, seen, traced(torch.ones(2, 3)), _kept(torch.ones(2))


@differential
def test_fx_nodes(torch: Any) -> Any:
    """Nodes and their arguments, side effects, metadata of tensors, modules as leaves of patterns."""
    fx = torch.fx

    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv, self.norm = torch.nn.Conv2d(1, 2, 1), torch.nn.BatchNorm2d(2)

        def forward(self, x: Any) -> Any:
            return self.norm(self.conv(x)).relu()

    traced = fx.symbolic_trace(Net())
    shape_prop = importlib.import_module(f"{torch.__name__}.fx.passes.shape_prop")
    shape_prop.ShapeProp(traced).propagate(torch.ones(1, 1, 2, 2))
    fuse = importlib.import_module(f"{torch.__name__}.fx.experimental.optimization")
    modules = dict(traced.named_modules())
    nodes = list(traced.graph.nodes)
    meta = nodes[1].meta["tensor_meta"]
    matches = [fuse.matches_module_pattern((torch.nn.Conv2d, torch.nn.BatchNorm2d), node, modules) for node in nodes]
    fuse.replace_node_module(nodes[2], modules, torch.nn.Identity())
    told: list[str] = []
    fx.node.map_arg((nodes[0], [nodes[1], 3]), lambda node: told.append(node.name))

    class Counted(fx.Tracer):
        def create_proxy(self, *args: Any, **kwargs: Any) -> Any:
            made = super().create_proxy(*args, **kwargs)
            told.append(f"{type(made).__name__} of {type(made.node).__name__}")
            return made

    Counted().trace(Net())

    def log(x: Any) -> None:
        return None

    fx.node.has_side_effect(log)
    graph = fx.Graph()
    graph.call_function(log, (graph.placeholder("x"),))
    graph.output(None)
    graph.eliminate_dead_code()
    return (
        matches, type(modules["norm"]).__name__, told, isinstance(meta, shape_prop.TensorMetadata),
        [str(each) for each in (meta.shape, meta.dtype, meta.requires_grad, meta.stride)], len(graph.nodes),
        [isinstance(node, fx.Node) for node in nodes],
    )  # fmt: skip


@differential
def test_parts_of_exported_programs(torch: Any) -> Any:
    """The signature of a program, inputs that are classes, what becomes of calls of submodules."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # PyTorch's, of its own code
        return _parts_of_a_program(torch)


def _parts_of_a_program(torch: Any) -> Any:
    export = torch.export

    @dataclasses.dataclass
    class Pair:
        first: Any
        second: Any

    export.register_dataclass(Pair, serialized_type_name=f"Pair of {torch.__name__}")

    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = torch.nn.Linear(3, 2)
            self.register_buffer("shift", torch.ones(2))

        def forward(self, pair: Any) -> Any:
            return self.linear(pair.first) + self.shift * pair.second

    net, pair = Net(), Pair(torch.ones(4, 3), torch.full((4, 2), 2.0))
    program = export.export(net, (pair,), strict=False)
    signature = program.graph_signature
    unflattened = export.unflatten(program)
    return (
        isinstance(program, export.ExportedProgram),
        isinstance(signature, export.ExportGraphSignature),
        isinstance(unflattened, export.UnflattenedModule),
        [isinstance(each, export.ModuleCallEntry) for each in program.module_call_graph[:1]],
        isinstance(program.module_call_graph[0].signature, export.ModuleCallSignature),
        signature.parameters, signature.buffers, len(signature.user_inputs), signature.backward_signature,
        bool((program.module()(pair) == net(pair)).all()), bool((unflattened(pair) == net(pair)).all()),
        "aten::linear" in str(sorted(map(str, export.default_decompositions()))) or "decompositions",
    )  # fmt: skip


@differential
def test_marks_of_scripts(torch: Any) -> Any:
    """What TorchScript's marks are to Python."""
    jit = torch.jit
    attribute = jit.Attribute([1], list[int])

    @jit.script_if_tracing
    def plain(x: Any) -> Any:
        return x + 1

    before = jit.set_fusion_strategy([("STATIC", 1)])
    now = jit.set_fusion_strategy(before)
    strict = warned(lambda: jit.strict_fusion().__enter__(), "Only works in script mode")
    inside = plain(torch.ones(1)).item()
    fused = jit.onednn_fusion_enabled()
    jit.enable_onednn_fusion(True)
    changed = jit.onednn_fusion_enabled()
    jit.enable_onednn_fusion(fused)
    wrong = outcome(lambda: jit.set_fusion_strategy([("OTHER", 1)]))
    return attribute.value, now, strict, inside, fused, changed, wrong


@differential
def test_events_of_profiles(torch: Any) -> Any:
    """The lists of events that a profile gives, and what a schedule of steps counts."""
    util, profiler = torch.autograd.profiler_util, torch.profiler
    with torch.autograd.profiler.profile() as prof:
        torch.ones(3).exp()
    events = prof.function_events
    unique = torch.autograd.profiler.EnforceUnique()
    unique.see("a", 1)
    tracker = torch.autograd.profiler.KinetoStepTracker
    tracker.init_step_count("mine")
    counted = tracker.increment_step("mine")
    tracker.erase_step_count("mine")
    records = util.MemRecordsAcc([])
    return (
        isinstance(events, util.EventList), {type(each).__name__ for each in events},
        isinstance(events[0], util.FunctionEvent), str(events[0].device_type), str(profiler.ProfilerActivity.CPU),
        counted > 0, outcome(lambda: unique.see("a", 1)), list(records.in_interval(0, 1)),
        profiler.ProfilerActivity.CPU in profiler.supported_activities(), str(profiler.DeviceType.CPU),
    )  # fmt: skip


@differential
def test_older_names_of_libraries(torch: Any) -> Any:
    """Rules of operators by their earlier names, and kernels that let a call through."""
    space = f"older{torch.__name__}"
    library = torch.library.Library(space, "DEF")
    library.define("twice(Tensor x) -> Tensor")
    library.impl("twice", lambda x: x * 2, "CPU")
    older = warned(
        lambda: torch.library.impl_abstract(f"{space}::twice", lambda x: torch.empty_like(x), lib=library),
        "was renamed to",
    )[1:]
    library.impl("twice", torch.library.fallthrough_kernel, "AutogradCPU")
    run = getattr(torch.ops, space).twice
    return older, run(torch.ones(2)), run(torch.ones(2, device="meta")).shape


def test_hub_and_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "numbers.txt"
    source.write_text("one two")
    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "home"))

    @differential
    def scenario(torch: Any) -> Any:
        hub = torch.hub
        folder = hub.get_dir()
        hub.set_dir(str(tmp_path / "other"))
        changed = hub.get_dir()
        hub.set_dir(folder)
        target = tmp_path / f"{torch.__name__}.txt"
        hub.download_url_to_file(source.as_uri(), str(target), progress=False)
        wrong = outcome(
            lambda: hub.download_url_to_file(source.as_uri(), str(target), hash_prefix="0" * 8, progress=False),
            "invalid hash value",
        )
        return Path(folder).relative_to(tmp_path).parts, Path(changed).name, target.read_text(), wrong

    scenario()


@differential
def test_parts_of_packages(torch: Any) -> Any:
    """What an archive contains, and its errors."""
    package = torch.package
    buffer = io.BytesIO()
    with package.PackageExporter(buffer) as exporter:
        exporter.save_text("words", "a.txt", "one")
        exporter.save_pickle("data", "b.pkl", {"x": [1, 2]})
    buffer.seek(0)
    importer = package.PackageImporter(buffer)
    files = importer.file_structure()
    other = package.PackageExporter(io.BytesIO())
    other.intern("nowhere.**", allow_empty=False)
    return (
        isinstance(files, package.Directory), files.has_file("words/a.txt"), files.has_file("words/c.txt"),
        importer.load_text("words", "a.txt"), importer.load_pickle("data", "b.pkl"),
        isinstance(importer, package.Importer), outcome(other.close)[:2],
        outcome(lambda: package.sys_importer.get_name(object()))[:2],
        [issubclass(each, Exception) for each in (package.EmptyMatchError, package.ObjNotFoundError)],
    )  # fmt: skip


@differential
def test_tables_of_timings(torch: Any) -> Any:
    """Several measurements side by side, their units and digits."""
    benchmark = importlib.import_module(f"{torch.__name__}.utils.benchmark")

    def measured(name: str, seconds: list[float], row: str = "small", threads: int = 1, env: str | None = None) -> Any:
        spec = benchmark.TaskSpec("x + y", "pass", "", "sums", row, name, env, threads)
        return benchmark.Measurement(1, seconds, spec)

    tables = (
        [measured("first", [1.25e-6]), measured("second", [3.5e-6]), measured("first", [12.5e-6], "a longer name"),
         measured("second", [1.3e-4], "a longer name"), measured("first", [2.25e-6], threads=4)],
        [measured("first", [1.234567e-3] * 9), measured("third", [5e-4] * 3, "other"),
         measured("second", [1.5], "slow"), measured("second", [1.2e-3, 1.3e-3, 1.21e-3, 1.26e-3, 2.22e-3])],
        [measured("first", [1e-6], env="abc"), measured("first", [2e-6], env="d"), measured("second", [4e-6], env="d")],
    )  # fmt: skip
    shown = []
    for results in tables:
        table = benchmark.Compare(results)
        shown.append(str(table))
        table.trim_significant_figures()
        shown.append(str(table))
        table.highlight_warnings()
        for rowwise in (False, True):
            table.colorize(rowwise=rowwise)
            shown.append(str(table))
    figures = [(each.significant_figures, each.has_warnings) for results in tables for each in results]
    return (
        shown, figures, benchmark.select_unit(2.5e-5), benchmark.trim_sigfig(1234.5, 2), str(benchmark.Compare([])),
        [each.name for each in benchmark.Language], [each.name for each in benchmark.Colorize],
    )  # fmt: skip


def test_what_belongs_to_an_onnx_program() -> None:
    onnx = flambeau.onnx
    program = onnx.export(flambeau.nn.Linear(2, 1), (flambeau.ones(1, 2),), dynamo=True)
    assert isinstance(program, onnx.ONNXProgram)
    assert issubclass(onnx.errors.UnsupportedOperatorError, onnx.errors.OnnxExporterError)


@differential
def test_what_flex_attention_returns(torch: Any) -> Any:
    """Sums of exponentials beside the result."""
    flex = importlib.import_module(f"{torch.__name__}.nn.attention.flex_attention")
    q, k, v = (torch.linspace(-1.0, 1.0, 32).reshape(1, 1, 8, 4) * factor for factor in (1.0, 2.0, 3.0))
    asked = flex.AuxRequest(lse=True)
    options: Any = {"PRESCALE_QK": False}
    out, more = flex.flex_attention(q, k, v, return_aux=asked, kernel_options=options)
    known = set(flex.FlexKernelOptions.__annotations__) >= {"PRESCALE_QK", "BLOCK_M"}
    return out, isinstance(more, flex.AuxOutput), more.lse, known
