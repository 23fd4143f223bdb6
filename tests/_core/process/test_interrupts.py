"""Interrupts leave no modes behind: programs are interrupted wherever Python may raise `KeyboardInterrupt`.

`python -m tests._core.process.test_interrupts` tries every place of every program.
"""

from __future__ import annotations

import signal
import sys
import threading
import warnings
from collections.abc import Callable
from typing import Any

import pytest

import flambeau as torch
from flambeau import func, nn
from flambeau._core.process.interrupts import Restoring, uninterrupted
from flambeau._core.process.locks import new_lock, new_reentrant_lock
from flambeau.utils._python_dispatch import TorchDispatchMode
from flambeau.utils.checkpoint import checkpoint
from tests.support.interrupts import Interrupt, interrupted, modes_now, sweep

pytestmark = pytest.mark.skipif(
    sys.version_info < (3, 11), reason="Python 3.10 has no instruction that says where it looks for signals"
)

Program = Callable[[], Any]


def _network(kind: Any = torch.optim.Adam, **options: Any) -> tuple[Any, Any, Any]:
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 1))
    return network, kind(network.parameters(), lr=0.01, **options), torch.ones(4, 3)


def _grad_modes() -> Program:
    def run() -> None:
        for context in (torch.no_grad(), torch.enable_grad(), torch.inference_mode()):
            with context:
                torch.ones(1)
        torch.no_grad()(torch.ones)(1)

    return run


def _autocast() -> Program:
    def run() -> None:
        with torch.autocast("cpu"), torch.autocast("cpu", enabled=False):
            torch.ones(2, 2)
        with torch.autocast("cpu", cache_enabled=False):
            torch.ones(2, 2)

    return run


def _backward() -> Program:
    network, _, x = _network()
    loss = network(x).pow(2).mean()
    return loss.backward  # type: ignore[no-any-return]


def _gradients_with_graph() -> Program:
    network, _, x = _network()
    loss = network(x).pow(2).mean()
    return lambda: torch.autograd.grad(loss, list(network.parameters()), create_graph=True)


def _step(kind: Any, **options: Any) -> Callable[[], Program]:
    def prepared() -> Program:
        network, optimizer, x = _network(kind, **options)
        network(x).mean().backward()
        optimizer.step()
        return optimizer.step  # type: ignore[no-any-return]

    return prepared


def _autocast_training() -> Program:
    network, optimizer, x = _network()

    def run() -> None:
        with torch.autocast("cpu"):
            loss = network(x).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    run()
    return run


def _loader() -> Program:
    dataset = torch.utils.data.TensorDataset(torch.arange(6.0), torch.arange(6.0))
    return lambda: list(torch.utils.data.DataLoader(dataset, 2, shuffle=True))


def _saved_hooks() -> Program:
    x = torch.ones(2, requires_grad=True)

    def run() -> None:
        with torch.autograd.graph.saved_tensors_hooks(lambda each: each.clone(), lambda each: each):
            y = x.exp() * x
        y.sum().backward()
        with torch.autograd.graph.disable_saved_tensors_hooks("none"):
            x.exp()

    return run


def _transforms() -> Program:
    def run() -> None:
        func.vmap(func.grad(lambda x: (x * x).sum()))(torch.ones(2, 2))
        func.jvp(torch.sin, (torch.ones(2),), (torch.ones(2),))

    run()
    return run


def _checkpoints() -> Program:
    network, _, x = _network()
    x.requires_grad_()

    def run() -> None:
        for reentrant in (False, True):
            checkpoint(network, x, use_reentrant=reentrant).sum().backward()

    run()
    return run


class _Operators(TorchDispatchMode):
    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


class _Functions(torch.overrides.TorchFunctionMode):
    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


def _modes() -> Program:
    x = torch.ones(2, requires_grad=True)

    def run() -> None:
        for mode in (_Operators(), _Functions(), torch._C.DisableTorchFunction()):
            with mode:
                (x * 2).sum().backward()

    run()
    return run


def _compiled_model() -> Program:
    network, _, x = _network()
    compiled = torch.compile(network)
    for _ in range(8):
        compiled(x).sum().backward()
    return lambda: compiled(x).sum().backward()


def _compiled_step() -> Program:
    network, optimizer, x = _network()

    def step(x: Any) -> Any:
        optimizer.zero_grad()
        loss = network(x).pow(2).mean()
        loss.backward()
        optimizer.step()
        return loss.item()

    compiled = torch.compile(step)
    for _ in range(8):
        compiled(x)
    return lambda: compiled(x)


PROGRAMS: dict[str, Callable[[], Program]] = {
    "adam": _step(torch.optim.Adam),
    "adamw": _step(torch.optim.AdamW, foreach=False),
    "autocast": _autocast,
    "autocast training": _autocast_training,
    "backward": _backward,
    "checkpoints": _checkpoints,
    "compiled model": _compiled_model,
    "compiled step": _compiled_step,
    "data loader": _loader,
    "grad modes": _grad_modes,
    "gradients with a graph": _gradients_with_graph,
    "modes": _modes,
    "saved-tensor hooks": _saved_hooks,
    "sgd": _step(torch.optim.SGD, momentum=0.9),
    "transforms": _transforms,
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", PROGRAMS)
def test_modes_are_put_back(name: str) -> None:
    tried, wrong = sweep(PROGRAMS[name], most=60)
    assert tried > 5
    assert wrong == []


def test_the_sweep_sees_what_is_left_behind() -> None:
    class Careless(torch.no_grad):
        def __exit__(self, *exception: object) -> None:
            super().__exit__(*exception)

    Careless.__exit__.__code__ = Careless.__exit__.__code__.replace(co_filename=torch.__file__)

    def run() -> None:
        with Careless():
            torch.ones(1)

    _, wrong = sweep(lambda: run)
    assert [each.rpartition(": ")[2] for each in wrong] == ["grad"]


def _hold(lock: Any) -> None:
    with lock:
        pass


_hold.__code__ = _hold.__code__.replace(co_filename=torch.__file__)


@pytest.mark.parametrize("made", [new_lock, new_reentrant_lock])
def test_no_interrupt_leaves_a_lock_taken(made: Callable[[], Any]) -> None:
    lock = made()
    places = interrupted(lambda: _hold(lock), 0)[0]
    assert places
    for at in range(1, places + 1):
        lock, can_take = made(), list[bool]()
        assert interrupted(lambda: _hold(lock), at)[1]  # noqa: B023
        thread = threading.Thread(target=lambda: can_take.append(lock.acquire(blocking=False)))  # noqa: B023
        thread.start()
        thread.join()
        assert can_take == [True]


class _Signal(int):
    """A number of a signal; to read `sent` sends it, and no function is called that Python looks for signals after."""

    sent = property(signal.raise_signal)  # it is given the number


@pytest.mark.skipif(not hasattr(signal, "SIGALRM"), reason="needs a signal of Unix")
@pytest.mark.skipif(threading.current_thread() is not threading.main_thread(), reason="signals go to the main thread")
@pytest.mark.parametrize(
    "context", [torch.no_grad, torch.inference_mode, lambda: torch.autocast("cpu"), lambda: _Operators(), _Functions]
)
def test_a_signal_as_a_context_ends(context: Any) -> None:
    def handle(number: int, frame: Any) -> None:
        raise Interrupt

    before, earlier = modes_now(), signal.signal(signal.SIGALRM, handle)
    alarm = _Signal(signal.SIGALRM)
    try:
        with pytest.raises(Interrupt):
            _leave_with(context(), alarm)
    finally:
        signal.signal(signal.SIGALRM, earlier)
    assert modes_now() == before


def _leave_with(context: Any, alarm: Any) -> None:
    with context:
        alarm.sent
    torch.ones(1)  # where Python looks for signals at the latest


def test_functions_that_no_interrupt_stops_as_they_begin() -> None:
    def add(x: int, y: int = 1, *, z: int = 2) -> int:
        """Adds."""
        return x + y + z

    changed = uninterrupted(add)
    assert changed is add
    assert (changed(1), changed(1, 2, z=3), changed.__doc__, changed.__kwdefaults__) == (4, 6, "Adds.", {"z": 2})
    assert uninterrupted(len) is len


def test_what_is_put_back_twice() -> None:
    log: list[str] = []

    class Logged(Restoring):
        def change(self) -> str:
            log.append("change")
            return "value"

        def restore(self) -> None:
            log.append("restore")

    with Logged() as value:
        assert value == "value"
    assert log == ["change", "restore"]

    class Failing(Logged):
        def change(self) -> str:
            raise Interrupt

    log.clear()
    with pytest.raises(Interrupt), Failing():
        raise AssertionError
    assert log == ["restore"]


def test_nothing_is_interrupted_unless_asked() -> None:
    count, has_raised, _ = interrupted(lambda: torch.ones(2).sum(), 0)
    assert count
    assert not has_raised


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    for each in sys.argv[1:] or PROGRAMS:
        tried, wrong = sweep(PROGRAMS[each])
        print(f"{each}: {tried} interrupts, {len(wrong)} left modes changed {wrong[:5]}", flush=True)
