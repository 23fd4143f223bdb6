"""`flambeau launch --ray`, over a Ray whose machines are threads of this process."""

from __future__ import annotations

import sys
from concurrent import futures
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from flambeau.distributed._launch.agent import launch
from flambeau.distributed._launch.options import WrongOption, options_of

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="processes of POSIX")

PROGRAM = """
import os
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
x = torch.full((3,), float(dist.get_rank() + 1))
dist.all_reduce(x)
with open(f"said{dist.get_rank()}", "w") as file:
    file.write(f"{x.tolist()} on machine {os.environ['GROUP_RANK']}")
dist.destroy_process_group()
"""


class LostMachine(Exception):
    pass


class Actor:
    """An object whose methods run in a thread of its own."""

    def __init__(self, made: Any, lost: bool) -> None:
        self.made, self.lost = made, lost
        self._thread = futures.ThreadPoolExecutor(1)

    def __getattr__(self, name: str) -> Any:
        def call(*arguments: Any) -> Any:
            if self.lost and name == "run":
                raise LostMachine("the node died")
            return getattr(self.made, name)(*arguments)

        return SimpleNamespace(remote=lambda *arguments: self._thread.submit(call, *arguments))


class SimulatedRay:
    """What `launch_on_ray` asks of Ray."""

    def __init__(self, machines_to_lose: int = 0) -> None:
        self.lose = machines_to_lose
        self.placed: list[list[dict[str, int]]] = []
        self.killed = 0
        self.exceptions = SimpleNamespace(RayActorError=LostMachine)
        self.is_initialized = lambda: False
        self.init = self.shutdown = lambda **options: None
        strategy = SimpleNamespace(PlacementGroupSchedulingStrategy=lambda place, placement_group_bundle_index: place)
        self.util = SimpleNamespace(
            placement_group=self._place,
            remove_placement_group=lambda place: None,
            get_node_ip_address=lambda: "127.0.0.1",
            scheduling_strategies=strategy,
        )

    def _place(self, bundles: list[dict[str, int]], strategy: str) -> Any:
        self.placed.append(bundles)
        return SimpleNamespace(wait=lambda limit: True)

    def remote(self, kind: Any) -> Any:
        def make(*arguments: Any) -> Actor:
            self.lose -= 1
            return Actor(kind(*arguments), self.lose >= 0)

        return SimpleNamespace(options=lambda **options: SimpleNamespace(remote=make))

    def get(self, given: Any) -> Any:
        return [each.result(240) for each in given] if isinstance(given, list) else given.result(240)

    def wait(self, given: list[Any], num_returns: int) -> Any:
        done, rest = futures.wait(given, 240, futures.FIRST_COMPLETED)
        return list(done), list(rest)

    def kill(self, actor: Actor) -> None:
        self.killed += 1
        if actor.lost and actor.made._agent is not None:
            actor.made._agent.close()  # which the end of a process does


def installed(ray: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ray", "ray.util", "ray.util.scheduling_strategies"):
        monkeypatch.setitem(sys.modules, name, ray)


def test_machines_are_placed_again_when_one_is_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ray = SimulatedRay(machines_to_lose=2)
    installed(ray, monkeypatch)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    (tmp_path / "program.py").write_text(PROGRAM)
    assert launch(options_of(["--ray", "--nnodes", "2", "--max-restarts", "1", "program.py"])) == 0
    assert ray.placed == [[{"CPU": 1}, {"CPU": 1}]] * 2
    assert ray.killed == 4
    for rank in range(2):
        assert (tmp_path / f"said{rank}").read_text() == f"[3.0, 3.0, 3.0] on machine {rank}"


def test_what_cannot_be_asked_of_ray(monkeypatch: pytest.MonkeyPatch) -> None:
    installed(SimulatedRay(), monkeypatch)
    with pytest.raises(WrongOption, match="--nnodes is a number"):
        launch(options_of(["--ray", "--nnodes", "1:2", "program.py"]))
    installed(None, monkeypatch)
    with pytest.raises(WrongOption, match=r"pip install 'flambeau\[ray\]'"):
        launch(options_of(["--ray", "program.py"]))
