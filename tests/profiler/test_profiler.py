"""`torch.profiler` and `torch.autograd.profiler`: what is listed, how often, and what is written."""

from __future__ import annotations

import gzip
import json
import tempfile
import threading
from pathlib import Path
from typing import Any

import pytest

import flambeau
from flambeau import nn
from flambeau._core.modes import THREAD
from flambeau.autograd import profiler as autograd_profiler
from flambeau.profiler import ProfilerAction, profile, record_function, schedule, tensorboard_trace_handler
from tests.support.differential import differential

COMPARED = [
    "aten::convolution", "aten::native_batch_norm", "aten::relu", "aten::max_pool2d_with_indices", "aten::addmm",
    "aten::_log_softmax", "aten::nll_loss_forward", "aten::nll_loss_backward", "aten::_log_softmax_backward_data",
    "aten::mm", "aten::t", "aten::sum", "aten::threshold_backward", "aten::max_pool2d_with_indices_backward",
    "aten::native_batch_norm_backward", "aten::convolution_backward", "Optimizer.step#SGD.step", "mine",
]  # fmt: skip
"""What a step consists of in both libraries. Beside it each has operators of its own."""


def training_step(T: Any) -> Any:
    nn = T.nn
    net = nn.Sequential(
        nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(4, 4, 1), nn.BatchNorm2d(4),
        nn.ReLU(), nn.Flatten(), nn.Linear(36, 8), nn.ReLU(), nn.Linear(8, 5),
    )  # fmt: skip
    optimizer = T.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    x, y = T.randn(2, 3, 8, 8), T.tensor([1, 2])

    def step() -> None:
        optimizer.zero_grad()
        T.nn.functional.cross_entropy(net(x), y).backward()
        optimizer.step()

    step()
    return step


@differential
def test_ops_of_a_training_step_and_their_counts(T: Any) -> Any:
    step = training_step(T)
    with T.profiler.profile(activities=[T.profiler.ProfilerActivity.CPU]) as prof, T.profiler.record_function("mine"):
        step()
    counts = {event.key: event.count for event in prof.key_averages()}
    return {name: counts.get(name, 0) for name in COMPARED}


@differential
def test_shapes(T: Any) -> Any:
    with T.profiler.profile(activities=[T.profiler.ProfilerActivity.CPU], record_shapes=True) as prof:
        T.mm(T.ones(2, 3), T.ones(3, 4))
        T.mm(T.ones(5, 3), T.ones(3, 4))
    groups = prof.key_averages(group_by_input_shape=True)
    return sorted((each.key, each.count, each.input_shapes[:2]) for each in groups if each.key == "aten::mm")


@differential
def test_schedule_decides_which_steps_are_recorded(T: Any) -> Any:
    ready: list[Any] = []

    def on_ready(prof: Any) -> None:
        marks = sorted((each.name, each.trace_name) for each in prof.events() if "ProfilerStep" in each.name)
        exps = sum(each.name == "aten::exp" for each in prof.events())
        ready.append((prof.step_num, marks, exps))

    x = T.ones(2)
    plan = T.profiler.schedule(wait=1, warmup=1, active=2, repeat=2)
    with T.profiler.profile(
        activities=[T.profiler.ProfilerActivity.CPU], schedule=plan, on_trace_ready=on_ready
    ) as prof:
        for _ in range(10):
            x.exp()
            prof.step()
    return ready


@differential
def test_on_trace_ready_without_a_schedule(T: Any) -> Any:
    calls: list[int] = []
    with T.profiler.profile(
        activities=[T.profiler.ProfilerActivity.CPU], on_trace_ready=lambda prof: calls.append(prof.step_num)
    ) as prof:
        prof.step()
    return calls


@differential
def test_autograd_profile(T: Any) -> Any:
    with T.autograd.profiler.profile() as prof:
        x = T.ones(3, requires_grad=True)
        (x * 2).sum().backward()
    names = {each.name for each in prof.function_events}
    return [name in names for name in ("aten::mul", "aten::sum", "aten::expand", "aten::exp")]


def test_ranges_contain_what_ran_inside() -> None:
    x = flambeau.ones(50, 50)
    with profile(with_modules=True) as prof:
        with record_function("outer"):
            x @ x
            with record_function("inner"):
                x.exp()
        nn.Sequential(nn.Linear(50, 2))(x)
    events = {event.name: event for event in prof.events()}
    outer, inner, layer = events["outer"], events["inner"], events["nn.Module: Sequential.0"]
    assert [child.name for child in outer.cpu_children] == ["aten::mm", "inner"]
    assert [child.name for child in inner.cpu_children] == ["aten::exp"]
    assert inner.cpu_parent is outer
    assert outer.is_user_annotation
    assert outer.cpu_time_total >= events["aten::mm"].cpu_time_total + inner.cpu_time_total
    assert outer.self_cpu_time_total == pytest.approx(
        outer.cpu_time_total - sum(child.cpu_time_total for child in outer.cpu_children)
    )
    assert [child.name for child in layer.cpu_children] == ["aten::t", "aten::addmm"]
    assert layer.cpu_children[1].module == "Sequential.0"


def test_table_columns_and_order() -> None:
    with profile(record_shapes=True, profile_memory=True, with_flops=True, with_stack=True) as prof:
        flambeau.ones(8, 4) @ flambeau.ones(4, 2)
    averages = prof.key_averages(group_by_input_shape=True, group_by_stack_n=1)
    table = averages.table(sort_by="flops", row_limit=1, header="mine")
    lines = table.splitlines()
    assert lines[1] == "mine"
    assert lines[3].split("  ")[0].strip() == "Name"
    for title in ("Self CPU %", "CPU total", "CPU time avg", "CPU Mem", "# of Calls", "Input Shapes", "Total FLOPs"):
        assert title in lines[3]
    assert lines[5].startswith("aten::mm")
    assert "[[8, 4], [4, 2]]" in lines[5]
    assert "128.000" in lines[5]
    assert "64 B" in lines[5]
    assert "Source Location" in lines[3]
    assert lines[-1].startswith("Self CPU time total: ")
    assert len([line for line in lines if line.startswith("aten::")]) == 1
    with pytest.raises(ValueError, match="beauty"):
        averages.table(sort_by="beauty")


def test_stack_is_the_user_s() -> None:
    with profile(with_stack=True) as prof:
        flambeau.ones(2).exp()
    event = next(each for each in prof.events() if each.name == "aten::exp")
    assert event.stack[0].startswith(f"{__file__}(")
    assert event.stack[0].endswith("test_stack_is_the_user_s")


@pytest.mark.parametrize("suffix", ["json", "json.gz"])
def test_chrome_trace(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"trace.{suffix}"
    with profile(record_shapes=True) as prof, record_function("mine"):
        flambeau.mm(flambeau.ones(2, 3), flambeau.ones(3, 4))
    prof.add_metadata("run", "first")
    prof.export_chrome_trace(str(path))
    opened = gzip.open if suffix.endswith("gz") else open
    with opened(path, "rt") as file:
        document = json.load(file)
    events = {event["name"]: event for event in document["traceEvents"]}
    assert document["run"] == "first"
    assert events["mine"]["cat"] == "user_annotation"
    product = events["aten::mm"]
    assert (product["ph"], product["cat"]) == ("X", "cpu_op")
    assert product["args"]["Input Dims"] == [[2, 3], [3, 4]]
    assert events["mine"]["ts"] <= product["ts"]
    assert product["ts"] + product["dur"] <= events["mine"]["ts"] + events["mine"]["dur"]


@pytest.mark.filterwarnings("ignore:.*Profiler clears events:UserWarning")
def test_trace_handler_writes_a_file_for_each_cycle(tmp_path: Path) -> None:
    plan = schedule(wait=0, warmup=0, active=1, repeat=2)
    with profile(schedule=plan, on_trace_ready=tensorboard_trace_handler(str(tmp_path), "worker")) as prof:
        for _ in range(4):
            flambeau.ones(2).exp()
            prof.step()
    files = sorted(tmp_path.iterdir())
    assert len(files) == 2
    assert all(each.name.startswith("worker.") and each.name.endswith(".pt.trace.json") for each in files)


def test_export_stacks(tmp_path: Path) -> None:
    path = tmp_path / "stacks"
    with profile(with_stack=True) as prof:
        flambeau.ones(300, 300) @ flambeau.ones(300, 300)
    prof.export_stacks(str(path))
    assert any("test_export_stacks" in line and line.rstrip()[-1].isdigit() for line in path.read_text().splitlines())
    with autograd_profiler.profile() as plain:
        pass
    with pytest.raises(AssertionError, match="with_stack=True"):
        plain.export_stacks(str(path))


def test_other_threads_are_not_heard() -> None:
    x = flambeau.ones(2)
    with profile() as prof:
        thread = threading.Thread(target=lambda: x.exp())
        thread.start()
        thread.join()
        x.sin()
    assert [event.name for event in prof.events()] == ["aten::sin"]


def test_collection_can_be_interrupted() -> None:
    x = flambeau.ones(2)
    with profile() as prof:
        x.sin()
        prof.toggle_collection_dynamic(False, [])
        x.exp()
        prof.toggle_collection_dynamic(True, [])
        x.cos()
    assert [event.name for event in prof.events()] == ["aten::sin", "aten::cos"]


def test_disabled_unfinished_and_reentered() -> None:
    with autograd_profiler.profile(enabled=False) as nothing:
        assert nothing is None
    prof = autograd_profiler.profile()
    with pytest.raises(RuntimeError, match="didn't finish"):
        prof.table()
    with prof, pytest.raises(RuntimeError, match="not reentrant"):
        prof.__enter__()
    with pytest.raises(AssertionError, match="must be initialized"):
        profile(schedule=lambda step: ProfilerAction.NONE).events()


def test_a_profiled_step_gives_the_same_bits() -> None:
    def run() -> Any:
        flambeau.manual_seed(0)
        net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Dropout(), nn.Linear(8, 2))
        optimizer = flambeau.optim.Adam(net.parameters())
        net(flambeau.randn(3, 4)).square().sum().backward()
        optimizer.step()
        return [each.detach().numpy().tobytes() for each in net.parameters()]

    plain = run()
    with profile():
        assert run() == plain


def test_a_profile_changes_nothing_and_sees_everything() -> None:
    """The short paths stay open under a profile: the same bits, the same nodes, the modes as they were."""

    def run() -> Any:
        flambeau.manual_seed(0)
        net = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.GELU(), nn.Flatten(), nn.Linear(72, 3))
        x = flambeau.randn(2, 1, 8, 8)
        y = net(x) * 2 + x.sum()
        (y.exp() / y.exp().sum()).log().sum().backward()
        changed = x[0].mul_(3.0)
        return [y, changed, *[each.grad for each in net.parameters()]], y.grad_fn.name(), x._version

    plain = run()
    with profile() as prof:
        watched = run()
        assert not THREAD.modes.plain
    assert THREAD.modes.plain
    for left, right in zip(plain[0], watched[0], strict=True):
        assert left.tolist() == right.tolist()
    assert plain[1:] == watched[1:]
    names = {event.name for event in prof.events()}
    assert {"aten::convolution", "aten::gelu", "aten::addmm", "aten::mul", "aten::add", "aten::sum"} <= names


def test_a_profile_sees_what_a_backward_pass_does_beside_formulas() -> None:
    """Sums of gradients are additions; a gradient that is a turned product becomes the leaf's, without a copy."""
    weight = flambeau.randn(3, 4, requires_grad=True)
    with profile() as prof:
        y = flambeau.ones(2, 4) @ weight.t()
        (y.exp() * y).sum().backward()
    names = [event.name for event in prof.events()]
    assert names.count("aten::add") == 1
    assert "aten::clone" not in names
    assert weight.grad is not None
    assert weight.grad.stride() == weight.stride()


def test_ops_that_fail_leave_a_profile_as_it_was() -> None:
    x = flambeau.ones(2, 3)
    with profile() as prof:
        for _ in range(2):
            with pytest.raises(RuntimeError):
                x @ x
            with pytest.raises(RuntimeError):
                x + flambeau.ones(2)
        x.exp()
    assert [event.name for event in prof.events() if event.name != "aten::full"] == ["aten::exp"]
    assert THREAD.modes.plain


def test_a_profile_among_other_modes() -> None:
    """Anomaly detection, transforms, forward mode and casts take the longer way; the profile still sees the ops."""
    x = flambeau.ones(2, 3, requires_grad=True)
    with profile() as prof:
        with flambeau.autograd.set_detect_anomaly(True, check_nan=False):
            assert "traceback_" in x.exp().grad_fn.metadata
        flambeau.func.vmap(lambda row: row.sin().sum())(x.detach())
        _, tangent = flambeau.func.jvp(lambda v: v.cos(), (x.detach(),), (flambeau.ones(2, 3),))
        with flambeau.autocast("cpu", dtype=flambeau.bfloat16):
            assert (x @ x.T).dtype is flambeau.bfloat16
        x.tanh().sum().backward()
    assert flambeau.allclose(tangent, -x.detach().sin())
    assert flambeau.allclose(x.grad, 1 - x.detach().tanh() ** 2)
    names = {event.name for event in prof.events()}
    assert {"aten::exp", "aten::sin", "aten::cos", "aten::mm", "aten::tanh"} <= names


def _step(T: Any) -> None:
    x = T.ones(2, 3, requires_grad=True)
    with T.profiler.record_function("mine"):
        y = T.mm(x, T.ones(3, 4)).relu()
        T.cat([y, y], 1).to(T.float64)
    y.sum().backward()


@differential
def test_execution_traces(T: Any) -> Any:
    """The same schema, and the same account of the operators that both libraries have."""
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "trace.json")
        observer = T.profiler.ExecutionTraceObserver()
        before = observer.is_registered
        observer.start()
        assert observer.register_callback(path) is observer
        known = observer.is_registered, observer.get_output_file_path() == path
        observer.start()
        _step(T)
        observer.stop()
        observer.unregister_callback()
        document = json.loads(Path(path).read_text())
        again = T.profiler.ExecutionTraceObserver().register_callback(path)
        with T.profiler.profile(activities=[T.profiler.ProfilerActivity.CPU], execution_trace_observer=again) as prof:
            T.mm(T.ones(2, 2), T.ones(2, 2))
        again.unregister_callback()
        beside = [each["name"] for each in json.loads(Path(path).read_text())["nodes"]].count("aten::mm")
        events = [each.name for each in prof.events()].count("aten::mm")
    nodes = document["nodes"]
    found = {each["id"]: each for each in nodes}
    products = [each for each in nodes if each["name"] == "aten::mm"]
    (joined,) = [each for each in nodes if each["name"] == "aten::cat"]
    (mine,) = [each for each in nodes if each["name"] == "mine"]
    parts = [[each[side][key] for side in ("inputs", "outputs") for key in ("shapes", "types", "strides")]
             for each in (*products[:1], joined)]  # fmt: skip
    made_first = products[0]["outputs"]["values"][0]
    inside = []
    for each in (products[0], joined, products[-1]):
        names = []
        while each["ctrl_deps"] in found and each["ctrl_deps"] != each["id"]:
            each = found[each["ctrl_deps"]]
            names.append(each["name"])
        inside.append("mine" in names)
    return (
        before, known, sorted(document), document["schema"], sorted(mine), mine["inputs"],
        [each["name"] for each in mine["attrs"]], parts, made_first[2:], inside, beside, events,
        sorted(each["name"] for each in nodes if each["name"].startswith("[")),
    )  # fmt: skip


def test_tensors_of_an_execution_trace_keep_their_numbers(tmp_path: Path) -> None:
    """The product of one operator is what the next is given; memory that is taken again has a new number."""
    path = tmp_path / "trace.json"
    observer = flambeau.profiler.ExecutionTraceObserver().register_callback(str(path))
    observer.start()
    x = flambeau.ones(4, 4)
    shown = (x.exp().t() @ x).sum()
    for _ in range(3):
        flambeau.zeros(50)
    observer.stop()
    assert shown.item() > 0
    nodes = {each["name"]: each for each in json.loads(path.read_text())["nodes"]}
    exp, turned, product = nodes["aten::exp"], nodes["aten::t"], nodes["aten::mm"]
    assert exp["outputs"]["values"][0] == turned["inputs"]["values"][0]
    assert turned["outputs"]["values"][0][1] == exp["outputs"]["values"][0][1]
    assert turned["outputs"]["values"][0] == product["inputs"]["values"][0]
    made = [each for each in json.loads(path.read_text())["nodes"] if each["outputs"]["shapes"] == [[50]]]
    assert len({each["outputs"]["values"][0][0] for each in made}) == 3


@differential
def test_changes_in_place_are_listed_as_such(T: Any) -> Any:
    x, n = T.ones(3), T.ones(3, dtype=T.int64)
    with T.profiler.profile() as prof:
        x.add_(1.0)
        x.mul_(x)
        x.exp_()
        T.relu_(x)
        n += 1
    changes = ("aten::add_", "aten::mul_", "aten::exp_", "aten::relu_")  # some have further ones inside in PyTorch
    return [event.name for event in prof.events() if event.name in changes]
