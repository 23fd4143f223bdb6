"""Generated code for systems that are not this one: LLVM verifies it and writes objects in each system's format.

Programs run here, and every module that they load is written once more for Windows and for macOS, on x86-64 and on ARM.
What such an object refers to must exist there.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("llvmlite")

ROOT = Path(__file__).parents[2]
TARGETS = {
    "x86_64-pc-windows-msvc": ("x86-64-v3", "+avx2,+fma,+f16c", "6486"),
    "aarch64-pc-windows-msvc": ("cortex-a78", "+neon", "64aa"),
    "x86_64-apple-macosx11.0.0": ("x86-64-v3", "+avx2,+fma,+f16c", "cffaedfe"),
    "arm64-apple-macosx11.0.0": ("apple-m1", "", "cffaedfe"),
}
"""Processor, features, and the bytes with which an object of that system begins."""

LIBRARY = {"free", "malloc", "memcpy", "memset", "pow", "fma", "fmaf", "fmod", "fmodf", "memmove"}
"""What is called of the C library, on every system."""
POSIX = {
    "madvise", "mmap", "munmap", "pthread_cond_broadcast", "pthread_cond_init", "pthread_cond_signal",
    "pthread_cond_wait", "pthread_create", "pthread_detach", "pthread_mutex_init", "pthread_mutex_lock",
    "pthread_mutex_unlock", "pthread_sigmask", "sched_yield", "sigfillset",
}  # fmt: skip
WINDOWS = {
    "AcquireSRWLockExclusive", "CloseHandle", "CreateThread", "InitializeConditionVariable", "InitializeSRWLock",
    "ReleaseSRWLockExclusive", "SleepConditionVariableSRW", "SwitchToThread", "VirtualAlloc", "VirtualFree",
    "WakeAllConditionVariable", "WakeConditionVariable",
}  # fmt: skip

PROGRAM = """
import json, sys
from flambeau._codegen.machine import allocator, engine, threads
import llvmlite.binding as llvm

loads, load = [], engine.Engine.load
def recorded(self, name, parameters, write, exports):
    loads.append((name, write))
    return load(self, name, parameters, write, exports)
engine.Engine.load = recorded

import flambeau as torch
torch.manual_seed(0)
x = torch.randn(200, 300, requires_grad=True)
y = torch.softmax(torch.layer_norm((x * 2 + x.exp()).tanh(), [300]), -1)
(y.sum() + x.pow(2).mean() + x.amax(1).sum() + x.cumsum(0).mean() + torch.nn.functional.gelu(x).std()).backward()
(x @ x.T).sum().backward()
torch.rand(70_000).sort()
torch.randperm(70_000)
torch.cat([x, x]).bfloat16().half().double().long()
net = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.ReLU(), torch.nn.MaxPool2d(2))
optimizer = torch.optim.AdamW(net.parameters())
net(torch.randn(8, 3, 40, 40)).square().mean().backward()
optimizer.step()
torch.nn.functional.cross_entropy(x, torch.arange(200)).backward()

found = {}
host = engine.engine()
for triple, (processor, features) in json.loads(sys.argv[1]).items():
    other = engine._ENGINE = engine.Engine(triple, processor, features)
    names, starts, calls = set(), set(), set()
    modules = [("threads", lambda: threads.write(other.new_module("threads"))),
               ("allocator", lambda: allocator.write(other.new_module("allocator")))]
    for name, write in [*modules, *loads]:
        if name in ("threads", "allocator") and (name, write) not in modules:
            continue
        module = write()
        module.triple, module.data_layout = triple, str(other._machine.target_data)
        parsed = other.optimised(module)  # verified in it
        code = other._machine.emit_object(parsed)
        names.add(name)
        starts.add(code[:4].hex())
        calls |= {f.name for f in parsed.functions if f.is_declaration and not f.name.startswith("llvm.")}
    found[triple] = {"names": sorted(names), "starts": sorted(starts), "calls": sorted(calls)}
engine._ENGINE = host
print(json.dumps(found))
"""


def test_kernels_are_written_for_every_system() -> None:
    targets = json.dumps({triple: given[:2] for triple, given in TARGETS.items()})
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM, targets],
        cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr[-3000:]
    found = json.loads(run.stdout.splitlines()[-1])
    for triple, (_, _, start) in TARGETS.items():
        of = found[triple]
        assert len(of["names"]) >= 20
        assert {"threads", "allocator"} <= set(of["names"])
        assert all(each.startswith(start) for each in of["starts"]), (triple, of["starts"])
        python = {name for name in of["calls"] if name.startswith(("Py", "flambeau_"))}
        system = set(of["calls"]) - python - LIBRARY
        assert system == (WINDOWS if "windows" in triple else POSIX - {"madvise"}), (triple, system)
