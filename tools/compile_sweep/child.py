"""Train models of a library as they stand and compiled, side by side, and print a line of JSON for each.

    python child.py PROGRAM SECONDS MARK CASE...

The lines begin with MARK. It runs in the environment without PyTorch, as `tools/compatibility/child.py` does. Steps are
compiled whole: forward, backward and optimizer. After each of them everything has to be equal to the bit: the loss,
every parameter, every buffer, and the random numbers that come next.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import random
import runpy
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

_STEPS = 5
"""So many steps run after the last one that compiled something new."""
_MOST_STEPS = 32
"""Parts of parts are watched for some calls each."""


class Training:
    """A model that is trained, with random numbers of its own."""

    def __init__(self, start: Callable[[], Any], compile: Callable[[Any], Any]) -> None:
        torch.manual_seed(0)
        np.random.seed(0)  # noqa: NPY002  libraries draw from it
        random.seed(0)
        self.model, forward, self.inputs = start()
        self.model.train()
        if hasattr(config := getattr(self.model, "config", None), "apply_spec_augment"):
            config.apply_spec_augment = False  # it hides spans that are longer than these inputs
        optimizer = torch.optim.AdamW(self.model.parameters(), 1e-3)

        def step(*inputs: Any) -> Any:
            optimizer.zero_grad()
            _, loss = forward(*inputs)
            loss.backward()
            optimizer.step()
            return loss

        self.step = compile(step)
        self._drawn = _random_states()

    def run(self, number: int) -> list[tuple[str, bytes]]:
        """Make a step; what is to be equal after it, by name."""
        _set_random_states(self._drawn)
        loss = self.step(*[each.roll(number, -1) if each.dim() > 1 else each for each in self.inputs])
        self._drawn = _random_states()
        named = [("loss", loss.detach()), *self.model.state_dict().items()]
        return [("random numbers", repr(self._drawn).encode()), *[(name, _bits(each)) for name, each in named]]


def _bits(value: Any) -> bytes:
    return value.contiguous().numpy().tobytes() if isinstance(value, torch.Tensor) else repr(value).encode()


def _random_states() -> tuple[Any, ...]:
    numpy_state = np.random.get_state(legacy=True)  # noqa: NPY002
    assert isinstance(numpy_state, tuple)
    return torch.get_rng_state().tolist(), [np.asarray(each).tolist() for each in numpy_state], random.getstate()


def _set_random_states(states: tuple[Any, ...]) -> None:
    torch.set_rng_state(torch.tensor(states[0], dtype=torch.uint8))
    np.random.set_state(tuple(states[1]))  # noqa: NPY002
    random.setstate(states[2])


def swept(start: Callable[[], Any], seconds: float) -> dict[str, Any]:
    """What became of a model: `outcome` is whole, parts, alone or wrong."""
    # Libraries ask whether they are compiled, and do some things otherwise then: so both are told that they are.
    plain, compiled = Training(start, lambda each: torch.compile(each, backend="eager")), Training(start, torch.compile)
    begin = time.perf_counter()
    known, since, number = "", 0, 0
    while since < _STEPS and number < _MOST_STEPS and (number < _STEPS or time.perf_counter() - begin < seconds):
        expected, found = plain.run(number), compiled.run(number)
        names = [name for (name, one), (_, other) in zip(expected, found, strict=True) if one != other]
        told = torch.compiler.explain(compiled.step)
        if names:
            return {
                "outcome": "wrong",
                "step": number,
                "differ": names[:8],
                "of": len(expected),
                "reasons": told.reasons,
            }
        number += 1
        state = repr((len(told.programs), told.reasons))
        known, since = (known, since + 1) if state == known else (state, 0)
    outcome = "whole" if told.is_whole else "parts" if told.programs else "alone"
    if outcome == "whole" and not _is_found_again(compiled, number):
        outcome = "missed"
    return {
        "outcome": outcome,
        "steps": number,
        "steady": since,
        "programs": len(told.programs),
        "reasons": list(dict.fromkeys(told.reasons)),
        "seconds": round(time.perf_counter() - begin, 1),
    }


def _is_found_again(training: Training, number: int) -> bool:
    """Whether a further step is one of the programs that there are."""
    with torch.compiler.set_stance("fail_on_recompile"):
        try:
            training.run(number)
        except RuntimeError as error:
            if "Detected recompile" in str(error):
                return False
            raise
    return True


def main(path: str, seconds: float, mark: str, names: list[str]) -> None:
    """Run the cases with these names."""
    out = sys.stdout

    def report(**found: Any) -> None:
        out.write(f"\n{mark}{json.dumps(found)}\n")
        out.flush()

    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    torch.set_num_threads(2)
    with contextlib.redirect_stdout(sys.stderr):
        cases = runpy.run_path(path, run_name="program")["CASES"]
        for name in names:
            report(case=name, begins=True)
            try:
                report(case=name, **swept(cases[name].start, seconds))
            except (Exception, SystemExit) as error:
                where = [
                    f"{'/'.join(each.filename.split('/')[-3:])}:{each.lineno}"
                    for each in traceback.extract_tb(error.__traceback__)
                ]
                text = " ".join(str(error).split())[:400]
                report(case=name, outcome="error", error=f"{type(error).__name__}: {text}", places=where[-6:])
            torch.compiler.reset()
    os._exit(0)  # libraries leave threads behind


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]), sys.argv[3], sys.argv[4:])
