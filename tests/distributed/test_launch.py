"""`flambeau launch`: variables, logs, failures, restarts, and that nothing is left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from flambeau.distributed._launch.agent import Agent
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
given = [os.environ[name] for name in ("LOCAL_RANK", "LOCAL_WORLD_SIZE", "OMP_NUM_THREADS")]
print(f"{rank} ends with {weight.tolist()} {sys.argv[1:]} {given}", flush=True)
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
        given = [str(rank), "2", os.environ.get("OMP_NUM_THREADS", "1")]
        assert f"[default{rank}]:{rank} ends with {expected.tolist()} ['argument'] {given}" in run.stdout
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


ELASTIC = """#!/bin/sh
env > "attempt $TORCHELASTIC_RESTART_COUNT, rank $RANK of $WORLD_SIZE"
test $WORLD_SIZE = 1
"""


def variables_in(file: Path) -> dict[str, str]:
    return dict(line.split("=", 1) for line in file.read_text().splitlines() if "=" in line)


def test_machines_come_and_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two of at most three come, and get their numbers. One does not start again, and the other goes on alone."""
    monkeypatch.chdir(tmp_path)
    Path("program.sh").write_text(ELASTIC)
    Path("program.sh").chmod(0o700)
    arguments = ["--nnodes", "1:3", "--rdzv-backend", "c10d", "--rdzv-endpoint", "127.0.0.1:0", "--role", "trainer"]
    arguments += ["--rdzv-conf", "last_call_timeout=1", "--no-python"]
    first, second = (options_of([*arguments, "--max-restarts", each, "./program.sh"]) for each in ("1", "0"))
    agents = [Agent(first)]
    second.port = agents[0].port
    agents.append(Agent(second))
    with ThreadPoolExecutor(2) as threads:
        failures = [each.result(LONGEST) for each in [threads.submit(agent.run) for agent in agents]]
    assert [bool(each) for each in failures] == [False, True]
    found = {each.name: variables_in(each) for each in sorted(tmp_path.glob("attempt*"))}
    assert list(found) == ["attempt 0, rank 0 of 2", "attempt 0, rank 1 of 2", "attempt 1, rank 0 of 1"]
    for (number, machines), variables in zip([(0, 2), (1, 2), (0, 1)], found.values(), strict=True):
        expected = {
            "LOCAL_RANK": 0, "LOCAL_WORLD_SIZE": 1, "GROUP_RANK": number, "GROUP_WORLD_SIZE": machines,
            "ROLE_RANK": number, "ROLE_WORLD_SIZE": machines, "ROLE_NAME": "trainer", "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": second.port, "TORCHELASTIC_RUN_ID": "none",
        }  # fmt: skip
        assert {name: variables.get(name) for name in expected} == {name: str(each) for name, each in expected.items()}


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
