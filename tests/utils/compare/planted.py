"""A small training run with one planted bug at a time: `python planted.py NAME` runs it with the bug called NAME."""

from __future__ import annotations

import sys
from typing import Any


def network(torch: Any, bug: str) -> Any:
    nn = torch.nn

    class Block(nn.Module):  # type: ignore[misc,name-defined]
        def __init__(self, width: int) -> None:
            super().__init__()
            self.norm = nn.LayerNorm(width, eps=1e-6 if bug == "epsilon" else 1e-5)
            self.qkv = nn.Linear(width, 3 * width)
            self.out = nn.Linear(width, width)
            self.drop = nn.Dropout(0.1)
            if bug == "initialisation":
                nn.init.normal_(self.out.weight, std=0.03)
            else:
                nn.init.normal_(self.out.weight, std=0.02)

        def forward(self, x: Any) -> Any:
            q, k, v = self.qkv(self.norm(x)).chunk(3, -1)
            length = x.shape[1]
            mask = torch.ones(length, length).triu(0 if bug == "mask" else 1).bool()
            scores = (q @ k.transpose(-1, -2) / 4.0).masked_fill(mask, -1e9)
            mixed = torch.softmax(scores, -1) @ v
            if bug == "dropout order":
                return self.out(self.drop(mixed)) + self.drop(x)
            return self.drop(x) + self.out(self.drop(mixed))

    class Net(nn.Module):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.embed = nn.Embedding(20, 16)
            self.blocks = nn.ModuleList([Block(16), Block(16)])
            self.head = nn.Linear(16, 20)

        def forward(self, tokens: Any) -> Any:
            x = self.embed(tokens)
            for block in self.blocks:
                x = block(x)
            target = x.mean(1) if bug == "detach" else x.mean(1).detach()
            if bug == "in place":
                x.mul_(1.5)
                logits = self.head(x)
            else:
                logits = self.head(x * 1.5)
            return logits, x, target

    return Net()


def train(torch: Any, bug: str = "", steps: int = 3) -> None:
    torch.manual_seed(0)
    net = network(torch, bug)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
    data = torch.randint(0, 20, (8, 4, 7))
    order = [1, 0, 2] if bug == "data order" else [0, 1, 2]
    for step in range(steps):
        tokens = data[order[step]]
        with torch.autocast("cpu", torch.bfloat16, enabled=bug == "mixed precision"):
            logits, hidden, target = net(tokens[:, :-1])
            loss = torch.nn.functional.cross_entropy(logits.reshape(-1, 20), tokens[:, 1:].reshape(-1))
            loss = loss + (hidden.mean(1) - target).pow(2).mean() + hidden.pow(2).mean() * target.sum() * 0.01
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    import torch

    train(torch, sys.argv[1] if len(sys.argv) > 1 else "")
