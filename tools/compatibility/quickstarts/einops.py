"""einops: rearrangements, reductions and layers of them in a small network of image patches."""

import torch
from einops import einsum, pack, rearrange, reduce, repeat, unpack
from einops.layers.torch import Rearrange, Reduce


def main():
    images = torch.randn(2, 3, 8, 8)
    patches = rearrange(images, "b c (h p) (w q) -> b (h w) (c p q)", p=4, q=4)
    pooled = reduce(images, "b c (h 2) (w 2) -> b c h w", "max")
    tiled = repeat(images[0, 0], "h w -> (h a) (w b)", a=2, b=3)
    packed, shapes = pack([torch.randn(2, 4), torch.randn(2, 3, 4)], "b * c")
    network = torch.nn.Sequential(
        Rearrange("b c (h p) (w q) -> b (h w) (c p q)", p=4, q=4),
        torch.nn.Linear(48, 16),
        torch.nn.GELU(),
        Reduce("b n c -> b c", "mean"),
        torch.nn.Linear(16, 5),
    )
    loss = torch.nn.functional.cross_entropy(network(images), torch.tensor([1, 3]))
    loss.backward()
    return {
        "patches": patches,
        "pooled": pooled,
        "tiled": tiled,
        "parts": unpack(packed, shapes, "b * c"),
        "product": einsum(patches, patches, "b n c, b m c -> b n m"),
        "loss": loss,
        "gradient": network[1].weight.grad,
    }
