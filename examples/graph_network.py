"""A graph network that finds communities from a few known members: `python examples/graph_network.py`."""

from __future__ import annotations

import argparse

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


if __name__ == "__main__":
    main()
