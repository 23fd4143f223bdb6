"""Train on several processes: `flambeau launch --nproc-per-node=2 examples/data_parallel.py`."""

from __future__ import annotations

import argparse

from vae import load_images

import flambeau as torch
import flambeau.distributed as dist
from flambeau import nn
from flambeau.nn.parallel import DistributedDataParallel
from flambeau.utils.data import DataLoader, TensorDataset
from flambeau.utils.data.distributed import DistributedSampler


def main() -> None:
    """An autoencoder of digits; each process trains on its own part of every epoch."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=3)
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
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
