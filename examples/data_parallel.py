"""Train on several processes: `flambeau launch --nproc-per-node=2 examples/data_parallel.py`."""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import flambeau as torch
import flambeau.distributed as dist
from flambeau import Tensor, nn
from flambeau.nn.parallel import DistributedDataParallel
from flambeau.utils.data import DataLoader, TensorDataset
from flambeau.utils.data.distributed import DistributedSampler


def load_images() -> Tensor:
    """The training images as numbers from 0 to 1, (n, 784)."""
    with np.load(Path(__file__).parent / "digits" / "mnist5k.npz") as arrays:
        return torch.from_numpy(arrays["train_images"]).float().flatten(1) / 255


def main() -> None:
    """An autoencoder of digits; each process trains on its own part of every epoch."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--out", type=Path, help="a picture of digits and of what the network makes of them")
    arguments = parser.parse_args()

    dist.init_process_group("gloo")
    torch.manual_seed(0)
    images = load_images()
    model = DistributedDataParallel(nn.Sequential(nn.Linear(784, 32), nn.ReLU(), nn.Linear(32, 784)))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    sampler = DistributedSampler(TensorDataset(images))
    loader = DataLoader(TensorDataset(images), batch_size=50, sampler=sampler)
    for epoch in range(arguments.epochs):
        sampler.set_epoch(epoch)
        total = torch.zeros(2)
        for (batch,) in loader:
            loss = ((model(batch) - batch) ** 2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += torch.tensor([loss.item() * len(batch), len(batch)])
        dist.all_reduce(total)
        if dist.get_rank() == 0:
            print(f"epoch {epoch}  {dist.get_world_size()} processes  loss {total[0] / total[1]:.5f}", flush=True)
    if arguments.out and dist.get_rank() == 0:
        save(images[:8], model.module(images[:8]).detach(), arguments.out)
    dist.destroy_process_group()


def save(images: Tensor, drawn: Tensor, path: Path) -> None:
    """The digits, and below them what is left after the narrow layer."""
    from matplotlib.image import imsave

    rows = torch.stack([images, drawn]).view(2, 8, 28, 28).transpose(1, 2)
    imsave(path, rows.reshape(56, 224).numpy(), cmap="gray", vmin=0, vmax=1)


if __name__ == "__main__":
    main()
