"""Find out where the time of a training step goes: `python examples/profile_training.py`."""

from __future__ import annotations

import argparse
from pathlib import Path

import flambeau as torch
from flambeau import nn
from flambeau.profiler import ProfilerActivity, profile, record_function


def main() -> None:
    """The operations of five steps, the slowest first."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="a picture of the slowest operations")
    arguments = parser.parse_args()

    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 16, 3), nn.BatchNorm2d(16), nn.ReLU(), nn.Flatten(), nn.Linear(16 * 30 * 30, 10))
    optimizer = torch.optim.AdamW(model.parameters())
    images, labels = torch.randn(16, 3, 32, 32), torch.randint(10, (16,))

    def step() -> None:
        with record_function("forward"):
            loss = nn.functional.cross_entropy(model(images), labels)
        with record_function("backward"):
            loss.backward()
        with record_function("update"):
            optimizer.step()
            optimizer.zero_grad()

    step()  # the first step also compiles kernels: it would hide what the others do
    with profile(activities=[ProfilerActivity.CPU]) as profiled:
        for _ in range(5):
            step()
    print(profiled.key_averages().table(sort_by="cpu_time_total", row_limit=12))
    if arguments.out:
        save(profiled, arguments.out)


def save(profiled: profile, path: Path) -> None:
    """The ten operations that take most time by themselves."""
    from matplotlib.figure import Figure

    slowest = sorted(profiled.key_averages(), key=lambda each: each.self_cpu_time_total)[-10:]
    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.subplots()
    axes.barh([each.key for each in slowest], [each.self_cpu_time_total / 1000 for each in slowest], color="#d9480f")
    axes.set_xlabel("milliseconds in five steps")
    figure.savefig(path)


if __name__ == "__main__":
    main()
