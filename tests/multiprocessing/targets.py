"""What the tests run in other processes: functions that a fresh Python can import; `T` names what plays torch."""

from __future__ import annotations

import importlib
import os
import signal
from typing import Any


def add_one(T: str, incoming: Any, outgoing: Any) -> None:
    """Add 1 in place to each tensor that arrives, and say what was seen; None ends it."""
    importlib.import_module(f"{T}.multiprocessing")
    while (tensor := incoming.get()) is not None:
        seen = tensor.tolist()
        tensor.add_(1)
        outgoing.put((seen, tensor.is_shared(), tensor.requires_grad))


def fill(tensor: Any, value: float) -> None:
    """Fill a tensor that came as an argument of the process."""
    tensor.detach().fill_(value)


def fill_row(number: int, tensor: Any) -> None:
    """Fill the row of this process."""
    tensor[number].fill_(number + 1)


def send_views(outgoing: Any, go_on: Any) -> None:
    """Send two views of one tensor by separate messages; stay until they have arrived."""
    import flambeau

    base = flambeau.arange(6.0)
    outgoing.put(base[:4])
    outgoing.put(base[2:].reshape(2, 2))
    go_on.wait(60)


def send_and_leave(outgoing: Any) -> None:
    """Send a named block and end before anybody has looked."""
    import flambeau
    from flambeau import multiprocessing

    multiprocessing.set_sharing_strategy("file_system")
    outgoing.put(flambeau.full((1000,), 7.0))
    outgoing.close()
    outgoing.join_thread()


def double(tensor: Any) -> Any:
    """Twice the tensor, for a pool."""
    return tensor * 2


def raise_error(number: int) -> None:
    """Fail in process 1."""
    if number == 1:
        raise ValueError("this one fails")


def kill_itself(number: int) -> None:
    """End without a word."""
    os.kill(os.getpid(), signal.SIGKILL)


def train(T: str, model: Any, inputs: Any, targets: Any, steps: int) -> None:
    """Steps of SGD on a model whose parameters other processes train too."""
    torch = importlib.import_module(T)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(steps):
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(inputs), targets).backward()
        optimizer.step()
