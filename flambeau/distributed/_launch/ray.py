"""`flambeau launch --ray`: Ray places the launchers, one for each machine, and they do the rest.

Ray is asked for a bundle of processors for each machine and holds an actor in it, which runs the launcher that is
run by hand otherwise. If a machine is lost, all are placed again, as often as `--max-restarts` allows.
"""

from __future__ import annotations

import dataclasses
import os
import signal
from typing import Any

from .agent import Agent, Interrupted, interruptible, say, say_failures
from .options import Options, WrongOption
from .workers import Failure


def _ray() -> Any:
    try:
        import ray
        import ray.util
        import ray.util.scheduling_strategies
    except ImportError as error:
        raise WrongOption(
            f"--ray needs Ray, here and on all machines of the cluster: pip install 'flambeau[ray]' ({error})"
        ) from error
    return ray


class Machine:
    """The launcher of one machine, in an actor of Ray."""

    def __init__(self, options: Options, folder: str) -> None:
        if os.path.isdir(folder):
            os.chdir(folder)
        self._options = options
        self._agent: Agent | None = None

    def address(self) -> str:
        """Where other machines reach this one."""
        return str(_ray().util.get_node_ip_address())

    def meet(self, host: str, port: int) -> int:
        """Come to the meeting, which the first machine opens; the port of it."""
        self._options.host, self._options.port = host, port
        self._agent = Agent(self._options)
        return self._agent.port

    def run(self) -> list[Failure]:
        """Run the program to its end; the processes that failed."""
        assert self._agent is not None
        return self._agent.run()


def launch_on_ray(options: Options) -> int:
    """Run a program on a cluster; the exit code of the launcher."""
    ray = _ray()
    if options.fewest != options.most:
        raise WrongOption("with --ray, --nnodes is a number: Ray waits until all machines are there")
    started_here = not ray.is_initialized()
    ray.init(address=os.environ.get("RAY_ADDRESS"), ignore_reinit_error=True)
    try:
        with interruptible():
            failures: list[Failure] | None = None
            for _ in range(options.max_restarts + 1):
                failures = _placed(ray, options)
                if failures is not None:
                    break
            return 1 if failures is None else say_failures(failures)
    except Interrupted as interruption:
        say(f"ended by {signal.Signals(interruption.number).name}, and all machines with it")
        return 128 + interruption.number
    finally:
        if started_here:
            ray.shutdown()


def _placed(ray: Any, options: Options) -> list[Failure] | None:
    """One attempt: place the launchers, let them meet, and wait for them.

    Gives the processes that failed; None if a machine was lost.
    """
    bundles = [{"CPU": options.per_node} for _ in range(options.most)]
    place = ray.util.placement_group(bundles, strategy="SPREAD")
    machines: list[Any] = []
    try:
        if not place.wait(options.join_timeout):
            raise WrongOption(
                f"Ray has no {options.most} times {options.per_node} free processors: `ray status` says what is there"
            )
        make = ray.remote(Machine)
        for node in range(options.most):
            strategy = ray.util.scheduling_strategies.PlacementGroupSchedulingStrategy(
                place, placement_group_bundle_index=node
            )
            own = dataclasses.replace(options, node_rank=node, numbered=True, standalone=False)
            actor = make.options(scheduling_strategy=strategy, num_cpus=options.per_node)
            machines.append(actor.remote(own, os.getcwd()))
        host = ray.get(machines[0].address.remote())
        port = ray.get(machines[0].meet.remote(host, 0))
        ray.get([machine.meet.remote(host, port) for machine in machines[1:]])
        return _first_failures(ray, [machine.run.remote() for machine in machines])
    except ray.exceptions.RayActorError as error:
        say(f"a machine was lost: {error}")
        return None
    finally:
        for machine in machines:
            ray.kill(machine)
        ray.util.remove_placement_group(place)


def _first_failures(ray: Any, running: list[Any]) -> list[Failure]:
    """Wait for all machines; the processes that failed, or what machines have heard of others."""
    failures: list[Failure] = []
    while running:
        done, running = ray.wait(running, num_returns=1)
        failures += ray.get(done[0])
    own = [failure for failure in failures if failure.pid >= 0]
    return sorted(own or failures, key=lambda failure: failure.when)
