"""Extensions in C++, under the names of `torch.utils.cpp_extension`: Flambeau has no C++ to be extended."""

from __future__ import annotations

import os
import shutil

from .._core.names.absent import Table

CUDA_HOME: str | None = None
ROCM_HOME: str | None = None
IS_WINDOWS = os.name == "nt"

__getattr__, __dir__ = (
    Table(__name__)
    .absent(
        "it is written in Python, and has no C++ interface that an extension could be compiled against",
        functions="CUDAExtension CppExtension SyclExtension check_compiler_is_gcc check_compiler_ok_for_platform "
        "get_compiler_abi_compatibility_and_version include_paths library_paths load load_inline "
        "remove_extension_h_precompiler_headers",
        classes="BuildExtension",
    )
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
