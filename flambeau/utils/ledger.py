"""One line for each step of a training run, with digests in place of tensors: which step was the first to differ?

    ledger = Ledger("run.ledger", model=model)
    for x, y in batches:
        ...
        optimizer.step()
        ledger.step(loss, batch=(x, y))

Two runs are compared by their files, in a moment: `first_difference("a.ledger", "b.ledger")`. A run that is continued
checks itself: a step that the file has already must come out the same, bit for bit.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .._core.backend import to_host
from .._core.tensor import Tensor
from ..random import get_rng_state
from .compare import Comparison, functions
from .compare._digest import digest

__all__ = ["Ledger", "StepDifference", "first_difference", "read"]

FIELDS = ("batch", "generator", "loss", "gradient_norm", "parameters")
"""What is compared, in the order in which a step comes to it."""


class Ledger:
    """A file with one line for each step: loss, norm of the gradients, digests of parameters, batch and generator.

    Where the file exists, the run is continued: steps that it has are compared with, and a step that comes out
    differently raises a RuntimeError that names what differs first.

    Args:
        path: the file.
        model: the module, or the parameters, that are trained.
        start: how many steps the run has behind it, for instance `TrainingState.step` after `resume`.

    >>> import tempfile, os
    >>> path = os.path.join(tempfile.mkdtemp(), "run.ledger")
    >>> weight = flambeau.zeros(2, requires_grad=True)
    >>> ledger = Ledger(path, model=[weight])
    >>> ledger.step(weight.sum())
    >>> [line["step"] for line in read(path)]
    [1]
    """

    def __init__(self, path: str | os.PathLike[str], *, model: Any, start: int = 0) -> None:
        self.path = Path(path)
        self.steps = start
        """How many steps there were."""
        self._parameters: list[Tensor] = list(model.parameters() if hasattr(model, "parameters") else model)
        self._known = {line["step"]: line for line in read(path)} if self.path.exists() else {}

    def step(self, loss: Any = None, *, batch: Any = ()) -> None:
        """Write the line of a step, when it is over; or compare with the line that the file has.

        Args:
            loss: the loss, a tensor of one element or a number.
            batch: the tensors of the batch, in tuples, lists and dicts.
        """
        self.steps += 1
        line = {
            "step": self.steps,
            "loss": None if loss is None else float(loss),
            "gradient_norm": _norm(each.grad for each in self._parameters if each.grad is not None),
            "parameters": _digest_of(self._parameters),
            "batch": _digest_of(_tensors(batch)),
            "generator": _digest_of([get_rng_state()]),
        }
        known = self._known.get(self.steps)
        if known is None:
            self._append(line)
            return
        differing = _differing(known, line)
        if differing:
            name = differing[0]
            raise RuntimeError(
                f"step {self.steps} is not the one in {self.path}: {name} was {known[name]} and is {line[name]}. The "
                "run was not continued from where it stopped: compare it from the checkpoint on, see "
                "flambeau.utils.compare"
            )

    def checkpoint(self, path: str | os.PathLike[str]) -> None:
        """Note that the state after the last step is in a file: a comparison may start there."""
        self._append({"checkpoint": os.fspath(path), "after": self.steps})

    def _append(self, line: dict[str, Any]) -> None:
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")


@dataclass(frozen=True)
class StepDifference:
    """The first step at which two runs part."""

    step: int
    fields: tuple[str, ...]
    """What differs: "batch", "generator", "loss", "gradient_norm", "parameters", in this order."""
    one: dict[str, Any]
    other: dict[str, Any]
    checkpoints: tuple[str | None, str | None]
    """The last checkpoints of both runs before that step."""
    after: int
    """After how many steps they were written; 0: there are none, and the runs start from the beginning."""

    def __str__(self) -> str:
        values = "; ".join(f"{name} {self.one.get(name)} and {self.other.get(name)}" for name in self.fields)
        start = f"; the last checkpoint before it is after step {self.after}" if self.after else ""
        return f"step {self.step} is the first that differs: {values}{start}"

    def compare(
        self, one: Callable[[str | None], Any], other: Callable[[str | None], Any]
    ) -> Comparison:  # the path of a checkpoint, or None: from the beginning
        """Run both programs from their checkpoints up to this step, and find the first op at which they part.

        Args:
            one, other: functions that continue the training from a checkpoint, or start it where they are given None.
        """
        ours, theirs = self.checkpoints
        return functions(lambda: one(ours), lambda: other(theirs), steps=self.step - self.after)


def read(path: str | os.PathLike[str]) -> list[dict[str, Any]]:
    """The lines of the steps in a file, the last one of each step."""
    return [line for line in _lines(path) if "step" in line]


def first_difference(one: str | os.PathLike[str], other: str | os.PathLike[str]) -> StepDifference | None:
    """The first step that differs between two files; None: there is none among the steps that both have."""
    ours, theirs = list(_lines(one)), list(_lines(other))
    steps = [{line["step"]: line for line in lines if "step" in line} for lines in (ours, theirs)]
    for step in sorted(steps[0].keys() & steps[1].keys()):
        differing = _differing(steps[0][step], steps[1][step])
        if differing:
            after = _common_checkpoint(ours, theirs, step)
            files = tuple(_checkpoint_at(lines, after) for lines in (ours, theirs))
            return StepDifference(step, tuple(differing), steps[0][step], steps[1][step], (files[0], files[1]), after)
    return None


def _lines(path: str | os.PathLike[str]) -> Iterator[dict[str, Any]]:
    with open(path, encoding="utf-8") as file:
        for number, text in enumerate(file, 1):
            try:
                line = json.loads(text)
            except ValueError:
                if text.endswith("\n"):
                    raise ValueError(f"{os.fspath(path)}:{number} is not a line of a ledger") from None
                return  # the run ended while it wrote its last line
            if not isinstance(line, dict) or not ("step" in line or "checkpoint" in line):
                raise ValueError(f"{os.fspath(path)}:{number} is not a line of a ledger")
            yield line


def _differing(one: dict[str, Any], other: dict[str, Any]) -> list[str]:
    return [name for name in FIELDS if not _same(one.get(name), other.get(name))]


def _same(one: Any, other: Any) -> bool:
    return bool(one == other) or (one != one and other != other)  # NaN is the same as NaN


def _common_checkpoint(ours: list[dict[str, Any]], theirs: list[dict[str, Any]], step: int) -> int:
    noted = [{line["after"] for line in lines if "checkpoint" in line} for lines in (ours, theirs)]
    return max((each for each in noted[0] & noted[1] if each < step), default=0)


def _checkpoint_at(lines: list[dict[str, Any]], after: int) -> str | None:
    found = [line["checkpoint"] for line in lines if line.get("after") == after and "checkpoint" in line]
    return str(found[-1]) if found and after else None


def _tensors(values: Any) -> Iterator[Tensor]:
    if isinstance(values, Tensor):
        yield values
    elif isinstance(values, dict):
        yield from (each for value in values.values() for each in _tensors(value))
    elif isinstance(values, (list, tuple)):
        yield from (each for value in values for each in _tensors(value))


def _digest_of(tensors: Iterable[Tensor]) -> str:
    total = 0
    for tensor in tensors:
        total = (total * 0x9E3779B97F4A7C15 + digest(to_host(tensor._array)) + 1) & 0xFFFFFFFFFFFFFFFF
    return f"{total:016x}"


def _norm(gradients: Iterable[Tensor]) -> float:
    """The root of the sum of all squares, in float64 and in the order of the parameters."""
    total = 0.0
    for each in gradients:
        array = to_host(each._array)
        wide = array.astype(np.complex128 if array.dtype.kind == "c" else np.float64).reshape(-1)
        total += float(np.sum((wide * wide.conj()).real))
    return float(total**0.5)
