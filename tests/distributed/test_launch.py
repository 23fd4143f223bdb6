"""`flambeau launch`: variables, logs, failures, restarts, and that nothing is left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from flambeau.distributed._launch.options import WrongOption, options_of

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="processes of POSIX")
LONGEST = 240
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
for _name in list(ENVIRONMENT):
    if _name.startswith(("TORCHELASTIC", "MASTER", "RANK", "LOCAL_", "WORLD")):
        del ENVIRONMENT[_name]


def launched(folder: Path, program: str, *options: str) -> subprocess.CompletedProcess[str]:
    path = folder / "program.py"
    path.write_text(program)
    command = [sys.executable, "-m", "flambeau", "launch", "--standalone", *options, str(path), "argument"]
    return subprocess.run(
        command, env=ENVIRONMENT, capture_output=True, text=True, timeout=LONGEST, check=False, cwd=folder
    )


TRAINING = """
import os, sys
import torch
import torch.distributed as dist

assert "flambeau" in torch.__file__, torch
dist.init_process_group("gloo")
assert dist.is_torchelastic_launched()
rank, attempt = dist.get_rank(), int(os.environ["TORCHELASTIC_RESTART_COUNT"])
start, weight = 0, torch.ones(2)
if os.path.exists("checkpoint.pt"):
    start, weight = torch.load("checkpoint.pt")
for step in range(start, 6):
    gradient = weight * (rank + 1) * 0.1
    dist.all_reduce(gradient)
    weight = weight - gradient / dist.get_world_size()
    if rank == 0:
        torch.save((step + 1, weight), "checkpoint.pt")
    dist.barrier()
    if step == 3 and attempt == 0 and rank == 1:
        raise ValueError("on purpose")
print(f"{rank} ends with {weight.tolist()} {sys.argv[1:]} {os.environ['LOCAL_RANK']}", flush=True)
dist.destroy_process_group()
"""


def test_restarts_end_with_the_bits_of_an_undisturbed_run(tmp_path: Path) -> None:
    import numpy as np

    expected = np.ones(2, np.float32)
    for _ in range(6):
        gradient = expected * np.float32(1) * np.float32(0.1) + expected * np.float32(2) * np.float32(0.1)
        expected = expected - gradient / np.float32(2)
    run = launched(
        tmp_path, TRAINING, "--nproc-per-node", "2", "--max-restarts", "1", "--tee", "3", "--log-dir", "logs"
    )
    assert run.returncode == 0, run.stderr
    for rank in range(2):
        assert f"[default{rank}]:{rank} ends with {expected.tolist()} ['argument'] {rank}" in run.stdout
    assert "rank 1" in run.stderr
    assert "ValueError: on purpose" in run.stderr
    logs = list((tmp_path / "logs").glob("*/attempt_1/*/stdout.log"))
    assert len(logs) == 2
    assert all("ends with" in log.read_text() for log in logs)


def test_the_first_failure_is_named_and_ends_all(tmp_path: Path) -> None:
    program = """
import os, signal, time
if os.environ["RANK"] == "1":
    os.kill(os.getpid(), signal.SIGKILL)
time.sleep(1000)
"""
    run = launched(tmp_path, program, "--nproc-per-node", "2")
    assert run.returncode == 1
    assert "rank 1 (local rank 1, process" in run.stderr
    assert "killed by SIGKILL" in run.stderr


VARIABLES = """
import json, os
names = ("RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_RANK", "ROLE_NAME", "OMP_NUM_THREADS", "MASTER_ADDR")
with open(f"variables{os.environ['RANK']}", "w") as file:
    json.dump({name: os.environ.get(name) for name in names}, file)
"""


def test_variables(tmp_path: Path) -> None:
    import json

    run = launched(tmp_path, VARIABLES, "--nproc-per-node=2", "--role=trainer")
    assert run.returncode == 0, run.stderr
    for rank in range(2):
        found = json.loads((tmp_path / f"variables{rank}").read_text())
        threads = os.environ.get("OMP_NUM_THREADS", "1")
        assert found == {
            "RANK": str(rank), "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2", "GROUP_RANK": "0", "ROLE_NAME": "trainer",
            "OMP_NUM_THREADS": threads, "MASTER_ADDR": "127.0.0.1",
        }  # fmt: skip


SLEEPING = """
import os, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)"])
with open(f"pids{os.environ['RANK']}.part", "w") as file:
    file.write(f"{os.getpid()} {child.pid}")
os.rename(f"pids{os.environ['RANK']}.part", f"pids{os.environ['RANK']}")
time.sleep(1000)
"""


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        state = Path(f"/proc/{pid}/stat")
        return not state.exists() or state.read_text().rpartition(")")[2].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False


@pytest.mark.parametrize(("number", "with_children"), [(signal.SIGINT, True), (signal.SIGKILL, False)])
def test_nothing_is_left_behind(tmp_path: Path, number: signal.Signals, with_children: bool) -> None:
    """After Ctrl-C neither the ranks nor what they started; after a launcher that was killed, no ranks."""
    (tmp_path / "program.py").write_text(SLEEPING)
    command = [sys.executable, "-m", "flambeau", "launch", "--standalone", "--nproc-per-node", "2", "program.py"]
    process = subprocess.Popen(command, env=ENVIRONMENT, cwd=tmp_path, stderr=subprocess.DEVNULL)
    pids: list[list[int]] = []
    try:
        end = time.monotonic() + LONGEST
        while len(pids) < 2 and time.monotonic() < end:
            pids = [[int(each) for each in file.read_text().split()] for file in tmp_path.glob("pids?")]
            time.sleep(0.05)
        assert len(pids) == 2
        process.send_signal(number)
        assert process.wait(LONGEST) == (130 if number == signal.SIGINT else -number)
        expected_gone = [pid for pair in pids for pid in (pair if with_children else pair[:1])]
        while any(is_running(pid) for pid in expected_gone) and time.monotonic() < end:
            time.sleep(0.05)
        assert not any(is_running(pid) for pid in expected_gone)
    finally:
        process.kill()
        process.wait()
        for pid in (pid for pair in pids for pid in pair):
            if is_running(pid):
                os.kill(pid, signal.SIGKILL)


def test_two_machines(tmp_path: Path) -> None:
    """Two launchers on one machine, which get their numbers when they come."""
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    (tmp_path / "program.py").write_text(VARIABLES)
    command = [
        sys.executable, "-m", "flambeau", "launch", "--nnodes", "2", "--rdzv-backend", "c10d", "--rdzv-endpoint",
        f"127.0.0.1:{port}", "--rdzv-id", "job", "--nproc-per-node", "1", "program.py",
    ]  # fmt: skip
    launchers = [subprocess.Popen(command, env=ENVIRONMENT, cwd=tmp_path) for _ in range(2)]
    try:
        assert [each.wait(LONGEST) for each in launchers] == [0, 0]
    finally:
        for each in launchers:
            each.kill()
            each.wait()
    assert sorted(file.name for file in tmp_path.glob("variables*")) == ["variables0", "variables1"]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--nnodes=2:4", "--nproc_per_node=3", "x.py", "--own"],
         {"fewest": 2, "most": 4, "per_node": 3, "command": ["x.py", "--own"]}),
        (["--node-rank", "1", "--master_addr", "a", "--master-port=5", "-m", "pkg"],
         {"node_rank": 1, "host": "a", "port": 5, "module": True, "numbered": True}),
        (["--rdzv_backend=c10d", "--rdzv_endpoint=h:7", "--max-restarts=3", "--nnodes=2", "x"],
         {"host": "h", "port": 7, "numbered": False, "max_restarts": 3}),
        (["--nproc-per-node=2", "-r", "3", "-t", "0:1,1:2", "x"],
         {"redirects": {0: 3, 1: 3}, "tee": {0: 1, 1: 2}}),
    ],
)  # fmt: skip
def test_options(arguments: list[str], expected: dict[str, Any]) -> None:
    options = options_of(arguments)
    assert {name: getattr(options, name) for name in expected} == expected


@pytest.mark.parametrize("wrong", [["--nnodes=a", "x"], ["--nproc-per-node=many", "x"], ["--tee=q", "x"]])
def test_wrong_options_are_named(wrong: list[str]) -> None:
    with pytest.raises(WrongOption):
        options_of(wrong)
