"""CUDA C of elementwise ops: every op whose body can be traced has code, and compilers accept it."""

from __future__ import annotations

import importlib
import pkgutil
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from flambeau._codegen.cuda import channel_norm, gather, moves, pool, recurrent
from flambeau._codegen.cuda.choices import choose_source, shuffle_equal_source
from flambeau._codegen.cuda.elementwise import can_write, flat_source, functions, strided_source, vector_width
from flambeau._codegen.cuda.random import INTEGERS, bernoulli_source, draw_source, mask_source
from flambeau._codegen.expr import Program, Untraceable, trace_body
from flambeau._dispatch.elementwise import Elementwise
from flambeau._dispatch.op import OPS
from flambeau._ops import pointwise

_COMPILER = shutil.which("g++")


def _programs() -> dict[str, Program]:
    for module in pkgutil.iter_modules(pointwise.__path__):
        importlib.import_module(f"{pointwise.__name__}.{module.name}")
    found = {}
    for name, op in OPS.items():
        if isinstance(op, Elementwise):
            try:
                found[name] = trace_body(op.body, [np.dtype(np.float32)] * len(op.parameters))
            except Untraceable:
                continue
    return found


def test_every_traced_body_has_code() -> None:
    programs = _programs()
    assert len(programs) > 80
    missing = {step[0] for each in programs.values() if not can_write(each) for step in each.steps}
    without = sorted(name for name, each in programs.items() if not can_write(each))
    assert not without, (without, missing)


def _sources() -> dict[str, str]:
    chosen = {name: each for name, each in _programs().items() if name in ("mul", "erf", "remainder", "sigmoid", "pow")}
    found = {}
    for name, program in chosen.items():
        inputs = max([step[2] for step in program.steps if step[0] == "input"]) + 1
        for dtype in ("float32", "bfloat16"):
            memory = [dtype] * (inputs + 1)
            found[f"{name} {dtype} flat"] = flat_source(program, memory, "c" * inputs, vector_width(memory))
            found[f"{name} {dtype} strided"] = strided_source(program, memory, "c" * inputs, 3, False)
    for distribution in ("uniform_", "normal_", "exponential_", "cauchy_", "geometric_", "log_normal_"):
        found[distribution] = draw_source(distribution, "float16")
    found["integers"] = draw_source(INTEGERS, "int64", True)
    found["mask"], found["bernoulli"] = mask_source(2), bernoulli_source("bfloat16", "float32")
    found["equal keys"], found["choices"] = shuffle_equal_source("int64"), choose_source("float32")
    return found | _layers()


def _layers() -> dict[str, str]:
    """Kernels of layers, in half precision and with packs where they have any."""
    half, kept = "bfloat16", "float32"
    return {
        "sums of lines": channel_norm.lines_sums_source(half, kept, 8, True),
        "sums of planes": channel_norm.planes_sums_source(half, kept, 8, False),
        "statistics": channel_norm.statistics_source(half, half, kept, True, True, True),
        "slopes": channel_norm.slopes_source(half, half, kept, True, True),
        "running statistics": channel_norm.running_source(half, kept, kept),
        "lines": channel_norm.lines_apply_source(half, 8, True),
        "planes": channel_norm.planes_apply_source(half, 8, False),
        "maxima": pool.max_pool_source(half, True, True, 8),
        "maxima backward": pool.max_pool_backward_source(half, True, 8),
        "means": pool.mean_pool_source("float64", True, pool.WITH_PADDING),
        "means backward": pool.mean_pool_backward_source(half, False, pool.ADAPTED),
        "rows by position": gather.rows_source(2, 8, "int64"),
        "elements by position": gather.elements_source(4, "int32", 3),
        "LSTM": recurrent.lstm_step_source("float32"),
        "LSTM backward": recurrent.lstm_step_backward_source("float64", True),
        "GRU": recurrent.gru_step_source("float32", True),
        "GRU backward": recurrent.gru_step_backward_source("float32", False),
        "other rows": moves.resize_source(False),
    }


@pytest.mark.skipif(_COMPILER is None, reason="a C++ compiler")
def test_a_compiler_accepts_the_text(tmp_path: Path) -> None:
    """All kernels in one translation unit: what stands before each is there once."""
    sources = list(_sources().values())
    file = tmp_path / "kernels.cpp"
    parts = []
    for number, source in enumerate(sources):
        parts.append(f"namespace n{number} {{\n{_own_part(source)}\n}}")
    before = next(each for each in sources if "philox" in each)
    file.write_text(before[: before.index("typedef float C;")] + "\n".join(parts))
    done = subprocess.run(
        [str(_COMPILER), "-std=c++17", "-fsyntax-only", "-w", str(file)], check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[:2000]


def _own_part(source: str) -> str:
    if "philox" not in source:
        return source.removeprefix(functions())
    starts = ("typedef float C;", "typedef u64 C;", "struct Arguments")
    return next(source[source.index(each) :] for each in starts if each in source)


def _nvrtc() -> Any:
    try:
        from cupy.cuda import compiler
        from cupy_backends.cuda.libs import nvrtc

        nvrtc.getVersion()
        compiler.compile_using_nvrtc("", arch="90")  # on some machines it asks the driver, which may see no GPU
    except Exception:
        return None
    return nvrtc


@pytest.mark.skipif(_nvrtc() is None, reason="the compiler of CUDA, which needs no GPU")
def test_nvrtc_accepts_the_text() -> None:
    from cupy.cuda import compiler

    for name, source in _sources().items():
        assert compiler.compile_using_nvrtc(source, ("--std=c++17",), arch="90"), name
