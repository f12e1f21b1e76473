import os
from pathlib import Path

from textmill.core.machine import describe_machine, has_bf16_units, num_cpus


def test_no_more_processors_are_counted_than_the_process_may_use():
    assert 1 <= num_cpus() <= len(os.sched_getaffinity(0))


def test_the_machine_is_described_in_plain_values():
    assert all(isinstance(value, str | int | float) for value in describe_machine().values())


def test_bf16_units_are_those_that_the_kernel_lists():
    flags = Path("/proc/cpuinfo").read_text().split()
    assert has_bf16_units() == any(flag in flags for flag in ("avx512_bf16", "amx_bf16", "bf16"))
