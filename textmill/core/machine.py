"""What this machine offers: the processors that this process may really use.

What is not covered: GPUs (`train/device.py` asks torch).
"""

from __future__ import annotations

import os
import platform
from pathlib import Path


def num_cpus() -> int:
    """Return the processors this process may use: its affinity, cut by a cgroup v2 quota."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        if quota != "max":
            allowed = min(allowed, max(1, int(quota) // int(period)))
    except (OSError, ValueError):
        # No cgroup v2 here: the affinity is all that is known.
        return allowed
    return allowed


def has_bf16_units() -> bool:
    """Return whether the processor multiplies bfloat16 in units of its own (AVX512-BF16, AMX, Arm bf16)."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        # No Linux: the processor does not tell.
        return False
    flags = {flag for line in lines if line.startswith(("flags", "Features")) for flag in line.split()}
    return bool(flags & {"avx512_bf16", "amx_bf16", "bf16"})


def describe_machine() -> dict[str, str | int | float]:
    """Return processor, cores, memory and Python, for reports and benchmark results."""
    return {
        "processor": _processor(),
        "cpus": num_cpus(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "system": platform.system(),
        "python": platform.python_version(),
    }


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        return platform.machine()
    return platform.machine()
