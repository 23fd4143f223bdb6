"""Runs models under one framework, as another process asks for it: lines of JSON, one for each request and answer.

    python child.py FRAMEWORK THREADS

Requests: `{"start": [model, how, autocast]}`, which also looks whether compiled and plain have the same bits, and
`{"run": which, "seconds": s}`, which answers with the seconds of calls.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import logging
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_FIRST_CALLS = 6
"""In so many calls a function is compiled, parts of it aside."""
_CALLS = 14
_SETTLING = 3
"""Further calls before any is timed: behind plain calls of the same classes, a call may be recorded once more."""


def framework_of(name: str) -> Any:
    """PyTorch, or Flambeau in its place."""
    if name == "flambeau":
        sys.path.append(str(Path(__file__).resolve().parents[2]))  # last: an installed one goes before the checkout
        importlib.import_module("flambeau").stand_in_for_torch()
    return importlib.import_module("torch")


class Case:
    """A model as a program calls it: steps of training, loss, backward and optimizer outside, or of inference."""

    def __init__(self, torch: Any, start: Any, trains: bool, autocast: bool, compile: Any) -> None:
        torch.manual_seed(0)
        self._torch, self._trains, self._autocast = torch, trains, autocast
        self.model, self._inputs = start()
        self.model.train(trains)
        self.call = compile(self.model)
        self._optimizer = torch.optim.SGD(self.model.parameters(), 1e-3)
        self.drawn = torch.get_rng_state()

    def step(self) -> Any:
        """One step; its result."""
        torch = self._torch
        context = torch.autocast("cpu", dtype=torch.bfloat16) if self._autocast else contextlib.nullcontext()
        if not self._trains:
            with torch.no_grad(), context:
                return self.call(**self._inputs)
        with context:
            found = self.call(**self._inputs)
            loss = found.float().square().mean() if isinstance(found, torch.Tensor) else found.loss
        self._optimizer.zero_grad()
        loss.backward()
        self._optimizer.step()
        return found

    def observed(self) -> list[Any]:
        """What a step leaves behind: the tensors of its result, parameters, buffers, random numbers."""
        self._torch.set_rng_state(self.drawn)
        found = [*_tensors(self._torch, self.step()), *self.model.state_dict().values()]
        self.drawn = self._torch.get_rng_state()
        return [each.detach().clone() for each in (*found, self.drawn)]


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
        for each in tree.layers:
            yield from _tensors(torch, [each.keys, each.values])


class Runner:
    """The cases of the present model."""

    def __init__(self, torch: Any, is_ours: bool) -> None:
        self._torch, self._is_ours = torch, is_ours
        self._cases: dict[str, Case] = {}

    def start(self, name: str, how: str, autocast: bool) -> dict[str, Any]:
        """Make the model; what became of it when it was compiled."""
        torch, start = self._torch, importlib.import_module("models").MODELS[name]

        def case(compile: Any) -> Case:
            return Case(torch, start, how == "training", autocast, compile)

        self._cases = {"plain": case(lambda model: model)}
        if not self._is_ours:
            return {"first": _seconds(self._cases["plain"].step)}
        # Libraries ask whether they are compiled, and then do some things otherwise: so what it is compared with is
        # told so, too.
        told, compiled = case(lambda model: torch.compile(model, backend="eager")), case(torch.compile)
        self._cases["compiled"] = compiled
        equal, first = True, 0.0
        for number in range(_CALLS):
            begin = time.perf_counter()
            found = compiled.observed()
            first = max(first, time.perf_counter() - begin) if number < _FIRST_CALLS else first
            equal &= all(_is_same(torch, *pair) for pair in zip(told.observed(), found, strict=True))
        self._cases["plain"].step()
        for _ in range(_SETTLING):
            compiled.step()
        explained = torch.compiler.explain(compiled.call)
        return {
            "programs": len(explained.programs),
            "whole": explained.is_whole and self._runs_programs(compiled),
            "reasons": list(dict.fromkeys(explained.reasons)),
            "same": equal,
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

    def run(self, which: str, seconds: float) -> list[float]:
        """The seconds of steps, as many as fit."""
        case, found = self._cases[which], []
        end = time.perf_counter() + seconds
        while not found or time.perf_counter() < end:
            found.append(_seconds(case.step))
        return found


def _seconds(step: Any) -> float:
    begin = time.perf_counter()
    step()
    return time.perf_counter() - begin


def _is_same(torch: Any, one: Any, other: Any) -> bool:
    if one.dtype != other.dtype or one.shape != other.shape:
        return False
    bits = [
        each.contiguous().view(torch.uint8) if each.dim() else each.reshape(1).view(torch.uint8)
        for each in (one, other)
    ]
    return bool(torch.equal(*bits))


def main() -> None:
    name, threads = sys.argv[1], int(sys.argv[2])
    out, sys.stdout = sys.stdout, sys.stderr
    warnings.simplefilter("ignore")
    torch = framework_of(name)
    logging.disable(logging.WARNING)
    torch.set_num_threads(threads)
    runner = Runner(torch, name == "flambeau")
    for line in sys.stdin:
        request = json.loads(line)
        answer: Any
        try:
            answer = (
                runner.start(*request["start"])
                if "start" in request
                else runner.run(request["run"], request["seconds"])
            )
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"}
        out.write(json.dumps(answer) + "\n")
        out.flush()


if __name__ == "__main__":
    main()
