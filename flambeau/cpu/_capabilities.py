"""What the processor can do, as the operating system tells it."""

from __future__ import annotations

import functools
import os
import platform
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

_X86 = {
    "sse": "sse", "sse2": "sse2", "sse3": "pni", "ssse3": "ssse3", "sse4_1": "sse4_1", "sse4_2": "sse4_2",
    "sse4a": "sse4a", "avx": "avx", "avx2": "avx2", "avx_vnni": "avx_vnni", "avx_vnni_int8": "avx_vnni_int8",
    "avx_vnni_int16": "avx_vnni_int16", "avx_ne_convert": "avx_ne_convert", "avx512_f": "avx512f",
    "avx512_cd": "avx512cd", "avx512_dq": "avx512dq", "avx512_bw": "avx512bw", "avx512_vl": "avx512vl",
    "avx512_ifma": "avx512ifma", "avx512_vbmi": "avx512vbmi", "avx512_vbmi2": "avx512_vbmi2",
    "avx512_bitalg": "avx512_bitalg", "avx512_vpopcntdq": "avx512_vpopcntdq", "avx512_vnni": "avx512_vnni",
    "avx512_bf16": "avx512_bf16", "avx512_fp16": "avx512_fp16", "avx512_vp2intersect": "avx512_vp2intersect",
    "avx512_4vnniw": "avx512_4vnniw", "avx512_4fmaps": "avx512_4fmaps", "avx10_1": "avx10_1", "avx10_2": "avx10_2",
    "amx_tile": "amx_tile", "amx_int8": "amx_int8", "amx_bf16": "amx_bf16", "amx_fp16": "amx_fp16", "fma3": "fma",
    "fma4": "fma4", "f16c": "f16c", "bmi": "bmi1", "bmi2": "bmi2", "popcnt": "popcnt", "lzcnt": "abm", "aes": "aes",
    "sha": "sha_ni", "clflush": "clflush", "clflushopt": "clflushopt", "clwb": "clwb",
}  # fmt: skip
_ARM = {
    "neon": "asimd", "fp16_arith": "asimdhp", "bf16": "bf16", "i8mm": "i8mm", "dot": "asimddp", "sve": "sve",
    "sve2": "sve2", "sve_bf16": "svebf16", "sve_i8mm": "svei8mm", "sme": "sme", "sme2": "sme2", "atomics": "atomics",
    "rdm": "asimdrdm", "fhm": "asimdfhm", "jscvt": "jscvt", "fcma": "fcma", "aes": "aes", "sha1": "sha1",
    "sha2": "sha2", "pmull": "pmull", "crc32": "crc32",
}  # fmt: skip
"""By PyTorch's name of a capability the operating system's."""
_CPUS = Path("/sys/devices/system/cpu/cpu0/cache")


def _processor() -> dict[str, str]:
    """What Linux says about the first processor; nothing elsewhere."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return {}
    pairs = (line.partition(":") for line in text.split("\n\n")[0].splitlines())
    return {name.strip(): value.strip() for name, _, value in pairs}


def _cache_size(level: int, kind: str) -> int:
    """The bytes of a cache of the first processor, 0 if unknown."""
    for folder in sorted(_CPUS.glob("index*")):
        try:
            found = [(folder / name).read_text().strip() for name in ("level", "type", "size")]
        except OSError:
            continue
        if found[0] == str(level) and found[1] in (kind, "Unified"):
            number, unit = found[2][:-1], found[2][-1:]
            return int(number) * {"K": 1 << 10, "M": 1 << 20}.get(unit, 1)
    return 0


@functools.cache
def get_capabilities() -> Mapping[str, Any]:
    """What the processor can do, by name, with its architecture, its name, the sizes of its caches and its cores."""
    found = _processor()
    machine = platform.machine().lower()
    is_x86 = machine in ("x86_64", "amd64", "i386", "i686")
    flags = set((found.get("flags") or found.get("Features") or "").split())
    cores = os.cpu_count() or 1
    answers: dict[str, Any] = {name: flag in flags for name, flag in (_X86 if is_x86 else _ARM).items()}
    answers |= {
        "architecture": "x86_64" if is_x86 else "aarch64" if machine in ("aarch64", "arm64") else machine,
        "cpu_name": found.get("model name", platform.processor() or machine),
        "num_logical_cores": cores,
        "num_physical_cores": int(found.get("cpu cores", cores)),
        "num_sockets": 1 + int(found.get("physical id", 0)),
        "l1d_cache_size": _cache_size(1, "Data"),
        "l2_cache_size": _cache_size(2, "Unified"),
    }
    return MappingProxyType(answers)
