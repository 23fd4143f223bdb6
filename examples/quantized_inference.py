"""Weights of 8 bits: a quarter of the memory, nearly the same answers: `python examples/quantized_inference.py`."""

from __future__ import annotations

import argparse
from pathlib import Path

import flambeau as torch
from flambeau import Tensor, nn
from flambeau.ao.quantization import quantize_dynamic


def main() -> None:
    """Compare a network with its quantized form."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=512)
    parser.add_argument("--out", type=Path, help="a picture of both networks' answers")
    arguments = parser.parse_args()
    size = arguments.size

    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Linear(size, 2 * size), nn.ReLU(), nn.Linear(2 * size, size), nn.ReLU(), nn.Linear(size, 10)
    ).eval()
    small = quantize_dynamic(model, {nn.Linear}, dtype=torch.qint8)
    inputs = torch.randn(256, size)
    with torch.no_grad():
        exact, rough = model(inputs), small(inputs)
    error = (exact - rough).abs().max() / exact.abs().max()
    same = (exact.argmax(1) == rough.argmax(1)).float().mean()
    print(f"largest error {100 * error.item():.2f} % of the largest answer, same class for {100 * same.item():.1f} %")
    if arguments.out:
        save(exact.flatten(), rough.flatten(), arguments.out)


def save(exact: Tensor, rough: Tensor, path: Path) -> None:
    """A point for each answer: on the diagonal both networks agree."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.subplots()
    axes.axline((0, 0), slope=1, color="#9aa5b1")
    axes.scatter(exact.numpy(), rough.numpy(), s=4, color="#d9480f")
    axes.set(xlabel="answer with weights of 32 bits", ylabel="answer with weights of 8 bits")
    figure.savefig(path)


if __name__ == "__main__":
    main()
