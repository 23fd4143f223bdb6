"""Four processes train one network without locks (Hogwild): `python examples/digits/hogwild.py`."""

from __future__ import annotations

import argparse
import time

from model import ConvNet
from train import Split, evaluate, load_digits

import flambeau as torch
from flambeau import multiprocessing as mp
from flambeau import optim
from flambeau.nn import functional as F


def work(number: int, net: ConvNet, split: Split, epochs: int) -> None:
    """Train the parameters, which all processes have in common, on batches in an order of this process's own."""
    torch.manual_seed(number)
    torch.set_num_threads(1)
    optimizer = optim.SGD(net.parameters(), lr=0.01, momentum=0.5)
    net.train()
    for _ in range(epochs):
        for chosen in torch.randperm(len(split)).split(50):
            optimizer.zero_grad()
            F.cross_entropy(net(split.images[chosen]), split.labels[chosen]).backward()
            optimizer.step()


def main() -> None:
    """Train, and say how well the network does."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument("--epochs", type=int, default=2, help="passes over the digits, by each process")
    options = parser.parse_args()
    torch.manual_seed(0)
    train_split, test_split = load_digits()
    net = ConvNet()
    net.share_memory()
    start = time.perf_counter()
    mp.spawn(work, (net, train_split, options.epochs), nprocs=options.processes)
    loss, accuracy = evaluate(net, test_split)
    seconds = time.perf_counter() - start
    print(f"{options.processes} processes, {seconds:.1f} s: loss {loss:.3f}, {100 * accuracy:.1f} % of the test digits")


if __name__ == "__main__":
    main()
