"""A variational autoencoder that learns to draw digits: `python examples/vae.py [--out digits.png]`."""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import flambeau as torch
from flambeau import Tensor, nn
from flambeau.nn import functional as F


class VAE(nn.Module):
    """An encoder to means and variances of a few numbers, and a decoder back to pixels."""

    def __init__(self, latent: int = 8) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Flatten(), nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 2 * latent))
        self.decoder = nn.Sequential(nn.Linear(latent, 256), nn.ReLU(), nn.Linear(256, 784))

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """The reconstruction's logits, and how far the codes are from a standard normal distribution."""
        mean, log_variance = self.encoder(images).chunk(2, dim=1)
        code = mean + torch.randn_like(mean) * (0.5 * log_variance).exp()  # the reparametrisation trick
        divergence = 0.5 * (mean**2 + log_variance.exp() - 1 - log_variance).sum(1)
        return self.decoder(code), divergence


def load_images() -> Tensor:
    """The training images as numbers from 0 to 1, (n, 784)."""
    with np.load(Path(__file__).parent / "digits" / "mnist5k.npz") as arrays:
        return torch.from_numpy(arrays["train_images"]).float().flatten(1) / 255


def main() -> None:
    """Train, draw samples as text, and save them as a picture where `--out` says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--out", type=Path, help="a picture of 64 samples, drawn by Matplotlib")
    arguments = parser.parse_args()

    torch.manual_seed(0)
    images, model = load_images(), VAE()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(arguments.epochs):
        total = 0.0
        for batch in images[torch.randperm(len(images))].split(100):
            logits, divergence = model(batch)
            pixels = F.binary_cross_entropy_with_logits(logits, batch, reduction="none").sum(1)
            loss = (pixels + divergence).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(batch)
        print(f"epoch {epoch:2d}  loss {total / len(images):.2f}", flush=True)
    with torch.no_grad():
        samples = model.decoder(torch.randn(64, 8)).sigmoid().view(64, 28, 28)
    for row in samples[0][::2]:
        print("".join(" .:-=+*#%@"[int(9.99 * value)] for value in row.tolist()))
    if arguments.out:
        save(samples, arguments.out)


def save(samples: Tensor, path: Path) -> None:
    """Eight rows of eight digits."""
    from matplotlib.image import imsave

    imsave(path, samples.view(8, 8, 28, 28).transpose(1, 2).reshape(224, 224).numpy(), cmap="gray")


if __name__ == "__main__":
    main()
