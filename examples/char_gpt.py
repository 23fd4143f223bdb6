"""A small GPT that learns to write text, character by character: `python examples/char_gpt.py [--text FILE]`."""

from __future__ import annotations

import argparse
from pathlib import Path

import flambeau as torch
from flambeau import Tensor, nn
from flambeau.nn import functional as F


class Block(nn.Module):
    """Attention over the characters so far, then a network for each position."""

    def __init__(self, size: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(size), nn.LayerNorm(size)
        self.qkv, self.project = nn.Linear(size, 3 * size), nn.Linear(size, size)
        self.mlp = nn.Sequential(nn.Linear(size, 4 * size), nn.GELU(), nn.Linear(4 * size, size))

    def forward(self, x: Tensor) -> Tensor:
        """Each position sees itself and those before it."""
        batch, length, size = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4).unbind(0)
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.project(attended.transpose(1, 2).reshape(batch, length, size))
        return x + self.mlp(self.norm2(x))


class GPT(nn.Module):
    """Embeddings of characters and positions, blocks, and scores for the next character."""

    def __init__(self, characters: int, context: int, size: int = 64, heads: int = 4, layers: int = 3) -> None:
        super().__init__()
        self.context = context
        self.token, self.position = nn.Embedding(characters, size), nn.Embedding(context, size)
        self.blocks = nn.Sequential(*(Block(size, heads) for _ in range(layers)))
        self.norm, self.head = nn.LayerNorm(size), nn.Linear(size, characters, bias=False)

    def forward(self, tokens: Tensor) -> Tensor:
        """Scores (batch, length, characters)."""
        x = self.token(tokens) + self.position(torch.arange(tokens.shape[1]))
        return self.head(self.norm(self.blocks(x)))

    @torch.no_grad()
    def write(self, tokens: Tensor, count: int, temperature: float = 0.8) -> Tensor:
        """Continue `tokens` by `count` characters."""
        for _ in range(count):
            scores = self(tokens[:, -self.context :])[:, -1] / temperature
            tokens = torch.cat([tokens, torch.multinomial(scores.softmax(-1), 1)], 1)
        return tokens


def main() -> None:
    """Train, and print what the network writes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--text", type=Path, default=Path(__file__).parent.parent / "CONTRIBUTING.md")
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--out", type=Path, help="a picture of the loss and of what the network writes")
    arguments = parser.parse_args()

    text = arguments.text.read_text(encoding="utf-8")
    alphabet = sorted(set(text))
    data = torch.tensor([alphabet.index(each) for each in text])
    torch.manual_seed(0)
    model = GPT(len(alphabet), context=64)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    losses = []
    for step in range(arguments.steps + 1):
        starts = torch.randint(len(data) - 65, (16,))
        batch = torch.stack([data[start : start + 65] for start in starts])
        loss = F.cross_entropy(model(batch[:, :-1]).flatten(0, 1), batch[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        if step % 50 == 0:
            print(f"step {step:4d}  loss {losses[-1]:.3f}", flush=True)
    written = "".join(alphabet[each] for each in model.write(data[None, :1], 200)[0].tolist())
    print(written)
    if arguments.out:
        save(losses, written, arguments.out)


def save(losses: list[float], text: str, path: Path) -> None:
    """The loss of each step, and the text beside it."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 4), layout="constrained")
    curve, page = figure.subplots(2, 1)
    curve.plot(losses, linewidth=1, color="#d9480f")
    curve.set(xlabel="step", ylabel="cross entropy")
    page.text(0, 1, text, family="monospace", fontsize=7, verticalalignment="top", parse_math=False)
    page.axis("off")
    figure.savefig(path)


if __name__ == "__main__":
    main()
