"""A graph network that finds communities from a few known members: `python examples/graph_network.py`."""

from __future__ import annotations

import argparse
import math
from pathlib import Path

import flambeau as torch
from flambeau import Tensor, nn


class GraphLayer(nn.Module):
    """Each node gets the mean of its own and its neighbours' features, times a matrix."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.linear = nn.Linear(inputs, outputs)

    def forward(self, x: Tensor, source: Tensor, target: Tensor) -> Tensor:
        """`source[i]` and `target[i]` are the ends of edge i."""
        total = x.index_add(0, target, x[source])
        count = torch.ones(len(x)).index_add_(0, target, torch.ones(len(target)))
        return self.linear(total / count[:, None])


def main() -> None:
    """Train on eight nodes of 120 and count how many others are right."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--out", type=Path, help="a picture of the graph and of the communities found")
    arguments = parser.parse_args()

    torch.manual_seed(0)
    nodes, groups = 120, 4
    labels = torch.arange(nodes) % groups
    likely = torch.where(labels[:, None] == labels, 0.25, 0.02)
    edges = (torch.rand(nodes, nodes) < likely).triu(1)
    source, target = (edges | edges.T).nonzero(as_tuple=True)
    known = torch.arange(2 * groups)
    first, second = GraphLayer(16, 32), GraphLayer(32, groups)
    features = torch.zeros(nodes, 16)
    features[known] = nn.functional.one_hot(labels[known], 16).float()
    optimizer = torch.optim.Adam([*first.parameters(), *second.parameters()], lr=0.03, weight_decay=1e-3)
    for step in range(arguments.steps + 1):
        scores = second(first(features, source, target).relu(), source, target)
        loss = nn.functional.cross_entropy(scores[known], labels[known])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 20 == 0:
            right = (scores.argmax(1) == labels).float().mean().item()
            print(f"step {step:3d}  loss {loss.item():.4f}  right {100 * right:.1f} %", flush=True)
    if arguments.out:
        save(labels, scores.argmax(1), source, target, arguments.out)


def save(labels: Tensor, found: Tensor, source: Tensor, target: Tensor, path: Path) -> None:
    """Each true community lies in a corner; the colour of a node is the community that the network found."""
    from matplotlib.figure import Figure

    corner = labels * (math.pi / 2) + math.pi / 4
    x = corner.cos() * 3 + torch.randn(len(labels)) * 0.6
    y = corner.sin() * 3 + torch.randn(len(labels)) * 0.6
    figure = Figure(figsize=(6, 4))
    axes = figure.add_axes((0, 0, 1, 1))
    ends = torch.stack([source, target])
    axes.plot(x[ends].numpy(), y[ends].numpy(), color="#9aa5b1", linewidth=0.3, zorder=1)
    axes.scatter(x.numpy(), y.numpy(), c=found.numpy(), cmap="tab10", s=40, zorder=2)
    axes.axis("off")
    figure.savefig(path)


if __name__ == "__main__":
    main()
