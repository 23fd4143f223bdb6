"""The fuzzers: `python -m tests.fuzz KIND`. See `--help`."""

from __future__ import annotations

import os

if __name__ == "__main__":
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):  # before they are read: processes are the parallelism
        os.environ[name] = "1"
    os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")  # the CPU is compared
    from .suite import main

    raise SystemExit(main())
