"""oneDNN's kernels alone, beside PyTorch's on the same operands: is the result the same, and how long does it take?

This is about the backend and not about tensors: its functions are called on NumPy arrays, and PyTorch's ops on tensors
with the same content. Every case stands for itself: one that fails is reported with its traceback, and the rest goes
on. The library is the installed one, or the file that FLAMBEAU_ONEDNN_LIBRARY names.
"""

from __future__ import annotations

import importlib
import math
import os
import platform
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from _measure import CHECKOUT, Run, alternate, parser, print_summary, write_json

TOLERANCE = {"float32": 2e-5, "bfloat16": 2e-2, "float16": 4e-3, "int8": 0.0}
"""By how much results may differ, relative to the largest element: rounding of sums in different orders."""


@dataclass(frozen=True)
class Case:
    """A computation by both: `prepare(bench, dtype)` gives the two calls, whose results are compared."""

    name: str
    prepare: Callable[[Bench, str], tuple[Run, Run]]
    dtypes: tuple[str, ...] = ("float32", "bfloat16")


class Bench:
    """Both libraries, and operands for them."""

    def __init__(self, torch: Any, onednn: Any) -> None:
        self.torch, self.onednn = torch, onednn

    def operand(self, dtype: str, *shape: int, last: bool = False, scale: float = 1.0) -> tuple[Any, Any]:
        """The same random numbers as an array and as a tensor."""
        torch = self.torch
        if dtype in ("int8", "uint8"):
            low, high = (-128, 128) if dtype == "int8" else (0, 256)
            tensor = torch.randint(low, high, shape, dtype=getattr(torch, dtype))
        else:
            tensor = (torch.randn(*shape) * scale).to(getattr(torch, dtype))
        if last:
            formats = {4: torch.channels_last, 5: torch.channels_last_3d}
            tensor = tensor.contiguous(memory_format=formats[len(shape)])
        return self.array(tensor), tensor

    def array(self, tensor: Any) -> Any:
        """A tensor's memory as an array."""
        tensor = tensor.detach()
        if tensor.dtype is not self.torch.bfloat16:
            return tensor.numpy()
        import ml_dtypes

        return tensor.view(self.torch.int16).numpy().view(ml_dtypes.bfloat16)

    def difference(self, ours: Any, theirs: Any) -> float:
        """The largest difference relative to the largest element, over all arrays of two results."""
        import numpy as np

        pairs = [(a, b) for a, b in zip(_flat(ours), _flat(theirs), strict=True) if a is not None]
        worst = 0.0
        for a, b in pairs:
            b = self.array(b)
            if a.shape != b.shape:
                raise AssertionError(f"shapes differ: {a.shape} and {b.shape}")
            a, b = a.astype(np.float32), b.astype(np.float32)
            largest = float(np.abs(b).max()) or 1.0
            error = float(np.abs(a - b).max()) / largest
            worst = max(worst, error if math.isfinite(error) else math.inf)
        return worst


def _flat(result: Any) -> Iterator[Any]:
    if isinstance(result, (tuple, list)):
        for each in result:
            yield from _flat(each)
    else:
        yield result


# ----- matrix products ----------------------------------------------------------------------------------------------


def product(a_shape: tuple[int, ...], b_shape: tuple[int, ...], bias: bool = False, transposed: bool = False) -> Any:
    """A product, of a transposed second factor as in a linear layer if wanted."""

    def prepare(bench: Bench, dtype: str) -> tuple[Run, Run]:
        a, a_tensor = bench.operand(dtype, *a_shape)
        b, b_tensor = bench.operand(dtype, *b_shape)
        if transposed:
            b, b_tensor = b.swapaxes(-1, -2), b_tensor.transpose(-1, -2)
        if not bias:
            return lambda: bench.onednn.matmul(a, b), lambda: bench.torch.matmul(a_tensor, b_tensor)
        added, added_tensor = bench.operand(dtype, b.shape[-1])
        return (
            lambda: bench.onednn.matmul(a, b, added),
            lambda: bench.torch.addmm(added_tensor, a_tensor, b_tensor),
        )

    return prepare


def integer_product(rows: int, depth: int, columns: int) -> Any:
    """int8 by int8, exactly; PyTorch's counterpart adds up in int32 too."""

    def prepare(bench: Bench, dtype: str) -> tuple[Run, Run]:
        a, a_tensor = bench.operand(dtype, rows, depth)
        b, b_tensor = bench.operand("int8", depth, columns)
        return lambda: bench.onednn.matmul(a, b), lambda: bench.torch._int_mm(a_tensor, b_tensor)

    return prepare


# ----- convolutions -------------------------------------------------------------------------------------------------


@contextmanager
def plain_kernels(wanted: bool) -> Iterator[None]:
    """Make convolutions in the plain layout use the kernels for it, which need no reorder: to see what these cost."""
    module: Any = importlib.import_module("flambeau._backends.cpu.onednn.convolution")
    choose = module._candidates
    if wanted:
        module._candidates = lambda problem, last: (choose(problem, last)[1],) * 2
    try:
        yield
    finally:
        module._candidates = choose


def convolution(
    input: tuple[int, ...],
    weight: tuple[int, ...],
    part: str,
    stride: int = 1,
    padding: int = 0,
    groups: int = 1,
    last: bool = False,
    transposed: bool = False,
    plain: bool = False,
    packed: bool = False,
) -> Any:
    """A convolution ("forward"), or its gradient by the input ("input") or the weights ("weight")."""

    def prepare(bench: Bench, dtype: str) -> tuple[Run, Run]:
        torch, onednn = bench.torch, bench.onednn
        rank = len(input) - 2
        steps, pads, ones, zeros = (stride,) * rank, (padding,) * rank, (1,) * rank, (0,) * rank
        geometry = onednn.Geometry(steps, pads, ones, groups)
        scale = 1 / math.sqrt(math.prod(weight[1:]))
        x, x_tensor = bench.operand(dtype, *input, last=last)
        w, w_tensor = bench.operand(dtype, *weight, last=last, scale=scale)
        outputs = weight[1] * groups if transposed else weight[0]
        b, b_tensor = bench.operand(dtype, outputs)
        options = (steps, pads, ones, transposed, zeros, groups)
        if part == "forward":
            kept = onednn.PackedWeights().at(0) if packed else None
            if transposed:
                run = lambda: onednn.transposed_convolution(x, w, b, geometry, zeros, last, kept)  # noqa: E731
            else:
                run = lambda: onednn.convolution(x, w, b, geometry, last, kept)  # noqa: E731
            with plain_kernels(plain):
                run()
            return run, lambda: torch.convolution(x_tensor, w_tensor, b_tensor, *options)
        shape = torch.convolution(x_tensor, w_tensor, b_tensor, *options).shape
        g, g_tensor = bench.operand(dtype, *shape, last=last)
        mask = [part == "input", part == "weight", part == "weight" and not transposed]

        def theirs() -> object:
            found = torch.ops.aten.convolution_backward(g_tensor, x_tensor, w_tensor, [outputs], *options, mask)
            return [each for each, wanted in zip(found, mask, strict=True) if wanted]

        if part == "input":
            function = onednn.transposed_input_gradient if transposed else onednn.convolution_input_gradient
            return lambda: [function(g, w, x.shape, geometry, last)], theirs
        if transposed:
            return lambda: [onednn.transposed_weight_gradient(g, x, w.shape, geometry, last)], theirs
        return lambda: onednn.convolution_weight_gradient(g, x, w.shape, geometry, True, last), theirs

    return prepare


# ----- the cases ----------------------------------------------------------------------------------------------------


def convolution_cases() -> Iterator[Case]:
    """The convolutions of common networks, in both layouts, with their gradients."""
    shapes: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
        ("3x3 32x64x32x32", ((32, 64, 32, 32), (64, 64, 3, 3)), {"padding": 1}),
        ("3x3 32x512x7x7", ((32, 512, 7, 7), (512, 512, 3, 3)), {"padding": 1}),
        ("1x1 32x256x56x56", ((32, 256, 56, 56), (64, 256, 1, 1)), {}),
        ("7x7/2 16x3x224x224", ((16, 3, 224, 224), (64, 3, 7, 7)), {"padding": 3, "stride": 2}),
        ("depthwise 32x128x28x28", ((32, 128, 28, 28), (128, 1, 3, 3)), {"padding": 1, "groups": 128}),
        ("groups 16x128x28x28", ((16, 128, 28, 28), (128, 16, 3, 3)), {"padding": 1, "groups": 8}),
        (
            "transposed 4x4/2 16x128x16x16",
            ((16, 128, 16, 16), (128, 64, 4, 4)),
            {"padding": 1, "stride": 2, "transposed": True},
        ),
        ("3x3x3 4x16x16x32x32", ((4, 16, 16, 32, 32), (32, 16, 3, 3, 3)), {"padding": 1}),
        ("1-d 16x64x1024", ((16, 64, 1024), (128, 64, 5)), {"padding": 2}),
    ]
    for name, args, options in shapes:
        for last in (False, True) if len(args[0]) > 3 else (False,):
            layout = "channels_last" if last else "plain"
            for part in ("forward", "input", "weight"):
                yield Case(f"convolution {name} {layout} {part}", convolution(*args, part, last=last, **options))
    name, args, options = shapes[0]
    yield Case(f"convolution {name} plain kernels forward", convolution(*args, "forward", plain=True, **options))
    name, args, options = shapes[1]
    yield Case(
        f"convolution {name} channels_last forward, weights packed",
        convolution(*args, "forward", last=True, packed=True, **options),
    )


def cases() -> Iterator[Case]:
    """All cases."""
    yield Case("product 8x8", product((8, 8), (8, 8)))
    yield Case("product 64x64", product((64, 64), (64, 64)))
    yield Case("product 512x512", product((512, 512), (512, 512)), ("float32", "bfloat16", "float16"))
    yield Case("product 2048x2048", product((2048, 2048), (2048, 2048)))
    yield Case("product 1x4096 by 4096x4096", product((1, 4096), (4096, 4096)))
    yield Case("linear 64x784 to 256", product((64, 784), (256, 784), bias=True, transposed=True))
    yield Case("linear 8x128x768 to 3072", product((8, 128, 768), (3072, 768), transposed=True))
    yield Case("attention 8x12x512x64", product((8, 12, 512, 64), (8, 12, 512, 64), transposed=True))
    yield Case("integers 512x512", integer_product(512, 512, 512), ("int8",))
    yield from convolution_cases()


# ----- running ------------------------------------------------------------------------------------------------------


def processor() -> str:
    """The processor's name, where Linux tells it."""
    path = Path("/proc/cpuinfo")
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def measured(case: Case, dtype: str, bench: Bench, quick: bool, allow: bool) -> dict[str, Any]:
    """Compare and time one case."""
    from flambeau._backends.cpu.onednn import primitives

    made: list[Any] = []
    depth = 0
    initialise = primitives.Primitive.__init__

    def noted(self: Any, *args: Any) -> None:
        nonlocal depth
        depth += 1
        initialise(self, *args)
        depth -= 1
        if not depth:  # the reorders around a primitive are made by itself
            made.append(self)

    bench.onednn.clear()
    primitives.reference_allowed = allow
    primitives.Primitive.__init__ = noted  # type: ignore[method-assign]
    try:
        ours, theirs = case.prepare(bench, dtype)
        result = ours()
    finally:
        primitives.Primitive.__init__ = initialise  # type: ignore[method-assign]
    chosen = [f"{each.implementation}{each.reordered or ''}" for each in made]
    error = bench.difference(result, theirs())
    timings = alternate((ours, theirs), 5 if quick else 15, 0.02 if quick else 0.1, collect=False)
    return {"error": error, "us": timings[0].median, "torch_us": timings[1].median, "chosen": chosen}


def main() -> int:
    """Run the cases; the status is 1 if one failed or gave another result than PyTorch."""
    options = parser(__doc__ or "", "run the cases whose name and dtype, joined by a blank, match")
    options.add_argument("--threads", type=int, default=os.cpu_count() or 1, help="for both; all processors by default")
    options.add_argument("--reference", action="store_true", help="accept oneDNN's reference code too")
    arguments = options.parse_args()
    os.environ["OMP_NUM_THREADS"] = str(arguments.threads)
    sys.path.append(str(CHECKOUT))
    import torch

    from flambeau._backends.cpu import onednn
    from flambeau._backends.cpu.onednn import library

    if (why_not := onednn.reason()) is not None:
        raise SystemExit(why_not)
    torch.set_num_threads(arguments.threads)
    onednn.set_num_threads(arguments.threads)
    torch.manual_seed(0)
    loaded = library.get()
    print(f"oneDNN {onednn.version()} (instruction set {loaded.isa:#x}), PyTorch {torch.__version__}")
    print(f"{processor()}, {arguments.threads} threads, {loaded.threads()} for OpenMP\n")
    print(
        f"{'case':64} {'dtype':9} {'error':>8} {'oneDNN us':>11} {'PyTorch us':>11} {'ratio':>6}  chosen, [reordered]"
    )
    bench = Bench(torch, onednn)
    rows: dict[str, Any] = {}
    failures: dict[str, str] = {}
    for case in cases():
        for dtype in case.dtypes:
            name = f"{case.name} {dtype}"
            if not arguments.only.search(name):
                continue
            start = f"{case.name:64} {dtype:9}"
            try:
                row = measured(case, dtype, bench, arguments.quick, arguments.reference)
            except onednn.Unsupported as reason:
                print(f"{start} unsupported: {reason}", flush=True)
                continue
            except Exception as error:
                failures[name] = traceback.format_exc()
                print(f"{start} FAILED: {type(error).__name__}: {error}", flush=True)
                continue
            row["ratio"] = row["us"] / row["torch_us"]
            rows[name] = row
            wrong = row["error"] > TOLERANCE[dtype]
            if wrong:
                failures[name] = f"the results differ by {row['error']:.3g}"
            print(
                f"{start} {row['error']:8.1e} {row['us']:11.1f} {row['torch_us']:11.1f} {row['ratio']:6.2f}  "
                f"{' '.join(row['chosen'])}{'  DIFFERS' if wrong else ''}",
                flush=True,
            )
    print()
    print_summary({name: row["ratio"] for name, row in rows.items()})
    for name, text in failures.items():
        print(f"\n=== {name}\n{text}")
    print(f"\n{len(rows)} measured, {len(failures)} failed or different")
    write_json(arguments.json, {"cases": rows, "failures": failures})
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
