"""Training steps of models of timm and transformers on an idle device, watched and plain.

    python -m tests.cuda.watched_models [NAME...]

The models are those of `benchmarks/zoo.py` and of `tools/compatibility`, as many of them as can be built; both
libraries have to be installed. It prints the models whose steps ask other things of the device when somebody looks on.
"""

from __future__ import annotations

import importlib
import random
import runpy
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import flambeau as torch
from tests.support.idle_cuda import idle_device

from .watched_runs import ASKED, Listener, compared

ROOT = Path(__file__).parents[2]
_WARM = 3
"""Steps before the first that is compared: functions and lists of parameters are prepared in them."""

Start = Callable[[], tuple[Any, Callable[..., Any], tuple[Any, ...]]]
"""A model, a function of its inputs that ends with the loss, and the inputs."""


def models() -> Iterator[tuple[str, Start]]:
    """All models by name."""
    for library in ("timm", "transformers"):
        program = ROOT / "tools" / "compatibility" / "quickstarts" / f"{library}.py"
        for name, case in runpy.run_path(str(program), run_name="program")["CASES"].items():
            if hasattr(case, "start"):
                yield f"{library}: {name}", case.start
    for name, start in importlib.import_module("_zoo.models").MODELS.items():
        yield f"zoo: {name}", _with_loss(start)


def _with_loss(start: Callable[[], tuple[Any, dict[str, Any]]]) -> Start:
    """A model of the benchmarks, which takes its inputs by name and may have no loss of its own."""

    def made() -> tuple[Any, Callable[..., Any], tuple[Any, ...]]:
        model, inputs = start()

        def forward(*values: Any) -> Any:
            found = model(**dict(zip(inputs, values, strict=True)))
            loss = getattr(found, "loss", None)
            return found, sum(_squares(found)) if loss is None else loss

        return model.train(), forward, tuple(inputs.values())

    return made


def _squares(tree: Any) -> Iterator[Any]:
    if isinstance(tree, torch.Tensor):
        if tree.requires_grad:
            yield tree.float().square().mean()
    elif isinstance(tree, (dict, list, tuple)):
        for each in tree.values() if isinstance(tree, dict) else tree:
            yield from _squares(each)


def training(start: Start) -> Callable[[], None]:
    """A step of training on the device, which draws the same random numbers each time."""
    torch.manual_seed(0)
    model, forward, inputs = start()
    model.to("cuda")
    inputs = tuple([each.to("cuda") if isinstance(each, torch.Tensor) else each for each in inputs])
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)

    def step() -> None:
        torch.manual_seed(0)
        random.seed(0)
        np.random.seed(0)  # libraries draw from it
        optimizer.zero_grad()
        forward(*inputs)[1].backward()
        optimizer.step()

    return step


def _compared(start: Start) -> tuple[str, int, int]:
    """Where the steps of a model differ, how much each asks of the device, and how many ops were heard of."""
    step = training(start)
    for _ in range(_WARM):
        step()
    listener = Listener()
    difference, asked = compared(step, listener)
    return difference, asked, listener.heard


def main(wanted: list[str]) -> int:
    """Compare, and print the models that differ, those that do not run there, and how many there are."""
    warnings.simplefilter("ignore")
    sys.path.insert(0, str(ROOT / "benchmarks"))
    importlib.import_module("flambeau.as_torch")
    libraries = importlib.import_module("_zoo.libraries")
    libraries.import_timm(), libraries.import_transformers()
    equal, different, asked_of, heard_of = 0, 0, 0, 0
    with idle_device(lambda what, which: ASKED.append((what, which))):
        for name, start in models():
            if wanted and name not in wanted:
                continue
            try:
                difference, asked, heard = _compared(start)
            except Exception as error:  # it reads numbers of a device that has none, or the library is another release
                print(f"{name} does not run: {type(error).__name__}: {' '.join(str(error).split())[:160]}", flush=True)
                continue
            if difference:
                print(f"{name}: {difference}", flush=True)
            different, equal = different + bool(difference), equal + (not difference)
            asked_of, heard_of = asked_of + asked, heard_of + heard
    print(f"{equal} models ask the same in the same order, {different} do not; {asked_of} calls, {heard_of} ops")
    return int(bool(different))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
