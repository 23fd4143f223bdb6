"""Regression by a Gaussian process, its scales found by gradient descent: `python examples/gaussian_process.py`."""

from __future__ import annotations

import argparse
import math
from pathlib import Path

import flambeau as torch
from flambeau import Tensor


def kernel(a: Tensor, b: Tensor, scale: Tensor, height: Tensor) -> Tensor:
    """How alike the function is at two places."""
    return height * (-0.5 * ((a[:, None] - b) / scale) ** 2).exp()


def main() -> None:
    """Fit 20 noisy points, and print the curve with its uncertainty."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--out", type=Path, help="a picture of the curve and its uncertainty")
    arguments = parser.parse_args()

    torch.manual_seed(0)
    x = torch.rand(20, dtype=torch.float64) * 6
    y = x.sin() + 0.1 * torch.randn(20, dtype=torch.float64)
    logs = torch.zeros(3, dtype=torch.float64, requires_grad=True)  # logarithms: scales stay positive
    optimizer = torch.optim.Adam([logs], lr=0.1)
    for step in range(arguments.steps + 1):
        scale, height, noise = logs.exp()
        covariance = kernel(x, x, scale, height) + noise * torch.eye(20, dtype=torch.float64)
        factor = torch.linalg.cholesky(covariance)
        solved = torch.cholesky_solve(y[:, None], factor)[:, 0]
        loss = 0.5 * (y @ solved) + factor.diagonal().log().sum() + 10 * math.log(2 * math.pi)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 25 == 0:
            print(
                f"step {step:3d}  loss {loss.item():7.3f}  scale {scale.item():.3f}  noise {noise.item():.4f}",
                flush=True,
            )
    with torch.no_grad():
        places = torch.linspace(0, 6, 13, dtype=torch.float64)
        across = kernel(places, x, scale, height)
        mean = across @ solved
        spread = (height - (across @ torch.cholesky_solve(across.T, factor)).diagonal()).clamp(min=0).sqrt()
    for place, value, width in zip(places.tolist(), mean.tolist(), spread.tolist(), strict=True):
        print(f"x {place:4.1f}  sin {math.sin(place):6.3f}  mean {value:6.3f}  +- {2 * width:.3f}")
    if arguments.out:
        save(x, y, places, mean, spread, arguments.out)


def save(x: Tensor, y: Tensor, places: Tensor, mean: Tensor, spread: Tensor, path: Path) -> None:
    """The points, the curve, and a band of two standard deviations."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.subplots()
    low, high = mean - 2 * spread, mean + 2 * spread
    axes.fill_between(places.numpy(), low.numpy(), high.numpy(), color="#ffd8a8", label="two standard deviations")
    axes.plot(places.numpy(), mean.numpy(), color="#d9480f", label="mean")
    axes.plot(places.numpy(), places.sin().numpy(), color="#9aa5b1", linestyle="--", label="sine")
    axes.scatter(x.numpy(), y.numpy(), color="black", s=14, zorder=3, label="data")
    axes.legend(frameon=False)
    figure.savefig(path)


if __name__ == "__main__":
    main()
