"""Run the examples of `flambeau.distributed` in every process of a group; the first one compares the output.

flambeau launch --nproc-per-node=2 tests/distributed/docstring_program.py
"""

from __future__ import annotations

import sys

import flambeau.distributed as dist
from flambeau.distributed import checkpoint, fsdp, pipelining, tensor
from flambeau.distributed.tensor import parallel
from tests.test_docs import EXAMPLES, IN_TWO_PROCESSES, complaints_about

LOADED = (checkpoint, fsdp, parallel, pipelining, tensor)
"""Packages below `dist` that examples name without importing them."""

if __name__ == "__main__":
    dist.init_process_group("gloo")
    chosen = [each for each in EXAMPLES if each.name.startswith(IN_TWO_PROCESSES)]
    wrong = []
    for test in chosen:
        test.globs["dist"] = dist
        found = complaints_about(test)
        if found and dist.get_rank() == 0:  # the output shown is that of rank 0
            wrong.append(found)
        dist.barrier()
    dist.destroy_process_group()
    if wrong:
        sys.exit("".join(wrong))
    print(f"{len(chosen)} examples ran")
