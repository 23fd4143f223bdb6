"""Denoising diffusion: learn to remove noise from digits, then draw by removing it: `python examples/diffusion.py`."""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import flambeau as torch
from flambeau import Tensor, nn

STEPS = 100


class Denoiser(nn.Module):
    """Guesses the clean image from a noisy one and the time. (To guess the noise instead takes wider layers.)"""

    def __init__(self) -> None:
        super().__init__()
        self.time = nn.Embedding(STEPS, 512)
        self.first, self.last = nn.Linear(784, 512), nn.Linear(512, 784)
        self.middle = nn.ModuleList(nn.Sequential(nn.SiLU(), nn.Linear(512, 512)) for _ in range(3))

    def forward(self, images: Tensor, times: Tensor) -> Tensor:
        """The clean images."""
        x = self.first(images) + self.time(times)
        for layer in self.middle:
            x = x + layer(x)
        return self.last(x)


def load_images() -> Tensor:
    """The training images as numbers from 0 to 1, (n, 784)."""
    with np.load(Path(__file__).parent / "digits" / "mnist5k.npz") as arrays:
        return torch.from_numpy(arrays["train_images"]).float().flatten(1) / 255


def main() -> None:
    """Train, then draw: 64 digits at once."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--out", type=Path, help="a picture of 64 drawn digits")
    arguments = parser.parse_args()

    torch.manual_seed(0)
    noise_added = torch.linspace(1e-4, 0.1, STEPS)
    kept = (1 - noise_added).cumprod(0)  # how much of the image is left after each step
    images, model = load_images() * 2 - 1, Denoiser()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for epoch in range(arguments.epochs):
        total = 0.0
        for batch in images[torch.randperm(len(images))].split(100):
            times = torch.randint(STEPS, (len(batch),))
            noise = torch.randn_like(batch)
            part = kept[times, None]
            loss = ((model(part.sqrt() * batch + (1 - part).sqrt() * noise, times) - batch) ** 2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(batch)
        print(f"epoch {epoch:2d}  loss {total / len(images):.4f}", flush=True)

    with torch.no_grad():
        drawn = torch.randn(64, 784)
        for time in reversed(range(STEPS)):
            clean = model(drawn, torch.tensor([time])).clamp(-1, 1)
            if time == 0:
                drawn = clean
                break
            # One step less noise: between what is there and the guess, with fresh noise of the right size.
            before, now, added = kept[time - 1], kept[time], noise_added[time]
            drawn = before.sqrt() * added * clean + (1 - added).sqrt() * (1 - before) * drawn
            drawn = drawn / (1 - now) + (added * (1 - before) / (1 - now)).sqrt() * torch.randn_like(drawn)
    drawn = drawn.clamp(-1, 1).view(64, 28, 28)
    for row in drawn[0, ::2].tolist():
        print("".join(" .:-=+*#%@"[int(4.99 * (value + 1))] for value in row))
    if arguments.out:
        save(drawn, arguments.out)


def save(images: Tensor, path: Path) -> None:
    """Eight rows of eight digits."""
    from matplotlib.image import imsave

    imsave(path, images.view(8, 8, 28, 28).transpose(1, 2).reshape(224, 224).numpy(), cmap="gray")


if __name__ == "__main__":
    main()
