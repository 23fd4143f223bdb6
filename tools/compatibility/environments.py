"""Two environments with the same libraries: one has PyTorch, the other Flambeau in its place."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

from .compare import Environment

ROOT = Path(__file__).parents[2]
LIBRARIES = [
    "accelerate",
    "botorch",
    "captum",
    "diffusers",
    "e3nn",
    "einops",
    "fastai",
    "gpytorch",
    "higher",
    "kornia",
    "lightning",
    "opacus",
    "peft",
    "pyro-ppl",
    "safetensors",
    "segmentation-models-pytorch",
    "sentence-transformers",
    "skorch",
    "timm",
    "torch-geometric",
    "torchdiffeq",
    "torchmetrics",
    "torchsde",
    "torchvision",
    "transformers",
    "ultralytics",
]
PYTORCH = "torch==2.13.0"
_NOT_COPIED = re.compile(r"(torch|triton|pip|setuptools|numpy|llvmlite|ml[-_]dtypes|flambeau|(nvidia|cuda)[-_].*)==")


def _pip(folder: Path, *arguments: str) -> None:
    subprocess.run([folder / "bin" / "python", "-m", "pip", "install", "--quiet", *arguments], check=True)


def make(folder: Path) -> tuple[Environment, Environment]:
    """The environments with Flambeau and with PyTorch below a folder, made if they are not there."""
    ours, theirs = folder / "flambeau", folder / "pytorch"
    if not theirs.exists():
        subprocess.run([sys.executable, "-m", "venv", theirs], check=True)
        _pip(theirs, PYTORCH, *LIBRARIES)
        stand_ins_for_cuda(theirs)
    if not ours.exists():
        subprocess.run([sys.executable, "-m", "venv", ours], check=True)
        _pip(ours, "--editable", str(ROOT))
        _pip(ours, str(ROOT / "packages" / "torch-shim"))
        listed = subprocess.run(
            [theirs / "bin" / "python", "-m", "pip", "list", "--format=freeze"],
            check=True,
            capture_output=True,
            text=True,
        ).stdout.splitlines()
        same = [each for each in listed if not _NOT_COPIED.match(each)]
        _pip(ours, "--no-deps", *same)
    # A package that is installed has its bytecode, as the libraries have; this one is used where it stands.
    subprocess.run([ours / "bin" / "python", "-m", "compileall", "-q", "-j", "0", ROOT / "flambeau"], check=True)
    return Environment(ours), Environment(theirs, theirs / "cuda-stand-ins")


def versions(environment: Path) -> dict[str, str]:
    """The versions of the libraries in an environment."""
    listed = subprocess.run(
        [environment / "bin" / "python", "-m", "pip", "list", "--format=freeze"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    found = dict(line.split("==") for line in listed.splitlines() if "==" in line)
    return {name.lower().replace("-", "_"): version for name, version in found.items()}


def stand_ins_for_cuda(folder: Path) -> None:
    """Let torchvision's compiled part load beside PyTorch's build for the CPU.

    Its wheel for ARM is linked with libraries of CUDA's, of which it calls nothing on the CPU: empty ones will do. They
    need a C compiler; without one torchvision does not load there, and has nothing to be compared with.
    """
    into = folder / "cuda-stand-ins"
    into.mkdir()
    packages = next((folder / "lib").glob("python*/site-packages"))
    compiler, nm = shutil.which("cc"), shutil.which("nm")
    compiled = packages / "torchvision" / "_C.so"
    if compiler is None or nm is None or not compiled.exists():
        return
    symbols = subprocess.run(
        [nm, "-D", "--undefined-only", compiled], check=True, capture_output=True, text=True
    ).stdout
    lines = [
        f"void *{name};" if name.endswith("9allocatorE") else f"void {name}(void) {{ abort(); }}"
        for name in sorted(set(re.findall(r"\b_ZNK?(?:3c10|2at)4cuda\w+", symbols)))
    ]
    source = into / "cuda.c"
    source.write_text("\n".join(["#include <stdlib.h>", *lines]) + "\n")
    for library in ("libc10_cuda.so", "libtorch_cuda.so"):
        subprocess.run(
            [compiler, "-shared", "-fPIC", f"-Wl,-soname,{library}", "-o", into / library, source], check=True
        )
    for runtime in (packages / "torchvision.libs").glob("libcudart.*.so.*"):
        shutil.copy(runtime, into / f"libcudart.so.{runtime.name.rpartition('.')[2]}")
