"""Linear layers with weights of 32, 8 and 4 bits: time and error, for few rows of inputs, as when text is generated.

python benchmarks/quantized.py
"""

from __future__ import annotations

import functools
import importlib.util
import time
from collections.abc import Callable
from typing import Any

import flambeau
from flambeau import nn
from flambeau.ao.nn.quantized import WeightOnlyLinear
from flambeau.ao.quantization import quantize_dynamic

SIZES = ((1024, 1024), (2048, 2048), (4096, 4096))
ROUNDS = 30


def main() -> None:
    """Alternate the layers, and take the best time of each."""
    flambeau.set_num_threads(1)
    torch = importlib.import_module("torch") if importlib.util.find_spec("torch") else None
    if torch is not None:
        torch.set_num_threads(1)
    print("inputs x outputs, rows: ms (times as fast as float32, relative error)")
    for inputs, outputs in SIZES:
        layer = nn.Linear(inputs, outputs)
        layers: dict[str, Callable[[Any], Any]] = {
            "float32": layer,
            "8 bits": WeightOnlyLinear.from_float(layer, bits=8),
            "4 bits": WeightOnlyLinear.from_float(layer, bits=4, group_size=128),
            "dynamic": quantize_dynamic(nn.Sequential(layer))[0],
        }
        for rows in (1, 4, 16):
            x = flambeau.randn(rows, inputs)
            calls = {name: functools.partial(each, x) for name, each in layers.items()}
            if torch is not None:
                theirs = torch.nn.Linear(inputs, outputs).requires_grad_(False)
                calls["PyTorch's float32"] = functools.partial(theirs, torch.from_numpy(x.numpy()))
            times = dict.fromkeys(calls, float("inf"))
            with flambeau.no_grad():
                exact = layer(x)
                errors = {name: ((each(x) - exact).norm() / exact.norm()).item() for name, each in layers.items()}
                for _ in range(ROUNDS):
                    for name, call in calls.items():
                        start = time.perf_counter()
                        call()
                        times[name] = min(times[name], time.perf_counter() - start)
            shown = "   ".join(
                f"{name} {seconds * 1e3:.3f} ({times['float32'] / seconds:.1f}x, {errors.get(name, 0.0):.4f})"
                for name, seconds in times.items()
            )
            print(f"{inputs}x{outputs}, {rows:2}: {shown}")


if __name__ == "__main__":
    main()
