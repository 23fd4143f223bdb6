"""Processes that an agent starts, watches and starts again, beside PyTorch's names for it."""

from __future__ import annotations

import importlib
import io
import os
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from flambeau.distributed import HashStore
from flambeau.distributed.elastic.agent.server import WorkerState
from flambeau.distributed.elastic.agent.server.api import WorkerSpec
from flambeau.distributed.elastic.agent.server.local_elastic_agent import LocalElasticAgent
from flambeau.distributed.elastic.multiprocessing import DefaultLogsSpecs, Std, start_processes
from flambeau.distributed.elastic.multiprocessing.errors import ChildFailedError, ErrorHandler, record
from flambeau.distributed.elastic.multiprocessing.tail_log import TailLog
from flambeau.distributed.elastic.rendezvous import RendezvousClosedError, RendezvousParameters
from flambeau.distributed.elastic.rendezvous.c10d_rendezvous_backend import C10dRendezvousBackend
from flambeau.distributed.elastic.rendezvous.dynamic_rendezvous import DynamicRendezvousHandler, RendezvousTimeout
from flambeau.distributed.elastic.rendezvous.registry import get_rendezvous_handler
from flambeau.distributed.elastic.utils.distributed import get_free_port
from flambeau.distributed.launcher import LaunchConfig, elastic_launch
from tests.support.differential import differential, outcome

SIGNALS = ("SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT")


@pytest.fixture(autouse=True)
def _own_signals() -> Iterator[None]:
    """Starting processes takes over the signals of this one."""
    before = {name: signal.getsignal(getattr(signal, name)) for name in SIGNALS}
    yield
    for name, handler in before.items():
        signal.signal(getattr(signal, name), handler)


def part(torch: Any, name: str) -> Any:
    return importlib.import_module(f"{torch.__name__}.distributed.elastic.{name}")


@differential
def test_streams_and_files(torch: Any) -> Any:
    own = part(torch, "multiprocessing")
    folder = tempfile.mkdtemp()
    observed: list[Any] = [
        [each.name for each in own.Std],
        own.to_map(own.Std.OUT, 2) == {0: own.Std.OUT, 1: own.Std.OUT},
    ]
    observed.append({key: int(value) for key, value in own.to_map({1: own.Std.ALL}, 2).items()})
    observed.append([int(own.Std.from_str("2")), {k: int(v) for k, v in own.Std.from_str("0:1,1:3").items()}])
    observed.append(outcome(lambda: own.Std.from_str("x"), "does not match"))
    for options in (
        {}, {"redirects": own.Std.ALL}, {"tee": own.Std.OUT}, {"redirects": {0: own.Std.ERR}, "tee": {1: own.Std.OUT}},
        {"redirects": own.Std.OUT, "tee": own.Std.ALL, "local_ranks_filter": {0}},
    ):  # fmt: skip
        envs: Any = {each: {"TORCHELASTIC_RUN_ID": "run", "TORCHELASTIC_RESTART_COUNT": "1"} for each in range(2)}
        specs = own.DefaultLogsSpecs(log_dir=folder, **options)
        found = specs.reify(envs)

        def shortened(value: Any) -> Any:
            if isinstance(value, dict):
                return {key: shortened(each) for key, each in value.items()}
            head, _, tail = value.partition("run_")
            return tail.partition("/")[2] if head else value

        observed.append(
            [
                shortened(getattr(found, name))
                for name in ("stdouts", "stderrs", "tee_stdouts", "tee_stderrs", "error_files", "filtered_stdout")
            ]
        )
        observed.append([shortened(envs[each]["TORCHELASTIC_ERROR_FILE"]) for each in envs])
    result = own.RunProcsResult()
    error = own.SignalException("why", signal.SIGINT)
    return [*observed, result.is_failed(), result.return_values, error.sigval.name, str(error)]


@differential
def test_what_an_agent_knows(torch: Any) -> Any:
    api, errors = part(torch, "agent.server.api"), part(torch, "multiprocessing.errors")
    static = part(torch, "rendezvous.static_tcp_rendezvous")
    dynamic = part(torch, "rendezvous.dynamic_rendezvous")
    rendezvous = part(torch, "rendezvous")
    handler = static.StaticTCPRendezvous("localhost", 1234, 0, 1, "run", 60)
    spec = api.WorkerSpec("trainer", 2, handler, entrypoint="python", args=("a",), max_restarts=1)
    group = api.WorkerGroup(spec)
    worker = api.Worker(1, 3, 2, 4, 4)
    result = api.RunResult(api.WorkerState.FAILED)
    server = part(torch, "agent.server.health_check_server").create_healthcheck_server(lambda: 5, 1, 2)
    timeout = dynamic.RendezvousTimeout(join=timedelta(seconds=3))
    given = rendezvous.RendezvousParameters("static", "localhost:29400", "run", 1, 2)
    return (
        [(each.name, each.value) for each in api.WorkerState],
        [api.WorkerState.is_running(each) for each in api.WorkerState],
        (spec.get_entrypoint_name(), spec.monitor_interval, spec.master_addr),
        (len(group.workers), group.state.name, group.workers[1].local_rank),
        (str(worker), worker.id),
        (result.is_failed(), result.return_values, api.RunResult(api.WorkerState.SUCCEEDED).is_failed()),
        outcome(lambda: api.WorkerSpec("trainer", 0, handler, entrypoint="x")),
        outcome(lambda: api.WorkerSpec("trainer", 1, handler)),
        (server.alive_callback(), server.start(), server.stop()),
        [part(torch, "agent.server.local_elastic_agent").TORCHELASTIC_TIMER_FILE],
        (handler.get_backend(), handler.is_closed(), handler.num_nodes_waiting(), handler.get_run_id()),
        [each.total_seconds() for each in (timeout.join, timeout.last_call, timeout.close, timeout.heartbeat)],
        outcome(lambda: dynamic.RendezvousTimeout(join=timedelta(0)), "must be positive"),
        outcome(lambda: static.create_rdzv_handler(given), "rank is absent"),
        hasattr(errors.ErrorHandler(), "record_exception"),
    )


def add(first: int, second: int) -> tuple[int, str]:
    print("adding", first)
    print("noted", file=sys.stderr)
    return first + second, os.environ["NAME"]


def fail_or_sleep(rank: int) -> None:
    if rank == 1:
        raise ValueError("one of them")
    threading.Event().wait(600)


def test_functions_in_processes(tmp_path: Path) -> None:
    envs = {rank: {"NAME": f"n{rank}"} for rank in range(2)}
    context = start_processes(
        "adders", add, {0: (1, 2), 1: (3, 4)}, envs, DefaultLogsSpecs(str(tmp_path), Std.ALL), start_method="fork"
    )
    assert sorted(context.pids()) == [0, 1]
    result = context.wait(60, 0.05)
    assert result is not None
    assert not result.is_failed()
    assert result.return_values == {0: (3, "n0"), 1: (7, "n1")}
    assert Path(result.stdouts[1]).read_text() == "adding 3\n"
    assert Path(result.stderrs[0]).read_text() == "noted\n"


def test_one_that_fails_ends_all(tmp_path: Path) -> None:
    envs: dict[int, dict[str, str]] = {0: {}, 1: {}}
    context = start_processes(
        "some", fail_or_sleep, {0: (0,), 1: (1,)}, envs, DefaultLogsSpecs(str(tmp_path), Std.ALL), start_method="fork"
    )
    result = context.wait(60, 0.05)
    assert result is not None
    assert list(result.failures) == [1]
    assert "one of them" in str(result.failures[1].message["message"])
    for pid in context.pids().values():
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_commands_in_processes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = "import os, sys; print(os.environ['NAME'], sys.argv[1]); sys.exit(int(sys.argv[1]))"
    envs = {rank: {"NAME": f"n{rank}"} for rank in range(2)}
    specs = DefaultLogsSpecs(str(tmp_path), tee=Std.OUT)
    context = start_processes(
        "echo", sys.executable, {0: ("-c", code, 0), 1: ("-c", code, 0)}, envs, specs, {0: "<0>", 1: "<1>"},
        duplicate_stdout_filters=["n1"],
    )  # fmt: skip
    result = context.wait(60, 0.05)
    assert result is not None
    assert not result.is_failed()
    assert sorted(capsys.readouterr().out.splitlines()) == ["<0>n0 0", "<1>n1 0"]
    filtered = next(tmp_path.rglob("filtered_stdout.log"))
    assert filtered.read_text() == "<1>n1 0\n"
    failing = start_processes("bad", sys.executable, {0: ("-c", code, 3)}, {0: {"NAME": "x"}}, specs)
    result = failing.wait(60, 0.05)
    assert result is not None
    assert result.failures[0].exitcode == 3


def test_lines_as_they_come(tmp_path: Path) -> None:
    path, target = tmp_path / "a.log", io.StringIO()
    tail = TailLog("t", {0: str(path)}, target, interval_sec=0.01).start()
    path.write_text("one\ntwo\n")
    assert not tail.stopped()
    tail.stop()
    assert target.getvalue() == "[t0]:one\n[t0]:two\n"
    assert tail.stopped()


def test_errors_are_left_for_the_launcher(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, below = tmp_path / "error.json", tmp_path / "below.json"
    monkeypatch.setenv("TORCHELASTIC_ERROR_FILE", str(below))

    def failing() -> None:
        raise RuntimeError("why")

    with pytest.raises(RuntimeError, match="why"):
        record(failing)()
    monkeypatch.setenv("TORCHELASTIC_ERROR_FILE", str(path))
    ErrorHandler().dump_error_file(str(below), 7)
    assert "why" in path.read_text()
    assert '"errorCode": 7' in path.read_text()


def count_and_fail_once(folder: str) -> int:
    rank, restarts = int(os.environ["RANK"]), int(os.environ["TORCHELASTIC_RESTART_COUNT"])
    Path(folder, f"{rank}-{restarts}").touch()
    if rank == 1 and restarts == 0:
        raise RuntimeError("the first time")
    return 10 * int(os.environ["WORLD_SIZE"]) + rank


def launched(tmp_path: Path, restarts: int, **options: Any) -> dict[int, Any]:
    config = LaunchConfig(
        1, 1, 2, run_id="run", max_restarts=restarts, start_method="fork", monitor_interval=0.02,
        logs_specs=DefaultLogsSpecs(str(tmp_path / "logs"), Std.ALL), **options,
    )  # fmt: skip
    return elastic_launch(config, count_and_fail_once)(str(tmp_path))


def test_a_launched_function_is_run_again(tmp_path: Path) -> None:
    found = launched(tmp_path, 1, rdzv_backend="c10d", rdzv_endpoint=f"localhost:{get_free_port()}")
    assert found == {0: 20, 1: 21}
    assert {"1-0", "0-1", "1-1"} <= {each.name for each in tmp_path.iterdir()}


def test_a_launched_function_that_fails_too_often(tmp_path: Path) -> None:
    place = {"rdzv_backend": "static", "rdzv_endpoint": f"localhost:{get_free_port()}", "rdzv_configs": {"rank": 0}}
    with pytest.raises(ChildFailedError) as raised:
        launched(tmp_path, 0, **place)
    rank, failure = raised.value.get_first_failure()
    assert rank == 1
    assert "the first time" in str(failure.message["message"])


def test_events_and_state_of_an_agent(tmp_path: Path) -> None:
    params = RendezvousParameters("static", f"localhost:{get_free_port()}", "run", 1, 1, rank=0)
    spec = WorkerSpec("role", 1, get_rendezvous_handler(params), entrypoint=str.upper, args=("a",), monitor_interval=0.02)  # noqa: E501  # fmt: skip
    agent = LocalElasticAgent(spec, DefaultLogsSpecs(str(tmp_path)), start_method="fork")
    result = agent.run()
    assert result.state is WorkerState.SUCCEEDED
    assert result.return_values == {0: "A"}
    assert agent.get_worker_group().workers[0].world_size == 1
    assert agent.get_event_succeeded().metadata["role"] == "role"
    with agent.record_duration("some"):
        pass


def meeting(store: Any, least: int, most: int) -> DynamicRendezvousHandler:
    timeout = RendezvousTimeout(join=timedelta(seconds=60), last_call=timedelta(seconds=0.2))
    backend = C10dRendezvousBackend(store, "run")
    return DynamicRendezvousHandler.from_backend("run", store, backend, least, most, "localhost", timeout)


def test_meetings_of_some() -> None:
    """Two meet, a third one comes later and waits, and all three meet when they begin anew."""
    store = HashStore()
    nodes = [meeting(store, 2, 3) for _ in range(3)]
    found: dict[int, Any] = {}

    def come(number: int) -> None:
        found[number] = nodes[number].next_rendezvous()

    def together(*numbers: int) -> list[threading.Thread]:
        threads = [threading.Thread(target=come, args=(each,)) for each in numbers]
        for thread in threads:
            thread.start()
        return threads

    for thread in together(0, 1):
        thread.join(60)
    assert sorted(found[each].rank for each in (0, 1)) == [0, 1]
    assert found[0].world_size == 2
    late = together(2)
    while not nodes[0].num_nodes_waiting():
        threading.Event().wait(0.01)
    for thread in [*late, *together(0, 1)]:
        thread.join(60)
    assert sorted(found[each].rank for each in range(3)) == [0, 1, 2]
    assert found[2].world_size == 3
    assert {found[each].bootstrap_store_info.master_port for each in range(3)} == {found[0].bootstrap_store_info.master_port}  # noqa: E501  # fmt: skip
    assert nodes[0].settings.max_nodes == 3
    assert not nodes[1].is_closed()
    assert nodes[0].shutdown()
    assert nodes[1].is_closed()
    with pytest.raises(RendezvousClosedError):
        nodes[1].next_rendezvous()
    for node in nodes:
        node.shutdown()
