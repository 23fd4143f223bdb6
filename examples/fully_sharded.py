"""Spread a model over processes with FSDP: `flambeau launch --nproc-per-node=2 examples/fully_sharded.py`."""

from __future__ import annotations

import argparse
import tempfile

from vae import load_images

import flambeau as torch
import flambeau.distributed as dist
import flambeau.distributed.checkpoint as checkpoint
from flambeau import nn
from flambeau.distributed.fsdp import fully_shard


def main() -> None:
    """An autoencoder of digits; each process keeps half of the parameters, gradients and optimizer states."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=3)
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
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
