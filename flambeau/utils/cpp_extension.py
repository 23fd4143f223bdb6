"""Extensions in C++, under the names of `torch.utils.cpp_extension`: Flambeau has no C++ to be extended."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess

from .._core.names.absent import Table
from ..torch_version import TorchVersion

CUDA_HOME: str | None = None
ROCM_HOME: str | None = None
IS_WINDOWS = os.name == "nt"
IS_LINUX = platform.system() == "Linux"

__getattr__, __dir__ = (
    Table(__name__)
    .absent(
        "it is written in Python, and has no C++ interface that an extension could be compiled against",
        functions="CppExtension include_paths library_paths load load_inline",
        classes="BuildExtension",
    )
    .raising(
        OSError,
        "CUDA_HOME environment variable is not set. Please set it to your CUDA install root.",
        functions="CUDAExtension",
    )
    .raising(OSError, "SYCL runtime is not found: extensions for it need its compiler", functions="SyclExtension")
    .parts()
)


def get_cxx_compiler() -> str:
    """The C++ compiler that the environment names."""
    return os.environ.get("CXX", "cl" if IS_WINDOWS else "c++")


def get_default_build_root() -> str:
    """The folder in which PyTorch compiles extensions."""
    return os.path.realpath(os.path.join(os.path.expanduser("~"), ".cache", "torch_extensions"))


def is_ninja_available() -> bool:
    """Whether the build tool ninja is installed."""
    return shutil.which("ninja") is not None


def verify_ninja_availability() -> None:
    """Raise a RuntimeError unless ninja is installed."""
    if not is_ninja_available():
        raise RuntimeError("Ninja is required to load C++ extensions (pip install ninja to get it)")


def _answer(compiler: str, *options: str) -> str:
    """What a compiler says; nothing if there is none of that name."""
    if shutil.which(compiler) is None:
        return ""
    done = subprocess.run([compiler, *options], capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


def check_compiler_is_gcc(compiler: str) -> bool:
    """Whether a command is GCC's C++ compiler."""
    return "gcc version" in _answer(compiler, "-v")


def check_compiler_ok_for_platform(compiler: str) -> bool:
    """Whether a compiler is the one that the platform's programs are built with: GCC on Linux, Clang on macOS."""
    if IS_WINDOWS:
        return True
    if shutil.which(compiler) is None:
        return False
    if IS_LINUX:
        return check_compiler_is_gcc(compiler)
    return "clang" in _answer(compiler, "--version").lower()


def get_compiler_abi_compatibility_and_version(compiler: str) -> tuple[bool, TorchVersion]:
    """Whether programs of a compiler and of the platform's go together, and its version, "0.0.0" if unknown."""
    if not check_compiler_ok_for_platform(compiler):
        return False, TorchVersion("0.0.0")
    found = re.search(r"\d+\.\d+(\.\d+)?", _answer(compiler, "-dumpfullversion", "-dumpversion"))
    version = TorchVersion(found.group() if found else "0.0.0")
    return version >= ((5, 0, 0) if IS_LINUX else (0, 0, 0)), version


def remove_extension_h_precompiler_headers() -> None:
    """Delete PyTorch's headers that were compiled in advance: there are none."""
