"""`python -m tests.reproducible.trained`: a GPT, a ResNet and an LSTM, trained with the same global batches.

At "threads" with several numbers of threads, at "batch" by DistributedDataParallel on several numbers of processes: the
digests of the parameters after all steps are printed, and have to be one for each network.
"""

from __future__ import annotations

import argparse
import hashlib
import multiprocessing
import os
import socket
import time
from collections.abc import Callable
from typing import Any

import flambeau
import flambeau.distributed as dist
from flambeau import nn

F = nn.functional
SAMPLES = 8


class Block(nn.Module):
    """One layer of a GPT."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.mix = nn.MultiheadAttention(width, 4, batch_first=True)
        self.more = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: Any) -> Any:
        """Attend, then transform each token."""
        y = self.first(x)
        mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1])
        x = x + self.mix(y, y, y, attn_mask=mask, need_weights=False, is_causal=True)[0]
        return x + self.more(self.second(x))


class Gpt(nn.Module):
    """Two layers on tokens with learned positions."""

    def __init__(self, width: int = 48) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(64, width), nn.Parameter(0.02 * flambeau.randn(17, width))
        self.blocks = nn.Sequential(Block(width), Block(width))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 64, bias=False)

    def forward(self, tokens: Any) -> Any:
        """The loss of each next token."""
        x = self.tokens(tokens[:, :-1]) + self.places
        logits = self.head(self.norm(self.blocks(x)))
        return F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())


class Residual(nn.Module):
    """Two convolutions around which the input goes."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.second = nn.Conv2d(outputs, outputs, 3, 1, 1)
        self.norm, self.other = nn.GroupNorm(4, outputs), nn.GroupNorm(4, outputs)
        self.past = nn.Conv2d(inputs, outputs, 1, stride)

    def forward(self, x: Any) -> Any:
        """The sum of both ways."""
        return self.past(x) + self.other(self.second(self.norm(self.first(x)).relu())).relu()


class ResNet(nn.Module):
    """A small one with group norms: batch norms depend on the batch by definition."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(Residual(3, 12, 1), Residual(12, 16, 2), nn.AdaptiveAvgPool2d(1), nn.Flatten())
        self.head = nn.Linear(16, 10)

    def forward(self, images: Any) -> Any:
        """The loss for classes that follow from the images."""
        return F.cross_entropy(self.head(self.layers(images)), (images[:, 0, 0, :10]).argmax(1))


class Lstm(nn.Module):
    """Two layers that predict the next token."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.lstm = nn.Embedding(64, 24), nn.LSTM(24, 40, 2, batch_first=True)
        self.head = nn.Linear(40, 64)

    def forward(self, tokens: Any) -> Any:
        """The loss of each next token."""
        logits = self.head(self.lstm(self.tokens(tokens[:, :-1]))[0])
        return F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())


def _tokens(generator: Any) -> Any:
    return flambeau.randint(0, 64, (SAMPLES, 18), generator=generator)


def _images(generator: Any) -> Any:
    return flambeau.randn(SAMPLES, 3, 12, 12, generator=generator)


NETWORKS: dict[str, tuple[Callable[[], nn.Module], Callable[[Any], Any]]] = {
    "gpt": (Gpt, _tokens),
    "resnet": (ResNet, _images),
    "lstm": (Lstm, _tokens),
}


def train(kind: str, steps: int, rank: int = 0, size: int = 1, parallel: bool = False) -> str:
    """Train a network on the contiguous part of each batch that belongs to a rank; the digest of its parameters."""
    make, batch = NETWORKS[kind]
    flambeau.manual_seed(0)
    net, generator = make(), flambeau.Generator().manual_seed(1)
    model = nn.parallel.DistributedDataParallel(net) if parallel else net
    optimizer = flambeau.optim.AdamW(net.parameters(), lr=3e-3)
    share = SAMPLES // size
    for _ in range(steps):
        loss = model(batch(generator)[rank * share : (rank + 1) * share])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
    digest = hashlib.sha256()
    for each in net.parameters():
        digest.update(each.detach().numpy().tobytes())
    return digest.hexdigest()[:16]


def _process(rank: int, size: int, port: int, kinds: list[str], steps: int, results: Any) -> None:
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    flambeau.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=size)
    try:
        with flambeau.reproducible("batch"):
            results.put((rank, {kind: train(kind, steps, rank, size, True) for kind in kinds}))
    finally:
        dist.destroy_process_group()


def on_processes(size: int, kinds: list[str], steps: int) -> list[dict[str, str]]:
    """The digests that each of `size` processes ends with."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    context = multiprocessing.get_context("fork")  # nothing is imported twice
    results = context.Queue()
    rest = size, port, kinds, steps, results
    processes = [context.Process(target=_process, args=(rank, *rest)) for rank in range(size)]
    for each in processes:
        each.start()
    try:
        found = dict(results.get(timeout=60 + 2 * steps) for _ in processes)
    finally:
        for each in processes:
            each.join(30)
            each.kill()
    return [found[rank] for rank in range(size)]


def main() -> None:
    """Train with 1 to 16 threads, and on 1, 2 and 4 processes; print the digests."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--networks", nargs="*", default=list(NETWORKS))
    parser.add_argument("--threads", nargs="*", type=int, default=[1, 2, 3, 7, 16])
    parser.add_argument("--processes", nargs="*", type=int, default=[1, 2, 4])
    options = parser.parse_args()
    # Processes first: threads do not survive a fork.
    for size in options.processes:
        begin = time.perf_counter()
        found = on_processes(size, options.networks, options.steps)
        for kind in options.networks:
            digests = sorted({digests[kind] for digests in found})
            print(f"{kind:8}{size:3} processes  {' '.join(digests)}", flush=True)
        print(f"        {size:3} processes  {time.perf_counter() - begin:.1f} s", flush=True)
    for kind in options.networks:
        for threads in options.threads:
            flambeau.set_num_threads(threads)
            begin = time.perf_counter()
            with flambeau.reproducible("threads"):
                digest = train(kind, options.steps)
            print(f"{kind:8}{threads:3} threads    {digest}  {time.perf_counter() - begin:.1f} s", flush=True)


if __name__ == "__main__":
    main()
