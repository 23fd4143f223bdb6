"""How this build was made, under the names of `torch.__config__`."""

from __future__ import annotations

import platform

import numpy as np

from flambeau._core.process.threads import num_threads


def show() -> str:
    """What kernels come from, in words."""
    from flambeau import version
    from flambeau.backends.cpu import get_cpu_capability

    return (
        "Flambeau built with:\n"
        f"  - Flambeau {version.__flambeau_version__}, for the API of PyTorch {version.PYTORCH}\n"
        f"  - Python {platform.python_version()}, NumPy {np.__version__}\n"
        f"  - LAPACK and BLAS are NumPy's\n"
        f"  - CPU capability usage: {get_cpu_capability()}\n"
    )


def parallel_info() -> str:
    """Over how many threads kernels work."""
    return f"Flambeau/Parallel:\n\tget_num_threads() : {num_threads()}\n"
