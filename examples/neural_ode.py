"""Learn the law of a spiral: a network as the right side of an equation of motion: `python examples/neural_ode.py`."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import flambeau as torch
from flambeau import Tensor, nn


def solve(law: Callable[[Tensor], Tensor], start: Tensor, times: Tensor) -> Tensor:
    """The path of dx/dt = law(x), by the classical Runge-Kutta method."""
    path, x = [start], start
    for step in (times[1:] - times[:-1]).tolist():
        k1 = law(x)
        k2 = law(x + step / 2 * k1)
        k3 = law(x + step / 2 * k2)
        k4 = law(x + step * k3)
        x = x + step / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        path.append(x)
    return torch.stack(path)


def main() -> None:
    """Train on short pieces of the true path, then compare the whole."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--out", type=Path, help="a picture of the true and the learnt path")
    arguments = parser.parse_args()

    torch.manual_seed(0)
    matrix = torch.tensor([[-0.1, 2.0], [-2.0, -0.1]])
    times = torch.linspace(0, 10, 201)
    truth = solve(lambda x: x @ matrix.T, torch.tensor([2.0, 0.0]), times)
    law = nn.Sequential(nn.Linear(2, 50), nn.Tanh(), nn.Linear(50, 2))
    optimizer = torch.optim.Adam(law.parameters(), lr=1e-2)
    for step in range(arguments.steps + 1):
        starts = torch.randint(len(times) - 10, (16,))
        pieces = torch.stack([truth[starts + offset] for offset in range(10)])
        loss = (solve(law, pieces[0], times[:10]) - pieces).abs().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            with torch.no_grad():
                path = solve(law, truth[0], times)
            error = (path - truth).abs().mean()
            print(f"step {step:3d}  loss {loss.item():.4f}  error of the whole path {error.item():.4f}", flush=True)
    if arguments.out:
        save(truth, path, arguments.out)


def save(truth: Tensor, learnt: Tensor, path: Path) -> None:
    """Both paths in the plane."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.subplots()
    axes.plot(*truth.T.numpy(), color="#9aa5b1", linewidth=4, label="true path")
    axes.plot(*learnt.T.numpy(), color="#d9480f", label="learnt path")
    axes.set_aspect("equal")
    axes.legend(frameon=False)
    figure.savefig(path)


if __name__ == "__main__":
    main()
