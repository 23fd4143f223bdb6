"""What a report of a bug should say about the machine, under the names of `torch.utils.collect_env`."""

from __future__ import annotations

import platform
import sys
from collections import namedtuple
from typing import Any

SystemEnv = namedtuple(
    "SystemEnv",
    "torch_version is_debug_build cuda_compiled_version python_version python_platform is_cuda_available os "
    "libc_version pip_packages cpu_info",
)


def get_os(run_lambda: Any) -> str:
    """The operating system."""
    return f"{platform.system()} {platform.release()} ({platform.machine()})"


def get_python_platform() -> str:
    """What Python says about the machine."""
    return platform.platform()


def get_libc_version() -> str:
    """The C library."""
    return "-".join(platform.libc_ver()) if platform.system() == "Linux" else "N/A"


def get_cpu_info(run_lambda: Any) -> str:
    """The processor."""
    from .._core.process.threads import num_threads

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

    return SystemEnv(
        torch_version=flambeau.__version__,
        is_debug_build="False",
        cuda_compiled_version="None",
        python_version=sys.version.replace("\n", " "),
        python_platform=get_python_platform(),
        is_cuda_available="False",
        os=get_os(None),
        libc_version=get_libc_version(),
        pip_packages=get_pip_packages(None)[1],
        cpu_info=get_cpu_info(None),
    )


def pretty_str(envinfo: Any) -> str:
    """The report as text."""
    return "\n".join(f"{name.replace('_', ' ')}: {value}" for name, value in envinfo._asdict().items())


def get_pretty_env_info() -> str:
    """The report as text."""
    return pretty_str(get_env_info())


def main() -> None:
    """Print the report."""
    sys.stdout.write(get_pretty_env_info() + "\n")


if __name__ == "__main__":
    main()
