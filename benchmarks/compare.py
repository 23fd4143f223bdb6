"""What it costs to record a trace for `flambeau compare`: training steps of a GPT, plain and recorded in turns.

python benchmarks/compare.py
python benchmarks/compare.py --layers 12 --tokens 1024 --threads 2

With one thread it is processor time. The shortest times count, so that other work on the machine matters little.
"""

from __future__ import annotations

import argparse
import math
import tempfile
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import flambeau
from flambeau import nn
from flambeau.utils import compare

F = nn.functional


class Block(nn.Module):
    """A layer of GPT-2."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.heads = width // 64
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Any) -> Any:
        """Attend, then transform each token."""
        batch, length, width = x.shape
        parts = self.qkv(self.first(x)).split(width, 2)
        q, k, v = (each.view(batch, length, self.heads, -1).transpose(1, 2) for each in parts)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        return x + self.narrow(F.gelu(self.wide(self.second(x)), approximate="tanh"))


class Gpt(nn.Module):
    """GPT-2 with fewer layers and words."""

    def __init__(self, layers: int, words: int, width: int = 768) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(words, width), nn.Embedding(1024, width)
        self.blocks, self.norm = nn.Sequential(*[Block(width) for _ in range(layers)]), nn.LayerNorm(width)

    def forward(self, tokens: Any) -> Any:
        """The loss of each next token; the head is the embedding."""
        x = self.tokens(tokens[:, :-1]) + self.places(flambeau.arange(tokens.shape[1] - 1))
        logits = self.norm(self.blocks(x)) @ self.tokens.weight.t()
        return F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())


def main() -> None:
    """Print the time of a plain step, that of a recorded one as a multiple of it, and the trace's size."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", type=int, default=3)
    parser.add_argument("--words", type=int, default=8000)
    parser.add_argument("--tokens", type=int, nargs="*", default=[512, 1024])
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    flambeau.set_num_threads(options.threads)
    now = process_time if options.threads == 1 else perf_counter
    for count in options.tokens:
        flambeau.manual_seed(0)
        model, tokens = Gpt(options.layers, options.words), flambeau.randint(0, options.words, (count // 256, 257))
        optimizer = flambeau.optim.AdamW(model.parameters(), lr=1e-4)

        def step(model: Any = model, tokens: Any = tokens, optimizer: Any = optimizer) -> None:
            optimizer.zero_grad()
            model(tokens).backward()
            optimizer.step()

        step()
        plain, recorded, size = math.inf, math.inf, 0
        for _ in range(options.rounds):
            begin = now()
            step()
            plain = min(plain, now() - begin)
            begin = now()
            with compare.record() as trace:
                step()
            recorded = min(recorded, now() - begin)
        with tempfile.TemporaryDirectory() as folder:
            trace.save(Path(folder, "a.trace"))
            size = Path(folder, "a.trace").stat().st_size
        print(f"{count} tokens: {plain:.2f} s, recorded {recorded / plain:.2f} times as long, {size / 2**20:.2f} MB")


if __name__ == "__main__":
    main()
