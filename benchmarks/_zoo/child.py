"""Runs models under one framework, as another process asks for it: lines of JSON, one for each request and answer.

    python child.py FRAMEWORK THREADS DEVICE CLOCK

Requests: `{"start": [model, how, autocast], "compile": true}`, which also looks whether compiled and plain have the
same bits, and `{"run": which, "seconds": s}`, which answers with the seconds of steps; on a GPU also with those in
which the host starts a step, and with the most memory. CLOCK is `perf_counter` or `process_time`: the latter counts
the processor time of all threads, which hardly depends on what else the machine does.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import logging
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

_FIRST_CALLS = 6
"""In so many calls a function is compiled, parts of it aside."""
_CALLS = 14
_SETTLING = 3
"""Further calls before any is timed: behind plain calls of the same classes, a call may be recorded once more."""
_BATCHES = 8
_TOKENS = ("input_ids", "labels", "decoder_input_ids")
_BURST = 8
"""So many steps are timed together on a GPU, which works behind Python."""
_HOST_STEPS = 3


def framework_of(name: str) -> Any:
    """PyTorch, or Flambeau in its place."""
    if name == "flambeau":
        sys.path.append(str(Path(__file__).resolve().parents[2]))  # last: an installed one goes before the checkout
        importlib.import_module("flambeau").stand_in_for_torch()
    return importlib.import_module("torch")


class Case:
    """A model as a program calls it: steps of training, loss, backward and optimizer outside, or of inference."""

    def __init__(self, torch: Any, device: str, start: Any, trains: bool, autocast: bool, compile: Any) -> None:
        torch.manual_seed(0)
        self._torch, self._device, self._trains, self._autocast = torch, device, trains, autocast
        model, inputs = start()
        self.model = model.to(device).train(trains)
        self._batches = [
            {name: self._on_device(name, each, number) for name, each in inputs.items()} for number in range(_BATCHES)
        ]
        self._steps = 0
        self.call = compile(self.model)
        self._optimizer = torch.optim.SGD(self.model.parameters(), 1e-3)
        self._drawn = self._random_states()

    def _on_device(self, name: str, value: Any, number: int) -> Any:
        """An input of the model in one of the batches: other tokens in each, so that nothing depends on which."""
        if not isinstance(value, self._torch.Tensor):
            return value
        if name in _TOKENS and value.dtype is self._torch.int64:
            first, last = value.min(), value.max()
            value = (value - first + 7 * number) % (last - first + 1) + first
        return value.to(self._device)

    def step(self) -> Any:
        """One step; its result."""
        torch = self._torch
        inputs = self._batches[self._steps % _BATCHES]
        self._steps += 1
        context = torch.autocast(self._device, dtype=torch.bfloat16) if self._autocast else contextlib.nullcontext()
        if not self._trains:
            with torch.no_grad(), context:
                return self.call(**inputs)
        with context:
            found = self.call(**inputs)
            loss = getattr(found, "loss", None)
            if loss is None:
                loss = _loss_of(_tensors(torch, found))
        self._optimizer.zero_grad()
        loss.backward()
        self._optimizer.step()
        return found

    def observed(self) -> dict[str, Any]:
        """What a step leaves behind, by name: the tensors of its result, parameters, buffers, random numbers."""
        self._torch.set_rng_state(self._drawn[0])
        if len(self._drawn) > 1:
            self._torch.cuda.set_rng_state(self._drawn[1])
        results = {f"result {position}": each for position, each in enumerate(_tensors(self._torch, self.step()))}
        self._drawn = self._random_states()
        drawn = {f"random numbers {position}": each for position, each in enumerate(self._drawn)}
        found = {**results, **self.model.state_dict(), **drawn}
        return {name: each.detach().clone() for name, each in found.items()}

    def _random_states(self) -> list[Any]:
        states = [self._torch.get_rng_state()]
        return states if self._device == "cpu" else [*states, self._torch.cuda.get_rng_state()]


def _loss_of(tensors: Iterator[Any]) -> Any:
    """A loss of a model that returns none: the mean square of what has gradients."""
    return sum(each.float().square().mean() for each in tensors if each.requires_grad)


def _tensors(torch: Any, tree: Any) -> Iterator[Any]:
    if isinstance(tree, torch.Tensor):
        yield tree
    elif isinstance(tree, dict):
        for each in tree.values():
            yield from _tensors(torch, each)
    elif isinstance(tree, (list, tuple)):
        for each in tree:
            yield from _tensors(torch, each)
    elif hasattr(tree, "layers"):  # a cache
        for each in tree.layers:  # of attention, or of what keeps a state
            yield from _tensors(torch, [value for _, value in sorted(vars(each).items())])


class Runner:
    """The cases of the present model."""

    def __init__(self, torch: Any, device: str, is_ours: bool, clock: Callable[[], float]) -> None:
        self._torch, self._device, self._is_ours, self._clock = torch, device, is_ours, clock
        self._cases: dict[str, Case] = {}

    def start(self, wanted: tuple[str, str, bool], compiles: bool) -> dict[str, Any]:
        """Make the model; what became of it when it was compiled."""
        (name, how, autocast), torch = wanted, self._torch
        start = {**importlib.import_module("_zoo.models").MODELS, **importlib.import_module("_zoo.large").LARGE}[name]

        def case(compile: Any) -> Case:
            return Case(torch, self._device, start, how == "training", autocast, compile)

        self._cases.clear()
        self._cases["plain"] = plain = case(lambda model: model)
        first = self._seconds(plain, 1)
        for _ in range(_SETTLING):
            plain.step()
        if not compiles:
            return {"first": first}
        self._cases["compiled"] = compiled = case(torch.compile)
        if self._is_ours:

            def told() -> Case:
                return case(lambda model: torch.compile(model, backend="eager"))

            return self._compared(compiled, told(), told())
        return {"first": max([self._seconds(compiled, 1) for _ in range(_FIRST_CALLS)])}

    def _compared(self, compiled: Case, told: Case, again: Case) -> dict[str, Any]:
        """What became of a compiled model, beside the same one without programs.

        Libraries ask whether they are compiled, and then do some things otherwise: so what it is compared with is
        told so, too. Where the two differ, plain calls are compared with those of another plain model.
        """
        torch, first = self._torch, 0.0
        expected: list[dict[str, Any]] = []
        differences: list[str] = []
        for number in range(_CALLS):
            begin = time.perf_counter()
            found = compiled.observed()
            self._wait()
            first = max(first, time.perf_counter() - begin) if number < _FIRST_CALLS else first
            expected.append(told.observed())
            if not differences and (names := _different(torch, expected[-1], found)):
                differences.append(f"other bits in call {number + 1}: {_listed(names)}")
        for number in range(_CALLS if differences else 0):
            if names := _different(torch, expected[number], again.observed()):
                differences.append(f"two plain models differ in call {number + 1}, too: {_listed(names)}")
                break
        self._cases["plain"].step()
        for _ in range(_SETTLING):
            compiled.step()
        explained = torch.compiler.explain(compiled.call)
        return {
            "programs": len(explained.programs),
            "whole": explained.is_whole and self._runs_programs(compiled),
            "reasons": [*dict.fromkeys(explained.reasons), *differences],
            "same": not differences,
            "first": first,
        }

    def _runs_programs(self, case: Case) -> bool:
        with self._torch.compiler.set_stance("fail_on_recompile"):
            try:
                case.step()
            except RuntimeError as error:
                if "Detected recompile" in str(error):
                    return False
                raise
        return True

    def run(self, which: str, seconds: float) -> dict[str, Any]:
        """The seconds of steps, as many as fit, and the most memory that they had of a GPU, in MB."""
        case = self._cases[which]
        found: list[float] = []
        steps = 1 if self._device == "cpu" else _BURST
        if self._device != "cpu":
            self._torch.cuda.reset_peak_memory_stats()
        end = time.perf_counter() + seconds
        while not found or time.perf_counter() < end:
            found.append(self._seconds(case, steps))
        return {"times": found, "memory": self._most_memory(), "host": self._host_seconds(case)}

    def _most_memory(self) -> float | None:
        return None if self._device == "cpu" else self._torch.cuda.max_memory_allocated() / 1e6

    def _seconds(self, case: Case, steps: int) -> float:
        """The seconds of a step, of so many of them."""
        self._wait()
        begin = self._clock()
        for _ in range(steps):
            case.step()
        self._wait()
        return (self._clock() - begin) / steps

    def _host_seconds(self, case: Case) -> list[float] | None:
        """The seconds until a step has been started, of some steps for each of which the GPU was idle; None: no GPU."""
        if self._device == "cpu":
            return None
        found = []
        for _ in range(_HOST_STEPS):
            self._wait()
            begin = time.perf_counter()
            case.step()
            found.append(time.perf_counter() - begin)
        return found

    def _wait(self) -> None:
        if self._device != "cpu":
            self._torch.cuda.synchronize()


def _different(torch: Any, one: dict[str, Any], other: dict[str, Any]) -> list[str]:
    """The names of what differs, and by how much."""
    if one.keys() != other.keys():
        return sorted(one.keys() ^ other.keys())
    names = [name for name in one if not _is_same(torch, one[name], other[name])]
    return [f"{name} ({float((one[name].double() - other[name].double()).abs().max()):.1e})" for name in names]


def _listed(names: list[str]) -> str:
    return ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")


def _is_same(torch: Any, one: Any, other: Any) -> bool:
    if one.dtype != other.dtype or one.shape != other.shape:
        return False
    bits = [
        each.contiguous().view(torch.uint8) if each.dim() else each.reshape(1).view(torch.uint8)
        for each in (one, other)
    ]
    return bool(torch.equal(*bits))


def main() -> None:
    name, threads, device = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    out, sys.stdout = sys.stdout, sys.stderr
    warnings.simplefilter("ignore")
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    torch = framework_of(name)
    logging.disable(logging.WARNING)
    torch.set_num_threads(threads)
    runner = Runner(torch, device, name == "flambeau", getattr(time, sys.argv[4]))
    for line in sys.stdin:
        request = json.loads(line)
        answer: Any
        try:
            answer = (
                runner.start(request["start"], request["compile"])
                if "start" in request
                else runner.run(request["run"], request["seconds"])
            )
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"}
        out.write(json.dumps(answer) + "\n")
        out.flush()


if __name__ == "__main__":
    main()
