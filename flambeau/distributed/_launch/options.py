"""The command line of `flambeau launch`: torchrun's options."""

from __future__ import annotations

import argparse
import os
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

_STANDARD_PORT = 29500


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Torchrun's options; words may be joined by - or by _."""

    def add(*names: str, **settings: Any) -> None:
        alike = [name.replace("-", "_").replace("__", "--", 1) for name in names if name.startswith("--")]
        parser.add_argument(*names, *(name for name in alike if name not in names), **settings)

    add("--nnodes", default="1", metavar="N", help="machines: a number, or MIN:MAX")
    add("--nproc-per-node", default="1", metavar="N", help="processes on this machine: a number, auto, cpu or gpu")
    add("--standalone", action="store_true", help="this machine alone, on a port that is free")
    add("--rdzv-backend", default="static", help="static, or c10d: machines get their numbers when they come")
    add("--rdzv-endpoint", default="", metavar="HOST:PORT", help="where the machines meet")
    add("--rdzv-id", default="none", metavar="NAME", help="the name of the job")
    add("--rdzv-conf", default="", metavar="K=V,...", help="join_timeout and last_call_timeout, in seconds")
    add("--max-restarts", type=int, default=0, metavar="N", help="how often all processes start again after a failure")
    add("--monitor-interval", type=float, default=0.1, metavar="S", help="seconds between two looks at the processes")
    add("--node-rank", type=int, default=0, metavar="N", help="the number of this machine")
    add("--master-addr", default="127.0.0.1", metavar="HOST", help="the machine with number 0")
    add("--master-port", type=int, default=_STANDARD_PORT, metavar="PORT", help="a free port of it")
    add("--role", default="default", help="what the processes are for: a word in their logs")
    add("--log-dir", default=None, metavar="DIR", help="where logs are written")
    add("-r", "--redirects", default="0", help="what goes into files only: 1 stdout, 2 stderr, 3 both; or RANK:N,...")
    add("-t", "--tee", default="0", help="what goes into files and, with the rank in front, to the terminal")
    add("--local-ranks-filter", default="", metavar="R,...", help="the ranks whose output is shown")
    add("--no-python", action="store_true", help="SCRIPT is a program, not a Python file")
    add("-m", "--module", action="store_true", help="SCRIPT is the name of a module, as python -m")
    add("--ray", action="store_true", help="let Ray choose the machines: RAY_ADDRESS, or a cluster of its own here")
    add("--local-addr", default=None, help="the address of this machine")
    add("--start-method", default="spawn", choices=["spawn", "fork", "forkserver"], help=argparse.SUPPRESS)
    parser.add_argument("script", metavar="SCRIPT", help="the program")
    parser.add_argument("arguments", metavar="...", nargs=argparse.REMAINDER, help="the arguments of the program")


@dataclass
class Options:
    """What is to be started, where and how."""

    command: list[str]
    """The program with its arguments, after the interpreter."""
    python: bool = True
    module: bool = False
    fewest: int = 1
    most: int = 1
    """Machines."""
    per_node: int = 1
    standalone: bool = False
    numbered: bool = True
    """Whether machines know their numbers, or get them when they come."""
    node_rank: int = 0
    host: str = "127.0.0.1"
    port: int = _STANDARD_PORT
    run_id: str = "none"
    role: str = "default"
    max_restarts: int = 0
    interval: float = 0.1
    join_timeout: float = 600.0
    last_call: float = 5.0
    log_dir: str | None = None
    redirects: dict[int, int] = field(default_factory=dict)
    tee: dict[int, int] = field(default_factory=dict)
    """For each local rank, which of its outputs: 1 is stdout, 2 is stderr."""
    shown: frozenset[int] | None = None
    ray: bool = False
    """Whether Ray chooses the machines."""


class WrongOption(ValueError):
    """An option that cannot be understood."""


def parsed(arguments: argparse.Namespace) -> Options:
    """What the arguments mean."""
    fewest, most = _range(arguments.nnodes)
    per_node = processes_per_node(arguments.nproc_per_node)
    settings: dict[str, str] = dict(part.split("=", 1) for part in arguments.rdzv_conf.split(",") if "=" in part)
    options = Options(
        [arguments.script, *arguments.arguments],
        python=not arguments.no_python,
        module=arguments.module,
        fewest=fewest,
        most=most,
        per_node=per_node,
        standalone=arguments.standalone or (arguments.rdzv_backend != "static" and not arguments.rdzv_endpoint),
        numbered=arguments.rdzv_backend == "static",
        node_rank=int(settings.get("rank", arguments.node_rank)),
        host=arguments.master_addr,
        port=arguments.master_port,
        run_id=arguments.rdzv_id,
        role=arguments.role,
        max_restarts=arguments.max_restarts,
        interval=arguments.monitor_interval,
        join_timeout=float(settings.get("join_timeout") or settings.get("timeout") or 600),
        last_call=float(settings.get("last_call_timeout", 5)),
        log_dir=arguments.log_dir,
        redirects=_outputs(arguments.redirects, per_node),
        tee=_outputs(arguments.tee, per_node),
        shown=frozenset(int(each) for each in arguments.local_ranks_filter.split(",") if each) or None,
        ray=arguments.ray,
    )
    if arguments.rdzv_endpoint:
        options.host, _, port = arguments.rdzv_endpoint.rpartition(":") if ":" in arguments.rdzv_endpoint else (
            arguments.rdzv_endpoint, "", str(_STANDARD_PORT)
        )  # fmt: skip
        options.port = int(port)
    if options.standalone:
        options.host, options.port, options.run_id = "127.0.0.1", 0, uuid.uuid4().hex
        options.fewest = options.most = 1
    return options


def options_of(arguments: Sequence[str] | None = None, prog: str = "flambeau launch") -> Options:
    """The options that a command line gives."""
    parser = argparse.ArgumentParser(prog=prog)
    add_arguments(parser)
    return parsed(parser.parse_args(arguments))


def _range(text: str) -> tuple[int, int]:
    fewest, _, most = text.partition(":")
    try:
        return int(fewest), int(most or fewest)
    except ValueError:
        raise WrongOption(f"--nnodes is a number or MIN:MAX, and {text!r} is neither") from None


def processes_per_node(text: str) -> int:
    """How many processes a machine has: a number, or as many as it has processors or GPUs."""
    if text.isdecimal() and int(text) > 0:
        return int(text)
    from ...cuda import device_count

    if text == "cpu" or (text == "auto" and not device_count()):
        return os.cpu_count() or 1
    if text in ("gpu", "auto"):
        if not device_count():
            raise WrongOption("--nproc-per-node gpu: this machine has no GPU")
        return device_count()
    raise WrongOption(f"--nproc-per-node is a number, auto, cpu or gpu, and {text!r} is none of them")


def _outputs(text: str, per_node: int) -> dict[int, int]:
    """'3' is all outputs of all ranks, '0:1,1:2' stdout of rank 0 and stderr of rank 1."""
    try:
        if ":" not in text:
            return dict.fromkeys(range(per_node), int(text)) if int(text) else {}
        return {int(rank): int(kind) for rank, _, kind in (part.partition(":") for part in text.split(","))}
    except ValueError:
        raise WrongOption(f"{text!r} does not say which outputs: 0, 1, 2, 3 or RANK:N,...") from None
