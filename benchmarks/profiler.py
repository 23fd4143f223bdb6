"""What a profile costs: a training step of some milliseconds without one, with one, and with all that it can record.

The same for PyTorch beside it, in turn. Processor time of one thread, so that other programs disturb little.

    python benchmarks/profiler.py
"""

from __future__ import annotations

import contextlib
import importlib.util
import time
import warnings
from collections.abc import Callable
from typing import Any

import flambeau

ROUNDS = 4
STEPS = 8
OPTIONS: dict[str, dict[str, bool] | None] = {
    "no profile": None,
    "profile()": {},
    "record_shapes": {"record_shapes": True},
    "profile_memory": {"profile_memory": True},
    "with_stack": {"with_stack": True},
    "with_flops": {"with_flops": True},
    "with_modules": {"with_modules": True},
    "all of them": dict.fromkeys(["record_shapes", "profile_memory", "with_stack", "with_flops", "with_modules"], True),
}

BESIDE = ("no profile", "profile()", "all of them")
"""What PyTorch is asked for: each of its profiles takes half a second to begin and to end."""


def training_step(T: Any) -> Callable[[], None]:
    """A step of a small transformer."""
    nn, F = T.nn, T.nn.functional

    class Attention(nn.Module):  # type: ignore[misc, name-defined]  # the library is an argument
        """A block."""

        def __init__(self, width: int) -> None:
            super().__init__()
            self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x: Any) -> Any:
            """One step of the residual stream."""
            q, k, v = (each.unflatten(-1, (4, -1)).transpose(1, 2) for each in self.qkv(self.norms[0](x)).chunk(3, -1))
            x = x + self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
            return x + self.down(F.gelu(self.up(self.norms[1](x))))

    T.set_num_threads(1)
    net = nn.Sequential(nn.Embedding(100, 64), Attention(64), Attention(64), nn.Linear(64, 100))
    optimizer = T.optim.AdamW(net.parameters())
    tokens = T.randint(100, (8, 32))

    def step() -> None:
        optimizer.zero_grad()
        F.cross_entropy(net(tokens).flatten(0, 1), tokens.flatten()).backward()
        optimizer.step()

    return step


def profiled(T: Any, options: dict[str, bool] | None) -> Any:
    """A profile of operators on the CPU; None: no profile."""
    activities = [T.profiler.ProfilerActivity.CPU]
    return contextlib.nullcontext() if options is None else T.profiler.profile(activities=activities, **options)


def best_step(T: Any, step: Callable[[], None], options: dict[str, bool] | None) -> float:
    """The shortest time of a step, of a few, in seconds."""
    best = float("inf")
    with profiled(T, options):
        for _ in range(STEPS):
            start = time.thread_time()
            step()
            best = min(best, time.thread_time() - start)
    return best


def main() -> None:
    """Take the best time of a step for each choice, in turn."""
    warnings.simplefilter("ignore")
    libraries: list[Any] = [flambeau]
    if importlib.util.find_spec("torch") is not None:
        libraries.append(importlib.import_module("torch"))
    steps = {T.__name__: training_step(T) for T in libraries}
    for step in steps.values():
        for _ in range(120):  # ops that are called often get functions of their own
            step()
    choices = [(T, name) for name in OPTIONS for T in libraries if T is flambeau or name in BESIDE]
    times = {(T.__name__, name): float("inf") for T, name in choices}
    for _ in range(ROUNDS):
        for T, name in choices:
            key = T.__name__, name
            times[key] = min(times[key], best_step(T, steps[T.__name__], OPTIONS[name]))
    for T in libraries:
        with profiled(T, {}) as prof:
            steps[T.__name__]()
        plain = times[T.__name__, "no profile"]
        print(f"{T.__name__}: a step of {plain * 1e3:.2f} ms, {len(prof.events())} events")
        for (library, name), seconds in times.items():
            if library != T.__name__:
                continue
            print(f"    {name:16} {seconds * 1e3:7.3f} ms  {100 * (seconds / plain - 1):+5.1f} %")


if __name__ == "__main__":
    main()
