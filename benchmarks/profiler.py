"""What a profile costs: a training step of some milliseconds without one, with one, and with all that it can record.

Processor time of one thread, so that other programs disturb little.

    python benchmarks/profiler.py
"""

from __future__ import annotations

import time
from typing import Any

from flambeau import Tensor, nn, optim, randint, set_num_threads
from flambeau.nn import functional as F
from flambeau.profiler import profile

ROUNDS = 15
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


class Attention(nn.Module):
    """A block of a small transformer."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        """One step of the residual stream."""
        q, k, v = (each.unflatten(-1, (4, -1)).transpose(1, 2) for each in self.qkv(self.norms[0](x)).chunk(3, -1))
        x = x + self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
        return x + self.down(F.gelu(self.up(self.norms[1](x))))


def main() -> None:
    """Take the best time of a step for each choice, in turn."""
    set_num_threads(1)
    net: Any = nn.Sequential(nn.Embedding(100, 64), Attention(64), Attention(64), nn.Linear(64, 100))
    optimizer = optim.AdamW(net.parameters())
    tokens = randint(100, (8, 32))

    def step() -> None:
        optimizer.zero_grad()
        F.cross_entropy(net(tokens).flatten(0, 1), tokens.flatten()).backward()
        optimizer.step()

    def timed(options: dict[str, bool] | None) -> float:
        best = float("inf")
        if options is None:
            for _ in range(STEPS):
                start = time.thread_time()
                step()
                best = min(best, time.thread_time() - start)
            return best
        with profile(**options):
            for _ in range(STEPS):
                start = time.thread_time()
                step()
                best = min(best, time.thread_time() - start)
        return best

    for _ in range(20):
        step()
    times = {name: float("inf") for name in OPTIONS}
    for _ in range(ROUNDS):
        for name, options in OPTIONS.items():
            times[name] = min(times[name], timed(options))
    plain = times["no profile"]
    with profile() as prof:
        step()
    print(f"a step of {plain * 1e3:.2f} ms, {len(prof.events())} events")
    for name, seconds in times.items():
        print(f"{name:16} {seconds * 1e3:7.3f} ms  {100 * (seconds / plain - 1):+5.1f} %")


if __name__ == "__main__":
    main()
