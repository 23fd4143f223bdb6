"""Find out where the time of a training step goes: `python examples/profile_training.py`."""

from __future__ import annotations

import flambeau as torch
from flambeau import nn
from flambeau.profiler import ProfilerActivity, profile, record_function


def main() -> None:
    """The operations of five steps, the slowest first."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 16, 3), nn.BatchNorm2d(16), nn.ReLU(), nn.Flatten(), nn.Linear(16 * 30 * 30, 10))
    optimizer = torch.optim.AdamW(model.parameters())
    images, labels = torch.randn(16, 3, 32, 32), torch.randint(10, (16,))
    with profile(activities=[ProfilerActivity.CPU]) as profiled:
        for _ in range(5):
            with record_function("forward"):
                loss = nn.functional.cross_entropy(model(images), labels)
            with record_function("backward"):
                loss.backward()
            with record_function("update"):
                optimizer.step()
                optimizer.zero_grad()
    print(profiled.key_averages().table(sort_by="cpu_time_total", row_limit=12))


if __name__ == "__main__":
    main()
