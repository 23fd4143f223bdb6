"""Each call that models of the zoo make, alone, Flambeau against PyTorch in turns: which ops cost the models most.

python benchmarks/calls.py --only '^llama$'
python benchmarks/calls.py --only 'gpt2|bert' --how inference --op 'linear|cat'

A model takes a step under PyTorch, which writes down the functions that it calls, with the shapes, strides and dtypes
of their tensors. Each that differs is then called by itself under both frameworks: `inference` without gradients;
`training` recorded, and with the gradients of its tensors, whose start alone takes some 15 microseconds in both. Times
are microseconds of the processor, the smallest of a few rounds. What stands first costs most over all models: the
number of calls times what Flambeau needs more.
"""

from __future__ import annotations

import functools
import gc
import logging
import re
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

import _measure

_FIRST_CALLS, _WARM_UP = 120, 0.1
"""After so many calls, or so many seconds, kernels are compiled and ops have functions of their own."""
_NAMES_OF_TYPES = ("dtype", "layout", "memory_format")


@dataclass
class Given:
    """A tensor that a call was given: its elements where they lie, and how."""

    elements: Any
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    needs_gradient: bool

    def __str__(self) -> str:
        dtype = str(self.elements.dtype).removeprefix("torch.")
        return f"{dtype}{list(self.shape)}{list(self.strides)}{'*' if self.needs_gradient else ''}"


@dataclass
class Call:
    """A function that models call, with what they give it."""

    name: str
    args: Any
    kwargs: Any
    count: int = 0
    models: set[str] = field(default_factory=set)


def described(torch: Any, value: Any) -> Any:
    """An argument as it can be made again for either framework."""
    if isinstance(value, torch.Tensor):
        shape, strides = tuple(value.shape), value.stride()
        span = 1 + sum((size - 1) * step for size, step in zip(shape, strides, strict=True)) if value.numel() else 0
        return Given(value.detach().as_strided((span,), (1,)).clone(), shape, strides, value.requires_grad)
    if isinstance(value, slice):
        return slice(*[described(torch, each) for each in (value.start, value.stop, value.step)])
    if isinstance(value, (list, tuple)):
        return (list if type(value) is list else tuple)([described(torch, each) for each in value])
    if isinstance(value, dict):
        return {name: described(torch, each) for name, each in value.items()}
    return value


def text(value: Any) -> str:
    """What tells arguments from others that are called in the same way."""
    if isinstance(value, (list, tuple)):
        return f"({', '.join(map(text, value))})"
    if isinstance(value, dict):
        return ", ".join([f"{name}={text(each)}" for name, each in value.items()])
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def made(library: Any, value: Any, leaves: list[Any] | None) -> Any:
    """An argument for a framework. Tensors that need gradients become leaves, if there is a list of these."""
    if isinstance(value, Given):
        elements = value.elements.clone()
        tensor = elements if library.__name__ == "torch" else library.from_numpy(elements.numpy())
        tensor = tensor.as_strided(value.shape, value.strides).detach()
        if leaves is not None and value.needs_gradient:
            leaves.append(tensor.requires_grad_())
        return tensor
    if isinstance(value, slice):
        return slice(*[made(library, each, leaves) for each in (value.start, value.stop, value.step)])
    if isinstance(value, (list, tuple)):
        return type(value)([made(library, each, leaves) for each in value])
    if isinstance(value, dict):
        return {name: made(library, each, leaves) for name, each in value.items()}
    if type(value).__name__ in _NAMES_OF_TYPES:
        return getattr(library, str(value).removeprefix("torch."))
    return library.device(str(value)) if type(value).__name__ == "device" else value


def function(library: Any, name: str) -> Callable[..., Any]:
    """What PyTorch calls `name`, such as `torch.Tensor.add`, in a framework."""
    *path, last = name.split(".")[1:]
    if last == "__get__":
        return lambda tensor: getattr(tensor, path[-1])
    for part in path:
        library = getattr(library, part)
    found: Callable[..., Any] = getattr(library, last)
    return found


def calls_of(torch: Any, models: list[str], trains: bool) -> dict[str, Call]:
    """The calls of a step of each model."""
    from _zoo.child import Case
    from _zoo.models import MODELS
    from torch.overrides import TorchFunctionMode, resolve_name

    found: dict[str, Call] = {}

    class Recorder(TorchFunctionMode):
        def __torch_function__(self, called: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            name = resolve_name(called) or f"torch.{getattr(called, '__name__', '')}"
            given = described(torch, tuple(args)), described(torch, dict(kwargs or {}))
            call = found.setdefault(f"{name.removeprefix('torch.')}{' '.join(map(text, given))}", Call(name, *given))
            call.count += 1
            call.models.add(model)
            return called(*args, **(kwargs or {}))

    for model in models:
        case = Case(torch, "cpu", MODELS[model], trains, False, lambda each: each)
        for number in range(2):
            with Recorder() if number else nullcontext(), torch.set_grad_enabled(trains):
                case.step()
    return found


def runner(library: Any, call: Call, trains: bool) -> Callable[[], Any]:
    """What calls it under a framework, and takes gradients in training."""
    leaves: list[Any] = []
    kept = leaves if trains else None
    args, kwargs = made(library, call.args, kept), made(library, call.kwargs, kept)
    called, last = function(library, call.name), call.name.split(".")[-1]
    if leaves and (last == "__setitem__" or (last.endswith("_") and not last.endswith("__"))):
        raise ValueError("it changes a leaf")
    if not leaves:
        return lambda: called(*args, **kwargs)
    results = list(tensors(called(*args, **kwargs)))
    ones = [library.ones_like(each) for each in results]
    if not results:
        return lambda: called(*args, **kwargs)
    return lambda: library.autograd.grad(list(tensors(called(*args, **kwargs))), leaves, ones, allow_unused=True)


def tensors(result: Any) -> Iterator[Any]:
    """The tensors of a result that are part of a graph."""
    if getattr(result, "requires_grad", False):
        yield result
    elif isinstance(result, (list, tuple)):
        for each in result:
            yield from tensors(each)


def microseconds(runs: list[Callable[[], Any]], seconds: float, rounds: int) -> list[float]:
    """The processor time of a call of each, the smallest of bursts that take turns."""

    def burst(run: Callable[[], Any], calls: int) -> float:
        begin = time.process_time()
        for _ in range(calls):
            run()
        return time.process_time() - begin

    for run in runs:
        end = time.process_time() + _WARM_UP
        for _ in range(_FIRST_CALLS):
            run()
            if time.process_time() > end:
                break
    calls = [_measure.calls_per_burst(functools.partial(burst, run), seconds) for run in runs]
    times = [[burst(run, count) / count for run, count in zip(runs, calls, strict=True)] for _ in range(rounds)]
    return [1e6 * min(each) for each in zip(*times, strict=True)]


def main() -> int:
    """Measure the calls of the chosen models, and list those that cost most."""
    parser = _measure.parser(__doc__ or "", "models whose names match")
    parser.add_argument("--how", choices=("training", "inference"), default="inference")
    parser.add_argument("--op", default="", help="calls whose names match this regular expression")
    parser.add_argument("--show", type=int, default=40, help="so many ops, and so many calls")
    options = parser.parse_args()
    torch, flambeau = _measure.load("torch"), _measure.load("flambeau")
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    from _zoo.models import MODELS

    trains = options.how == "training"
    found = calls_of(torch, list(filter(options.only.search, MODELS)), trains)
    rows: list[dict[str, Any]] = []
    failed: dict[str, str] = {}
    with _measure.garbage_collector(False):
        for number, (title, call) in enumerate(found.items()):
            if not re.search(options.op, call.name):
                continue
            if not number % 100:
                gc.collect()
            try:
                with flambeau.set_grad_enabled(trains), torch.set_grad_enabled(trains):
                    runs = [runner(library, call, trains) for library in (flambeau, torch)]
                    ours, theirs = microseconds(runs, 0.002, 3 if options.quick else 6)
            except Exception as error:  # a call that cannot be made again says nothing about the others
                failed[call.name] = f"{type(error).__name__}: {error}"
                continue
            rows.append({"call": title, "op": call.name, "count": call.count, "flambeau": ours, "pytorch": theirs})
    _show(rows, options.show)
    for name, reason in failed.items():
        print(f"not measured: {name}: {reason.splitlines()[0]:.90}")
    _measure.write_json(options.json, {"pytorch": torch.__version__, "calls": rows})
    return 0


def _show(rows: list[dict[str, Any]], most: int) -> None:
    by_op: dict[str, list[float]] = {}
    for row in rows:
        entry = by_op.setdefault(row["op"], [0.0, 0.0, 0.0])
        for place, value in enumerate((1.0, row["flambeau"], row["pytorch"])):
            entry[place] += row["count"] * value
    print(f"{'more, us':>9}{'calls':>7}{'Flambeau':>10}{'PyTorch':>9}{'ratio':>7}  op; then single calls")
    for name, (count, ours, theirs) in sorted(by_op.items(), key=lambda item: item[1][2] - item[1][1])[:most]:
        print(f"{ours - theirs:9.0f}{count:7.0f}{ours / count:10.2f}{theirs / count:9.2f}{ours / theirs:7.2f}  {name}")
    print()
    for row in sorted(rows, key=lambda row: row["count"] * (row["pytorch"] - row["flambeau"]))[:most]:
        more = row["count"] * (row["flambeau"] - row["pytorch"])
        print(
            f"{more:9.0f}{row['count']:7}{row['flambeau']:10.2f}{row['pytorch']:9.2f}"
            f"{row['flambeau'] / row['pytorch']:7.2f}  {row['call']:.150}"
        )
    total = [sum([row["count"] * row[name] for row in rows]) for name in ("flambeau", "pytorch")]
    if rows:
        ours, theirs = (each / 1e3 for each in total)
        print(f"all calls of {len(rows)} kinds: {ours:.1f} ms and {theirs:.1f}, {ours / theirs:.3f}")


if __name__ == "__main__":
    sys.exit(main())
