"""A program for PyTorch: a small transformer under `fully_shard`, trained, saved, and continued from what was saved.

flambeau launch --standalone --nproc-per-node 2 fsdp_program.py FOLDER
"""

from __future__ import annotations

import os
import sys

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch import nn
from torch.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_model_state_dict,
    get_state_dict,
    set_state_dict,
)
from torch.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor import DTensor, Shard


class Layer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        q, k, v = (
            each.unflatten(-1, (self.heads, -1)).transpose(1, 2) for each in self.qkv(self.norm1(x)).chunk(3, -1)
        )
        found = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(found.transpose(1, 2).flatten(2))
        return x + self.down(nn.functional.gelu(self.up(self.norm2(x))))


class Transformer(nn.Module):
    def __init__(self, vocabulary=16, width=16, heads=2, layers=2):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.layers = nn.ModuleList(Layer(width, heads) for _ in range(layers))
        self.norm, self.output = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)

    def forward(self, tokens):
        x = self.tokens(tokens)
        for layer in self.layers:
            x = layer(x)
        return self.output(self.norm(x))


def losses_of(model, optimizer, rank, size, steps):
    generator = torch.Generator().manual_seed(7)
    batches = torch.randint(0, 16, (steps[-1] + 1, 4, 9), generator=generator)
    share = slice(rank * 4 // size, (rank + 1) * 4 // size)
    found = []
    for step in steps:
        tokens = batches[step][share]
        loss = nn.functional.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
        optimizer.step()
        optimizer.zero_grad()
        mean = loss.detach().clone()
        if size > 1:
            dist.all_reduce(mean)
        found.append(round(mean.item() / size, 4))
    return found


def made(seed):
    torch.manual_seed(seed)
    model = Transformer()
    for layer in model.layers:
        fully_shard(layer, mp_policy=MixedPrecisionPolicy())
    fully_shard(model)
    return model, torch.optim.AdamW(model.parameters(), lr=0.01)


def main():
    folder = sys.argv[1]
    dist.init_process_group(backend="gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    model, optimizer = made(0)
    assert isinstance(model, FSDPModule)
    for param in model.parameters():
        assert isinstance(param, DTensor)
        assert param.placements == (Shard(0),)
    losses = losses_of(model, optimizer, rank, size, range(3))
    model_state, optimizer_state = get_state_dict(model, optimizer)
    dcp.save({"model": model_state, "optimizer": optimizer_state}, checkpoint_id=os.path.join(folder, "spread"))
    whole = get_model_state_dict(model, options=StateDictOptions(full_state_dict=True, cpu_offload=True))
    if rank == 0:
        torch.save(whole, os.path.join(folder, "whole.pt"))
    more = losses_of(model, optimizer, rank, size, range(3, 5))

    model, optimizer = made(1)
    model_state, optimizer_state = get_state_dict(model, optimizer)
    states = {"model": model_state, "optimizer": optimizer_state}
    dcp.load(states, checkpoint_id=os.path.join(folder, "spread"))
    set_state_dict(model, optimizer, model_state_dict=states["model"], optim_state_dict=states["optimizer"])
    again = losses_of(model, optimizer, rank, size, range(3, 5))
    if rank == 0:
        print("losses", losses + more, "continued", again == more, flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
