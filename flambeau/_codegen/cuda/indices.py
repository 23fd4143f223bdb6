"""The kernel that looks for indices outside of what they index."""

from __future__ import annotations

from .elementwise import functions
from .types import TYPES

THREADS = 256


def outside_source(dtype: str) -> str:
    """The kernel that notes a number below the first bound, or not below the second one."""
    return f"""{functions()}
struct Arguments {{ i64 count; const {TYPES[dtype].memory}* in; i64 low; i64 high; i64* fault; }};
KERNEL kernel(const __grid_constant__ Arguments a) {{
  const i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= a.count) return;
  const i64 number = (i64)a.in[i];
  if (number < a.low || number >= a.high) {{ a.fault[0] = 1; a.fault[1] = number; }}
}}
"""
