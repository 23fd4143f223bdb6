"""`python -m tests.reproducible.other_gpus FILE`: does "run" give the same bits on every GPU of one architecture?

The libraries are told that this GPU is another one (`tests/support/another_gpu.py`), with more or fewer
multiprocessors and another memory, and choose their kernels accordingly. Digests of products, of convolutions and of
PyTorch's operator database, with their gradients, are compared with those of the GPU as it is. `--level none` shows
what differs where no level is asked for.

A few of the libraries' kernels leave parts of a result unwritten then, since the GPU has more multiprocessors than they
were told. New memory holds NaN here, so that such results are known by it; they are counted by themselves.
"""

from __future__ import annotations

import argparse
import fnmatch
import itertools
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import flambeau
from flambeau._backends.cuda.runtime import driver as drivers
from flambeau._backends.cuda.runtime.driver import driver
from tests.support.another_gpu import GPUS, answer_as

from .machine import digest_of
from .operators import SMALLER, Place, _changed, _repeated, _results, _samples, chosen

F = flambeau.nn.functional
SIZES = (1, 8, 100, 768, 4096)
DTYPES = ("float32", "bfloat16", "float16", "float64", "complex64")
IMAGES = (
    (16, 3, 64, 224, 7, 2, 1), (16, 64, 64, 56, 3, 1, 1), (16, 128, 256, 28, 3, 2, 1), (8, 256, 512, 14, 1, 1, 1),
    (8, 512, 512, 7, 3, 1, 1), (8, 3, 768, 224, 16, 16, 1), (8, 64, 128, 28, 3, 1, 8), (2, 32, 32, 9, 5, 1, 1),
)  # fmt: skip
"""Of convolutions: samples, channels of input and output, size, kernel, stride and groups."""
Case = tuple[str, Callable[[], list[Any]]]


def _drawn(*shape: int, dtype: str) -> Any:
    return flambeau.randn(*shape, dtype=getattr(flambeau, dtype)).cuda().requires_grad_()


def _with_gradients(result: Any, *given: Any) -> list[Any]:
    weights = flambeau.randn_like(result, device="cpu").cuda()
    return [result, *flambeau.autograd.grad(result, given, weights)]


def _product(rows: int, inner: int, columns: int, dtype: str, biased: bool) -> list[Any]:
    x, w = _drawn(rows, inner, dtype=dtype), _drawn(columns, inner, dtype=dtype)
    if not biased:
        return _with_gradients(x @ w.t(), x, w)
    b = _drawn(columns, dtype=dtype)
    return _with_gradients(F.linear(x, w, b), x, w, b)


def _batches(count: int, rows: int, inner: int, columns: int, dtype: str) -> list[Any]:
    x, y = _drawn(count, rows, inner, dtype=dtype), _drawn(count, columns, inner, dtype=dtype)
    return _with_gradients(x @ y.transpose(1, 2), x, y)


def _convolution(*given: Any) -> list[Any]:
    samples, channels, out, size, kernel, stride, groups, dtype, last = given
    x, w = (
        _drawn(samples, channels, size, size, dtype=dtype),
        _drawn(out, channels // groups, kernel, kernel, dtype=dtype),
    )
    if last:
        x, w = (each.detach().contiguous(memory_format=flambeau.channels_last).requires_grad_() for each in (x, w))
    return _with_gradients(F.conv2d(x, w, None, stride, kernel // 2 if stride < kernel else 0, 1, groups), x, w)


def _attention(heads: int, length: int, width: int, dtype: str, causal: bool) -> list[Any]:
    q, k, v = (_drawn(2, heads, length, width, dtype=dtype) for _ in range(3))
    return _with_gradients(F.scaled_dot_product_attention(q, k, v, is_causal=causal), q, k, v)


def _normalized(rows: int, width: int, dtype: str) -> list[Any]:
    x, w, b = _drawn(rows, width, dtype=dtype), _drawn(width, dtype=dtype), _drawn(width, dtype=dtype)
    return _with_gradients(F.layer_norm(x, (width,), w, b), x, w, b)


def cases() -> Iterator[Case]:
    """Products, convolutions and attention of sizes that networks have."""
    for dtype in DTYPES:
        wide = dtype in ("float32", "bfloat16", "float16")
        for sizes in itertools.product(SIZES if wide else SIZES[:4], repeat=3):
            for biased in (False, True) if wide and dtype != "float16" else (False,):
                yield f"product {sizes} {dtype} {biased}", lambda s=sizes, d=dtype, b=biased: _product(*s, d, b)
        for sizes in ((96, 128, 64, 128), (12, 1024, 64, 1024), (4, 197, 197, 64), (300, 8, 8, 8), (2, 1024, 1024, 64)):
            yield f"batches {sizes} {dtype}", lambda s=sizes, d=dtype: _batches(*s, d)
    for dtype in DTYPES[:4]:
        for given in IMAGES:
            for last in (False, True):
                yield (
                    f"convolution {given} {dtype} {'channels last' if last else ''}",
                    lambda g=given, d=dtype, turned=last: _convolution(*g, d, turned),
                )
    for count in (100, 1_000_003):
        yield f"draws {count}", lambda n=count: [flambeau.randn(n, device="cuda"), flambeau.rand(n, device="cuda")]
    for dtype in DTYPES[:3]:
        for rows, width in ((8192, 768), (50_000, 64)):
            yield f"layer_norm {rows} {width} {dtype}", lambda r=rows, w=width, d=dtype: _normalized(r, w, d)
        for heads, length, width in ((12, 1024, 64), (4, 197, 32), (8, 130, 128)):
            for causal in (False, True):
                yield (
                    f"attention {heads} {length} {width} {dtype} {causal}",
                    lambda h=heads, n=length, w=width, d=dtype, c=causal: _attention(h, n, w, d, c),
                )


UNWRITTEN = " unwritten"


def _fill_new_memory() -> None:
    """Let new arrays hold NaN, in every type of floats."""
    allocate = drivers.allocate

    def filled(nbytes: int) -> Any:
        memory = allocate(nbytes)
        if nbytes:
            driver().library.runtime.memsetAsync(memory.ptr, 0xFF, nbytes, driver().queue())
        return memory

    drivers.allocate = filled


def _digest(case: Callable[[], list[Any]], level: str | None) -> str:
    flambeau.manual_seed(0)
    with flambeau.reproducible(level):
        try:
            arrays = [each.detach().resolve_conj().cpu() for each in case()]
            unwritten = any(bool(each.isnan().any()) for each in arrays)
            return digest_of([each._array for each in arrays]) + UNWRITTEN * unwritten
        except Exception as error:
            return f"raises {type(error).__name__}: {error}"


def _of_entry(entry: Any, level: str | None) -> str:
    parts = []
    for number, sample in enumerate(_samples(entry)):
        for grown in (0, SMALLER) if number == 0 else (0,):
            found = _results(
                entry,
                sample,
                level,
                lambda value, n=grown: _changed(value, lambda each: _repeated(each, n)) if n else value,
            )
            parts.append("none" if found is None else digest_of(found))
    return " ".join(parts)


def survey(only: str, level: str | None, part: int, parts: int, seconds: float) -> dict[str, str]:
    """The digests of a part of the cases and entries."""
    Place.device = "cuda"
    flambeau.cuda.init()
    _fill_new_memory()
    flambeau.backends.cudnn.allow_tf32 = False
    end, found = time.monotonic() + seconds, {}
    for number, (name, case) in enumerate(cases()):
        if number % parts == part and fnmatch.fnmatch(name, only) and time.monotonic() < end:
            found[name] = _digest(case, level)
    for entry in chosen()[part::parts]:
        if fnmatch.fnmatch(entry.name, only) and time.monotonic() < end:
            found[f"op {entry.name}"] = _of_entry(entry, level)
    return found


def main() -> None:
    """Survey this GPU as it is and as others, in several processes, and compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--only", default="*", help="a pattern of names")
    parser.add_argument("--level", default="run", help='"run", "batch", or "none"')
    parser.add_argument("--jobs", type=int, default=14)
    parser.add_argument("--seconds", type=float, default=100.0)
    parser.add_argument("--part", type=int, help="survey this part alone")
    parser.add_argument("--gpus", default=",".join(GPUS), help="with which ones it is compared")
    parser.add_argument("--gpu", default="", help="as which GPU")
    options = parser.parse_args()
    level = None if options.level == "none" else options.level
    if options.part is not None:
        if options.gpu:
            answer_as(options.gpu)
        found = survey(options.only, level, options.part, options.jobs, options.seconds)
        found["multiprocessors"] = str(flambeau.cuda.get_device_properties(0).multi_processor_count)
        options.file.write_text(json.dumps(found), encoding="utf-8")
        return
    digests = {gpu: _in_processes(options, gpu) for gpu in ("", *options.gpus.split(","))}
    report = compared(digests)
    options.file.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


def _in_processes(options: Any, gpu: str) -> dict[str, str]:
    files = [options.file.with_name(f"{options.file.name}.{part}") for part in range(options.jobs)]
    common = ["--only", options.only, "--level", options.level, "--jobs", str(options.jobs), "--gpu", gpu]
    command = [sys.executable, "-m", "tests.reproducible.other_gpus"]
    running = [
        subprocess.Popen([*command, str(file), *common, "--seconds", str(options.seconds), "--part", str(part)])
        for part, file in enumerate(files)
    ]
    found: dict[str, str] = {}
    for process, file in zip(running, files, strict=True):
        process.wait()
        if file.exists():
            found |= json.loads(file.read_text(encoding="utf-8"))
            file.unlink()
    return found


def compared(digests: dict[str, dict[str, str]]) -> dict[str, Any]:
    """How many of each kind have the digests of the GPU as it is, and the names of all others."""
    own = digests[""]
    report: dict[str, Any] = {}
    for gpu, found in digests.items():
        if not gpu:
            continue
        both = [name for name in own if name in found and name != "multiprocessors"]
        unwritten = [name for name in both if found[name].endswith(UNWRITTEN) and not own[name].endswith(UNWRITTEN)]
        differ = [name for name in both if own[name] != found[name] and name not in unwritten]
        counts: dict[str, list[int]] = {}
        for name in both:
            if "raises" in own[name] or set(own[name].split()) <= {"none"}:
                continue
            count = counts.setdefault(name.split()[0], [0, 0, 0])
            for place, kind in enumerate((name not in differ + unwritten, name in differ, name in unwritten)):
                count[place] += kind
        print(f"{gpu} ({own.get('multiprocessors')} -> {found.get('multiprocessors')} multiprocessors):")
        words = "the same", "differ", "unwritten"
        for kind, count in counts.items():
            print(f"  {kind}: " + ", ".join(f"{number} {word}" for number, word in zip(count, words, strict=True)))
        report[gpu] = {"counts": counts, "differ": differ, "unwritten": unwritten}
    report["raise"] = {name: text for name, text in own.items() if "raises" in text}
    return report


if __name__ == "__main__":
    main()
