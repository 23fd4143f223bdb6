"""Four processes train one network without locks (Hogwild): `python examples/digits/hogwild.py`."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

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
    parser.add_argument("--out", type=Path, help="a picture of test digits with the network's answers")
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
    if options.out:
        save(net, test_split, options.out)


def save(net: ConvNet, split: Split, path: Path) -> None:
    """Sixteen test digits, each with the answer above it; wrong ones in red."""
    from matplotlib.figure import Figure

    images, labels = split.images[:16], split.labels[:16].tolist()
    with torch.no_grad():
        answers = net(images).argmax(1).tolist()
    figure = Figure(figsize=(6, 2), layout="constrained")
    for axes, image, answer, label in zip(figure.subplots(2, 8).flat, images, answers, labels, strict=True):
        axes.imshow(image[0].numpy(), cmap="gray")
        axes.set_title(answer, fontsize=8, color="black" if answer == label else "red")
        axes.axis("off")
    figure.savefig(path)


if __name__ == "__main__":
    main()
