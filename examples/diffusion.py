"""Denoising diffusion: learn to remove noise from digits, then draw by removing it: `python examples/diffusion.py`."""

from __future__ import annotations

import argparse

from vae import load_images

import flambeau as torch
from flambeau import Tensor, nn

STEPS = 100


class Denoiser(nn.Module):
    """Guesses the noise in an image from the image and the time."""

    def __init__(self) -> None:
        super().__init__()
        self.time = nn.Embedding(STEPS, 256)
        self.first, self.last = nn.Linear(784, 256), nn.Linear(256, 784)
        self.middle = nn.ModuleList(nn.Sequential(nn.SiLU(), nn.Linear(256, 256)) for _ in range(3))

    def forward(self, images: Tensor, times: Tensor) -> Tensor:
        """The noise, in the shape of the images."""
        x = self.first(images) + self.time(times)
        for layer in self.middle:
            x = x + layer(x)
        return self.last(x)


def main() -> None:
    """Train, then draw one digit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=10)
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
            loss = ((model(part.sqrt() * batch + (1 - part).sqrt() * noise, times) - noise) ** 2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(batch)
        print(f"epoch {epoch:2d}  loss {total / len(images):.4f}", flush=True)

    with torch.no_grad():
        image = torch.randn(1, 784)
        for time in reversed(range(STEPS)):
            guess = model(image, torch.tensor([time]))
            image = (image - noise_added[time] / (1 - kept[time]).sqrt() * guess) / (1 - noise_added[time]).sqrt()
            if time:
                image = image + noise_added[time].sqrt() * torch.randn_like(image)
    for row in image.clamp(-1, 1).view(28, 28)[::2].tolist():
        print("".join(" .:-=+*#%@"[int(4.99 * (value + 1))] for value in row))


if __name__ == "__main__":
    main()
