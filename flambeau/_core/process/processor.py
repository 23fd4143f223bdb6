"""The kind of processor, on which the last bits of some of PyTorch's numbers depend.

| | x86-64 | elsewhere |
|---|---|---|
| blocks of float32 normal numbers | polynomials with fused sums (`normal_polynomials.py`) | the C library |
| `x * y + z` in fills (`uniform_`, `normal_`, ...) | fused: these files are compiled for AVX2 | fused |
| `x * y + z` in gamma numbers | rounded twice: this file is compiled for the oldest x86-64 | fused |
| float64 to float16 | rounded twice: by way of float32 | rounded once |
"""

from __future__ import annotations

import platform

ON_X86_64 = platform.machine().lower() in ("x86_64", "amd64")
