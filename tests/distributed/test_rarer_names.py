"""Smaller names of `torch.distributed` beside PyTorch's."""

from __future__ import annotations

import importlib
import os
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import pytest

import flambeau
from flambeau.distributed.elastic.timer.file_based_local_timer import (
    FileTimerClient,
    FileTimerRequest,
    FileTimerServer,
)
from tests.support.differential import differential, outcome


def part(torch: Any, name: str) -> Any:
    return importlib.import_module(f"{torch.__name__}.distributed.{name}")


@differential
def test_values_told_to_all(torch: Any) -> Any:
    own = part(torch, "collective_utils")
    return (
        own.broadcast(3),
        own.broadcast(lambda: 4, stage_name="a"),
        own.all_gather(5),
        own.all_gather(lambda: 6),
        outcome(lambda: own.broadcast(lambda: 1 / 0), "Rank 0 failed"),
        outcome(lambda: own.broadcast(1, success=False), "expected to be None"),
        outcome(lambda: own.all_gather(lambda: 1 / 0), "all_gather failed with exception"),
        own.SyncPayload("a", True, 1).exception,
    )


@differential
def test_backends_and_settings(torch: Any) -> Any:
    c10d, config = part(torch, "distributed_c10d"), part(torch, "config")
    chunk = part(torch, "pipelining.microbatch").TensorChunkSpec
    made = [c10d.BackendConfig(c10d.Backend(each)) for each in ("gloo", "nccl", "cpu:gloo,cuda:nccl")]
    return (
        [(str(each), {key: str(value) for key, value in each.get_device_backend_map().items()}) for each in made],
        c10d.GroupName("a"),
        (config.compile_on_one_rank, config.use_torchcomms),
        [each.split_dim for each in chunk.from_tuple((0, 1))],
        {name: each.split_dim for name, each in chunk.from_dict({"a": 1}).items()},
    )


@differential
def test_copies_of_states(torch: Any) -> Any:
    own = part(torch, "checkpoint.staging")
    warnings.simplefilter("ignore")  # PyTorch's, of memory that cannot be pinned
    tensor = torch.ones(2)
    blocking = own.BlockingAsyncStager()
    observed = [blocking.stage({"a": tensor, "n": {"b": tensor, "c": 3}})]
    plain = own.DefaultStager(own.StagingOptions(False, False, False, False))
    later = own.DefaultStager(own.StagingOptions(False, False, True, False))
    observed.append(plain.stage({"a": tensor}))
    future = later.stage({"a": tensor})
    later.synchronize_staging()
    observed.append(future.result())
    tensor.add_(1)
    later.close()
    plain.close()
    return (
        observed,
        blocking.should_synchronize_after_execute,
        isinstance(plain, own.AsyncStager),
        outcome(lambda: own.DefaultStager(), "requires that the current accelerator"),
        outcome(lambda: own.BlockingAsyncStager(True).stage({"a": tensor}), "Cannot access accelerator"),
    )


@differential
def test_settings_at_nodes(torch: Any) -> Any:
    own = importlib.import_module(f"{torch.__name__}.fx.passes.param_fetch")
    nn = torch.nn
    model = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    traced = torch.fx.symbolic_trace(model)
    own.lift_lowering_attrs_to_nodes(traced)
    found = [getattr(node, "attrs_for_lowering", None) for node in traced.graph.nodes]
    names = [
        each and {key: value if isinstance(value, (str, bool)) else type(value).__name__ for key, value in each.items()}
        for each in found
    ]
    pool = own.extract_attrs_for_lowering(nn.MaxPool2d(2))
    refused = outcome(lambda: own.extract_attrs_for_lowering(nn.Sigmoid()), "is not in the module_fetch_book")
    return names, pool, own.default_matching("weight", 3), refused


def test_older_names_of_saving(tmp_path: Path) -> None:
    from flambeau.distributed import checkpoint

    state = {"a": flambeau.ones(2)}
    with pytest.warns(FutureWarning, match="use `save`"):
        checkpoint.save_state_dict(state, checkpoint.FileSystemWriter(tmp_path))
    target = {"a": flambeau.zeros(2)}
    with pytest.warns(FutureWarning, match="use `load`"):
        checkpoint.load_state_dict(target, checkpoint.FileSystemReader(tmp_path))
    assert target["a"].tolist() == [1.0, 1.0]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")
def test_timers_by_a_pipe(tmp_path: Path) -> None:
    """A process whose timer is over is ended by its signal, and one that has let go of it is not."""
    path, told = str(tmp_path / "pipe"), []
    with pytest.raises(BrokenPipeError):
        FileTimerClient(path).acquire("a", 0)
    server = FileTimerServer(path, "run", 0.05, log_event=lambda name, request: told.append(name))
    server.start()
    program = "import time; time.sleep(600)"
    lost, kept = (subprocess.Popen([sys.executable, "-c", program]) for _ in range(2))
    client = FileTimerClient(path, signal.SIGTERM)
    client.acquire("own", time.time() + 600)
    client.release("own")
    client._send(FileTimerRequest(kept.pid, "b", time.time() + 600, signal.SIGTERM))
    client._send(FileTimerRequest(lost.pid, "b", time.time(), signal.SIGTERM))
    assert lost.wait(60) == -signal.SIGTERM
    assert kept.poll() is None
    kept.kill()
    kept.wait()
    assert server.get_last_progress_time() <= time.time()
    server.stop()
    assert told[0] == "watchdog started"
    assert "timer expired" in told
    assert FileTimerRequest(1, "a", 2.0) == FileTimerRequest(1, "a", 2.0)
