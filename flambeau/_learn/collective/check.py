"""Checks an answer to the lesson about collectives: among threads, each of which is a rank of a process group."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import flambeau

from ... import distributed as dist
from ..._core.process.locks import new_lock
from ...distributed.testing import run_in_threads
from ...futures import Future
from ...nn.parallel import DistributedDataParallel
from ..checking import Steps, Wrong, asked_for

STEPS = Steps()
torch: Any = flambeau
_ADVICE = (
    "What one process sends its neighbour must expect, with the same length, in the same order: in step s process "
    "r sends "
    "piece r - s and receives piece r - s - 1, both modulo the number of processes."
)
_LIMIT = timedelta(seconds=5)


def _reduced(answer: Any, size: int, count: int) -> list[Any]:
    """What each rank has in the end; rank r begins with (r + 1) * [1, 2, 3, ...]."""
    reduce = asked_for(answer, "ring_all_reduce")

    def work(rank: int) -> Any:
        tensor = torch.arange(1.0, count + 1) * (rank + 1)
        reduce(tensor)
        return tensor

    return run_in_threads(work, size, _LIMIT)


def _compare(answer: Any, size: int, count: int) -> None:
    right = torch.arange(1.0, count + 1) * (size * (size + 1) // 2)
    for rank, got in enumerate(_reduced(answer, size, count)):
        if torch.equal(got, right):
            continue
        whole = int((got == right).sum())
        start = (
            f"With {size} processes and {count} elements rank {rank} ends with {got.tolist()} in place of "
            f"{right.tolist()}."
        )
        if torch.equal(got, torch.arange(1.0, count + 1) * (rank + 1)):
            raise Wrong(
                f"{start} That is what it began with: the function must change its argument in place (add_, copy_)."
            )
        if whole == count // size:
            raise Wrong(
                f"{start} {whole} elements are whole sums: after the first round every process has one whole "
                "piece. A second "
                "round passes those on, and copies them."
            )
        raise Wrong(f"{start} {_ADVICE}")


@contextmanager
def _counted() -> Iterator[dict[str, int]]:
    """Count what is sent, and calls of ready-made collectives."""
    counts = {"sent": 0, "collectives": 0}
    lock = new_lock()
    originals = {
        name: getattr(dist, name) for name in ("isend", "send", "all_reduce", "all_gather", "broadcast", "reduce")
    }

    def counting(name: str) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            with lock:
                if name.endswith("send"):
                    counts["sent"] += args[0].numel()
                else:
                    counts["collectives"] += 1
            return originals[name](*args, **kwargs)

        return call

    try:
        for name in originals:
            setattr(dist, name, counting(name))
        yield counts
    finally:
        for name, original in originals.items():
            setattr(dist, name, original)


@STEPS.step("one process has its sum already", _ADVICE)
def alone(answer: Any) -> None:
    """Nobody to talk to."""
    _compare(answer, 1, 3)


@STEPS.step("two processes", _ADVICE)
def two(answer: Any) -> None:
    """The smallest ring."""
    with _counted() as counts:
        _compare(answer, 2, 4)
    if counts["collectives"]:
        raise Wrong("A ready-made collective was called: write it with isend and irecv (or send and recv) alone.")


@STEPS.step("three and four processes", _ADVICE)
def more(answer: Any) -> None:
    """A ring with somebody who is no neighbour."""
    _compare(answer, 3, 6)
    _compare(answer, 4, 8)


@STEPS.step("lengths that do not divide", _ADVICE)
def uneven(answer: Any) -> None:
    """Pieces of different length, and empty ones."""
    _compare(answer, 3, 8)
    _compare(answer, 3, 2)


@STEPS.step("no more is sent than a ring needs", _ADVICE)
def traffic(answer: Any) -> None:
    """2 (n - 1) / n of the tensor for each process."""
    with _counted() as counts:
        _compare(answer, 4, 400)
    needed = 4 * 2 * 3 * 100
    if counts["sent"] > needed:
        raise Wrong(
            f"For 400 elements the four processes send {counts['sent']} numbers, a ring needs {needed}: each step "
            "passes one "
            "piece on, not the whole tensor."
        )


@STEPS.step("DistributedDataParallel trains with it", _ADVICE)
def training(answer: Any) -> None:
    """Trains with the reader's function as the communication hook."""
    reduce = asked_for(answer, "ring_all_reduce")

    def hook(_: object, bucket: Any) -> Any:
        gradients = bucket.buffer()
        reduce(gradients)
        future: Any = Future()
        future.set_result(gradients / dist.get_world_size())
        return future

    def work(rank: int, own: bool) -> Any:
        with lock:
            torch.manual_seed(0)
            net = torch.nn.Linear(3, 2)
        model = DistributedDataParallel(net)
        if own:
            model.register_comm_hook(None, hook)
        model(torch.ones(1, 3) * (rank + 1)).sum().backward()
        return [each.grad for each in net.parameters()]

    lock = new_lock()  # the seed is everybody's
    plain = run_in_threads(lambda rank: work(rank, False), 2, _LIMIT)
    learned = run_in_threads(lambda rank: work(rank, True), 2, _LIMIT)
    for right, got in zip(plain[0] + plain[1], learned[0] + learned[1], strict=True):
        if not torch.allclose(right, got):
            raise Wrong(
                f"DistributedDataParallel averages a gradient to {right.tolist()}, with your function to "
                f"{got.tolist()}."
            )
