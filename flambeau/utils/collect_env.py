"""What a report of a bug should say about the machine, under the names of `torch.utils.collect_env`."""

from __future__ import annotations

import os
import platform
import re
import shlex
import subprocess
import sys
from collections import namedtuple
from pathlib import Path
from typing import Any

from .. import cuda
from .._core.process.threads import num_threads

SystemEnv = namedtuple(
    "SystemEnv",
    "torch_version is_debug_build cuda_compiled_version gcc_version clang_version cmake_version os libc_version "
    "python_version python_platform is_cuda_available cuda_runtime_version cuda_module_loading nvidia_driver_version "
    "nvidia_gpu_models cudnn_version is_xpu_available pip_version pip_packages conda_packages hip_compiled_version "
    "hip_runtime_version miopen_runtime_version caching_allocator_config is_xnnpack_available cpu_info",
)

# ----- what other programs say -------------------------------------------------------------------------------------


def run(command: str | list[str]) -> tuple[int, str, str]:
    """The exit status of a command, and what it printed and complained of; 127 if there is no such program."""
    words = shlex.split(command) if isinstance(command, str) else command
    try:
        done = subprocess.run(words, capture_output=True, text=True, errors="replace", check=False)
    except OSError as error:
        return 127, "", str(error)
    return done.returncode, done.stdout.strip(), done.stderr.strip()


def run_and_read_all(run_lambda: Any, command: Any) -> str | None:
    """What a command printed; None if it failed."""
    status, printed, _ = run_lambda(command)
    return printed if status == 0 else None


def run_and_parse_first_match(run_lambda: Any, command: Any, regex: str) -> str | None:
    """The first group of a pattern in what a command printed; None if there is none."""
    found = re.search(regex, run_and_read_all(run_lambda, command) or "")
    return None if found is None else found[1]


def run_and_return_first_line(run_lambda: Any, command: Any) -> str | None:
    """The first line that a command printed; None if it failed."""
    printed = run_and_read_all(run_lambda, command)
    return None if printed is None else printed.partition("\n")[0]


def get_gcc_version(run_lambda: Any) -> str | None:
    """The version of the C compiler of GNU."""
    return run_and_parse_first_match(run_lambda, "gcc --version", r"gcc (.*)")


def get_clang_version(run_lambda: Any) -> str | None:
    """The version of the C compiler of LLVM."""
    return run_and_parse_first_match(run_lambda, "clang --version", r"clang version (.*)")


def get_cmake_version(run_lambda: Any) -> str | None:
    """The version of CMake."""
    return run_and_parse_first_match(run_lambda, "cmake --version", r"cmake (.*)")


def get_conda_packages(run_lambda: Any, patterns: Any = None) -> str | None:
    """The packages that conda has installed, a line each; None without conda."""
    listed = run_and_read_all(run_lambda, [os.environ.get("CONDA_EXE", "conda"), "list"])
    if listed is None:
        return None
    wanted = patterns or ("torch", "numpy", "flambeau")
    lines = (line for line in listed.splitlines() if not line.startswith("#"))
    return "\n".join(line for line in lines if any(each in line for each in wanted))


def get_linux_pkg_version(run_lambda: Any, pkg_name: str) -> str:
    """The version of a package of Debian's; "N/A" if it is not installed."""
    return run_and_parse_first_match(run_lambda, ["dpkg", "-s", pkg_name], r"Version: (.*)") or "N/A"


def get_lsb_version(run_lambda: Any) -> str | None:
    """The distribution of Linux, as `lsb_release` says it."""
    return run_and_parse_first_match(run_lambda, "lsb_release -a", r"Description:\t(.*)")


def check_release_file(run_lambda: Any) -> str | None:
    """The distribution of Linux, as its files say it."""
    files = sorted(str(each) for each in Path("/etc").glob("*-release"))
    return run_and_parse_first_match(run_lambda, ["cat", *files], r'PRETTY_NAME="(.*)"') if files else None


def get_mac_version(run_lambda: Any) -> str | None:
    """The version of macOS."""
    return run_and_parse_first_match(run_lambda, "sw_vers -productVersion", r"(.*)")


def get_windows_version(run_lambda: Any) -> str | None:
    """The version of Windows."""
    return platform.version() if platform.system() == "Windows" else None


def get_platform() -> str:
    """The kind of system: linux, win32, cygwin or darwin."""
    return "linux" if sys.platform.startswith("linux") else sys.platform


# ----- devices -----------------------------------------------------------------------------------------------------


def get_nvidia_smi() -> str:
    """The program that knows of NVIDIA's devices."""
    return "nvidia-smi"


def get_nvidia_driver_version(run_lambda: Any) -> str | None:
    """The version of NVIDIA's driver."""
    return run_and_parse_first_match(run_lambda, get_nvidia_smi(), r"Driver Version: (.*?) ")


def get_gpu_info(run_lambda: Any) -> str | None:
    """The devices of NVIDIA, a line each; None without any."""
    printed = run_and_read_all(run_lambda, [get_nvidia_smi(), "-L"])
    return None if printed is None else re.sub(r" \(UUID: .+?\)", "", printed)


def get_running_cuda_version(run_lambda: Any) -> str | None:
    """The version of CUDA's compiler."""
    return run_and_parse_first_match(run_lambda, "nvcc --version", r"release .+ V(.*)")


def get_cudnn_version(run_lambda: Any) -> str | None:
    """The places of cuDNN's library; None without any."""
    listed = run_and_read_all(run_lambda, "ldconfig -p") or ""
    found = sorted({os.path.realpath(each) for each in re.findall(r"=> (.*libcudnn\S*)", listed)})
    return "\n".join(found) or None


def get_intel_gpu_driver_version(run_lambda: Any) -> str:
    """The drivers of Intel's devices: none is used here."""
    return "N/A"


def get_intel_gpu_onboard(run_lambda: Any) -> str:
    """The devices of Intel on the machine: none is used here."""
    return "N/A"


def get_intel_gpu_detected(run_lambda: Any) -> str:
    """The devices of Intel that are used: none."""
    return "N/A"


def get_cuda_module_loading_config() -> str:
    """Whether kernels of CUDA are loaded when they are first called."""
    return os.environ.get("CUDA_MODULE_LOADING", "LAZY") if cuda.is_available() else "N/A"


def get_cachingallocator_config() -> dict[str, str]:
    """The settings of allocators that the environment has."""
    names = ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF", "PYTORCH_ALLOC_CONF")
    return {name: os.environ[name] for name in names if os.environ.get(name)}


def is_xnnpack_available() -> str:
    """Whether one more library of kernels is used: it is not."""
    return "False"


# ----- the machine -------------------------------------------------------------------------------------------------


def get_os(run_lambda: Any) -> str:
    """The name and version of the operating system."""
    return f"{platform.system()} {platform.release()} ({platform.machine()})"


def get_python_platform() -> str:
    """What Python says about the machine."""
    return platform.platform()


def get_libc_version() -> str:
    """The name and version of the C library."""
    return "-".join(platform.libc_ver()) if platform.system() == "Linux" else "N/A"


def get_cpu_info(run_lambda: Any) -> str:
    """The model of the processor and its cores."""
    return f"{platform.processor() or platform.machine()}, {num_threads()} threads for kernels"


def get_pip_packages(run_lambda: Any, patterns: Any = None) -> tuple[str, str]:
    """The installed packages that matter."""
    from importlib import metadata

    wanted = patterns or {"numpy", "flambeau", "ml-dtypes", "torch", "mypy"}
    found = sorted(
        f"{each.metadata['Name']}=={each.version}"
        for each in metadata.distributions()
        if (each.metadata["Name"] or "").lower() in wanted
    )
    return "pip3", "\n".join(found)


def get_env_info() -> Any:
    """All of it, as a named tuple."""
    import flambeau

    pip, packages = get_pip_packages(run)
    return SystemEnv(
        torch_version=flambeau.__version__,
        is_debug_build="False",
        cuda_compiled_version="None",
        gcc_version=get_gcc_version(run),
        clang_version=get_clang_version(run),
        cmake_version=get_cmake_version(run),
        os=get_os(run),
        libc_version=get_libc_version(),
        python_version=sys.version.replace("\n", " "),
        python_platform=get_python_platform(),
        is_cuda_available=str(cuda.is_available()),
        cuda_runtime_version=get_running_cuda_version(run),
        cuda_module_loading=get_cuda_module_loading_config(),
        nvidia_driver_version=get_nvidia_driver_version(run),
        nvidia_gpu_models=get_gpu_info(run),
        cudnn_version=get_cudnn_version(run),
        is_xpu_available="False",
        pip_version=pip,
        pip_packages=packages,
        conda_packages=get_conda_packages(run),
        hip_compiled_version="N/A",
        hip_runtime_version="N/A",
        miopen_runtime_version="N/A",
        caching_allocator_config=get_cachingallocator_config(),
        is_xnnpack_available=is_xnnpack_available(),
        cpu_info=get_cpu_info(run),
    )


def pretty_str(envinfo: Any) -> str:
    """The report as text."""
    return "\n".join(f"{name.replace('_', ' ')}: {value}" for name, value in envinfo._asdict().items())


def get_pretty_env_info() -> str:
    """The report as text."""
    return pretty_str(get_env_info())


def main() -> None:
    """Print the report about this machine."""
    sys.stdout.write(get_pretty_env_info() + "\n")


if __name__ == "__main__":
    main()
