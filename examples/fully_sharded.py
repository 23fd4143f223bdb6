"""Spread a model over processes with FSDP: `flambeau launch --nproc-per-node=2 examples/fully_sharded.py`."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np

import flambeau as torch
import flambeau.distributed as dist
import flambeau.distributed.checkpoint as checkpoint
from flambeau import Tensor, nn
from flambeau.distributed.fsdp import fully_shard


def load_images() -> Tensor:
    """The training images as numbers from 0 to 1, (n, 784)."""
    with np.load(Path(__file__).parent / "digits" / "mnist5k.npz") as arrays:
        return torch.from_numpy(arrays["train_images"]).float().flatten(1) / 255


def main() -> None:
    """An autoencoder of digits; each process keeps half of the parameters, gradients and optimizer states."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--out", type=Path, help="a picture of digits and of what the network makes of them")
    arguments = parser.parse_args()

    dist.init_process_group("gloo")
    torch.manual_seed(0)
    images = load_images()
    model = nn.Sequential(nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 784))
    for layer in model:
        if isinstance(layer, nn.Linear):
            fully_shard(layer)
    fully_shard(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    rank, world = dist.get_rank(), dist.get_world_size()
    held = sum(each.to_local().numel() for each in model.parameters())
    print(f"rank {rank} holds {held} of {sum(each.numel() for each in model.parameters())} parameters", flush=True)
    for epoch in range(arguments.epochs):
        order = torch.randperm(len(images), generator=torch.Generator().manual_seed(epoch))
        total = torch.zeros(2)
        for indices in order[rank::world].split(50):
            batch = images[indices]
            loss = ((model(batch) - batch) ** 2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += torch.tensor([loss.item() * len(batch), len(batch)])
        dist.all_reduce(total)
        if rank == 0:
            print(f"epoch {epoch}  {world} processes  loss {total[0] / total[1]:.5f}", flush=True)
    folder = [tempfile.mkdtemp()]
    dist.broadcast_object_list(folder, src=0)
    checkpoint.save({"model": model.state_dict()}, checkpoint_id=folder[0])  # each process writes its own part
    if rank == 0:
        print("saved a checkpoint that any number of processes can load", flush=True)
    if arguments.out:
        with torch.no_grad():  # every process takes part: each holds only its own part of the model
            drawn = model(images[:8])
        if rank == 0:
            save(images[:8], drawn, arguments.out)
    dist.destroy_process_group()


def save(images: Tensor, drawn: Tensor, path: Path) -> None:
    """The digits, and below them what is left after the narrow layer."""
    from matplotlib.image import imsave

    rows = torch.stack([images, drawn]).view(2, 8, 28, 28).transpose(1, 2)
    imsave(path, rows.reshape(56, 224).numpy(), cmap="gray", vmin=0, vmax=1)


if __name__ == "__main__":
    main()
