"""Export a network as an ONNX file and run it by onnxruntime: `python examples/onnx_export.py`."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np

import flambeau as torch
from flambeau import nn


def main() -> None:
    """Batches of any size; the results agree."""
    import onnxruntime

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="a picture of both libraries' scores")
    arguments = parser.parse_args()
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 26 * 26, 10)).eval()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        batch = torch.export.Dim("batch")
        torch.onnx.export(model, (torch.zeros(2, 1, 28, 28),), path, dynamic_shapes=({0: batch},))
        session = onnxruntime.InferenceSession(path)
        images = torch.randn(5, 1, 28, 28)
        (theirs,) = session.run(None, {session.get_inputs()[0].name: images.numpy()})
        with torch.no_grad():
            ours = model(images).numpy()
        print(f"{path.stat().st_size} bytes, largest difference {np.abs(ours - theirs).max():.2e}")
    if arguments.out:
        save(ours, theirs, arguments.out)


def save(ours: np.ndarray, theirs: np.ndarray, path: Path) -> None:
    """The scores of each image, by each library."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 2.4), layout="constrained")
    for axes, title, scores in zip(figure.subplots(1, 2), ("Flambeau", "onnxruntime"), (ours, theirs), strict=True):
        axes.imshow(scores, cmap="Oranges")
        axes.set(title=title, xlabel="class", ylabel="image")
    figure.savefig(path)


if __name__ == "__main__":
    main()
